//! The people who have to approve a call, as the layer that asks demands it.

use serde::{Deserialize, Serialize};

use super::Question;

/// The beginning of an approver's name where it stands for the members of a group.
pub(crate) const GROUP: &str = "group:";

/// The people who have to approve a call: how many, which people may, and whether the requester may be one of them.
///
/// The ledger holds it: an approval counts once enough of these people have given it, and again when the call is
/// claimed (rule L1). A name is only worth what the surface has checked of it.
///
/// ```
/// use countersign::Decision;
/// use countersign::decision::People;
///
/// let two = People::new(2).not_the_requester().with_approvers(["ann", "group:finance"]);
/// let ask = Decision::ask("pays more than 1000 EUR").with_key("large").with_people(two.clone());
/// assert_eq!(ask.questions()[0].people(), Some(two.clone()));
///
/// // As text it is a sentence for people.
/// assert_eq!(two.to_string(), "2 people of ann, group:finance have to approve, and not the requester");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct People {
    /// The number of distinct people who have to approve.
    pub approvals: u32,
    /// `true` if the requester is excluded from approving.
    #[serde(default)]
    pub not_the_requester: bool,
    /// The people who may approve: names, and groups as `group:NAME`. `None` means anyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Vec<String>>,
}

impl People {
    pub(crate) const KEY: &'static str = "people";

    /// This many people, of any name.
    ///
    /// ```
    /// use countersign::decision::People;
    /// assert_eq!((People::new(2).approvals, People::new(0).approvals), (2, 1), "an approval is of at least one");
    /// ```
    #[must_use]
    pub fn new(approvals: u32) -> Self {
        Self { approvals: approvals.max(1), not_the_requester: false, approvers: None }
    }

    /// Excludes the requester from approving.
    #[must_use]
    pub fn not_the_requester(mut self) -> Self {
        self.not_the_requester = true;
        self
    }

    /// Sets who may approve: names, and groups as `group:NAME`, which
    /// [`Ledger::groups`](crate::ledger::Ledger::groups) resolves. With an empty list no one may.
    #[must_use]
    pub fn with_approvers<T: Into<String>>(
        mut self,
        approvers: impl IntoIterator<Item = T>,
    ) -> Self {
        self.approvers = Some(approvers.into_iter().map(Into::into).collect());
        self
    }

    /// People that no one is: what stands for a demand that cannot be read.
    fn none() -> Self {
        Self { approvals: 1, not_the_requester: true, approvers: Some(Vec::new()) }
    }

    fn says(&self) -> String {
        let (who, have) = match self.approvals {
            1 => ("1 person".to_owned(), "has"),
            more => (format!("{more} people"), "have"),
        };
        let of = match &self.approvers {
            Some(names) => format!(" of {}", names.join(", ")),
            None => String::new(),
        };
        let not = if self.not_the_requester { ", and not the requester" } else { "" };
        format!("{who}{of} {have} to approve{not}")
    }
}

impl std::fmt::Display for People {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.says())
    }
}

impl Question {
    /// The people who have to answer the question; `None` where anyone may. A demand that cannot be read is one that no
    /// person meets.
    #[must_use]
    pub fn people(&self) -> Option<People> {
        let people = self.metadata().get(People::KEY);
        let pinned = self.pins().contains_key(People::KEY);
        match people {
            Some(people) => Some(People::deserialize(people).unwrap_or_else(|_| People::none())),
            None => pinned.then(People::none),
        }
    }
}
