//! Evaluates all rules about one call. The one path for decisions, tests, explanations and replays.
//!
//! # One evaluation
//!
//! 1. **Units.** The commands of every field that some rule looks into by commands; the whole call, where there are
//!    none.
//! 2. **Candidates.** Every rule that names the tool, in all files. A rule that allows *covers* units, each by itself.
//!    A strict rule *speaks* about units or about the whole call, and what it speaks about counts as covered: the
//!    default is for the rest.
//! 3. **The floor** adds its questions (rule R5).
//! 4. **The decision** is the strictest of everything that was said. A unit that nothing covers is asked about, unless
//!    `danger_default_allow` is set. What the call of a shell carries beside its command, and is not known to be
//!    harmless, silences the rules that allow and have no condition on it, and the default as well.
//! 5. **Pins**, if the decision is to ask: the paths as they are resolved now, what the table says about the commands,
//!    and the content of the scripts that they run.
//!
//! # An example
//!
//! `git status && git push`, with the rules `look` (allow `runs = "git status"`) and `push` (ask `runs = "git push"`):
//!
//! | unit | `look` | `push` | covered |
//! |---|---|---|---|
//! | `git status` | covers it | – | yes |
//! | `git push` | – | asks | yes, by speaking |
//!
//! The decision is to ask, by `push`, about the part `git push`. Without the rule `push` the second unit is not
//! covered, and the default asks about it.
//!
//! # Why explanations come from here
//!
//! An explanation is this evaluation with a list of near misses. A second implementation would explain something else
//! than what decides, at the first edit that forgets one of the two (rule R7). Texts of near misses are made in
//! closures, so that a decision does not pay for them.

pub(crate) mod below;
pub(crate) mod bound_files;
mod offering;
pub(crate) mod other_fields;
pub(crate) mod patterns;
pub(crate) mod pins;
pub(crate) mod reason;
mod unnamed;

use std::rc::Rc;
use std::sync::Arc;

use self::below::Below;
use self::other_fields::Unread;
use super::ruling::{Charge, Layer, NearMiss, Ruling, Spoke};
use crate::calls::call::RuleCall;
use crate::calls::command::CommandView;
use crate::calls::engine::Engine;
use crate::calls::truth::{Reading, Truth};
use crate::floor;
use crate::format::rule::Rule;
use crate::format::rule_file::RuleFile;
use crate::format::rule_set::RuleSet;
use crate::matching::condition::{Condition, FieldPath, excepting};
use crate::matching::examined_call::ExaminedCall;
use countersign::decision::ToolDecision;
use countersign_shell::says_unknown;

/// Something that has to be allowed by itself: the whole call, or one command of a shell text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Whole,
    /// A command of a view, by the numbers of both.
    Command(usize, usize),
    /// The rest of a text that could not be analysed.
    Rest(usize),
}

/// Why it is not known if a rule about commands applies to the rest of a text.
const NOT_ANALYSED: &str = "the rest of the text is not analysed";

/// How far what has to be allowed is covered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Cover {
    #[default]
    Nothing,
    /// A rule would allow it, without what the call carries beside the command.
    Withheld,
    Covered,
}

/// One evaluation.
pub(super) struct Evaluation<'a> {
    set: &'a RuleSet,
    examined: ExaminedCall<'a>,
    views: Vec<(Vec<String>, Rc<CommandView>)>,
    /// None, where the whole call is the one unit: most calls are of no shell, and cost no allocation here.
    units: Vec<Unit>,
    /// How far the units are covered, by their numbers; the rest is not.
    covered: Vec<Cover>,
    /// The units that a rule asks about.
    asked: Vec<Unit>,
    /// What the call of a shell carries beside its command, and no rule may overlook.
    unread: Vec<Unread>,
    /// The same of another tool, beside the fields that rules judge by commands: for these rules, it is a shell.
    unread_of_judged: Vec<Unread>,
    ruling: Ruling,
    /// What the rule that is evaluated is about below a folder that the call reads.
    below: Option<Below>,
    /// Only collected for explanations.
    near: Option<Vec<NearMiss>>,
}

