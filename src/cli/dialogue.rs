//! What is asked and what the answers mean, without a terminal.

use super::askable;
use super::choice::{Choice, HELP, Scope};
use super::screen::{Gone, Kind, Prompt, Screen};
use crate::args::Args;
use crate::call::ToolCall;
use crate::deferred::{DeferredToolRequests, ToolApproval, ToolApproved};
use crate::outcome::ToolDenied;
use crate::show::{self, CallView, Limits};

/// One batch that a person is asked about.
pub(super) struct Dialogue<'s, 'a, S> {
    screen: &'s mut S,
    requests: &'a DeferredToolRequests,
    items: Vec<Item<'a>>,
}

/// A call that is asked about.
struct Item<'a> {
    /// As it was numbered in the batch.
    number: usize,
    call: &'a ToolCall,
    answer: Option<ToolApproval>,
}

impl<'s, 'a, S: Screen> Dialogue<'s, 'a, S> {
    pub(super) fn new(screen: &'s mut S, requests: &'a DeferredToolRequests) -> Self {
        let asked: Vec<_> = askable(requests).map(ToolCall::id).collect();
        let items = requests
            .iter()
            .enumerate()
            .filter(|(_, call)| asked.contains(&call.id()))
            .map(|(i, call)| Item { number: i + 1, call, answer: None })
            .collect();
        Self { screen, requests, items }
    }

    /// Asks about every call. What has no answer when the person ends it, or the terminal does, is denied.
    pub(super) fn run(mut self, agent: &str) -> Vec<(&'a str, ToolApproval)> {
        if let Err(gone) = self.ask_all(agent) {
            self.deny_rest(gone);
        }
        self.sum_up();
        let denied = || ToolApproval::from(false);
        self.items
            .into_iter()
            .map(|item| (item.call.id(), item.answer.unwrap_or_else(denied)))
            .collect()
    }

    fn ask_all(&mut self, agent: &str) -> Result<(), Gone> {
        self.show_batch(agent)?;
        while let Some(item) = self.items.iter().find(|item| item.answer.is_none()) {
            let (number, call) = (item.number, item.call);
            self.ask_one(number, call)?;
        }
        Ok(())
    }

    /// Everything that waits, before anything is asked.
    fn show_batch(&mut self, agent: &str) -> Result<(), Gone> {
        let who = match agent {
            "" => "The agent".to_owned(),
            agent => show::escape_name(agent),
        };
        let mut text = match self.items.len() {
            1 => format!("\n{who} asks to run a tool:\n"),
            calls => format!("\n{who} asks to run {calls} tools:\n"),
        };
        let width = self.screen.width().saturating_sub(6);
        for (i, view) in CallView::all(self.requests, Limits::default()).iter().enumerate() {
            let number = format!("{}. ", i + 1);
            let indent = " ".repeat(number.len());
            for (row, line) in view.text(width).lines().enumerate() {
                text.push_str(if row == 0 { &number } else { &indent });
                text.push_str(line);
                text.push('\n');
            }
        }
        text.push('\n');
        self.screen.show(&text)
    }

    /// Asks about one call until something is decided.
    fn ask_one(&mut self, number: usize, call: &'a ToolCall) -> Result<(), Gone> {
        let several = self.items.len() > 1;
        if several {
            let view = CallView::of_call(call, Limits::default());
            let number = format!("{number}. ");
            let rows = show::wrap(&number, &view.headline, self.screen.width());
            self.screen.show(&rows.join("\n"))?;
        }
        let label = match several {
            true => "Approve? [y,N,m,e,a,d,t,x,v,?] ",
            false => "Approve? [y,N,m,e,v,?] ",
        };
        loop {
            let line = self.screen.ask(&Prompt::choice(label))?;
            if let Some((scope, answer)) = self.decision(call, &line)? {
                self.decide(call, scope, &answer);
                return Ok(());
            }
        }
    }

    /// What a typed line decides; `None` to ask again.
    fn decision(
        &mut self,
        call: &ToolCall,
        line: &str,
    ) -> Result<Option<(Scope, ToolApproval)>, Gone> {
        match Choice::parse(line) {
            Some(Choice::Approve(scope)) => return Ok(Some((scope, true.into()))),
            Some(Choice::Deny(scope, text)) => return Ok(Some((scope, denied(&text)))),
            Some(Choice::Message) => {
                return Ok(self.message()?.map(|text| (Scope::This, denied(&text))));
            }
            Some(Choice::Edit) => {
                let approved = |args: Args| (Scope::This, ToolApproved::with_args(args).into());
                return Ok(self.edit(call)?.map(approved));
            }
            Some(Choice::View) => self.view(call)?,
            Some(Choice::Help) => self.screen.show(HELP)?,
            None => self.screen.show("That is no answer, and nothing was decided; ? helps.")?,
        }
        Ok(None)
    }

