//! What a person may grant with the answer to a call, and what the answer is bound to: the last step of an evaluation that
//! asks.

use super::{Evaluation, Unit, bound_files, patterns};
use countersign::decision::GrantPattern;

impl Evaluation<'_> {
    /// The classes of the call. What the call of a shell carries beside its command, and no rule has looked at, is in none.
    pub(super) fn patterns(&self) -> Vec<GrantPattern> {
        if !self.unread.is_empty() && !self.views.is_empty() {
            return Vec::new();
        }
        // What is asked about the whole call is asked about each of its commands.
        let is_whole = self.asked.contains(&Unit::Whole);
        let uncovered: Vec<Unit> = self.uncovered().collect();
        let is_asked =
            |unit: &&Unit| is_whole || self.asked.contains(unit) || uncovered.contains(unit);
        let commands = self.units.iter().filter(is_asked).filter_map(|unit| match unit {
            Unit::Command(number, part) => Some((*number, *part)),
            Unit::Whole | Unit::Rest(_) => None,
        });
        patterns::patterns(&self.examined, &self.views, &commands.collect::<Vec<_>>())
    }

    /// Binds the questions to the content of the files that decide what the commands do, in which calls of a class may
    /// differ. Where there may be more of them, no answer in advance may answer the questions.
    pub(super) fn bind_to_contents(&mut self) {
        let found = bound_files::contents(&self.examined, &self.views);
        self.ruling.pins.extend(found.pins);
        if found.is_open {
            self.ruling.patterns.clear();
            self.ruling.spoke.iter_mut().for_each(|spoke| spoke.grantable = false);
        }
    }
}