/// Decides about a call, and collects the near misses if they are wanted.
pub(super) fn evaluate(
    set: &RuleSet,
    engine: &Engine,
    call: &RuleCall<'_>,
    explains: bool,
) -> (Ruling, Vec<NearMiss>) {
    let ruling = Ruling {
        decision: ToolDecision::Ask,
        spoke: Vec::new(),
        pins: Vec::new(),
        patterns: Vec::new(),
        charges: Vec::new(),
    };
    let mut evaluation = Evaluation {
        set,
        examined: ExaminedCall::new(engine, set.as_seen(call)),
        views: Vec::new(),
        units: Vec::new(),
        covered: Vec::new(),
        asked: Vec::new(),
        unread: Vec::new(),
        unread_of_judged: Vec::new(),
        ruling,
        below: None,
        near: explains.then(Vec::new),
    };
    evaluation.unread = other_fields::unread(&evaluation.examined);
    evaluation.look();
    let set = evaluation.set;
    set.candidates(call, |file, rule| evaluation.rule(file, rule));
    floor::speak(&evaluation.examined, &evaluation.views, set, &mut evaluation.ruling.spoke);
    evaluation.decide();
    (evaluation.ruling, evaluation.near.unwrap_or_default())
}

impl Evaluation<'_> {
    /// Finds the commands that have to be allowed by themselves.
    fn look(&mut self) {
        let of_shell = self.examined.shell_field.iter().map(|field| vec![(*field).to_owned()]);
        let mut fields: Vec<Vec<String>> = of_shell.collect();
        let mut judged: Vec<String> = Vec::new();
        self.set.candidates(&self.examined.call, |_, rule| {
            if rule.effect == ToolDecision::Allow {
                judged.extend(rule.command_field().and_then(|field| field.first()).cloned());
            }
            let of_exceptions = rule.exceptions.iter().flatten().filter(|it| it.is_of_commands());
            for condition in rule.commands.iter().chain(of_exceptions) {
                if let FieldPath::Named(path) = &condition.field
                    && !fields.contains(path)
                {
                    fields.push(path.clone());
                }
            }
        });
        if self.examined.shell_field.is_none() && !judged.is_empty() {
            self.unread_of_judged = other_fields::of_judged(&self.examined, &judged);
        }
        for field in fields {
            let Some(view) = self.examined.view(&field) else { continue };
            let number = self.views.len();
            self.units.extend(view.units().into_iter().map(|part| Unit::Command(number, part)));
            if view.refused.is_some() {
                self.units.push(Unit::Rest(number));
            }
            self.views.push((field, view));
        }
    }

    fn numbers(&self) -> std::ops::Range<usize> {
        0..self.units.len().max(1)
    }

    fn unit(&self, number: usize) -> Unit {
        self.units.get(number).copied().unwrap_or(Unit::Whole)
    }

    fn cover(&mut self, number: usize, cover: Cover) {
        if self.covered.len() <= number {
            self.covered.resize(number + 1, Cover::Nothing);
        }
        self.covered.get_mut(number).into_iter().for_each(|it| *it = cover.max(*it));
    }

    fn cover_of(&self, number: usize) -> Cover {
        self.covered.get(number).copied().unwrap_or_default()
    }

    /// Lists the units that no rule has spoken about, unless the default is to allow them. It does not allow a tool of a
    /// client that is not known.
    fn uncovered(&self) -> impl Iterator<Item = Unit> {
        let numbers = self.numbers().filter(|number| self.cover_of(*number) == Cover::Nothing);
        let is_allowed = self.set.default_allow() && self.examined.call.unknown_of().is_none();
        numbers.filter(move |_| !is_allowed).map(|number| self.unit(number))
    }

    /// Whether the call carries what no rule has looked at, and no rule has spoken about all of it. The default does not
    /// allow it either, as it is an answer about commands that were read.
    fn is_unread(&self) -> bool {
        let is_open = |number: usize| self.cover_of(number) != Cover::Covered;
        let is_withheld = |number: usize| self.cover_of(number) == Cover::Withheld;
        !self.unread.is_empty() && self.numbers().any(is_open)
            || !self.unread_of_judged.is_empty() && self.numbers().any(is_withheld)
    }

    fn rule(&mut self, file: &RuleFile, rule: &Rule) {
        if rule.effect == ToolDecision::Allow {
            self.allows(file, rule)
        } else {
            self.strict(file, rule)
        }
    }

    fn whole(&self, rule: &Rule, reading: Reading) -> (Truth, Option<usize>) {
        let mut sum = (Truth::Yes, None);
        for (at, condition) in rule.whole.iter().enumerate() {
            match condition.holds(&self.examined, reading) {
                Truth::Yes => {}
                Truth::No => return (Truth::No, Some(at)),
                unknown @ Truth::Unknown(_) => {
                    if sum.1.is_none() {
                        sum = (unknown, Some(at));
                    }
                }
            }
        }
        sum
    }

    fn allows(&mut self, file: &RuleFile, rule: &Rule) {
        if let Some(why) = other_fields::allows_nothing(file, rule, self.examined.call.args) {
            return self.missed(file, rule, None, || why);
        }
        let (answer, at) = self.whole(rule, Reading::Allowing);
        if answer != Truth::Yes {
            let condition = at.and_then(|at| rule.whole.get(at));
            return self.missed(file, rule, None, || reason::failed(condition, answer));
        }
        let mut spoke = false;
        let in_other_fields = || other_fields::silences(rule, &self.unread_of_judged);
        let silenced = other_fields::silences(rule, &self.unread)
            .or_else(|| rule.command_field().and_then(|_| in_other_fields()));
        for number in self.numbers() {
            let unit = self.unit(number);
            match (self.covers(rule, unit), &silenced) {
                (Ok(()), Some(why)) => {
                    self.cover(number, Cover::Withheld);
                    let part = self.part(unit);
                    self.missed(file, rule, part, || why.clone());
                }
                (Ok(()), None) => {
                    spoke = true;
                    self.cover(number, Cover::Covered);
                    let said = self.spoke(file, rule, rule.effect, unit, "");
                    self.ruling.spoke.push(said);
                }
                (Err(why), _) => {
                    let part = self.part(unit);
                    self.missed(file, rule, part, why);
                }
            }
        }
        if spoke {
            self.charge(file, rule);
        }
    }

    /// Whether a rule that allows covers one unit. The error says which condition fails.
    ///
    /// Exceptions are read strictly here: an exception of a rule that allows makes it narrower, so that it applies
    /// where it *may* apply.
    fn covers<'r>(
        &self,
        rule: &'r Rule,
        unit: Unit,
    ) -> Result<(), Box<dyn FnOnce() -> String + 'r>> {
        if let Some(field) = rule.command_field() {
            // A text without commands, such as an empty one, has nothing that could fail.
            let Some((number, part)) = self.command(field, unit) else {
                return Err(Box::new(|| {
                    "the text is not analysed, or is no command of this field".to_owned()
                }));
            };
            let Some((_, view)) = self.views.get(number) else {
                return Err(Box::new(|| "the command is missing".to_owned()));
            };
            for condition in &rule.commands {
                let answer = condition.holds_for(view, part, &self.examined, Reading::Allowing);
                if answer != Truth::Yes {
                    return Err(Box::new(move || reason::failed(Some(condition), answer)));
                }
            }
        }
        for exception in &rule.exceptions {
            let answer = self.exception(exception, unit, Reading::Strict);
            if answer != Truth::No {
                let first = exception.first();
                return Err(Box::new(move || {
                    format!("the exception {} applies", first.map_or("", |it| &it.text))
                }));
            }
        }
        Ok(())
    }

    /// The view and the part of a unit, if the unit is a command of this field.
    fn command(&self, field: &[String], unit: Unit) -> Option<(usize, usize)> {
        match unit {
            Unit::Command(number, part)
                if self.views.get(number).is_some_and(|(name, _)| name == field) =>
            {
                Some((number, part))
            }
            _ => None,
        }
    }

    /// Whether all conditions of an exception hold for a unit. Its reading is that of the opposite effect: an exception
    /// of a rule that allows is strict, and one of a strict rule has to be certain.
    fn exception(&self, conditions: &[Condition], unit: Unit, reading: Reading) -> Truth {
        Truth::all(conditions.iter().map(|condition| {
            if !condition.is_of_commands() {
                return condition.holds(&self.examined, reading);
            }
            let FieldPath::Named(field) = &condition.field else {
                return Truth::Unknown("is no command");
            };
            match (unit, self.command(field, unit)) {
                (_, Some((number, part))) => match self.views.get(number) {
                    Some((_, view)) => condition.holds_for(view, part, &self.examined, reading),
                    None => Truth::Unknown("is missing"),
                },
                (Unit::Command(..), None) => Truth::No,
                (Unit::Rest(_) | Unit::Whole, None) => Truth::Unknown("is not analysed"),
            }
        }))
    }

    fn strict(&mut self, file: &RuleFile, rule: &Rule) {
        let (mut whole, at) = self.whole(rule, Reading::Strict);
        let speaks = (whole != Truth::No).then_some(&rule.exceptions);
        let excepted = speaks.and_then(|all| excepting(all, &rule.whole, &self.examined));
        if whole == Truth::No || excepted.is_some() {
            self.below = below::speaks(rule, &self.examined);
            let Some(below) = &self.below else {
                let condition = at.and_then(|at| rule.whole.get(at));
                return self
                    .missed(file, rule, None, || reason::silent(excepted, condition, whole));
            };
            whole = Truth::Unknown(below.why());
        }
        let before = self.ruling.spoke.len();
        match rule.command_field() {
            None => self.strict_whole(file, rule, whole),
            Some(field) => match self.views.iter().position(|(name, _)| name == field) {
                None => self.speak(file, rule, Truth::Unknown("is missing"), Unit::Whole),
                Some(number) => self.strict_commands(file, rule, whole, number),
            },
        }
        self.below = None;
        if self.ruling.spoke.len() > before {
            self.charge(file, rule);
        }
    }

    /// Evaluates a strict rule about whole calls. An exception makes it milder and has to be certain; one about
    /// commands has to hold for each of them, as the rule is then silent for the whole call.
    fn strict_whole(&mut self, file: &RuleFile, rule: &Rule, whole: Truth) {
        let excepted = rule.exceptions.iter().find(|exception| {
            let of_commands = exception.iter().any(Condition::is_of_commands);
            let numbers = if of_commands { self.numbers() } else { 0..1 };
            numbers
                .map(|number| if of_commands { self.unit(number) } else { Unit::Whole })
                .all(|unit| self.exception(exception, unit, Reading::Allowing) == Truth::Yes)
        });
        match excepted {
            Some(exception) => {
                let text = exception.first().map_or("", |it| it.text.as_str()).to_owned();
                self.missed(file, rule, None, || format!("the exception {text} applies"));
            }
            None => self.speak(file, rule, whole, Unit::Whole),
        }
    }

    fn strict_commands(&mut self, file: &RuleFile, rule: &Rule, whole: Truth, number: usize) {
        let Some((_, view)) = self.views.get(number).map(|(name, view)| (name, Rc::clone(view)))
        else {
            return;
        };
        for part in 0..view.parts().len() {
            let unit = Unit::Command(number, part);
            let answers = rule
                .commands
                .iter()
                .map(|it| it.holds_for(&view, part, &self.examined, Reading::Strict));
            let answer = Truth::all(answers.chain([whole]));
            if answer == Truth::No {
                let first = rule.commands.iter().find(|it| {
                    it.holds_for(&view, part, &self.examined, Reading::Strict) == Truth::No
                });
                let text = self.near.is_some().then(|| self.part(unit)).flatten();
                self.missed(file, rule, text, || reason::failed(first, answer));
                continue;
            }
            let excepted = rule
                .exceptions
                .iter()
                .any(|it| self.exception(it, unit, Reading::Allowing) == Truth::Yes);
            if excepted {
                let text = self.part(unit);
                self.missed(file, rule, text, || "an exception applies".to_owned());
            } else {
                self.speak(file, rule, answer, unit);
            }
        }
        if view.refused.is_some() {
            self.speak(file, rule, Truth::Unknown(NOT_ANALYSED), Unit::Rest(number));
        }
    }

    /// A strict rule applies: a condition that could not be evaluated leads to an ASK.
    fn speak(&mut self, file: &RuleFile, rule: &Rule, answer: Truth, unit: Unit) {
        let (effect, why) = match answer {
            Truth::Unknown(why) => (ToolDecision::Ask, why),
            Truth::Yes | Truth::No => (rule.effect, ""),
        };
        // What a rule asks about or denies has been spoken about: the default is for the rest.
        for number in self.numbers() {
            if unit == Unit::Whole || unit == self.unit(number) {
                self.cover(number, Cover::Covered);
            }
        }
        if effect == ToolDecision::Ask && !self.asked.contains(&unit) {
            self.asked.push(unit);
        }
        let said = self.spoke(file, rule, effect, unit, why);
        if !self.ruling.spoke.contains(&said) {
            self.ruling.spoke.push(said);
        }
    }

    fn spoke(
        &self,
        file: &RuleFile,
        rule: &Rule,
        decision: ToolDecision,
        unit: Unit,
        unknown: &'static str,
    ) -> Spoke {
        let part = self.part(unit);
        let mut reason = reason::filled(rule, &self.examined, part.as_deref());
        if !unknown.is_empty() {
            let below = self.below.as_ref().map(|below| below.reason(&self.examined));
            let named = || reason::unknown(rule, &self.examined, unknown);
            let why = match unit {
                Unit::Rest(_) => NOT_ANALYSED.to_owned(),
                Unit::Whole | Unit::Command(..) => below.unwrap_or_else(named),
            };
            reason = format!("cannot be ruled out, as {why}: {reason}");
        }
        Spoke {
            rule: Arc::clone(&rule.id),
            file: Some(Arc::clone(&file.name)),
            line: Some(rule.line),
            layer: file.layer,
            decision,
            reason,
            part,
            every_time: rule.every_time,
            grantable: !rule.every_time
                && (unknown.is_empty() || rule.effect != ToolDecision::Deny),
            people: rule.people.as_ref().map(|it| it.people.clone()),
            title: rule.title.clone(),
            digest: Arc::clone(&rule.digest),
        }
    }

    fn charge(&mut self, file: &RuleFile, rule: &Rule) {
        let Some(limit) = &rule.at_most else { return };
        let mut beyond = self.spoke(file, rule, limit.otherwise, Unit::Whole, "");
        beyond.reason =
            format!("{}: at most {} calls in {:?}", beyond.reason, limit.calls, limit.within);
        let rule = format!("{:?}/{}", file.layer, rule.id).to_lowercase().into();
        self.ruling.charges.push(Charge { rule, calls: limit.calls, within: limit.within, beyond });
    }

    fn part(&self, unit: Unit) -> Option<String> {
        match unit {
            Unit::Whole => None,
            Unit::Command(number, part) => {
                self.views.get(number).map(|(_, view)| view.text_of(part))
            }
            Unit::Rest(number) => self.views.get(number).map(|(_, view)| view.text.clone()),
        }
    }

    fn missed(
        &mut self,
        file: &RuleFile,
        rule: &Rule,
        part: Option<String>,
        why: impl FnOnce() -> String,
    ) {
        if let Some(near) = &mut self.near {
            near.push(NearMiss {
                rule: Arc::clone(&rule.id),
                file: Some(Arc::clone(&file.name)),
                line: Some(rule.line),
                decision: rule.effect,
                reason: why(),
                part,
            });
        }
    }

    /// The strictest of all answers. A call that no rule allows is asked about.
    ///
    /// "Strictest" is the order of [`ToolDecision`], so that there is no place where the order of files, layers or
    /// rules could matter (rule R2).
    fn decide(&mut self) {
        let strictest = self.ruling.spoke.iter().map(|spoke| spoke.decision).max();
        let is_unread = self.is_unread();
        let default = match self.uncovered().next() {
            None if !is_unread => ToolDecision::Allow,
            _ => ToolDecision::Ask,
        };
        self.ruling.decision = strictest.unwrap_or(ToolDecision::Allow).max(default);
        let names_all = self.near.is_some()
            || is_unread
            || !self.ruling.spoke.is_empty()
            || !self.views.is_empty()
            // A person is told the name that a rule has to have.
            || self.examined.call.unknown_of().is_some();
        if self.ruling.decision == ToolDecision::Ask && names_all {
            let mut said: Vec<Spoke> = self.uncovered().map(|unit| self.default(unit)).collect();
            if is_unread {
                let reason = other_fields::reason(&self.unread, &self.unread_of_judged);
                said.push(Spoke { part: None, reason, ..self.default(Unit::Whole) });
            }
            self.ruling.spoke.extend(said);
        }
        if self.near.is_some()
            && self.ruling.decision == ToolDecision::Allow
            && self.ruling.spoke.is_empty()
        {
            let mut said = self.default(Unit::Whole);
            (said.decision, said.reason) =
                (ToolDecision::Allow, "no rule speaks, and `danger_default_allow` is set".into());
            self.ruling.spoke.push(said);
        }
        if self.ruling.decision == ToolDecision::Ask {
            self.ruling.pins = pins::of_paths_and_commands(&self.examined, &self.views);
            if self.ruling.winners().all(|spoke| spoke.grantable && !spoke.every_time) {
                self.ruling.patterns = self.patterns();
            }
            self.bind_to_contents();
        }
        self.ruling.sort();
    }

    fn default(&self, unit: Unit) -> Spoke {
        let part = self.part(unit);
        let mut reason = reason::uncovered(&self.examined, part.as_deref());
        if let Unit::Rest(number) = unit
            && let Some(why) = self.views.get(number).and_then(|(_, view)| view.refused.as_deref())
        {
            reason = format!("the command is not analysed: {why}");
        }
        if let Unit::Command(number, at) = unit
            && let Some(part) = self.views.get(number).and_then(|(_, view)| view.parts().get(at))
            && let Some(why) = part.reasons().iter().min_by_key(|it| says_unknown(it.text()))
        {
            reason = format!("{reason}: {}", why.text());
        }
        Spoke {
            rule: "default".into(),
            file: None,
            line: None,
            layer: Layer::Default,
            decision: ToolDecision::Ask,
            reason,
            part,
            every_time: false,
            grantable: true,
            people: None,
            title: None,
            digest: "".into(),
        }
    }
}
