//! Statistics of an inbox: how many asks are pending, how long decisions take, and how many are denials (rule S9).

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::json;

use super::app::{App, Visitor};
use super::refused::{ApiError, ApiReply};
use countersign::deferred::Answer;
use countersign::ledger::{AskRecord, AskState, Millis};

/// The number of days that the statistics cover by default.
const DAYS: u32 = 7;
const DAY: Millis = 24 * 60 * 60 * 1000;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NumbersQuery {
    days: Option<u32>,
}

/// The statistics of the last days, over the asks that the principal may see.
pub(super) async fn numbers(
    State(app): State<Arc<App>>,
    Visitor(who): Visitor,
    query: Result<Query<NumbersQuery>, QueryRejection>,
) -> ApiReply {
    let wrong = |_| ApiError::bad("bad_request", "The numbers take `days`.");
    let Query(query) = query.map_err(wrong)?;
    let days = query.days.unwrap_or(DAYS).clamp(1, 3650);
    let now = app.ledger.now().await?;
    let board = app.hub.board().await?;
    let pending = board.items.iter().map(|it| &it.record).filter(|it| who.sees(it));
    let (waiting, oldest) = (pending.clone().count(), pending.map(|it| it.parked_at).min());
    let settled = app.past.settled(&app.ledger).await?;
    let since = now.saturating_sub(DAY.saturating_mul(days.into()));
    let recent = settled.records.iter().filter(|it| it.changed_at >= since && who.sees(it));
    let (mut took, mut denied, mut expired) = (Vec::new(), 0_usize, 0_usize);
    for record in recent {
        expired += usize::from(record.state == AskState::Expired && record.decision.is_none());
        let Some((time, no)) = decided(record) else { continue };
        took.push(time);
        denied += usize::from(no);
    }
    took.sort_unstable();
    let decided = took.len();
    Ok(Json(json!({
        "days": days,
        "waiting": waiting,
        "oldest_ms": oldest.map(|at| now.saturating_sub(at)),
        "decided": decided,
        "p50_ms": part(&took, 50),
        "p95_ms": part(&took, 95),
        "denied": denied,
        // A share in per mille needs no floating point.
        "denied_per_mille": (decided > 0).then(|| denied * 1000 / decided.max(1)),
        "expired": expired,
        "older": settled.older,
    })))
}

/// The time that the decision took, and whether it was a denial.
fn decided(record: &AskRecord) -> Option<(Millis, bool)> {
    let decision = record.decision.as_ref()?;
    let took = decision.at.saturating_sub(record.parked_at).max(0);
    Some((took, matches!(decision.answer, Answer::Deny { .. })))
}

/// A percentile, by the nearest rank.
///
/// So each number is a time that one decision really took. For example, of `[1, 2, 10]` the 50th is 2 and the 95th
/// is 10.
fn part(sorted: &[Millis], percent: usize) -> Option<Millis> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}
