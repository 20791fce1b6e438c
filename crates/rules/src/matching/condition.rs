//! Conditions of rules, and how they are evaluated.
//!
//! | field | test | allowing | strict |
//! |---|---|---|---|
//! | missing | any but `exists` | unknown: silent | unknown: asks |
//! | a list | any | each item must hold | one item is enough |
//! | an empty list | any | unknown | unknown |
//! | another type | `equals`, a range | unknown | unknown |
//! | a path | `within` | as written *and* as resolved | as written *or* as resolved |
//! | a path | `path` | exact case | without regard to case |
//! | a long text | a pattern | unknown | unknown |
//!
//! A missing field is unknown and not "no", as a tool has a default for it that the rule does not see. For example,
//! a rule that denies `force = true` cannot tell what a call without `force` does. If your rule is about calls
//! without the field, say `exists = false`.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use serde_json::{Number, Value};

use super::examined_call::{ExaminedCall, Sight, TextPlaces};
use super::host::HostPattern;
use super::origins::OriginTest;
use crate::calls::classes::Classes;
use crate::calls::command::CommandView;
use crate::calls::glob::{Glob, MAX_TEXT, PathGlob};
use crate::calls::truth::{Reading, Truth};
use crate::readings::argument::Likelihood;
use countersign_shell::inside;

/// One condition: a test of one field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    pub(crate) field: FieldPath,
    pub(crate) test: Test,
    /// The text of the condition in the file, for explanations.
    pub(crate) text: String,
}

/// The part of the arguments that a condition is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldPath {
    /// The path of a field, from the outermost name inward.
    Named(Vec<String>),
    /// Every string at any depth, and every operand of a command.
    AnyPath,
    /// No field: the condition is about what the run has read.
    Run,
}

/// The requirement of a condition on its field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    OneOf(Vec<Value>),
    Text(Vec<Glob>),
    Range(Range),
    Exists(bool),
    Within(Vec<String>),
    Outside(Vec<String>),
    Path(Vec<PathGlob>),
    Host(Vec<HostPattern>),
    /// Conditions about each command of a shell text.
    Runs(Vec<Vec<String>>),
    Is(Classes),
    Words(Vec<Glob>),
    /// A test of where the values come from, or of what the run has read.
    Origin(OriginTest),
}

impl Test {
    /// Returns `true` if the test is about each command of a shell text.
    pub(crate) fn is_of_commands(&self) -> bool {
        matches!(self, Self::Runs(_) | Self::Is(_) | Self::Words(_))
    }

    /// Returns `true` if the test is about where values come from.
    pub(crate) fn is_of_origin(&self) -> bool {
        matches!(self, Self::Origin(_))
    }

    /// Returns `true` if the test means something else in another root: by a path that begins there, or about commands,
    /// whose operands are judged there.
    pub(crate) fn is_of_root(&self) -> bool {
        let begins =
            |place: &String| !place.starts_with('/') && place != "~" && !place.starts_with("~/");
        match self {
            Self::Within(places) | Self::Outside(places) => places.iter().any(begins),
            Self::Path(globs) => globs.iter().any(PathGlob::is_of_root),
            _ => self.is_of_commands(),
        }
    }
}

/// Bounds of a number.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Range {
    /// The bound, and whether it is included.
    pub(crate) low: Option<(Number, bool)>,
    pub(crate) high: Option<(Number, bool)>,
}

impl Range {
    fn contains(&self, number: &Number) -> bool {
        let low = self.low.as_ref().is_none_or(|(bound, included)| match compare(number, bound) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Equal) => *included,
            _ => false,
        });
        let high =
            self.high.as_ref().is_none_or(|(bound, included)| match compare(number, bound) {
                Some(Ordering::Less) => true,
                Some(Ordering::Equal) => *included,
                _ => false,
            });
        low && high
    }
}

/// Compares two numbers; integers exactly.
///
/// We compare integers as integers: two account numbers beyond 2^53 that differ in the last digit are one double.
pub(crate) fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    let integer = |number: &Number| {
        number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
    };
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

impl Condition {
    /// Returns `true` if the condition is about each command of a shell text, and so is evaluated for each of them.
    pub(crate) fn is_of_commands(&self) -> bool {
        self.test.is_of_commands()
    }

