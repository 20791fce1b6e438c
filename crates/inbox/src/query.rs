//! The query of a request for a list, read strictly.
//!
//! An unknown field or value is an error. If we ignored a filter, the list would show more than was asked for: a
//! person who has filtered for one run would approve all of the page.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::board::BoardItem;
use super::entry::{EntryPlace, Sort};
use super::refused::ApiError;
use countersign::ledger::Ledger;
use countersign::show;

/// The number of entries of a page by default.
const PAGE: usize = 50;
/// The largest number of entries of a page.
const MOST: usize = 500;
/// The largest number of values that a filter offers.
const OFFERED: usize = 200;
/// The longest search, in bytes.
const LONGEST: usize = 512;

/// The query of a request for pending asks.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ListQuery {
    /// The largest number of entries.
    limit: Option<usize>,
    /// Only entries after this position, the `next` of an earlier response.
    after: Option<String>,
    /// The `latest` of an earlier response, to count the asks that are newer.
    pub(super) since: Option<i64>,
    /// Words, all of which have to occur in the text of an ask.
    q: String,
    agent: Option<String>,
    tool: Option<String>,
    run: Option<String>,
    requester: Option<String>,
    pub(super) sort: Sort,
    group: Option<Group>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Group {
    None,
    Run,
}

/// The requested number of entries, or the default.
pub(super) fn limit(asked: Option<usize>) -> usize {
    asked.unwrap_or(PAGE).clamp(1, MOST)
}

/// The words of a search, in lower case.
///
/// # Errors
/// A search that is too long to be one.
pub(super) fn words(search: &str) -> Result<Vec<String>, ApiError> {
    if search.len() > LONGEST {
        let problem = format!("A search has at most {LONGEST} bytes.");
        return Err(ApiError::bad("bad_request", problem));
    }
    Ok(search.split_whitespace().map(str::to_lowercase).collect())
}

impl ListQuery {
    pub(super) fn limit(&self) -> usize {
        limit(self.limit)
    }

    pub(super) fn by_run(&self) -> bool {
        self.group == Some(Group::Run)
    }

    pub(super) fn after(&self) -> Result<Option<EntryPlace>, ApiError> {
        let wrong = |problem: &str| ApiError::bad("bad_request", format!("`after`: {problem}."));
        self.after.as_ref().map(|place| place.parse().map_err(wrong)).transpose()
    }

    /// The asks that match.
    pub(super) fn matching(
        &self,
        ledger: &Ledger,
        items: &[Arc<BoardItem>],
    ) -> Result<Vec<Arc<BoardItem>>, ApiError> {
        let words = words(&self.q)?;
        let requester = self.requester.as_ref().map(|name| ledger.canonical_name(name));
        let is = |asked: &Option<String>, is: &str| asked.as_ref().is_none_or(|asked| asked == is);
        let fits = |item: &&Arc<BoardItem>| {
            let ask = &item.record.ask;
            is(&self.tool, ask.tool())
                && is(&self.run, ask.run())
                && is(&self.agent, item.agents())
                && is(&requester, &item.requester)
                && (words.is_empty() || item.has(&words))
        };
        Ok(items.iter().filter(fits).cloned().collect())
    }
}

/// The values that each filter can have, with the number of their asks, the most frequent first.
///
/// The values are names of agents and tools, and a model may have influenced them. So we escape the label, and offer
/// at most two hundred. The page sends back the value as it is.
pub(super) fn offered(items: &[Arc<BoardItem>]) -> Value {
    let most = |of: fn(&BoardItem) -> &str| {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for item in items {
            *counts.entry(of(item)).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, many)| std::cmp::Reverse(*many));
        let all = counts.len();
        let shown = counts.into_iter().take(OFFERED);
        let shown: Vec<_> = shown
            .map(|(value, many)| json!({"value": value, "label": show::escape_name(value), "count": many}))
            .collect();
        json!({"values": shown, "more": all.saturating_sub(OFFERED)})
    };
    json!({
        "agent": most(|it| it.agents()),
        "tool": most(|it| it.record.ask.tool()),
        "run": most(|it| it.record.ask.run()),
        "requester": most(|it| &it.requester),
    })
}
