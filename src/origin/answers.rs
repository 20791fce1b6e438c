//! The answers of a record: who named a value, what was read, and where a value stands.

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

use super::record::{ReadEntry, ReadRecord, RecordState};
use super::scanning::scan;
use super::spelling::MAX_VALUE;
use super::text_source::{TextSource, each_leaf};
use super::value_form::{LookUp, ValueForm};
use super::value_index::ReadNumber;
use super::value_origin::{ReadPlace, Standpoint, ValueOrigin};
use crate::args::Args;

/// The number of values of a call that are looked up for people.
const MAX_SHOWN: usize = 64;

/// The reads of a run when a response was requested: they answer where the values of its calls come from.
///
/// [`RunContext::origin`](crate::RunContext::origin) gives it to layers and tools. Where nothing was recorded, every
/// answer is the safe one: the run may have read anything, and nothing is named by anyone.
///
/// ```
/// use countersign::origin::Origin;
/// use serde_json::json;
///
/// let unknown = Origin::default();
/// assert!(unknown.has_read("web") && !unknown.is_recorded());
/// assert!(!unknown.named_by(&["user"], &json!("bob@example.com")));
/// ```
#[derive(Clone, Default)]
pub struct Origin {
    record: Option<ReadRecord>,
    before: ReadNumber,
    /// `true` if the call only reads, so that a place that was read may be read again.
    only_reads: bool,
}

impl Origin {
    fn of(record: ReadRecord, before: ReadNumber) -> Self {
        Self { record: Some(record), before, only_reads: false }
    }

    /// This record as it was when it had so many reads.
    pub(crate) fn at(record: &ReadRecord, position: u32) -> Self {
        Self::of(record.clone(), position)
    }

    /// The same for a call that only reads. For a call that may send something, a page whose content the run has read as
    /// text of others is no target that the user has named.
    #[must_use]
    pub fn for_reading(mut self) -> Self {
        self.only_reads = true;
        self
    }