    /// Decides whether the condition holds for a call.
    pub(crate) fn holds(&self, examined: &ExaminedCall<'_>, reading: Reading) -> Truth {
        let path = match &self.field {
            FieldPath::AnyPath => return self.any_path(examined, reading),
            FieldPath::Run => &Vec::new(),
            FieldPath::Named(path) => path,
        };
        if let Test::Origin(test) = &self.test {
            return test.holds(path, examined);
        }
        let value = examined.field(path).filter(|value| !value.is_null());
        match (&self.test, value) {
            (Test::Exists(wanted), value) => Truth::of(value.is_some() == *wanted),
            (_, None) => Truth::Unknown("is missing"),
            (test, Some(Value::Array(items))) => {
                if items.is_empty() {
                    return Truth::Unknown("is an empty list");
                }
                reading.over(items.iter().map(|item| one(test, item, examined, reading)))
            }
            (test, Some(value)) => one(test, value, examined, reading),
        }
    }

    /// Decides whether the condition holds for one command of a shell text.
    pub(crate) fn holds_for(
        &self,
        view: &CommandView,
        part: usize,
        examined: &ExaminedCall<'_>,
        reading: Reading,
    ) -> Truth {
        match &self.test {
            Test::Runs(patterns) => Truth::any(
                patterns.iter().map(|words| view.runs(part, words, examined.engine, reading)),
            ),
            Test::Is(classes) => view.is(part, *classes, reading),
            Test::Words(globs) => view.words(part, globs, reading),
            _ => Truth::Unknown("is no condition about commands"),
        }
    }

    fn any_path(&self, examined: &ExaminedCall<'_>, reading: Reading) -> Truth {
        paths(&self.test, examined.any_paths(), examined, reading)
    }
}

/// The exception that holds for every path that these conditions of a strict rule have found in the call, or may have. What
/// else the call says is no path of the rule: `grep {path: ".env.example", pattern: "KEY"}`.
pub(crate) fn excepting<'r>(
    exceptions: &'r [Vec<Condition>],
    finding: &[Condition],
    examined: &ExaminedCall<'_>,
) -> Option<&'r Condition> {
    let of_all = |it: &&Condition| it.field == FieldPath::AnyPath;
    let only = |exception: &'r Vec<Condition>| match exception.as_slice() {
        [only] => Some(only).filter(of_all),
        _ => None,
    };
    let mut exceptions = exceptions.iter().filter_map(only).peekable();
    exceptions.peek()?;
    let is_found = |text: &&TextPlaces| {
        let one = std::slice::from_ref(*text);
        let mut finding = finding.iter().filter(of_all);
        finding.any(|it| paths(&it.test, one, examined, Reading::Strict) != Truth::No)
    };
    let found: Vec<_> = examined.any_paths().iter().filter(is_found).collect();
    let holds = |exception: &&Condition| {
        let one = |it: &&TextPlaces| one_text(&exception.test, it, examined, Reading::Allowing);
        !found.is_empty() && found.iter().all(|it| one(it) == Truth::Yes)
    };
    exceptions.find(holds)
}

/// Decides whether a test of paths holds for one reading of a text, whatever that reading is worth.
fn one_text(
    test: &Test,
    text: &TextPlaces,
    examined: &ExaminedCall<'_>,
    reading: Reading,
) -> Truth {
    match &text.places {
        Ok(places) => {
            let each =
                places.iter().map(|place| at(test, place, examined, reading, text.is_pattern));
            reading.over(each)
        }
        Err(why) => Truth::Unknown(why),
    }
}

/// Decides whether a test of paths holds for these readings of texts.
///
/// A rule that allows has to match every reading that a consumer may make. A strict one speaks about one that is certain,
/// and asks about one that is only possible (rule X2).
fn paths(test: &Test, all: &[TextPlaces], examined: &ExaminedCall<'_>, reading: Reading) -> Truth {
    let holds = |it: &TextPlaces| one_text(test, it, examined, reading);
    if reading.allows() {
        let counts =
            |it: &&TextPlaces| it.sight != Sight::Strict && it.likelihood != Likelihood::Loose;
        let mut counted = all.iter().filter(counts).peekable();
        return match counted.peek() {
            None => Truth::Unknown("there is no text in the arguments"),
            Some(_) => Truth::all(counted.map(holds)),
        };
    }
    Truth::any(all.iter().filter(|it| it.sight != Sight::Allowing).map(|it| {
        match (holds(it), it.likelihood) {
            (Truth::Yes, Likelihood::Possible | Likelihood::Loose) => {
                Truth::Unknown("may be read as another path than it seems to be")
            }
            (Truth::Unknown(_), Likelihood::Loose) => Truth::No,
            (answer, _) => answer,
        }
    }))
}

fn one(test: &Test, value: &Value, examined: &ExaminedCall<'_>, reading: Reading) -> Truth {
    match test {
        Test::OneOf(wanted) => equal(wanted, value),
        Test::Range(range) => match value {
            Value::Number(number) => Truth::of(range.contains(number)),
            _ => Truth::Unknown("is no number"),
        },
        Test::Exists(_) => Truth::Yes,
        _ => match value.as_str() {
            None => Truth::Unknown("is no text"),
            Some(text) => in_text(test, text, examined, reading),
        },
    }
}