    /// Answers this call, and the others of the scope that have no answer.
    fn decide(&mut self, call: &ToolCall, scope: Scope, answer: &ToolApproval) {
        for item in self.items.iter_mut().filter(|item| item.answer.is_none()) {
            let meant = match scope {
                Scope::This => item.call.id() == call.id(),
                Scope::Tool => self.requests.path(item.call.id()) == self.requests.path(call.id()),
                Scope::All => true,
            };
            if meant {
                item.answer = Some(answer.clone());
            }
        }
    }

    /// What the model is told; `None` to go back to the question.
    fn message(&mut self) -> Result<Option<String>, Gone> {
        let label = "Deny, and tell the model (Esc goes back): ";
        self.text(&Prompt { label, initial: "", kind: Kind::Text })
    }

    /// A line that may be given up without giving up the questions.
    fn text(&mut self, prompt: &Prompt<'_>) -> Result<Option<String>, Gone> {
        match self.screen.ask(prompt) {
            Ok(text) => Ok(Some(text)),
            Err(Gone::Cancelled) => Ok(None),
            Err(gone) => Err(gone),
        }
    }

    /// Other arguments, shown again before they are approved; `None` to go back to the question.
    fn edit(&mut self, call: &ToolCall) -> Result<Option<Args>, Gone> {
        let mut text = show::json(call.args());
        self.screen.show(
            "Edit the arguments: Enter when done, Esc to go back.\n(Secrets are not masked here.)",
        )?;
        loop {
            let prompt = Prompt { label: "args: ", initial: &text, kind: Kind::Args };
            let Some(typed) = self.text(&prompt)? else { return Ok(None) };
            text = typed;
            let args = match object(&text) {
                Ok(args) => args,
                Err(error) => {
                    self.screen.show(&format!("No JSON object: {}", show::escape(&error)))?;
                    continue;
                }
            };
            if args.equal(call.args()) {
                self.screen.show("Nothing was changed.")?;
                return Ok(None);
            }
            match self.confirm(&call.clone().with_args(args.clone()))? {
                Some(Choice::Approve(Scope::This)) => return Ok(Some(args)),
                Some(Choice::Edit) => {}
                _ => {
                    self.screen.show("The edit was dropped.")?;
                    return Ok(None);
                }
            }
        }
    }

    /// Shows an edited call as it would run, and asks about it.
    fn confirm(&mut self, edited: &ToolCall) -> Result<Option<Choice>, Gone> {
        let view = CallView::of_call(edited, Limits::none());
        self.screen.show(&view.text(self.screen.width()))?;
        let line = self.screen.ask(&Prompt::choice("Approve with these arguments? [y,N,e] "))?;
        Ok(Choice::parse(&line))
    }

    fn view(&mut self, call: &ToolCall) -> Result<(), Gone> {
        let width = self.screen.width();
        let view = CallView::of(self.requests, call.id(), Limits::none());
        self.screen.show(&view.map(|view| view.text(width)).unwrap_or_default())
    }

    fn deny_rest(&mut self, gone: Gone) {
        let open = self.items.iter_mut().filter(|item| item.answer.is_none());
        let mut count = 0;
        for item in open {
            item.answer = Some(denied(&format!("Denied: {}.", gone.why())));
            count += 1;
        }
        // A screen that is gone shows nothing.
        let _ = self.screen.show(&format!("Denied without an answer: {count}, as {}.", gone.why()));
    }

    fn sum_up(&mut self) {
        let approved = |item: &&Item<'_>| matches!(item.answer, Some(ToolApproval::Approved(_)));
        let yes = self.items.iter().filter(approved).count();
        let no = self.items.len() - yes;
        // As above.
        let _ = self.screen.show(&format!("Approved: {yes}. Denied: {no}.\n"));
    }
}

fn denied(text: &str) -> ToolApproval {
    match text.trim() {
        "" => false.into(),
        text => ToolDenied::new(text).into(),
    }
}