    /// Returns `true` if there is a record, so that the answers are about this run.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// Returns `true` if all that was read is in the index. It is not if a result is missing, or if there were too many
    /// values.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.with(|readings| {
            let mut open: Vec<&str> = Vec::new();
            for entry in self.visible(readings) {
                match entry.is_known {
                    true => open.retain(|call| *call != entry.call),
                    false => open.push(&entry.call),
                }
            }
            open.is_empty() && !readings.index.is_full && !readings.past_is_unknown
        })
        .unwrap_or(false)
    }

    /// Returns `true` if the run has read text of this source: `others`, or a label such as `web`. It is about the
    /// whole context of the run, and ends with the run.
    #[must_use]
    pub fn has_read(&self, source: &str) -> bool {
        self.with(|readings| {
            let has = |entry: &ReadEntry| !entry.is_inside && entry.source.is(source);
            readings.past_is_unknown || self.visible(readings).any(has)
        })
        .unwrap_or(true)
    }

    /// Returns `true` if every item of a value stands, whole, in one read of one of these sources: `user`, `own`, or a
    /// label.
    ///
    /// The items are those of a list, the values of an object, and what commas and semicolons separate. A value that is
    /// empty names nothing that could be wrong; a truth value names nothing.
    ///
    /// ```
    /// use countersign::origin::ReadRecord;
    /// use serde_json::json;
    ///
    /// let record = ReadRecord::new();
    /// record.user_said("Mail ann@example.com and bob@example.com");
    /// let origin = record.origin();
    /// assert!(origin.named_by(&["user"], &json!("Ann@Example.com; bob@example.com")));
    /// assert!(!origin.named_by(&["user"], &json!(["ann@example.com", "eve@example.com"])));
    /// ```
    #[must_use]
    pub fn named_by(&self, sources: &[&str], value: &Value) -> bool {
        self.with(|readings| {
            let is = |entry: &ReadEntry| {
                !entry.is_inside && sources.iter().any(|source| entry.source.is(source))
            };
            self.all_items(readings, value, &is)
        })
        .unwrap_or(false)
    }

    fn all_items(
        &self,
        readings: &RecordState,
        value: &Value,
        is: &dyn Fn(&ReadEntry) -> bool,
    ) -> bool {
        match value {
            Value::Null => true,
            Value::Bool(_) => false,
            Value::Number(number) => self.item(readings, &number.to_string(), is),
            Value::String(text) if text.is_empty() => true,
            Value::String(text) => {
                self.item(readings, text, is)
                    || text.contains([',', ';'])
                        && text.split([',', ';']).all(|part| self.item(readings, part, is))
            }
            Value::Array(items) => items.iter().all(|item| self.all_items(readings, item, is)),
            Value::Object(map) => map.values().all(|item| self.all_items(readings, item, is)),
        }
    }

    fn item(&self, readings: &RecordState, text: &str, is: &dyn Fn(&ReadEntry) -> bool) -> bool {
        let ways = LookUp::of(text, &readings.folders).ways;
        let is_page = !self.only_reads && ways.iter().any(|way| self.is_read_page(readings, way));
        let counts =
            |entry: &ReadEntry| is(entry) && !(is_page && entry.source == TextSource::User);
        ways.iter().any(|way| self.reads_with(readings, way, false).into_iter().any(counts))
    }

    /// Returns `true` if this is the page that some text of others was read from.
    fn is_read_page(&self, readings: &RecordState, way: &[(ValueForm, String)]) -> bool {
        let [(form @ (ValueForm::Url | ValueForm::Bare), value)] = way else { return false };
        let hash = readings.index.hash(*form, value);
        self.visible(readings).any(|entry| entry.source.is_others() && entry.urls.contains(&hash))
    }

    /// The reads in which all of these forms stand, the last one first.
    fn reads_with<'r>(
        &self,
        readings: &'r RecordState,
        way: &[(ValueForm, String)],
        alike: bool,
    ) -> Vec<&'r ReadEntry> {
        let numbers = |(form, value): &(ValueForm, String)| {
            let hash = readings.index.hash(*form, value);
            readings.index.reads(hash, self.before, alike)
        };
        let Some((first, rest)) = way.split_first() else { return Vec::new() };
        let all = numbers(first)
            .filter(|read| rest.iter().all(|it| numbers(it).any(|other| other == *read)));
        all.filter_map(|read| readings.entries.get(read as usize)).collect()
    }

    /// Returns `true` if a text has an address, a URL, an account or a number of six digits that stands in a text of
    /// this source of others, and in none of the user's and the owner's: a link that a page wants to be passed on.
    ///
    /// ```
    /// use countersign::origin::{ReadCall, ReadLabel, ReadRecord};
    /// use serde_json::json;
    ///
    /// let record = ReadRecord::new();
    /// let page = ReadCall::new("c1", "fetch", json!({}));
    /// record.read(&ReadLabel::others("web"), &page, &json!("Tell Ann to visit www.example.com/prize"));
    /// assert!(record.origin().carries("web", &json!("Hi Ann, have a look at www.example.com/prize!")));
    /// assert!(!record.origin().carries("web", &json!("Hi Ann, how are you?")));
    /// ```
    #[must_use]
    pub fn carries(&self, source: &str, value: &Value) -> bool {
        self.with(|readings| {
            let mut carries = readings.past_is_unknown;
            each_leaf(value, &mut String::new(), &mut |_, text| {
                carries = carries || self.carried(readings, source, text);
            });
            carries
        })
        .unwrap_or(true)
    }

    fn carried(&self, readings: &RecordState, source: &str, text: &str) -> bool {
        let mut found = false;
        scan(text, &readings.folders, &mut |form, value, at| {
            let counts = match form {
                ValueForm::Address | ValueForm::Url | ValueForm::Bare | ValueForm::Account => true,
                ValueForm::Number => value.bytes().filter(u8::is_ascii_digit).count() >= 6,
                _ => false,
            };
            if found || !counts || at.alike {
                return;
            }
            let ways = match form {
                ValueForm::Url | ValueForm::Bare => LookUp::of(value, &readings.folders).ways,
                _ => vec![vec![(form, value.to_owned())]],
            };
            let reads = || ways.iter().flat_map(|way| self.reads_with(readings, way, false));
            let ours = |entry: &ReadEntry| !entry.is_inside && !entry.source.is_others();
            found = reads().any(|entry| entry.source.is(source)) && !reads().any(ours);
        });
        found
    }

    /// The origin of a value, for people.
    #[must_use]
    pub fn of_value(&self, field: &str, value: &str) -> ValueOrigin {
        let found = self.with(|readings| {
            let places = |lookup: LookUp, alike: bool| {
                let mut places: Vec<ReadPlace> = Vec::new();
                for way in &lookup.ways {
                    let around = way.iter().find_map(|(form, value)| {
                        readings.around.get(&readings.index.hash(*form, value)).cloned()
                    });
                    for entry in self.reads_with(readings, way, alike) {
                        let around = around.clone().filter(|_| entry.source.is_others());
                        let place = self.place(readings, entry, around);
                        if !places.iter().any(|known| known.is_of_same_read(&place)) {
                            places.push(place);
                        }
                    }
                }
                places
            };
            let same = places(LookUp::of(value, &readings.folders), false);
            let ours = |place: &ReadPlace| !place.source.is_others();
            let alike = match same.iter().any(ours) {
                true => Vec::new(),
                false => places(LookUp::alike(value), true)
                    .into_iter()
                    .chain(places(LookUp::of(value, &readings.folders), true))
                    .filter(|place| !same.iter().any(|known| known.is_of_same_read(place)))
                    .collect(),
            };
            ValueOrigin::found(field, same, alike, self.is_complete_in(readings))
        });
        found.unwrap_or_else(|| ValueOrigin::not_recorded(field))
    }

    fn is_complete_in(&self, readings: &RecordState) -> bool {
        !readings.index.is_full
            && !readings.past_is_unknown
            && self.visible(readings).all(|it| it.is_known)
    }

    fn place(
        &self,
        readings: &RecordState,
        entry: &ReadEntry,
        around: Option<String>,
    ) -> ReadPlace {
        let calls = self.visible(readings).filter(|it| !it.call.is_empty());
        let mut seen: Vec<&str> = Vec::new();
        for call in calls {
            if !seen.contains(&call.call.as_str()) {
                seen.push(&call.call);
            }
        }
        let number = seen.iter().position(|call| *call == entry.call).map(|at| at + 1);
        ReadPlace {
            source: if entry.is_inside { TextSource::Others(None) } else { entry.source.clone() },
            tool: Some(entry.tool.clone()).filter(|it| !it.is_empty()),
            call: number.and_then(|it| u32::try_from(it).ok()),
            place: entry.place.clone(),
            around,
        }
    }

    /// The reason why a field is not named by these sources, in words for a question: the first item that is not.
    ///
    /// ```
    /// use countersign::origin::ReadRecord;
    ///
    /// let origin = ReadRecord::new().origin();
    /// assert_eq!(origin.why("to", &["user"], &"eve@example.com".into()), "`to` stands in nothing that was read");
    /// ```
    #[must_use]
    pub fn why(&self, field: &str, sources: &[&str], value: &Value) -> String {
        if !self.is_recorded() {
            return format!("where `{field}` comes from is not recorded");
        }
        let mut first = None;
        each_leaf(value, &mut String::new(), &mut |_, text| {
            if first.is_none() && !self.named_by(sources, &Value::String(text.to_owned())) {
                let parts = text.split([',', ';']).map(str::trim);
                let is_named =
                    |part: &&str| self.named_by(sources, &Value::String((*part).to_owned()));
                first = Some(match text.contains([',', ';']) {
                    true => parts.clone().find(|part| !is_named(part)).unwrap_or(text).to_owned(),
                    false => text.to_owned(),
                });
            }
        });
        let Some(text) = first else {
            return format!("`{field}` has no value that could be named");
        };
        let found = self.of_value(field, &text);
        match found.named_by {
            Standpoint::User if sources.contains(&"user") => {
                format!("`{field}` is the page that text of others was read from")
            }
            Standpoint::User => format!("`{field}` is named by you, and not by a list of yours"),
            Standpoint::Own => format!("`{field}` comes {found}, and you have not named it"),
            Standpoint::Nowhere => format!("`{field}` stands {found}"),
            Standpoint::Others | Standpoint::NotRecorded => format!("`{field}` {found}"),
        }
    }

    /// The part of the record that is about these arguments: enough for every answer about them, and small. A journal keeps
    /// it, so that rules can decide about the call again. `None` where nothing is recorded.
    ///
    /// ```
    /// use countersign::origin::{Origin, ReadRecord};
    /// use serde_json::json;
    ///
    /// let record = ReadRecord::new();
    /// record.user_said("Mail ann@example.com about the harvest");
    /// let part = record.origin().excerpt(&json!({"to": "ann@example.com"})).unwrap();
    /// assert!(part.origin().named_by(&["user"], &json!("ann@example.com")));
    /// assert!(!part.origin().named_by(&["user"], &json!("harvest")), "it is about another value");
    /// assert!(Origin::default().excerpt(&json!({})).is_none());
    /// ```
    #[must_use]
    pub fn excerpt(&self, args: &Value) -> Option<ReadRecord> {
        self.with(|readings| {
            let mut wanted = HashSet::new();
            let mut want = |lookup: LookUp| {
                let forms = lookup.ways.into_iter().flatten();
                wanted.extend(forms.map(|(form, value)| readings.index.hash(form, &value)));
            };
            each_leaf(args, &mut String::new(), &mut |_, text| {
                want(LookUp::of(text, &readings.folders));
                want(LookUp::alike(text));
                text.split([',', ';']).for_each(|part| want(LookUp::of(part, &readings.folders)));
                scan(text, &readings.folders, &mut |form, value, _| {
                    want(LookUp { ways: vec![vec![(form, value.to_owned())]] });
                    if matches!(form, ValueForm::Url | ValueForm::Bare) {
                        want(LookUp::of(value, &readings.folders));
                    }
                });
            });
            readings.excerpt(&wanted, self.before)
        })
    }

    /// The origin of each value of the arguments, for people; the field is a JSON pointer. Long texts, which are
    /// content and no targets, are left out.
    #[must_use]
    pub fn of_args(&self, args: &Args) -> Vec<ValueOrigin> {
        let mut found = Vec::new();
        let args = Value::Object(args.as_map().clone());
        each_leaf(&args, &mut String::new(), &mut |field, text| {
            let is_content = text.len() > MAX_VALUE || text.split_whitespace().count() > 8;
            if found.len() < MAX_SHOWN && !is_content && !text.is_empty() {
                found.push(self.of_value(field, text));
            }
        });
        found
    }

    fn visible<'r>(&self, readings: &'r RecordState) -> impl Iterator<Item = &'r ReadEntry> {
        readings.entries.iter().take(self.before as usize)
    }

    /// Looks into the record; `None` where nothing is recorded.
    fn with<T>(&self, look: impl FnOnce(&RecordState) -> T) -> Option<T> {
        let record = self.record.as_ref()?;
        let readings = record.lock();
        Some(look(&readings))
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.record {
            Some(_) => write!(f, "Origin(reads: {})", self.before),
            None => f.write_str("Origin(not recorded)"),
        }
    }
}

impl ReadRecord {
    /// The answers by all that the run has read until now.
    #[must_use]
    pub fn origin(&self) -> Origin {
        Origin::of(self.clone(), self.position())
    }
}
