//! The history of settled asks: the decision, the deciders, the reasons and the outcome (rule S9).
//!
//! We read the history from the rows and not from the log. So it shows the state as it is, of the newest ten thousand
//! asks at most. If you need proof, take the export of the log, which [`log`](super::log) verifies.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::json;

use super::app::{App, Visitor};
use super::past::order;
use super::query::{limit, words};
use super::refused::{ApiError, ApiReply};
use super::view::Looker;
use countersign::ledger::{AskRecord, AskState, Ledger, Millis};
use countersign::show;

/// The query of a request for the history.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HistoryQuery {
    limit: Option<usize>,
    /// Only entries after this position, the `next` of an earlier response.
    after: Option<String>,
    q: String,
    /// Changed at this time or later, in milliseconds since 1970.
    from: Option<Millis>,
    /// Changed before this time.
    to: Option<Millis>,
    /// Decided by this person.
    who: Option<String>,
    /// `approve`, `edit`, `deny`, `ran_unapproved`, or the state of an ask that was not decided.
    answer: Option<String>,
    run: Option<String>,
}

/// A page of the settled asks, the latest change first.
pub(super) async fn history(
    State(app): State<Arc<App>>,
    Visitor(who): Visitor,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> ApiReply {
    let wrong = |problem: &str| ApiError::bad("bad_request", problem);
    let Query(query) = query.map_err(|_| wrong("The query has another field or value."))?;
    let after = query
        .after
        .as_ref()
        .map(|it| place(it).ok_or_else(|| wrong("`after`: it is no position in the list.")));
    let (after, words) = (after.transpose()?, words(&query.q)?);
    let by = query.who.as_ref().map(|name| app.ledger.canonical_name(name));
    let settled = app.past.settled(&app.ledger).await?;
    let fits = |record: &&Arc<AskRecord>| {
        who.sees(record)
            && query.from.is_none_or(|from| record.changed_at >= from)
            && query.to.is_none_or(|to| record.changed_at < to)
            && query.run.as_ref().is_none_or(|run| record.ask.run() == run)
            && query.answer.as_ref().is_none_or(|answer| came_to(record) == answer)
            && by.as_ref().is_none_or(|by| is_by(&app.ledger, record, by))
            && (words.is_empty() || has(record, &words))
    };
    let found: Vec<_> = settled.records.iter().filter(fits).collect();
    let matches = found.len();
    let rest = found.into_iter();
    let rest = rest.skip_while(|it| after.as_ref().is_some_and(|(at, id)| order(it) >= (*at, id)));
    let mut page: Vec<_> = rest.take(limit(query.limit) + 1).collect();
    let more = page.len() > limit(query.limit);
    page.truncate(limit(query.limit));
    let next =
        page.last().filter(|_| more).map(|last| format!("{}.{}", last.changed_at, last.ask.id()));
    let looker = Looker::new(&app.ledger, &who).await?;
    let asks: Vec<_> = page.iter().map(|record| looker.ask(record)).collect();
    Ok(Json(json!({
        "asks": asks, "next": next, "matches": matches, "older": settled.older, "now": looker.now(),
    })))
}

fn place(text: &str) -> Option<(Millis, String)> {
    let (at, id) = text.split_once('.')?;
    Some((at.parse().ok()?, id.to_owned()))
}

/// The answer, or the state of an ask that was not decided.
fn came_to(record: &AskRecord) -> &'static str {
    match &record.decision {
        _ if record.ran_unapproved().is_some() => "ran_unapproved",
        Some(decision) => decision.answer.word(),
        None if record.state == AskState::Closed => "closed",
        None => record.state.as_str(),
    }
}

fn is_by(ledger: &Ledger, record: &AskRecord, name: &str) -> bool {
    let by = record.decision.iter().flat_map(|decision| &decision.by);
    by.chain(&record.cancelled_by).any(|by| ledger.canonical_name(by) == name)
}

fn has(record: &AskRecord, words: &[String]) -> bool {
    let ask = &record.ask;
    let mut text = format!("{}\n{}\n{}\n", ask.tool(), ask.path(), ask.run());
    text += ask.principal().unwrap_or_default();
    text += &show::json(ask.args());
    for question in ask.questions() {
        text += &format!("\n{}\n{}", question.layer(), question.reason());
    }
    if let Some(decision) = &record.decision {
        text += &format!("\n{}\n{}", decision.by_lines().join("\n"), json!(decision.answer));
    }
    let text = text.to_lowercase();
    words.iter().all(|word| text.contains(word))
}
