//! The inbox, as people use it, and its records in the ledger: one winner for each decision, and one run for each call.

use countersign::decision::Preview;
use countersign::deferred::Answer;
use countersign::deferred::metadata::GRANTABLE;
use countersign::ledger::{Ask, AskRecord, AskState, Ledger};
use countersign::{
    Args, Decision, FunctionToolset, RunContext, ToolCall, ToolError, ToolsExt as _, Turn,
    decide_fn, tool_fn,
};
use countersign_cli::hook::{Client, Hook};
use serde_json::{Map, Value, json};
use std::time::Instant;

use crate::player::play;
use crate::service::Place;

fn nothing(word: &str) {
    panic!("the scenario asks for `{word}`");
}

/// Who decided, and how.
fn decided(record: &AskRecord) -> (Vec<&str>, &'static str) {
    let decision = record.decision.as_ref().expect("a decision");
    (decision.by.iter().map(String::as_str).collect(), decision.answer.word())
}

/// Every ask that was approved has run once, and nothing else has.
async fn each_ran_once(place: &Place) {
    let asks = place.asks().await;
    let approved = asks.iter().filter(|record| record.state == AskState::Executed);
    let mut approved: Vec<_> = approved.map(|it| it.args_to_run().to_string()).collect();
    let canonical = |ran: &Value| Args::try_from(ran["args"].clone()).unwrap().to_string();
    let mut ran: Vec<_> = place.ran().iter().map(canonical).collect();
    approved.sort();
    ran.sort();
    assert_eq!(ran, approved);
}

#[tokio::test]
async fn an_approved_call_runs_once_and_a_reloaded_page_shows_the_same() {
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/approve", &[&server.url], nothing);
    each_ran_once(&place).await;
    let ask = place.ask("path", "logs/2024-archive.tar").await;
    assert_eq!((ask.state, decided(&ask)), (AskState::Executed, (vec!["ann"], "approve")));
    // T7: the requester of the sub-agent's ask is the person who started the run, too.
    let ask = place.ask("path", "tmp/session-cache").await;
    assert_eq!(ask.ask.principal(), Some("ann"));
    assert_eq!(place.ran().len(), 2);
    // S2: logs show names, not values.
    for value in ["logs/2024", "session-cache", "DE02", "Invoice"] {
        assert!(!place.log().contains(value), "{value} was logged");
    }
}

#[tokio::test]
async fn the_model_is_told_a_denial_word_for_word() {
    // D2: "The model is told its reason word for word".
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/deny", &[&server.url], nothing);
    let ask = place.ask("path", "a.log").await;
    assert_eq!(decided(&ask), (vec!["bob"], "deny"));
    let message = "Not today: \"a.log\" <b>stays</b>.\nAsk again on Monday — 日本 ✓";
    let said = place.over(&[ask.ask.run().to_owned()]).await;
    assert_eq!(said, [format!("delete_file: {message}")]);
    assert!(place.ran().is_empty());
}

#[tokio::test]
async fn edited_arguments_run_as_typed_and_are_in_the_ledger() {
    // A2: "Edited arguments go through the whole stack. They are validated before anything executes".
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/edit", &[&server.url], nothing);
    let ask = place.ask("path", "a.log").await;
    assert_eq!((ask.state, decided(&ask)), (AskState::Executed, (vec!["bob"], "edit")));
    let Some(Answer::Approve { args: Some(args) }) = ask.decision.map(|it| it.answer) else {
        panic!()
    };
    assert_eq!(args.to_value(), json!({"path": "b.log"}));
    let ran: Vec<_> = place.ran().iter().map(|ran| ran["args"].clone()).collect();
    assert_eq!(ran, [json!({"path": "b.log"})]);
}

async fn one_wins(place: Place) {
    // L1: "Of any number of processes that decide or claim, one wins, and each of the others is told who won".
    let (first, second) = (place.server(&[]), place.server(&[]));
    play("inbox/race", &[&first.url, &second.url], nothing);
    let asks = place.asks().await;
    assert_eq!(asks.len(), 6);
    for ask in &asks {
        assert_eq!(decided(ask).0.len(), 1, "one winner");
        if decided(ask).1 == "approve" {
            place.until(ask.ask.id(), AskState::Executed).await;
        }
    }
    each_ran_once(&place).await;
}

