//! Grants in the dialogue (rules G3, S15): for which term a person wants one, how it is shown, and making those that were
//! chosen.

use std::collections::BTreeMap;

use countersign::deferred::DeferredToolRequests;
use countersign::error::BoxError;
use countersign::ledger::{
    AskRecord, AskState, GrantOffer, GrantOutcome, GrantPlace, GrantTime, Ledger, LedgerError,
    Offers,
};
use countersign::show;

/// The grants that are offered with the calls of a batch, by call id. A call without an entry cannot be granted.
pub(super) type CallOffers = BTreeMap<String, Offers>;

/// The grants that a person has chosen, by call id.
pub(super) type Chosen = BTreeMap<String, GrantOffer>;

/// The grant that a person looks at, before it is made: one of those that are offered for a call, and its time.
#[derive(Debug, Clone)]
pub(super) struct GrantChoice {
    offered: Vec<GrantOffer>,
    at: usize,
}

impl GrantChoice {
    /// The choice among the grants for this session and this project, the narrowest first; `None` if there is none.
    pub(super) fn of(offers: &Offers) -> Option<Self> {
        let in_place =
            |place: &GrantPlace| -> Vec<_> { offers.in_place(*place).iter().cloned().collect() };
        let offered: Vec<_> = GrantPlace::ALL.iter().flat_map(in_place).collect();
        (!offered.is_empty()).then_some(Self { offered, at: 0 })
    }

    pub(super) fn offer(&self) -> Option<&GrantOffer> {
        self.offered.get(self.at)
    }

    /// The number of the grant on the screen, from 1 on, and of all that are offered.
    pub(super) fn number(&self) -> (usize, usize) {
        (self.at + 1, self.offered.len())
    }

    /// Chooses the grant with this number; `false` if there is none.
    pub(super) fn choose(&mut self, number: usize) -> bool {
        let at = number.checked_sub(1).filter(|at| *at < self.offered.len());
        self.at = at.unwrap_or(self.at);
        at.is_some()
    }

    /// Chooses the next grant, and after the last one the first.
    pub(super) fn next(&mut self) {
        self.at = (self.at + 1) % self.offered.len().max(1);
    }

    /// Chooses the narrowest grant of this place; `false` if there is none.
    pub(super) fn go(&mut self, place: GrantPlace) -> bool {
        let at = self.offered.iter().position(|offer| offer.place() == Some(place));
        self.at = at.unwrap_or(self.at);
        at.is_some()
    }

    /// Makes the grant hold for a time, such as `30m`, `2h` or `1d`; `false` if the text is no time.
    pub(super) fn until(&mut self, text: &str) -> bool {
        let Ok(time) = text.trim().parse::<GrantTime>() else { return false };
        if let Some(offer) = self.offered.get_mut(self.at) {
            *offer = offer.clone().with_time(time);
        }
        true
    }

    /// The grant, as lines that are safe to print: the sentence first, then examples of what else it would allow, and the
    /// rule as one would write it.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let Some(offer) = self.offer() else { return Vec::new() };
        let says = format!("Always: {}.", show::escape(&offer.sentence()));
        let mut lines = show::wrap("", &says, width);
        lines.extend(example(offer, width));
        let then = "Such calls are approved without a question. As a rule:";
        lines.extend(show::wrap("", then, width));
        let rule = offer.grant().to_toml();
        lines.extend(rule.lines().flat_map(|line| show::wrap("  ", line, width)));
        lines
    }

    /// The grants with a number each, as lines that are safe to print.
    pub(super) fn list(&self, width: usize) -> Vec<String> {
        let lines = self.offered.iter().enumerate().flat_map(|(at, offer)| {
            let sentence = show::escape(&offer.sentence());
            let mut lines = show::wrap(&format!("{}. ", at + 1), &sentence, width);
            lines.extend(example(offer, width));
            lines
        });
        lines.collect()
    }
}

/// The help where a typed time is none.
pub(super) const TIMES: &str =
    "A time is a number with m, h or d, such as 30m, 2h or 1d, at most 90d.";

/// The calls that the grant would also allow, and those that it never would.
fn example(offer: &GrantOffer, width: usize) -> Vec<String> {
    let lines = |what: &str, examples: &[String]| match examples {
        [] => Vec::new(),
        examples => {
            let shown: Vec<_> = examples.iter().map(|example| show::escape(example)).collect();
            show::wrap(what, &shown.join("; "), width)
        }
    };
    let mut all = lines("  would also allow: ", offer.examples());
    all.extend(lines("  never: ", offer.never()));
    all
}

