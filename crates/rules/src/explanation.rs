//! The explanation of a decision: which rules allow a call, ask about it or deny it (rule R7).

use std::fmt;

use serde::Serialize;

use super::ruling::{NearMiss, Ruling, Spoke, lower};
use crate::calls::call::RuleCall;
use countersign::decision::ToolDecision;

/// The decision about a call, every rule that spoke, and every rule that nearly did. It serializes as
/// `{"decision", "by", "near"}`.
///
/// Near misses are for people who write rules. A model never gets them: they would tell it which call to try next.
///
/// ```
/// use countersign_rules::{RuleCall, Rules};
/// use serde_json::json;
///
/// let rules = Rules::builder().text("mine.toml", "
///     version = 1
///     [[rule]]
///     id = 'small'
///     allow = 'refund'
///     where.amount = '<= 50'
/// ").load()?;
/// let args = json!({"amount": 51});
/// let explanation = rules.explain(&RuleCall::new("refund", args.as_object().unwrap()));
/// assert_eq!(explanation.to_string(), "ask: no rule allows `refund` (default)\n  \
///     near: `amount = \"<= 50\"` does not hold (small, mine.toml:3)");
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
///
/// The first line says what decides, and by which rule of which line. The others say which rule nearly did, with the
/// first condition that failed. Edit that condition, and [`replay`](super::replay) shows what else it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    #[serde(serialize_with = "lower")]
    decision: ToolDecision,
    by: Vec<Spoke>,
    near: Vec<NearMiss>,
}

impl Explanation {
    pub(super) fn new(_call: &RuleCall<'_>, ruling: Ruling, mut near: Vec<NearMiss>) -> Self {
        let spoke = |miss: &NearMiss| {
            ruling
                .spoke
                .iter()
                .any(|it| it.rule == miss.rule && it.file == miss.file && it.part == miss.part)
        };
        near.retain(|miss| !spoke(miss));
        near.sort_by(|one, other| {
            (&one.file, one.line, &one.part).cmp(&(&other.file, other.line, &other.part))
        });
        near.dedup();
        Self { decision: ruling.decision, by: ruling.spoke, near }
    }

    /// The decision, which is that of [`Rules::decide`](super::Rules::decide).
    #[must_use]
    pub fn decision(&self) -> ToolDecision {
        self.decision
    }

    /// The rules that spoke, the strictest first.
    #[must_use]
    pub fn by(&self) -> &[Spoke] {
        &self.by
    }

    /// The rules that name the tool and did not speak, each with the first condition that failed.
    #[must_use]
    pub fn near(&self) -> &[NearMiss] {
        &self.near
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.decision.word())?;
        let winners = self.by.iter().filter(|spoke| spoke.decision == self.decision);
        for (number, spoke) in winners.enumerate() {
            write!(
                f,
                "{} {} ({}",
                if number == 0 { ":" } else { "\n  and:" },
                spoke.reason,
                spoke.rule
            )?;
            place(f, spoke.file.as_deref(), spoke.line)?;
            f.write_str(")")?;
        }
        for miss in &self.near {
            write!(f, "\n  near: {} ({}", miss.reason, miss.rule)?;
            place(f, miss.file.as_deref(), miss.line)?;
            f.write_str(")")?;
        }
        Ok(())
    }
}

fn place(f: &mut fmt::Formatter<'_>, file: Option<&str>, line: Option<usize>) -> fmt::Result {
    match (file, line) {
        (Some(file), Some(line)) => write!(f, ", {file}:{line}"),
        _ => Ok(()),
    }
}
