//! Comparing the names of people: two names with one canonical form are of one person (rule L1).
//!
//! "Two people have to agree" is only worth something if one person cannot be two. The default form treats these as
//! one: `ann`, ` Ann`, `ANN`, and `Ánn` in both of its Unicode forms. It does not treat similar letters of other
//! scripts as equal, nor nicknames; where names come from a directory, compare its ids
//! ([`Ledger::canonical_names`](crate::ledger::Ledger::canonical_names)).
//!
//! Folding decomposes first. For some letters it makes a difference whether we fold the composed letter or compose
//! the folded one, and the form has to be the same for both spellings.

use std::sync::Arc;

use unicode_normalization::UnicodeNormalization as _;

use crate::decision::GROUP;
use crate::panic::catch;

/// The beginning of the line that says which grant has decided. A name that begins so is no person's.
pub(super) const BY_GRANT: &str = "by grant ";

/// The function that gives the canonical form of a name. Two names with equal forms are of one person; a name with an
/// empty form is blank.
#[derive(Clone)]
pub(in crate::ledger) struct Names {
    canonical: Arc<dyn Fn(&str) -> String + Send + Sync>,
    groups: Arc<Groups>,
    /// `true` if the names of deciders say nothing about who they are.
    unchecked: bool,
}

/// The function that gives the members of a group; `None` where there is no such group.
type Groups = dyn Fn(&str) -> Option<Vec<String>> + Send + Sync;

impl Names {
    pub(in crate::ledger) fn new(
        canonical: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        Self { canonical: Arc::new(canonical), groups: Arc::new(|_| None), unchecked: false }
    }

    /// The same names with other canonical forms.
    pub(in crate::ledger) fn compared_by(
        self,
        canonical: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        Self { canonical: Arc::new(canonical), ..self }
    }

    /// The same names with these groups.
    pub(in crate::ledger) fn with_groups(
        self,
        groups: impl Fn(&str) -> Option<Vec<String>> + Send + Sync + 'static,
    ) -> Self {
        Self { groups: Arc::new(groups), ..self }
    }

    /// The same names, given by people whom no one has asked who they are.
    pub(in crate::ledger) fn unchecked(self) -> Self {
        Self { unchecked: true, ..self }
    }

    pub(in crate::ledger) fn are_unchecked(&self) -> bool {
        self.unchecked
    }

    /// Tells whether a person is one of these approvers: by name, or as a member of a group at this moment. A group that is
    /// not known has no members, nor has one at which the host's function panics.
    pub(in crate::ledger) fn is_one_of(&self, who: &str, approvers: &[String]) -> bool {
        approvers.iter().any(|approver| match approver.strip_prefix(GROUP) {
            Some(group) => {
                let members = catch(|| (self.groups)(group)).unwrap_or_else(|_| {
                    tracing::error!(target: "countersign::ledger", group, "the function of `groups` panicked: the group has no members");
                    None
                });
                members.into_iter().flatten().any(|member| self.are_one(&member, who))
            }
            None => self.are_one(approver, who),
        })
    }

    /// The canonical form of a name. Where the host's function panics on it, the name has its default form, and is no
    /// person's: it decides nothing.
    pub(in crate::ledger) fn canonical(&self, name: &str) -> String {
        self.known(name).unwrap_or_else(|| canonical(name))
    }

    /// The form that the host's function gives; `None` if it panics.
    fn known(&self, name: &str) -> Option<String> {
        let form = catch(|| (self.canonical)(name)).ok();
        if form.is_none() {
            tracing::error!(target: "countersign::ledger", "the function of `canonical_names` panicked: the name decides nothing");
        }
        form
    }

    /// Returns `true` if a name can stand for no person: a blank one, one without a canonical form, and one that
    /// reads as the line about a grant, which every surface and log would show as the decision of that grant.
    pub(in crate::ledger) fn is_no_person(&self, name: &str) -> bool {
        let like_a_grant = || {
            let begin = name.trim_start().get(..BY_GRANT.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(BY_GRANT))
        };
        self.known(name).is_none_or(|form| form.is_empty()) || like_a_grant()
    }

    pub(in crate::ledger) fn are_one(&self, a: &str, b: &str) -> bool {
        a == b || self.canonical(a) == self.canonical(b)
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::new(canonical)
    }
}

/// The default form: trimmed, then folded for Unicode's canonical caseless matching, without differences of case or of
/// composition.
fn canonical(name: &str) -> String {
    let decomposed: String = name.trim().nfd().collect();
    unicase::UniCase::new(decomposed).to_folded_case().nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L1: "Deciders are compared in a canonical form (trimmed, NFC, case-folded by default …)".
    #[test]
    fn spellings_of_a_name_have_one_canonical_form() {
        let names = Names::default();
        for (a, b) in [
            ("ann", "ANN"),
            ("ann", " Ann\t"),
            ("Andr\u{e9}", "ANDRE\u{301}"),
            ("stra\u{df}e", "STRASSE"),
            (
                "\u{3a3}\u{3af}\u{3c3}\u{3c5}\u{3c6}\u{3bf}\u{3c2}",
                "\u{3c3}\u{3af}\u{3c3}\u{3c5}\u{3c6}\u{3bf}\u{3c3}",
            ),
        ] {
            assert!(names.are_one(a, b), "{a} {b}");
        }
        for (a, b) in [("ann", "anna"), ("ann", "an n"), ("e", "\u{e9}")] {
            assert!(!names.are_one(a, b), "{a} {b}");
        }
        assert!(
            names.is_no_person("") && names.is_no_person(" \u{a0}\n") && !names.is_no_person("a")
        );
    }
}
