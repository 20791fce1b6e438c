//! The names under which middleware asks and the tools it selects, for the checks when tools are listed (rule D10).

use std::borrow::Cow;

/// The names under which a middleware asks, and the tools that it selects by name. Collected by
/// [`ToolMiddleware::parts`](crate::ToolMiddleware::parts) when the tools are listed.
///
/// A composite of your own lists its members, so that the names are known before any call is made:
///
/// ```
/// use countersign::call::Parts;
/// use countersign::{Decision, RunContext, ToolCall, ToolMiddleware};
///
/// struct Both<A, B>(A, B);
///
/// impl<A: ToolMiddleware, B: ToolMiddleware> ToolMiddleware for Both<A, B> {
///     fn parts(&self, parts: &mut Parts) {
///         parts.members(|parts| {
///             self.0.parts(parts);
///             self.1.parts(parts);
///         });
///     }
///
///     async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
///         self.0.before_tool_call(cx, call).await.and(self.1.before_tool_call(cx, call).await)
///     }
/// }
/// # let _ = Both((), ());
/// ```
#[derive(Debug, Default, Clone)]
pub struct Parts {
    askers: Vec<Cow<'static, str>>,
    selections: Vec<Selection>,
    /// The name that a wrapper gives to the middleware inside.
    given: Option<Cow<'static, str>>,
}

/// The tools that a layer selects by name.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) layer: Cow<'static, str>,
    pub(crate) tools: Vec<String>,
}

impl Parts {
    /// Adds a middleware that asks under this name, or under the one it [was given](crate::ToolMiddlewareExt::named).
    pub fn decider(&mut self, name: impl Into<Cow<'static, str>>) {
        self.askers.push(self.given.clone().unwrap_or_else(|| name.into()));
    }

    /// Adds the members of a composite, which ask under their own names: a name given to the composite does not apply.
    pub fn members(&mut self, add: impl FnOnce(&mut Self)) {
        let given = self.given.take();
        add(self);
        self.given = given;
    }

    /// Adds a middleware that asks under this name, unless a wrapper outside has given another one.
    pub(crate) fn named(&mut self, name: Cow<'static, str>, add: impl FnOnce(&mut Self)) {
        let outer = self.given.clone();
        self.given.get_or_insert(name);
        add(self);
        self.given = outer;
    }

    /// Adds the tools that a layer selects.
    pub(crate) fn selects(&mut self, layer: Cow<'static, str>, tools: &[String]) {
        self.selections.push(Selection { layer, tools: tools.to_vec() });
    }

    /// Adds the names of other parts, without the tools that they select.
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
