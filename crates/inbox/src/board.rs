//! The pending asks, as this process has read them last.
//!
//! A board is a value that does not change: a reader keeps the board of one moment, however long it reads. A change
//! makes another board, which shares the items that are the same.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;
use sha2::{Digest as _, Sha256};

use countersign::args::hex;
use countersign::decision::Question;
use countersign::ledger::{Ask, AskRecord, Ledger, Listed, Millis, RefusedRow};
use countersign::show;

/// The time after which an ask without a deadline counts as due.
///
/// Without this, such asks would stand behind all others for ever.
const DUE_AFTER: Millis = 24 * 60 * 60 * 1000;

/// All pending asks, newest first.
#[derive(Default)]
pub(super) struct Board {
    pub(super) items: Vec<Arc<BoardItem>>,
    pub(super) refused: Vec<Arc<RefusedRow>>,
}

/// One pending ask, with the values that lists sort and filter by.
pub(super) struct BoardItem {
    pub(super) record: AskRecord,
    /// Equal for equal calls: of the same run and person, in one group ([`DeferredToolRequests::group_key`]). Where
    /// several people have to agree, each call has a key of its own, as each has its own votes; and so has a call with a
    /// preview that was cut, which is answered by itself (rule S7).
    ///
    /// [`DeferredToolRequests::group_key`]: countersign::DeferredToolRequests::group_key
    ///
    /// A person decides an entry of equal calls with one click. The page sends a decision for each call, with its own
    /// fingerprint: the key saves reading, and no check.
    pub(super) key: String,
    /// The time at which the ask expires, or should be decided.
    pub(super) due: Millis,
    /// The canonical name of the requester; empty when there is none.
    pub(super) requester: String,
}

impl Board {
    pub(super) fn of(ledger: &Ledger, listed: Listed<AskRecord>) -> Self {
        let items =
            listed.records.into_iter().map(|record| Arc::new(BoardItem::of(ledger, record)));
        Self { items: items.collect(), refused: listed.refused.into_iter().map(Arc::new).collect() }
    }

    /// The board after these asks have changed: the pending ones among them are replaced, and the others removed.
    ///
    /// New ones are put in front, and known ones keep their places. This walks over the items once: a decision in an
    /// inbox of ten thousand asks does not read them all again.
    pub(super) fn with(
        &self,
        ledger: &Ledger,
        mut changed: HashMap<String, Option<AskRecord>>,
    ) -> Self {
        let known =
            self.items.iter().filter_map(|item| match changed.remove(item.record.ask.id()) {
                None => Some(Arc::clone(item)),
                Some(now) => now.map(|record| Arc::new(BoardItem::of(ledger, record))),
            });
        let known: Vec<_> = known.collect();
        let mut items: Vec<_> = changed
            .into_values()
            .flatten()
            .map(|new| Arc::new(BoardItem::of(ledger, new)))
            .collect();
        items.sort_by_key(|item| std::cmp::Reverse(item.record.parked_at));
        items.extend(known);
        Self { items, refused: self.refused.clone() }
    }

    /// A digest that stays equal as long as nothing has changed that a page shows.
    pub(super) fn mark(&self) -> Vec<(String, Millis)> {
        let asks =
            self.items.iter().map(|it| (it.record.ask.id().to_owned(), it.record.changed_at));
        asks.chain(self.refused.iter().map(|row| (row.id.clone(), 0))).collect()
    }
}

impl BoardItem {
    fn of(ledger: &Ledger, record: AskRecord) -> Self {
        let due = record.expires_at.unwrap_or(record.parked_at.saturating_add(DUE_AFTER));
        let requester = record.ask.principal().map(|name| ledger.canonical_name(name));
        let key = key(&record, requester.as_deref());
        Self { key, due, requester: requester.unwrap_or_default(), record }
    }

    /// The agents that make the call, outermost first.
    pub(super) fn agents(&self) -> &str {
        self.record.ask.path().rsplit_once('/').unwrap_or_default().0
    }

    /// Returns `true` if the page's text of the ask contains each of these words, which are in lower case.
    pub(super) fn has(&self, words: &[String]) -> bool {
        let ask = &self.record.ask;
        let mut text =
            [ask.id(), ask.tool(), ask.path(), ask.run(), &self.requester, ""].join("\n");
        text += &show::json(ask.args());
        for question in ask.questions() {
            text += &format!("\n{}\n{}", question.layer(), question.reason());
        }
        let text = text.to_lowercase();
        words.iter().all(|word| text.contains(word))
    }
}

/// Returns `true` if a preview of the call is too long to be stored in full, so that no surface can show all of it.
fn is_cut(ask: &Ask) -> bool {
    ask.questions().iter().flat_map(Question::previews).any(|preview| preview.lines_cut() > 0)
}

fn key(record: &AskRecord, requester: Option<&str>) -> String {
    let ask = &record.ask;
    if ask.quorum().approvals > 1 || !ask.people().is_empty() || is_cut(&record.ask) {
        return ask.id().to_owned();
    }
    let requests = ask.requests();
    let group = requests.iter().next().and_then(|call| requests.group_key(call.id()));
    let all = json!([ask.run(), group, requester, ask.quorum().not_the_requester]);
    hex(&Sha256::digest(all.to_string())).chars().take(32).collect()
}
