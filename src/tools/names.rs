//! Wrappers that rename the tools of a set.
//!
//! A wrapper renames in both directions: definitions on their way out, calls on their way in. Only the name in the
//! call's head changes; the record, and with it the identity of the tool that approvals are bound to, is the same above
//! and below.
//!
//! With a map, the old name of a renamed tool is gone outside, which makes an exchange of two names well defined:
//!
//! | pair (new, old) | tool inside | outside | call by `ls` reaches |
//! |---|---|---|---|
//! | (`ls`, `rm`) and (`rm`, `ls`) | `rm` | `ls` | `rm` |
//! | | `ls` | `rm` | |
//! | (`remove`, `rm`) | `rm` | `remove` | `ls`, which keeps its name |
//!
//! Hidden tools are renamed too, and do not count as taken names: a filter that hides `rm` frees the name for another
//! tool.

use std::collections::BTreeMap;
use std::fmt;

use futures::future::BoxFuture;

use super::{Stack, Tools, unknown};
use crate::call::{RunContext, ToolCall, ToolDefinition};
use crate::error::{BoxError, UserError};
use crate::outcome::Outcome;

pub(super) enum Naming {
    /// This text goes in front of every name.
    Prefix(String),
    /// From the new name to the old one. `twice` is a pair in which either name is repeated: an error at listing.
    Map { inner: BTreeMap<String, String>, twice: Option<(String, String)> },
}

impl Naming {
    pub(super) fn map<'a>(names: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut inner, mut twice) = (BTreeMap::new(), None);
        for (new, old) in names {
            if inner.values().any(|known| known == old)
                || inner.insert(new.into(), old.into()).is_some()
            {
                twice = Some((new.into(), old.into()));
            }
        }
        Self::Map { inner, twice }
    }

    /// The name inside of the wrapper; `None` if no tool has this name outside of it.
    fn inner<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        match self {
            Self::Prefix(prefix) => name.strip_prefix(prefix.as_str()),
            Self::Map { inner, .. } => match inner.get(name) {
                Some(old) => Some(old),
                // A renamed tool cannot be called by its old name.
                None if inner.values().any(|old| old == name) => None,
                None => Some(name),
            },
        }
    }

    fn outer(&self, name: &str) -> String {
        match self {
            Self::Prefix(prefix) => format!("{prefix}{name}"),
            Self::Map { inner, .. } => {
                inner.iter().find(|(_, old)| *old == name).map_or(name, |(new, _)| new).to_owned()
            }
        }
    }
}

pub(super) struct Renamed {
    tools: Tools,
    naming: Naming,
}

impl Renamed {
    pub(super) fn new(tools: Tools, naming: Naming) -> Self {
        Self { tools, naming }
    }

    async fn rename(&self, cx: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        if let Naming::Map { twice: Some((to, from)), .. } = &self.naming {
            let problem = "each tool can be renamed once, and each new name given once";
            return Err(UserError::Rename { from: from.clone(), to: to.clone(), problem }.into());
        }
        let mut seen = BTreeMap::new();
        let mut renamed = Vec::new();
        for definition in self.tools.listed(cx).await? {
            let (from, to) = (definition.name().to_owned(), self.naming.outer(definition.name()));
            if definition.is_hidden() {
                renamed.push(definition.with_name(to));
                continue;
            }
            if let Some(other) = seen.insert(to.clone(), from.clone()) {
                let from = if other == to { from } else { other };
                let problem = "there is already a tool of that name: rename that one too, or choose another name";
                return Err(UserError::Rename { from, to, problem }.into());
            }
            renamed.push(definition.with_name(to));
        }
        Ok(renamed)
    }
}

impl Stack for Renamed {
    fn definitions<'a>(
        &'a self,
        cx: &'a RunContext,
    ) -> BoxFuture<'a, Result<Vec<ToolDefinition>, BoxError>> {
        Box::pin(self.rename(cx))
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<Outcome, BoxError>> {
        match self.naming.inner(call.name()) {
            Some(name) if name == call.name() => self.tools.0.call(call),
            Some(name) => self.tools.0.call(call.renamed(name.into())),
            None => unknown(&call),
        }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.naming {
            Naming::Prefix(prefix) => write!(f, "prefixed({prefix}) > {:?}", self.tools),
            Naming::Map { inner, .. } => {
                write!(f, "renamed({:?}) > {:?}", inner.keys(), self.tools)
            }
        }
    }
}