/// The pending asks of the calls of a batch, by call id, as the ledger has parked them.
async fn asks(
    ledger: &Ledger,
    run: &str,
    requests: &DeferredToolRequests,
) -> Result<BTreeMap<String, AskRecord>, LedgerError> {
    let listed = ledger.list_run(run, u32::MAX).await?;
    let pending = listed.records.into_iter().filter(|record| record.state == AskState::Pending);
    let by_fingerprint: BTreeMap<_, _> =
        pending.map(|record| (record.fingerprint.clone(), record)).collect();
    let of = |id: &str| by_fingerprint.get(requests.fingerprint(id)?).cloned();
    let calls = requests.approvals.iter();
    Ok(calls.filter_map(|call| Some((call.id().to_owned(), of(call.id())?))).collect())
}

/// The grants that can be made with the approval of the calls of a batch.
pub(super) async fn offers(
    ledger: &Ledger,
    run: &str,
    requests: &DeferredToolRequests,
) -> Result<CallOffers, BoxError> {
    let asks = asks(ledger, run, requests).await?.into_iter();
    let offers = asks.map(|(call, record)| (call, Offers::of(&record.ask)));
    Ok(offers.filter(|(_, offers)| !offers.is_empty()).collect())
}

/// Makes the chosen grants, but for calls that another person has decided meanwhile, or that this one may not approve (rule G3).
/// Returns a line about each for the person.
pub(super) async fn make(
    ledger: &Ledger,
    (run, requests): (&str, &DeferredToolRequests),
    chosen: Chosen,
    by: &str,
) -> Result<Vec<String>, LedgerError> {
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let (asks, now) = (asks(ledger, run, requests).await?, ledger.now().await?);
    let is_open = |record: &AskRecord| {
        ledger.may_approve(record, by) && record.expires_at.is_none_or(|at| now < at)
    };
    let mut lines = Vec::new();
    for (call, offer) in chosen {
        let outcome = match asks.get(&call).is_some_and(is_open) {
            true => offer.make(ledger, by).await,
            false => GrantOutcome::DecidedBefore,
        };
        lines.push(outcome.to_string());
    }
    Ok(lines)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use countersign::Decision;
    use countersign::decision::GrantPattern;
    use countersign::deferred::metadata::GRANTABLE;
    use countersign::ledger::{Ask, MemoryStore};

    /// The offers for a call of `mail` in a session: exactly such calls, and those of a class.
    pub(crate) fn of_mail(class: Option<&str>) -> Offers {
        let class = class.map(|says| GrantPattern::new("any", says).with_example("mail bob"));
        let asked = Decision::ask("sends").with_metadata(GRANTABLE, true);
        let asked = asked.with_grant_patterns(class);
        let ask = Ask::new("r", "root/c", "mail").with_questions(asked.questions().to_vec());
        let ledger = Ledger::new(MemoryStore::new()).session("s1");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Offers::of(&runtime.block_on(ledger.park(ask)).unwrap().ask)
    }

    #[test]
    fn a_time_has_a_number_and_a_unit() {
        let mut choice = GrantChoice::of(&of_mail(None)).unwrap();
        for (text, told) in [("1h", "1h"), ("1d", "1d"), (" 90m ", "90m")] {
            assert!(choice.until(text));
            let sentence = choice.offer().unwrap().sentence();
            assert!(sentence.ends_with(&format!("for at most {told}")), "{sentence}");
        }
        for text in
            ["", "h", "0h", "-1h", "+1h", "1", "1 h", "91d", "1w", "18446744073709551615d", "1é"]
        {
            assert!(!choice.until(text), "{text}");
        }
    }

    #[test]
    fn no_row_of_a_grant_is_wider_than_a_narrow_terminal() {
        let choice = GrantChoice::of(&of_mail(Some("any mail"))).unwrap();
        let lines = choice.lines(40);
        assert!(lines.iter().all(|line| line.chars().count() <= 40), "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("Such calls are approved")), "{lines:?}");
    }

    /// The sentence stands first, and the rule last.
    #[test]
    fn a_grant_reads_sentence_first() {
        let mut choice = GrantChoice::of(&of_mail(Some("any mail"))).unwrap();
        assert_eq!(choice.number(), (1, 2));
        choice.next();
        let lines = choice.lines(200);
        assert!(lines[0].starts_with("Always: `mail` for any mail"), "{lines:?}");
        assert!(lines[1].contains("would also allow: mail bob"), "{lines:?}");
        assert!(lines[3..].iter().any(|line| line.contains("valid_for")), "{lines:?}");
        assert!(!choice.go(GrantPlace::Project) && choice.go(GrantPlace::Session));
        assert_eq!(choice.number().0, 1);
        assert!(!choice.choose(3) && !choice.choose(0) && choice.choose(2));
    }
}
