# A throw-away PostgreSQL. Prints the folder of its socket, then does what it reads, a word a line: `start`, `kill`, and
# `pool`, which starts PgBouncer in front of it: in transaction mode at port 6432, in statement mode at 6433, in session
# mode at 6434, and in transaction mode with one connection at 6435.
# When the writing process has ended, for any reason, the server and its files are removed too.
set -eu
trap '' INT
newest=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
PATH="$PATH:/usr/local/bin:$newest"
for program in initdb pg_ctl; do
    if ! command -v "$program" >/dev/null; then
        echo "the tests need PostgreSQL: there is no \`$program\` (.ci/postgres installs it)" >&2
        exit 1
    fi
done
folder=$(mktemp -d /tmp/countersign-pg-XXXXXX)
cd "$folder"

halt() {
    pid=$(head -n 1 "$folder/data/postmaster.pid" 2>/dev/null || true)
    if [ -n "$pid" ]; then
        # With its children at once, as when the machine fails. It is stopped first, so that it makes no more of them.
        kill -STOP "$pid" 2>/dev/null || true
        family="$pid $(ps -A -o pid=,ppid= | awk -v parent="$pid" '$2 == parent { print $1 }')"
        kill -9 $family 2>/dev/null || true
        tries=0
        for member in $family; do
            while kill -0 "$member" 2>/dev/null && [ "$tries" -lt 250 ]; do
                tries=$((tries + 1))
                sleep 0.02
            done
        done
        # Where no init process reaps ended processes, they look alive to the next start.
        if kill -0 "$pid" 2>/dev/null; then rm -f "$folder/data/postmaster.pid"; fi
    fi
}

pool() {
    PATH="$PATH:/usr/sbin"
    port=6432
    for name in transaction statement session one; do
        mode=$name size=20
        if [ "$name" = one ]; then mode=transaction size=1; fi
        cat >"$name.ini" <<END
[databases]
postgres = host=$folder dbname=postgres user=postgres
[pgbouncer]
unix_socket_dir = $folder
listen_port = $port
auth_type = any
pool_mode = $mode
default_pool_size = $size
END
        pgbouncer -q "$name.ini" >"$name.log" 2>&1 </dev/null &
        pools="${pools:-} $!"
        tries=0
        until [ -S ".s.PGSQL.$port" ]; do
            tries=$((tries + 1))
            if [ "$tries" -gt 250 ]; then
                echo "the tests need PgBouncer (.ci/postgres installs it):" >&2
                cat "$name.log" >&2
                exit 1
            fi
            sleep 0.02
        done
        port=$((port + 1))
    done
}

trap 'kill ${pools:-} 2>/dev/null || true; halt; cd /; rm -rf "$folder"' EXIT
initdb -D data -U postgres -A trust -N -E UTF8 --locale=C >log 2>&1 || { cat log >&2; exit 1; }
# One person has to say a password.
{ echo 'local all locked scram-sha-256'; cat data/pg_hba.conf; } >hba && mv hba data/pg_hba.conf
echo "$folder"

while read -r word; do
    case "$word" in
        start) pg_ctl -D data -w -t 60 -l log -o "-k '$folder' -c listen_addresses='' -c max_connections=300 ${PG_OPTIONS:-}" \
            start </dev/null >/dev/null 2>&1 || { cat log >&2; exit 1; } ;;
        kill) halt ;;
        pool) pool ;;
    esac
    echo done
done