fn object(text: &str) -> Result<Args, String> {
    match text.trim() {
        "" => Err("nothing was typed; {} means no arguments".to_owned()),
        text if !text.starts_with('{') => Err("it has to begin with {".to_owned()),
        text => Args::parse(text).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use serde_json::json;

    use super::*;
    use crate::Decision;
    use crate::deferred::Pending;
    use crate::metadata::{APPROVAL_POLICY, BLOCKED};
    use crate::outcome::Deferral;

    /// A screen that types what the test says, and remembers what it was asked and shown, in order.
    struct Script {
        lines: VecDeque<Result<&'static str, Gone>>,
        seen: Vec<String>,
    }

    impl Screen for Script {
        fn width(&self) -> usize {
            80
        }

        fn show(&mut self, text: &str) -> Result<(), Gone> {
            self.seen.extend(text.lines().map(str::to_owned));
            Ok(())
        }

        fn ask(&mut self, prompt: &Prompt<'_>) -> Result<String, Gone> {
            self.seen.push(format!("> {}{}", prompt.label, prompt.initial));
            self.lines.pop_front().expect("the script has no more lines").map(str::to_owned)
        }
    }

    fn requests() -> DeferredToolRequests {
        let ask = |reason: &str| {
            Deferral::approval(Decision::ask(reason).named(|| "Files".into()).questions().to_vec())
        };
        let blocked =
            Decision::ask("frozen").metadata(APPROVAL_POLICY, BLOCKED).named(|| "Freeze".into());
        let mut external = Deferral::approval(Vec::new());
        external.kind = crate::DeferralKind::External;
        let calls = [
            ("c1", "delete", json!({"path": "a.log"}), ask("delete a.log?")),
            ("c2", "move", json!({"from": "b", "to": "c"}), ask("move b?")),
            ("c3", "delete", json!({"path": "d.log"}), ask("delete d.log?")),
            ("c4", "deploy", json!({}), Deferral::approval(blocked.questions().to_vec())),
            ("c5", "scan", json!({}), external),
        ];
        let pending = calls.iter().map(|(id, tool, args, deferral)| Pending {
            call: ToolCall::new(*id, *tool, args.clone()),
            deferral: deferral.clone(),
            fingerprint: "f".into(),
            deferrals: 1,
            agent: None,
        });
        DeferredToolRequests::of("batch".into(), pending)
    }

    fn run(lines: &[Result<&'static str, Gone>]) -> (Vec<String>, Vec<String>) {
        let requests = requests();
        let mut script = Script { lines: lines.iter().copied().collect(), seen: Vec::new() };
        let decided = Dialogue::new(&mut script, &requests).run("root");
        assert!(script.lines.is_empty(), "not asked for: {:?}", script.lines);
        let mut answers = Vec::new();
        for (id, answer) in decided {
            answers.push(match answer {
                ToolApproval::Approved(yes) => match yes.override_args {
                    Some(args) => format!("{id} yes {args}"),
                    None => format!("{id} yes"),
                },
                ToolApproval::Denied(no) if ToolApproval::from(no.clone()) == false.into() => {
                    format!("{id} no")
                }
                ToolApproval::Denied(no) => format!("{id} no: {}", no.message),
            });
        }
        (answers, script.seen)
    }

    fn answers(lines: &[&'static str]) -> Vec<String> {
        run(&lines.iter().map(|line| Ok(*line)).collect::<Vec<_>>()).0
    }

    /// T2: "Each handler is asked once per response, with every call that still waits": all are shown first.
    #[test]
    fn the_whole_batch_is_shown_before_anything_is_asked() {
        let (_, seen) = run(&[Ok("d")]);
        let end = seen.iter().position(|line| line.starts_with("> ")).unwrap();
        assert_eq!(
            seen[..end],
            [
                "",
                "root asks to run 3 tools:",
                r#"1. delete(path: "a.log")"#,
                "     ? Files asks: delete a.log?",
                r#"2. move(from: "b", to: "c")"#,
                "     ? Files asks: move b?",
                r#"3. delete(path: "d.log")"#,
                "     ? Files asks: delete d.log?",
                "4. deploy()",
                "     ! blocked by policy",
                "     ? Freeze asks: frozen",
                r#"     # Freeze says, not checked: approval_policy: blocked"#,
                "5. scan()",
                "     ! executed elsewhere",
                "",
                r#"1. delete(path: "a.log")"#,
            ]
        );
        assert_eq!(seen.last().unwrap(), "Approved: 0. Denied: 3.");
    }

    #[test]
    fn each_call_all_calls_and_all_of_a_tool_are_answered() {
        assert_eq!(answers(&["y", "n", ""]), ["c1 yes", "c2 no", "c3 no"]);
        assert_eq!(
            answers(&["n not today", "Y", "m", " later "]),
            ["c1 no: not today", "c2 yes", "c3 no: later"]
        );
        assert_eq!(answers(&["a"]), ["c1 yes", "c2 yes", "c3 yes"]);
        assert_eq!(answers(&["n", "a"]), ["c1 no", "c2 yes", "c3 yes"]);
        assert_eq!(answers(&["y", "d enough"]), ["c1 yes", "c2 no: enough", "c3 no: enough"]);
        assert_eq!(answers(&["t", "n"]), ["c1 yes", "c2 no", "c3 yes"]);
        assert_eq!(answers(&["x never", "y"]), ["c1 no: never", "c2 yes", "c3 no: never"]);
    }

    #[test]
    fn what_is_no_answer_is_asked_again() {
        assert_eq!(answers(&["yes but", "ok", "?", "v", "y", "d"]), ["c1 yes", "c2 no", "c3 no"]);
        let (_, seen) = run(&[Ok("?"), Ok("1"), Ok("d")]);
        assert!(seen.iter().any(|line| line.contains("approve this call")));
        assert!(seen.iter().any(|line| line.contains("no answer, and nothing was decided")));
    }

    #[test]
    fn whoever_ends_the_questions_denies_what_is_open() {
        for gone in [Gone::Cancelled, Gone::Interrupted, Gone::EndOfInput, Gone::Failed] {
            let (answers, seen) = run(&[Ok("y"), Err(gone)]);
            let why = gone.why();
            assert_eq!(
                answers,
                [
                    "c1 yes".to_owned(),
                    format!("c2 no: Denied: {why}."),
                    format!("c3 no: Denied: {why}.")
                ]
            );
            assert!(seen.contains(&format!("Denied without an answer: 2, as {why}.")));
        }
    }

    #[test]
    fn edited_arguments_are_shown_and_confirmed() {
        let (answers, seen) = run(&[Ok("e"), Ok(r#"{"path": "\u202eb.log"}"#), Ok("y"), Ok("d")]);
        assert_eq!(answers, ["c1 yes {\"path\":\"\u{202e}b.log\"}", "c2 no", "c3 no"]);
        assert!(seen.contains(&r#"> args: {"path":"a.log"}"#.to_owned()));
        assert!(seen.iter().any(|line| line.ends_with(r#"(path: "\u{202e}b.log")"#)));
    }

    #[test]
    fn edited_text_that_is_no_object_is_kept_and_asked_again() {
        for (bad, why) in [
            ("", "nothing was typed"),
            ("[1]", "it has to begin with {"),
            ("null", "it has to begin with {"),
            (r#"{"path": "b""#, "No JSON object"),
            (r#"{"path": "b", "path": "c"}"#, "path"),
        ] {
            let (answers, seen) = run(&[Ok("e"), Ok(bad), Ok("{}"), Ok("y"), Ok("d")]);
            assert_eq!(answers, ["c1 yes {}", "c2 no", "c3 no"]);
            let again = seen.iter().position(|line| *line == format!("> args: {bad}")).unwrap();
            assert!(seen[again - 1].starts_with("No JSON object: "));
            assert!(seen[again - 1].contains(why), "{}", seen[again - 1]);
        }
    }

    #[test]
    fn an_edit_can_be_given_up_and_approves_nothing_by_itself() {
        let open = ["c1 no", "c2 no", "c3 no"];
        assert_eq!(run(&[Ok("e"), Err(Gone::Cancelled), Ok("d")]).0, open);
        assert_eq!(run(&[Ok("m"), Err(Gone::Cancelled), Ok("d")]).0, open);
        assert_eq!(answers(&["e", r#"{ "path": "a.log" }"#, "d"]), open);
        assert_eq!(answers(&["e", "{}", "", "d"]), open);
        assert_eq!(answers(&["e", "{}", "a", "d"]), open);
        assert_eq!(
            answers(&["e", "{}", "e", r#"{"path":"z"}"#, "y", "d"])[0],
            r#"c1 yes {"path":"z"}"#
        );
        assert!(run(&[Ok("e"), Err(Gone::Interrupted)]).0[0].contains("Ctrl-C"));
    }
}
