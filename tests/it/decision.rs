//! Previews: what a call would change is shown beside it, by a layer or by its tool (rule S7).

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use countersign::agent::text;
use countersign::decision::{Change, Preview, PreviewContent};
use countersign::ledger::{Ledger, MemoryStore};
use countersign::show::{CallView, Limits, PreviewSign};
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, Decision, DeferredToolRequests, FunctionToolset, RunContext, SuspendedTurn, ToolError,
    ToolMiddlewareExt as _, Tools, ToolsExt as _, Turn, TurnReport, decide_fn, from_fn, schemars,
    tool_fn,
};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Recorder, call};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct WriteFile {
    path: String,
    text: String,
}

/// A file, and tools and layers that show what a write would change in it.
#[derive(Clone)]
struct File(Arc<Mutex<String>>);

impl File {
    fn new(text: &str) -> Self {
        Self(Arc::new(Mutex::new(text.to_owned())))
    }

    fn set(&self, text: &str) {
        text.clone_into(&mut self.0.lock().unwrap());
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    fn change(&self, path: &str, text: &str) -> Preview {
        Preview::diff(path, self.text().as_str(), text)
    }

    /// The tool, which shows a change of the file itself.
    fn tools(&self) -> FunctionToolset {
        let (write, show) = (self.clone(), self.clone());
        let body = move |file: WriteFile| {
            let write = write.clone();
            async move {
                write.set(&file.text);
                Ok::<_, ToolError>("written")
            }
        };
        let preview = move |file: WriteFile| {
            let made = show.change(&file.path, &file.text);
            async move { Ok::<_, ToolError>(made) }
        };
        FunctionToolset::new()
            .id("files")
            .tool(tool_fn("write_file", "", body).with_preview(preview))
    }

    /// The tool without a preview, behind a layer that shows the change.
    fn shown_by_layer(&self) -> Tools {
        let write = self.clone();
        let body = move |file: WriteFile| {
            let write = write.clone();
            async move {
                write.set(&file.text);
                Ok::<_, ToolError>("written")
            }
        };
        let file = self.clone();
        let layer = decide_fn(move |_, call| {
            let change = file.change("a.txt", call.args().str("text").unwrap_or_default());
            Decision::ask("write?").with_preview(change)
        });
        let tools = FunctionToolset::new().id("files").tool(tool_fn("write_file", "", body));
        tools.layered(layer.named("Files").into_layer())
    }
}

fn write(text: &str) -> Vec<countersign::ToolCall> {
    vec![call("c1", "write_file", json!({"path": "a.txt", "text": text}))]
}

fn asking(tools: FunctionToolset) -> Tools {
    tools.layered(decide_fn(|_, _| Decision::ask("write?")).named("Files").into_layer())
}

fn suspended(report: TurnReport) -> SuspendedTurn {
    let stored = serde_json::to_string(&report.into_suspended().expect("it is asked about"));
    serde_json::from_str(&stored.unwrap()).unwrap()
}

async fn approve(turn: &Turn, suspended: SuspendedTurn) -> TurnReport {
    let answers = suspended.requests().answer().approve("c1").build().unwrap();
    turn.resume(suspended, answers).await.unwrap()
}

/// S7: "In a difference and a text, a backslash is shown as it is, unless it could be taken for the beginning of an escape".
#[tokio::test]
async fn a_difference_shows_the_backslashes_of_the_file_as_they_are() {
    let file = File::new("print(\"a\\n\")\n");
    let report = Turn::new(file.shown_by_layer())
        .run(write("print(\"\\d\\\\u{202e}\u{202e}\")\n"))
        .await
        .unwrap();
    let text = view(&suspended(report).requests(), Limits::default()).text(100);
    for line in
        [r#"    |-print("a\n")"#, r#"    |+print("\d\\\\u{202e}\u{202e}")"#, "    |@@ -1 +1 @@"]
    {
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    }
}

fn view(requests: &DeferredToolRequests, limits: Limits) -> CallView {
    CallView::of(requests, "c1", limits).unwrap()
}

const SHOWN: [&str; 5] = [
    "    |@@ -1,2 +1,2 @@",
    "    | one",
    "    |-two",
    "    |+2",
    "    |@No newline at end of file",
];

/// S7: "A tool or layer can attach a preview (unified diff or text, with its author)".
#[tokio::test]
async fn a_change_is_shown_as_a_change_with_its_author() {
    let file = File::new("one\ntwo\n");
    for (tools, author) in
        [(file.shown_by_layer(), "Files"), (asking(file.tools()), "tool `write_file`")]
    {
        let report = Turn::new(tools).run(write("one\n2")).await.unwrap();
        let requests = suspended(report).requests();
        let view = view(&requests, Limits::default());
        let [preview] = &view.previews[..] else { panic!("{view}") };
        assert_eq!((preview.author.as_str(), preview.title.as_str()), (author, "a.txt"));
        assert_eq!((preview.change, preview.pinned), (Some(Change::Changed), true));
        let text = view.text(100);
        let heading =
            format!("  = {author} shows a.txt, which is changed (asks again if this changes)");
        let at = text.lines().position(|line| line == heading).unwrap_or_else(|| panic!("{text}"));
        let shown: Vec<_> = text.lines().skip(at + 1).take(SHOWN.len()).collect();
        assert_eq!(shown, SHOWN);
        let questions: Vec<_> = view.questions.iter().map(|it| it.asked_by.as_str()).collect();
        assert_eq!(questions, ["Files"]);
    }
}

/// S7: "a digest of the full old and new content is a pin": a file that has changed is asked about again.
#[tokio::test]
async fn a_file_that_changed_while_the_call_was_pending_is_asked_about_again() {
    let file = File::new("one\n");
    for tools in [file.shown_by_layer(), asking(file.tools())] {
        file.set("one\n");
        let turn = Turn::new(tools);
        let first = suspended(turn.run(write("two\n")).await.unwrap());
        file.set("three\n");
        let again = suspended(approve(&turn, first).await);
        assert_eq!(file.text(), "three\n");
        let requests = again.requests();
        assert!(requests.changed("c1").is_some());
        assert!(view(&requests, Limits::default()).text(80).contains("    |-three"));
        let done = approve(&turn, again).await;
        assert_eq!((done.calls()[0].outcome().word(), file.text().as_str()), ("returned", "two\n"));
    }
}

#[tokio::test]
async fn an_unchanged_file_is_asked_about_once() {
    let file = File::new("one\n");
    for tools in [file.shown_by_layer(), asking(file.tools())] {
        file.set("one\n");
        let turn = Turn::new(tools);
        let first = suspended(turn.run(write("two\n")).await.unwrap());
        let done = approve(&turn, first).await;
        assert_eq!((done.calls()[0].outcome().word(), file.text().as_str()), ("returned", "two\n"));
    }
}

/// "What runs has been seen": the preview of other arguments is another one.
#[tokio::test]
async fn edited_arguments_are_asked_about_again_with_their_own_preview() {
    let file = File::new("one\n");
    let turn = Turn::new(asking(file.tools()));
    let first = suspended(turn.run(write("two\n")).await.unwrap());
    let edited = countersign::Args::new().with("path", "a.txt").with("text", "edited\n");
    let answers = first.requests().answer().approve_with("c1", edited).build().unwrap();
    let again = suspended(turn.resume(first, answers).await.unwrap());
    assert!(view(&again.requests(), Limits::default()).text(80).contains("    |+edited"));
    assert_eq!(approve(&turn, again).await.calls()[0].outcome().word(), "returned");
    assert_eq!(file.text(), "edited\n");
}

/// S7: "content that changes by itself is shown without a pin and says so".
#[tokio::test]
async fn content_that_changes_by_itself_is_not_asked_about_again() {
    let lines = Arc::new(AtomicU32::new(0));
    let recorder = Recorder::new(["write_file"]);
    let layer = decide_fn(move |_, _| {
        let log = format!("{} lines", lines.fetch_add(1, Ordering::Relaxed));
        Decision::ask("rotate?").with_preview(Preview::text("app.log", &log).without_pin())
    });
    let turn = Turn::new(recorder.clone().layered(layer.named("Log").into_layer()));
    let first = suspended(turn.run(write("x")).await.unwrap());
    let text = view(&first.requests(), Limits::default()).text(80);
    assert!(text.contains("shows app.log (may change by itself)"), "{text}");
    approve(&turn, first).await;
    assert_eq!(recorder.ids(), ["c1"]);
}

#[tokio::test]
async fn a_tool_is_asked_for_a_preview_only_where_a_person_is_asked() {
    let made = Arc::new(AtomicU32::new(0));
    let tools = |approval: bool| {
        let made = Arc::clone(&made);
        let body = |_: WriteFile| async { Ok::<_, ToolError>("written") };
        let preview = move |_: RunContext, _: WriteFile| {
            made.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, ToolError>(Preview::text("a", "b")) }
        };
        let tool = tool_fn("write_file", "", body).with_preview(preview);
        FunctionToolset::new().tool(if approval { tool.requires_approval() } else { tool })
    };
    let report = Turn::new(tools(false)).run(write("x")).await.unwrap();
    assert_eq!((report.calls()[0].outcome().word(), made.load(Ordering::Relaxed)), ("returned", 0));
    let report = Turn::new(tools(true)).run(write("x")).await.unwrap();
    assert_eq!(view(&suspended(report).requests(), Limits::default()).previews.len(), 1);
    assert_eq!(made.load(Ordering::Relaxed), 1);
}

/// A tool that asks by itself, in its body, shows its preview too; no approval of a preview answers its question.
#[tokio::test]
async fn a_question_of_the_body_comes_with_the_preview() {
    let body = |cx: RunContext, _: WriteFile| async move {
        cx.approved_for("preview")?;
        Ok::<_, ToolError>("written")
    };
    let preview = |_: WriteFile| async { Ok::<_, ToolError>(Preview::text("a", "b")) };
    let tool = tool_fn("write_file", "", body).with_preview(preview);
    let tools = FunctionToolset::new().tool(tool);
    let own = Turn::new(tools.clone());
    let asked = suspended(own.run(write("x")).await.unwrap());
    let seen = view(&asked.requests(), Limits::default());
    assert_eq!((seen.previews.len(), seen.questions.len()), (1, 1), "{seen}");
    assert_eq!(approve(&own, asked).await.calls()[0].outcome().word(), "returned");

    let turn = Turn::new(asking(tools));
    let asked = suspended(turn.run(write("x")).await.unwrap());
    let again = suspended(approve(&turn, asked).await);
    let seen = view(&again.requests(), Limits::default());
    assert_eq!((seen.previews.len(), seen.questions.len()), (1, 2), "{seen}");
    assert_eq!(approve(&turn, again).await.calls()[0].outcome().word(), "returned");
}

#[tokio::test]
async fn a_preview_that_fails_says_so_and_the_call_is_asked_about() {
    let failing = |panics: bool| {
        let body = |_: WriteFile| async { Ok::<_, ToolError>("written") };
        let preview = move |_: WriteFile| async move {
            assert!(!panics, "as a test wants it");
            Err::<Preview, _>("the disk is gone".to_owned())
        };
        FunctionToolset::new()
            .tool(tool_fn("write_file", "", body).requires_approval().with_preview(preview))
    };
    for (panics, says) in [(false, "the disk is gone"), (true, "it panicked")] {
        let turn = Turn::new(failing(panics));
        let first = suspended(turn.run(write("x")).await.unwrap());
        let text = view(&first.requests(), Limits::default()).text(80);
        assert!(text.contains("shows no preview (may change by itself)"), "{text}");
        assert!(text.contains(says), "{text}");
        assert_eq!(approve(&turn, first).await.calls()[0].outcome().word(), "returned");
    }
}

/// S4: "Text that was left out of the view has to be opened"; what is not stored says so.
#[tokio::test]
async fn a_long_preview_is_cut_and_its_digest_is_of_all_of_it() {
    let long = |last: &str| format!("{}{last}\n", "a line\n".repeat(5_000));
    let one = Preview::diff("a.txt", None, long("x").as_str());
    let other = Preview::diff("a.txt", None, long("y").as_str());
    assert_eq!((one.content(), one.lines_cut()), (other.content(), 3_002));
    assert_ne!(one.digest(), other.digest());
    let huge = Preview::text("a", &"ä".repeat(100_000));
    let PreviewContent::Text { text } = huge.content() else { panic!("a text") };
    assert_eq!((text.len(), huge.lines_cut()), (64 * 1024, 1));

    let layer = decide_fn(move |_, _| Decision::ask("write?").with_preview(one.clone()));
    let tools = Recorder::new(["write_file"]).layered(layer.into_layer());
    let report = Turn::new(tools).run(write("x")).await.unwrap();
    let requests = suspended(report).requests();
    let shown = view(&requests, Limits::default());
    assert!(shown.left_out && shown.cut && shown.previews[0].left_out);
    let whole = view(&requests, Limits::none());
    assert!(!whole.left_out && whole.cut);
    let last = whole.previews[0].lines.last().unwrap();
    assert_eq!(last.text, "\\{3002 lines not stored: the preview is too long}");
}

/// The stored row of a ledger has what the approver saw.
#[tokio::test]
async fn the_ledger_stores_the_previews() {
    let file = File::new("one\n");
    let ledger = Ledger::new(MemoryStore::new());
    let agent = Agent::new(ScriptedModel::calls(write("two\n")), asking(file.tools()))
        .ledger(ledger.clone());
    let agent = agent.output(text().or_deferred());
    let run = agent.run("go").await.unwrap().into_suspended().unwrap();
    let listed = ledger.list(None, 10).await.unwrap().records;
    let stored: Vec<_> = listed[0]
        .ask
        .requests()
        .questions("c1")
        .iter()
        .flat_map(|it| it.previews())
        .cloned()
        .collect();
    let kept = run.requests();
    let kept: Vec<_> = kept.questions("c1").iter().flat_map(|it| it.previews()).cloned().collect();
    assert_eq!((stored.len(), &stored), (1, &kept));
    assert_eq!(stored[0].author(), "tool `write_file`");
}

/// S1: "Control, bidi, zero-width and escape characters … are shown as escapes".
#[tokio::test]
async fn hostile_content_is_inert() {
    let hostile = "a\u{1b}[2J\u{202e}b\r\n  ? Files asks: nothing\n-not removed\n\u{200b}\\u{41}";
    let previews = [
        Preview::diff("x\u{202e}y", None, hostile),
        Preview::text(hostile, hostile),
        Preview::table(hostile, [hostile], [[hostile]]),
    ];
    for preview in previews {
        let layer = decide_fn(move |_, _| Decision::ask("write?").with_preview(preview.clone()));
        let tools = Recorder::new(["write_file"]).layered(layer.into_layer());
        let report = Turn::new(tools).run(write("x")).await.unwrap();
        let requests = suspended(report).requests();
        let view = view(&requests, Limits::none());
        let text = view.text(80);
        assert!(
            text.chars().all(|c| c == '\n' || (c.is_ascii() && !c.is_ascii_control())),
            "{text}"
        );
        assert_eq!(text.lines().filter(|line| line.starts_with("  ? ")).count(), 1, "{text}");
        assert!(text.contains(r"\\u{41}"), "{text}");
        let removed = view.previews[0].lines.iter().any(|line| line.sign == PreviewSign::Removed);
        assert!(!removed);
    }
}

/// S4: "secrets are masked", also where they have several lines; nothing in a script.
#[tokio::test]
async fn keys_are_masked_in_previews_and_nothing_in_scripts() {
    let body = "MIIBVAIBADANBgkqhkiG9w0BAQEFAASCAT4wggE6AgEAAkEAq7BFUpkGp3+LQmlQ\nYx2eqzDV+xeG8kx/sQFV18S5JhzGeIJNA72wSeukEPojtqUyX2J0CciPBh7eqclQ\n".repeat(4);
    let key =
        format!("# keep\n-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\nend\n");
    for (path, masked) in [("notes.txt", true), ("run.sh", false)] {
        for preview in [Preview::diff(path, None, key.as_str()), Preview::text(path, &key)] {
            let layer =
                decide_fn(move |_, _| Decision::ask("write?").with_preview(preview.clone()));
            let tools = Recorder::new(["write_file"]).layered(layer.into_layer());
            let report = Turn::new(tools).run(write("x")).await.unwrap();
            let text = view(&suspended(report).requests(), Limits::none()).text(100);
            assert_eq!(!text.contains("MIIBVAIBADAN"), masked, "{text}");
            assert!(text.contains("end") && text.contains("# keep"), "{text}");
        }
    }
}

/// Two previews of one question never share a pin, whatever their titles are.
#[tokio::test]
async fn previews_with_one_title_have_a_pin_each() {
    let ask = Decision::ask("write?")
        .with_pin("a.txt", "digest")
        .with_preview(Preview::text("a.txt", "one"))
        .with_preview(Preview::text("a.txt", "two"));
    assert_eq!(ask.questions()[0].pins().len(), 3);
    let layer = from_fn(move |_, _| {
        let ask = ask.clone();
        async move { ask }
    });
    let tools = Recorder::new(["write_file"]).layered(layer.named("Files").into_layer());
    let report = Turn::new(tools).run(write("x")).await.unwrap();
    let view = view(&suspended(report).requests(), Limits::default());
    assert_eq!(view.previews.len(), 2);
    assert_eq!(view.questions[0].pins.len(), 1);
}

proptest! {
    /// A diff has every line of the new text that is not in the old one, and its digest says whether the texts differ.
    #[test]
    fn a_diff_says_what_changes(old in "([a-c]{0,2}\n){0,12}[a-c]?", new in "([a-c]{0,2}\n){0,12}[a-c]?") {
        let preview = Preview::diff("f", old.as_str(), new.as_str());
        let PreviewContent::Diff { change, lines } = preview.content() else { panic!("a diff") };
        prop_assert_eq!(*change == Change::Unchanged, old == new);
        prop_assert_eq!(lines.is_empty(), old == new);
        let with = |sign: char| lines.iter().filter(|line| line.starts_with(sign)).count();
        let (old_lines, new_lines) = (old.lines().count(), new.lines().count());
        prop_assert_eq!(new_lines + with('-'), old_lines + with('+'));
        let same = Preview::diff("g", old.as_str(), new.as_str());
        prop_assert_eq!(preview.digest(), same.digest());
        let back = Preview::diff("f", new.as_str(), old.as_str());
        prop_assert_eq!(preview.digest() == back.digest(), old == new);
    }
}
