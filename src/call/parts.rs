//! What middleware consists of, for the checks when tools are listed (rule D10).

use std::borrow::Cow;

/// What a middleware consists of: under which names it asks, and which tools it is for by name. Collected by
/// [`ToolMiddleware::parts`](crate::ToolMiddleware::parts) when the tools are listed.
#[derive(Debug, Default, Clone)]
pub struct Parts {
    askers: Vec<Cow<'static, str>>,
    selections: Vec<Selection>,
    /// The name that a wrapper has given what it wraps.
    given: Option<Cow<'static, str>>,
}

/// The tools that a layer is for.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) layer: Cow<'static, str>,
    pub(crate) tools: Vec<String>,
}

impl Parts {
    /// One that decides under a name of its own, or under the one it [was given](crate::ToolMiddlewareExt::named).
    pub fn decider(&mut self, name: impl Into<Cow<'static, str>>) {
        self.askers.push(self.given.clone().unwrap_or_else(|| name.into()));
    }

    /// What a composite adds for its members, which decide under their own names.
    pub fn members(&mut self, add: impl FnOnce(&mut Self)) {
        let given = self.given.take();
        add(self);
        self.given = given;
    }

    /// What is added decides under this name, unless a wrapper outside has given another one.
    pub(crate) fn named(&mut self, name: Cow<'static, str>, add: impl FnOnce(&mut Self)) {
        let outer = self.given.clone();
        self.given.get_or_insert(name);
        add(self);
        self.given = outer;
    }

    /// A layer is for these tools.
    pub(crate) fn selects(&mut self, layer: Cow<'static, str>, tools: &[String]) {
        self.selections.push(Selection { layer, tools: tools.to_vec() });
    }

    /// Takes over the names under which questions are asked.
    pub(crate) fn inherits(&mut self, parts: Self) {
        self.askers.extend(parts.askers);
    }

    pub(crate) fn askers(&self) -> &[Cow<'static, str>] {
        &self.askers
    }

    pub(crate) fn selections(&self) -> &[Selection] {
        &self.selections
    }
}