#[tokio::test]
async fn two_concurrent_clicks_have_one_winner_over_sqlite() {
    one_wins(Place::sqlite().await).await;
}

#[tokio::test]
async fn two_concurrent_clicks_have_one_winner_over_postgres() {
    one_wins(Place::postgres().await).await;
}

#[tokio::test]
async fn two_people_agree_on_the_same_arguments_and_one_denial_is_a_veto() {
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/quorum", &[&server.url], nothing);
    let first = place.ask("reference", "first").await;
    assert_eq!(
        (first.state, decided(&first)),
        (AskState::Executed, (vec!["bob", "carol"], "approve"))
    );
    let second = place.ask("reference", "second").await;
    assert_eq!(
        (second.state, decided(&second)),
        (AskState::Executed, (vec!["bob", "carol"], "edit"))
    );
    assert_eq!(decided(&place.ask("reference", "third").await), (vec!["carol"], "deny"));
    let amounts: Vec<_> = place.ran().iter().map(|ran| ran["args"]["amount_eur"].clone()).collect();
    assert_eq!(amounts, [100, 50]);
}

#[tokio::test]
async fn a_click_on_a_stale_page_changes_nothing_and_names_the_winner() {
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/stale", &[&server.url], nothing);
    assert_eq!(decided(&place.ask("path", "a.log").await), (vec!["bob"], "deny"));
    assert_eq!(decided(&place.ask("path", "b.log").await), (vec!["bob"], "approve"));
    each_ran_once(&place).await;
}

#[tokio::test]
async fn a_login_form_is_not_sent_before_its_script_has_loaded() {
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/login", &[&server.url], nothing);
}

#[tokio::test]
async fn a_page_decides_only_under_the_name_that_it_shows() {
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/switch", &[&server.url], nothing);
    assert_eq!(decided(&place.ask("path", "a.log").await), (vec!["bob"], "approve"));
    each_ran_once(&place).await;
}

#[tokio::test]
async fn an_expired_ask_is_denied_without_a_decider() {
    // L4: "Expiry is a denial that is recorded as expiry, and not as a person's no."
    let place = Place::sqlite().await;
    let server = place.server(&["--deadline-s", "4"]);
    play("inbox/expired", &[&server.url], nothing);
    let ask = place.ask("host", "db-2").await;
    assert_eq!((ask.state, ask.decision), (AskState::Expired, None));
    let said = place.over(&[ask.ask.run().to_owned()]).await;
    assert_eq!(said, ["restart_server: No decision was made in time."]);
    assert!(place.ran().is_empty());
}

#[tokio::test]
async fn text_of_a_model_stays_text() {
    // S1: "Control, bidi, zero-width and escape characters are shown, elided text says how much".
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/hostile", &[&server.url], nothing);
    // The approved arguments are those that ran, character for character.
    for text in ["safe\u{202e}gpj.exe\u{2066}x\u{2069}", "\u{1b}[2J\u{1b}[31mred\u{7}\u{9b}1m"] {
        assert_eq!(place.times("to", text), 1);
    }
    each_ran_once(&place).await;
    assert!(!place.log().contains("pwned"));
}

#[tokio::test]
async fn everything_works_without_a_mouse_and_on_a_phone() {
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/keyboard", &[&server.url], nothing);
    assert_eq!(decided(&place.ask("path", "a.log").await), (vec!["bob"], "approve"));
    assert_eq!(decided(&place.ask("path", "b.log").await), (vec!["bob"], "deny"));
    each_ran_once(&place).await;
}

#[tokio::test]
async fn a_server_that_is_killed_and_restarted_loses_nothing() {
    let place = Place::sqlite().await;
    let mut server = place.server(&[]);
    let (url, port) = (server.url.clone(), server.port());
    play("inbox/restart", &[&url], |word| match word {
        "stop" => server.kill(),
        "start" => server = place.server_at(port, &[]),
        "pause" => server.pause(true),
        "continue" => server.pause(false),
        "restart" => {
            server.kill();
            server = place.server_at(port, &[]);
        }
        word => nothing(word),
    });
    assert_eq!(decided(&place.ask("path", "a.log").await), (vec!["bob"], "approve"));
    let denied = place.ask("path", "b.log").await.decision.unwrap().answer;
    let message = "half a sentence, and the rest".to_owned();
    assert_eq!(denied, Answer::Deny { message });
    each_ran_once(&place).await;
}