fn in_text(test: &Test, text: &str, examined: &ExaminedCall<'_>, reading: Reading) -> Truth {
    if text.len() > MAX_TEXT {
        return Truth::Unknown("is too long");
    }
    match test {
        Test::Text(globs) => Truth::of(globs.iter().any(|glob| glob.matches(text))),
        Test::Host(hosts) => {
            Truth::any(hosts.iter().map(|host| host.matches(text, reading.allows())))
        }
        _ if text.is_empty() => Truth::Unknown("is empty"),
        // A rule that names the argument says that it is a path.
        _ => examined.with_readings(text, |all| paths(test, all, examined, reading)),
    }
}

/// Tests one place that a path may stand for. One in another working tree of the project is also the place in the root
/// that it stands for.
fn at(
    test: &Test,
    place: &Path,
    examined: &ExaminedCall<'_>,
    reading: Reading,
    is_glob: bool,
) -> Truth {
    let found = at_place(test, place, examined, reading, is_glob);
    // `outside` holds for what is in neither.
    let settled = if matches!(test, Test::Outside(_)) { Truth::No } else { Truth::Yes };
    if found == settled {
        return found;
    }
    let stands_for = examined.in_root(place, reading.allows() && settled == Truth::Yes);
    match stands_for.map(|it| at_place(test, &it, examined, reading, is_glob)) {
        Some(other) if other == settled || !matches!(found, Truth::Unknown(_)) => other,
        _ => found,
    }
}

fn at_place(
    test: &Test,
    place: &Path,
    examined: &ExaminedCall<'_>,
    reading: Reading,
    is_glob: bool,
) -> Truth {
    let inside = |targets: &[String], reading: Reading| {
        let mut known = true;
        let found = targets.iter().any(|target| {
            let target = examined.target(target);
            known &= target.is_some();
            target.is_some_and(|target| is_below(place, &target, reading))
        });
        if found || known {
            Truth::of(found)
        } else {
            Truth::Unknown("is compared with a home directory that is not known")
        }
    };
    match test {
        Test::Within(targets) => inside(targets, reading),
        // A place is outside if it is not below by any comparison that a file system makes, and where a rule denies, by the
        // exact one: without regard to case, `/TMP/x` would be in `/tmp`, and milder.
        Test::Outside(targets) => match inside(targets, reading.opposite()) {
            Truth::Yes => Truth::No,
            Truth::No => Truth::Yes,
            unknown @ Truth::Unknown(_) => unknown,
        },
        Test::Path(globs) => Truth::any(globs.iter().map(|glob| {
            let folded = !reading.allows();
            match glob.matches(place, examined.places(), folded, is_glob) {
                Some(holds) => Truth::of(holds),
                None => Truth::Unknown("may match, depending on the files there"),
            }
        })),
        _ => Truth::Unknown("is no condition about paths"),
    }
}

/// A strict rule also compares without regard to case: on a file system that ignores it, `SRC/.ENV` is the file that
/// the rule denies. In a rule that allows, the same comparison would let through a folder that only looks like the
/// allowed one.
pub(crate) fn is_below(place: &Path, target: &[PathBuf], reading: Reading) -> bool {
    // The root is given as it is written and as it is resolved: a place is in both, or in one of them.
    let below = target.iter().any(|target| inside(place, target).is_some());
    below
        || (!reading.allows()
            && target.iter().any(|target| {
                let fold = |path: &Path| PathBuf::from(path.to_string_lossy().to_lowercase());
                fold(place).starts_with(fold(target))
            }))
}

/// A value of another type is unknown. For example, a rule about `amount = 50` should not be silent because a model has
/// sent `"50"`, which the tool may accept.
fn equal(wanted: &[Value], value: &Value) -> Truth {
    let mut comparable = false;
    for wanted in wanted {
        match (wanted, value) {
            (Value::String(one), Value::String(other)) if one == other => return Truth::Yes,
            (Value::Bool(one), Value::Bool(other)) if one == other => return Truth::Yes,
            (Value::Number(one), Value::Number(other))
                if compare(one, other) == Some(Ordering::Equal) =>
            {
                return Truth::Yes;
            }
            (Value::String(_), Value::String(_))
            | (Value::Bool(_), Value::Bool(_))
            | (Value::Number(_), Value::Number(_)) => comparable = true,
            _ => {}
        }
    }
    if comparable { Truth::No } else { Truth::Unknown("has another type than the rule's value") }
}
