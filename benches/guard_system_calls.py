"""System calls of a guard for each allowed call: `python3 benches/guard_system_calls.py PROGRAM`.

A guard on stdio, in front of a server that answers at once, runs under strace with 50 calls and with 250. The
difference, divided by 200, is printed; what the server does is not counted. `PROGRAM` is `target/release/countersign`:
without optimisations, each file that is closed takes one call more. The number of `readlink` is that of the folders
above a path.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

RULES = "version = 1\n[[rule]]\nid = 'work'\nallow = 'mcp:bench/work'\n"
PATH = "notes.txt"
TOOL = {"name": "work", "inputSchema": {"type": "object"}}


def messages(descriptor):
    """The JSON in the lines that come in, each as soon as it is there."""
    rest = b""
    while block := os.read(descriptor, 65536):
        *lines, rest = (rest + block).split(b"\n")
        yield from map(json.loads, lines)


def send(descriptor, message):
    os.write(descriptor, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def serve():
    results = {"tools/list": {"tools": [TOOL]}, "tools/call": {"content": []}}
    for request in messages(0):
        method = request["method"]
        if method == "initialize":
            version = request["params"]["protocolVersion"]
            info = {"name": "bench", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            send(1, {"id": request["id"], "result": result})
        elif method in results:
            send(1, {"id": request["id"], "result": results[method]})
        elif "id" in request:
            send(1, {"id": request["id"], "error": {"code": -32601, "message": "no such method"}})


def calls(command, directory, arguments, count):
    pipe = subprocess.PIPE
    guard = subprocess.Popen(command, cwd=directory, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    incoming, outgoing = messages(guard.stdout.fileno()), guard.stdin.fileno()

    def result(number, method, params):
        send(outgoing, {"id": number, "method": method, "params": params})
        return next(it for it in incoming if it.get("id") == number and "method" not in it)["result"]

    client = {"name": "bench", "version": "1"}
    result(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
    send(outgoing, {"method": "notifications/initialized"})
    for number in range(2, count + 2):
        answer = result(number, "tools/call", {"name": "work", "arguments": arguments})
        assert not answer.get("isError"), answer
    guard.stdin.close()
    guard.wait()


def counted(program, arguments, count):
    with tempfile.TemporaryDirectory() as home:
        project, rules, trace = f"{home}/project", f"{home}/rules.toml", f"{home}/trace"
        os.mkdir(project)
        for file, text in [(rules, RULES), (f"{project}/{PATH}", "")]:
            with open(file, "w") as file:
                file.write(text)
        guard = [os.path.abspath(program), "guard", "--home", home, "--name", "bench", "--rules", rules]
        guard += ["--store", f"sqlite:{home}/asks.db", "--danger-accept-all-tools"]
        server = [sys.executable, os.path.abspath(__file__)]
        calls(["strace", "-f", "-o", trace, *guard, "--", *server], project, arguments, count)
        with open(trace) as file:
            lines = [line.split(None, 1) for line in file]
    servers = {process for process, what in lines if f'execve("{sys.executable}"' in what}
    names = [re.match(r"(\w+)\(", what) for process, what in lines if process not in servers]
    return collections.Counter(name[1] for name in names if name)


if len(sys.argv) == 1:
    serve()
else:
    for title, arguments in [("no argument", {}), ("a path", {"path": PATH})]:
        few, many = (counted(sys.argv[1], arguments, count) for count in (50, 250))
        each = {name: (many[name] - few[name]) / 200 for name in many}
        print(f"{title}: {sum(each.values()):.1f} for each call")
        for name, count in sorted(each.items(), key=lambda it: -it[1]):
            if count >= 0.05:
                print(f"  {name:<12} {count:.1f}")