#[tokio::test]
async fn nothing_moves_under_the_pointer_and_new_controls_are_inert() {
    // S3: "A control that appears, moves or regains focus is inert for 600 ms".
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/still", &[&server.url], nothing);
    assert_eq!(decided(&place.ask("path", "PRODUCTION.db").await), (vec!["bob"], "approve"));
    assert_eq!(decided(&place.ask("path", "old.log").await), (vec!["carol"], "deny"));
    each_ran_once(&place).await;
}

#[tokio::test]
async fn nothing_is_approved_unseen() {
    // S4: "Text that was left out of the view has to be opened before the call can be approved".
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/whole", &[&server.url], nothing);
    assert_eq!(place.times("to", "DE02"), 1);
}

#[tokio::test]
async fn a_call_has_one_set_of_buttons_and_drafts_survive() {
    // S5: "While an edit is open the only approval is of the edited arguments. Drafts survive".
    let place = Place::sqlite().await;
    let mut server = place.server(&[]);
    let (url, port) = (server.url.clone(), server.port());
    play("inbox/drafts", &[&url], |word| match word {
        "restart" => {
            server.kill();
            server = place.server_at(port, &[]);
        }
        word => nothing(word),
    });
    assert_eq!(decided(&place.ask("path", "b.log").await), (vec!["carol"], "approve"));
    assert_eq!(decided(&place.ask("path", "a.log").await), (vec!["bob"], "edit"));
    each_ran_once(&place).await;
}

#[tokio::test]
async fn a_flood_hides_no_call_and_equal_calls_are_one_entry() {
    // S6: "every ask reachable; oldest or soonest deadline first; equal calls grouped".
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/flood", &[&server.url], nothing);
    let mut asks = place.asks().await;
    asks.retain(|ask| ask.ask.tool() == "send_report");
    for ask in asks.iter().filter(|ask| decided(ask).1 == "approve") {
        place.until(ask.ask.id(), AskState::Executed).await;
    }
    assert_eq!((asks.len(), place.times("to", "all")), (5, 4));
}

#[tokio::test]
async fn two_servers_over_one_postgres_show_the_same_inbox() {
    let place = Place::postgres().await;
    let (first, second) = (place.server(&[]), place.server(&[]));
    play("inbox/shared", &[&first.url, &second.url], nothing);
    each_ran_once(&place).await;
}

