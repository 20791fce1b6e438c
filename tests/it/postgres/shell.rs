//! The shell, while the server is away.

use serde_json::json;

use crate::ledger::Shell;
use crate::support::postgres::Server;

#[test]
fn an_unreachable_server_is_a_one_line_error_and_changes_nothing() {
    let server = Server::start();
    let shell = Shell::on(&server);
    let pending = shell.ask();
    let approved = shell.approved(&json!({"tool": "rm", "args": {}, "questions": []}));
    let claimed = shell.approved(&json!({"tool": "rm", "args": {}, "questions": []}));
    assert_eq!(shell.claim(&claimed, "w", "60").told(), (0, "claimed"));
    let all = [&pending, &approved, &claimed];
    let before = all.map(|ask| shell.show(ask));
    server.kill();
    for said in [
        shell.decide(&pending, "ann", &["--approve"]),
        shell.claim(&approved, "w", "60"),
        shell.settle(&claimed, 1, "1"),
        shell.run(&["list"]),
        shell.run(&["verify"]),
    ] {
        assert_eq!((said.status, &said.lines[..]), (1, &[][..]), "{said:?}");
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert!(said.err.contains("could not connect to PostgreSQL"), "{}", said.err);
    }
    server.start_again();
    assert_eq!(all.map(|ask| shell.show(ask)), before, "everything stands as it did");
    assert_eq!(shell.decide(&pending, "ann", &["--approve"]).told(), (0, "won"));
    assert_eq!(shell.claim(&approved, "w", "60").told(), (0, "claimed"));
    assert_eq!(shell.settle(&claimed, 1, "1").told(), (0, "settled"));
    shell.verify();
}