/// Asks with previews of every kind, as the layers of a stack attach them; parked as a run does, and never resumed.
async fn park_previews(place: &Place) {
    let long: String = (0..260).map(|n| format!("line {n}\n")).collect();
    let endless: String = (0..2_100).map(|n| format!("line {n}\n")).collect();
    let script = "<script>window.pwned = 2</script>\nsafe\u{202e}gpj.exe\n\u{1b}[2J";
    let pay = Decision::ask("pays invoices")
        .with_key("pay")
        .with_preview(Preview::table(
            "transfers",
            ["to", "euros"],
            [["Ann\u{202e}", "1 200.00"], ["<b>Cleo</b>", "7.00"]],
        ))
        .with_preview(Preview::text("today's rate", "1 euro is 1.08 dollars\n").without_pin());
    let change = Preview::diff(
        "nginx.conf",
        "worker_processes 2;\nkeepalive_timeout 65;\ngzip on;\n",
        "worker_processes 8;\nkeepalive_timeout 65;\ngzip on;\n",
    );
    let one = |reason: &str, preview| Decision::ask(reason).with_key("one").with_preview(preview);
    let decisions = [
        ("edit_config", one("changes a server", change)),
        ("pay", pay),
        ("nasty", one("?", Preview::text(r#"<img src=x onerror="window.pwned=1">"#, script))),
        ("long", one("a long text", Preview::text("long.txt", &long))),
        ("cut", one("a text without end", Preview::text("endless.txt", &endless))),
        ("cut", one("a text without end", Preview::text("endless.txt", &endless))),
    ];
    for (n, (tool, decision)) in decisions.into_iter().enumerate() {
        let body = async |_: RunContext, _: Map<String, Value>| Ok::<_, ToolError>("done");
        let tools = FunctionToolset::new().tool(tool_fn(tool, "Does something", body));
        let tools = tools.layered(decide_fn(move |_, _| decision.clone()).named("Policy"));
        let call = ToolCall::new("c1", tool, json!({"n": n / 5}));
        let report = Turn::new(tools).run(vec![call]).await.unwrap();
        let pending = report.into_suspended().expect("it is asked about");
        let questions = pending.requests().questions("c1").to_vec();
        let path = format!("root/c{n}");
        let ask = Ask::new("previews", path, tool).with_questions(questions);
        place.ledger().park(ask.with_principal("ann")).await.unwrap();
    }
}

#[tokio::test]
async fn a_change_is_shown_as_a_change_and_what_is_not_stored_is_approved_by_itself() {
    // S7: "every surface shows it"; "a preview that was cut says how much is missing, and its call is approved only by
    // itself".
    let place = Place::sqlite().await;
    park_previews(&place).await;
    let server = place.server(&["--workers", "0"]);
    play("inbox/previews", &[&server.url], nothing);
    for ask in place.asks().await {
        let is_open = ask.state == AskState::Pending;
        let left = ["pay", "nasty"].contains(&ask.ask.tool()) || ask.ask.path() == "root/c5";
        assert!(is_open == left || ask.ask.tool() == "cut", "{ask:?}");
    }
}

#[tokio::test]
async fn many_are_decided_at_once_and_nothing_that_came_meanwhile_or_was_not_shown() {
    // S4: "alone or with others"; S6: "select and decide many, each bound to its own fingerprint".
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/bulk", &[&server.url], nothing);
    let asks = place.asks().await;
    let open: Vec<_> = asks.iter().filter(|ask| ask.state == AskState::Pending).collect();
    assert_eq!(open.len(), 2, "{open:?}");
    let by = |who: &str| {
        asks.iter().filter(|ask| ask.decision.is_some() && decided(ask).0 == [who]).count()
    };
    assert_eq!((by("bob"), by("carol")), (16, 1));
}

#[tokio::test]
async fn a_key_does_what_its_button_does_and_no_sooner() {
    // S6: "Keys: `j k a e d x / ?`"; S3: "a control that … gets the focus does nothing for 600 ms".
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    play("inbox/keys", &[&server.url], nothing);
    let asks = place.asks().await;
    let answers: Vec<_> = asks.iter().filter_map(|ask| ask.decision.as_ref()).collect();
    let of = |word: &str| answers.iter().filter(|it| it.answer.word() == word).count();
    assert_eq!((of("approve"), of("edit"), of("deny")), (1, 1, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_shown_before_it_is_made_and_answers_later_calls() {
    // G3: "each shown as a sentence, as the rule", "a call of which something was not seen cannot be granted"; G2: "It answers later calls; waiting ones are listed for the person".
    let place = Place::sqlite().await;
    let ledger = place.ledger().clone().session("mails");
    let ask = |run: &str, tool: &str, asked: Decision| {
        let args = Args::new().with("to", "team@example.com");
        Ask::new(run, "root/c1", tool).with_args(args).with_questions(asked.questions().to_vec())
    };
    let mail = |run: &str| {
        ask(run, "send_mail", Decision::ask("sends mail").with_metadata(GRANTABLE, true))
    };
    ledger.park(mail("first")).await.unwrap();
    ledger.park(mail("second")).await.unwrap();
    ledger.park(ask("third", "transfer", Decision::ask("moves money"))).await.unwrap();
    let report = Args::new().with("text", "All is well. ".repeat(400));
    let grantable = Decision::ask("sends a report").with_metadata(GRANTABLE, true);
    let report = ask("fourth", "send_report", grantable).with_args(report);
    ledger.park(report).await.unwrap();
    let server = place.server(&["--workers", "0"]);
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        play("inbox/always", &[&server.url], |word| match word {
            "look" => runtime.block_on(async {
                let grants = ledger.grants(9).await.unwrap().records;
                let by: Vec<_> = grants.iter().map(|grant| grant.by.clone()).collect();
                assert_eq!(by, [["bob"]]);
                let pending = ledger.list(Some(AskState::Pending), 9).await.unwrap().records;
                let mut tools: Vec<_> = pending.iter().map(|record| record.ask.tool()).collect();
                tools.sort_unstable();
                assert_eq!(tools, ["send_mail", "send_report", "transfer"]);
            }),
            "again" => runtime.block_on(async {
                let granted = ledger.answer_by_grant(&mail("fifth")).await.unwrap();
                assert!(granted.is_some_and(|record| record.state == AskState::Decided));
                let other = Ask::new("sixth", "root/c1", "send_mail");
                assert!(ledger.answer_by_grant(&other).await.unwrap().is_none());
            }),
            word => nothing(word),
        });
    });
}

/// Asks of a coding agent, as the hook parks them in a project with a file, and one of a program's own tool.
async fn park_calls(ledger: &Ledger, project: &std::path::Path) {
    std::fs::create_dir_all(project.join("src")).unwrap();
    let lines = |form: fn(usize) -> String| (0..120).map(form).collect::<String>();
    let old = |n: usize| format!("    let value_{n} = compute({n});\n");
    let new = |n: usize| format!("    let value_{n} = compute_fast({n}, &cache);\n");
    std::fs::write(project.join("src/main.rs"), lines(old)).unwrap();
    let at = |name: &str| project.join("src").join(name);
    let issue = json!({
        "owner": "acme", "repo": "shop", "title": "Crash on start", "labels": ["bug", "p1"], "assignees": ["ann"],
        "body": "It crashes when the cache is empty.\nSteps:\n1. start\n2. see", "milestone": 3, "draft": false,
    });
    let calls = [
        ("Bash", json!({"command": "git push origin main", "description": "Push the release"})),
        ("Bash", json!({"command": "npm test 2>&1 | tail -20"})),
        (
            "Edit",
            json!({
                "file_path": at("main.rs"),
                "old_string": (20..60).map(old).collect::<String>(), "new_string": (20..60).map(new).collect::<String>(),
            }),
        ),
        (
            "Write",
            json!({
                "file_path": at("new.rs"),
                "content": (0..200).map(|n| format!("pub fn f_{n}(x: u64) -> u64 {{ x * {n} }}\n")).collect::<String>(),
            }),
        ),
        ("mcp__github__create_issue", issue),
    ];
    let asks = decide_fn(|_, _: &ToolCall| Decision::ask("Asks about everything").with_key("all"));
    let hook = Hook::new(Client::Claude).layered(asks.named("rules")).principal("ann");
    for (n, (tool, args)) in calls.into_iter().enumerate() {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": project, "tool_use_id": format!("t{n}"),
            "transcript_path": "t.jsonl", "permission_mode": "default", "tool_name": tool, "tool_input": args,
        });
        let store = std::future::ready(Ok(ledger.clone()));
        let reply = hook.answer(payload.to_string().as_bytes(), Instant::now(), store).await;
        assert!(reply.is_denial(), "it waits for an approval: {}", reply.stderr());
    }
    let asked = Decision::ask("moves money out of the company")
        .with_title("{amount} {currency} to {recipient}");
    let args =
        Args::new().with("amount", 120).with("currency", "EUR").with("reference", "Invoice 7");
    let pay = Ask::new("pay", "root/c1", "transfer")
        .with_args(args.with("recipient", "DE89 3704 0044 0532 0130 00"))
        .with_questions(asked.questions().to_vec());
    ledger.park(pay).await.unwrap();
}

#[tokio::test]
async fn the_first_screen_says_what_is_wanted_and_the_last_row_arms_approve() {
    // S11: "who wants what, in one line; the reason; the change; the arguments; the buttons", "Approve arms when its last
    // row has been visible"; S12: an edit of a coding agent is a difference.
    let place = Place::sqlite().await;
    let project = tempfile::tempdir().unwrap();
    park_calls(place.ledger(), project.path()).await;
    let server = place.server(&["--workers", "0"]);
    play("inbox/screen", &[&server.url], nothing);
    let approved = place.asks().await.into_iter().filter(|ask| ask.decision.is_some());
    assert_eq!(approved.map(|ask| ask.ask.tool().to_owned()).collect::<Vec<_>>(), ["shell"]);
}
