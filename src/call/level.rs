//! Tracks which middleware a call has passed on the way to a gate (rule D9).
//!
//! The middleware that one `layered` applies form a level. They are numbered from the innermost outward, and no two
//! levels share a number. A call that enters a level gets the number of its outermost middleware. A middleware that
//! passes the call on decrements the number, if it equals its own. A call that skipped no middleware leaves the level
//! with the number below the innermost one: the bottom of the level. The number is a field of the call, so that a clone
//! keeps the progress it had when it was cloned, and no lock is needed.
//!
//! # An example
//!
//! Two levels around a gate: `layered([A, B])` inside, `layered([C])` outside. The inner level is applied first and
//! gets the numbers 1 to 3, the outer one 4 and 5:
//!
//! | | bottom | numbers, from inside |
//! |---|---|---|
//! | inner level | 1 | B = 2, A = 3 |
//! | outer level | 4 | C = 5 |
//!
//! | step | progress of the call |
//! |---|---|
//! | enters the outer level | 5 |
//! | C passes it on | 4, the outer bottom |
//! | enters the inner level: the level outside is at its bottom | 3 |
//! | A passes it on | 2 |
//! | B passes it on | 1, the inner bottom |
//! | the gate | every level is at its bottom: the call may run |
//!
//! If C keeps the call and sends it to a gate directly, it arrives with 4. The gate finds that the innermost level on
//! its way was never entered, and reports A. If a layer takes a clone before A and sends it after A, the clone has 3,
//! and the gate reports A, too. A layer outside cannot repair this by sending another call's clone, as the number
//! belongs to the clone.
//!
//! # What the number is not
//!
//! It is no secret and no signature. A layer is code of the host and is trusted not to lie; the number finds mistakes
//! (a cached inner service, a forwarded clone), which are easy to make and invisible in the outcome.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Parts;

/// The next unused number.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The progress of a call: the number of the middleware that has to see it next, or the bottom of a level that the call
/// has passed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Progress(u64);

impl Progress {
    /// The progress of a call that was given to its tool body, and may not be sent through the stack any more.
    pub(super) const AT_BODY: Self = Self(u64::MAX);

    /// Records that the middleware at this place has passed the call on, if it was the next one.
    ///
    /// The comparison makes passing idempotent. For example, a retry layer sends the call twice through the same
    /// middleware, and the second time its clone has the number of before. If the middleware is not the next one, as a
    /// clone has passed it already, it leaves the number unchanged. So a call that passes a layer twice skips no
    /// number.
    #[inline]
    pub(super) fn pass(&mut self, place: &Place) {
        if self.0 == place.0.load(Ordering::Relaxed) {
            self.0 = self.0.saturating_sub(1);
        }
    }
}

/// The number of a middleware in its level; 0 before it is applied. A clone of the middleware is another layer, and so
/// begins without a number.
#[derive(Debug, Default)]
pub(crate) struct Place(AtomicU64);

impl Clone for Place {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// A middleware that was applied as a layer.
pub(crate) trait Standing: Send + Sync {
    fn place(&self) -> &Place;

    fn name(&self) -> Cow<'static, str>;

    fn parts(&self, parts: &mut Parts);
}

/// The middleware of one `layered`, from the innermost outward, and the number below the innermost.
#[derive(Default)]
pub(crate) struct Level {
    bottom: u64,
    standing: Vec<Arc<dyn Standing>>,
    parts: Parts,
}

/// A level on the way to a gate. Its layers are applied at the first use, as some of tower's start a task when they
/// are.
pub(crate) trait Applied: Send + Sync {
    fn level(&self) -> &Level;
}

thread_local! {
    /// The middleware of the level whose layers are being applied on this thread.
    static APPLYING: RefCell<Option<Vec<Arc<dyn Standing>>>> = const { RefCell::new(None) };
}

/// Adds a middleware to the level that is being applied on this thread, if any.
pub(crate) fn stands(standing: &Arc<impl Standing + 'static>) {
    APPLYING.with_borrow_mut(|level| {
        if let Some(level) = level {
            level.push(Arc::clone(standing) as Arc<dyn Standing>);
        }
    });
}

/// Restores the outer level when an inner one has been applied, also when a layer panics.
struct PutBack(Option<Vec<Arc<dyn Standing>>>);

impl Drop for PutBack {
    fn drop(&mut self) {
        APPLYING.set(self.0.take());
    }
}

impl Level {
    /// Applies layers. Returns the service that they made and the level of the middleware in it.
    ///
    /// The middleware announce themselves through a thread-local while we apply the layers, as tower's `Layer::layer`
    /// has no parameter for it, and a foreign layer may wrap ours to any depth. Applying is synchronous, so everything
    /// between the two lines belongs to this level. If a layer builds another set of tools, that is a level inside of a
    /// level: when it is done, we put the list of the outer one back.
    pub(crate) fn apply<S>(layers: impl FnOnce() -> S) -> (S, Self) {
        let outer = PutBack(APPLYING.replace(Some(Vec::new())));
        (layers(), Self::announced(outer))
    }

    /// The level of the middleware that have announced themselves.
    fn announced(outer: PutBack) -> Self {
        let mut standing = APPLYING.take().unwrap_or_default();
        drop(outer);
        // A middleware that the layers made and dropped again is passed by no call.
        standing.retain(|it| Arc::strong_count(it) > 1);
        Self::of(standing)
    }

    fn of(standing: Vec<Arc<dyn Standing>>) -> Self {
        let bottom = NEXT.fetch_add(standing.len() as u64 + 1, Ordering::Relaxed);
        for (number, it) in (bottom + 1..).zip(&standing) {
            it.place().0.store(number, Ordering::Relaxed);
        }
        let mut parts = Parts::default();
        standing.iter().for_each(|it| it.parts(&mut parts));
        Self { bottom, standing, parts }
    }

    /// The askers and selections of all middleware of the level.
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Returns `true` if the level has no middleware, so that no call can skip one.
    pub(crate) fn is_empty(&self) -> bool {
        self.standing.is_empty()
    }

    fn top(&self) -> u64 {
        self.bottom + self.standing.len() as u64
    }

    fn holds(&self, at: Progress) -> bool {
        (self.bottom..=self.top()).contains(&at.0)
    }

    /// The middleware of this level that has to see the call next; `None` when all of them have.
    fn next(&self, at: Progress) -> Option<&Arc<dyn Standing>> {
        let above = at.0.checked_sub(self.bottom)?.checked_sub(1)?;
        self.standing.get(usize::try_from(above).ok()?)
    }
}

/// Identifies a combined set, by the address.
pub(crate) type SetId = Arc<()>;

/// The levels and combined sets between a gate and the turn, from the gate outward.
#[derive(Clone, Default)]
pub(crate) struct Way(Vec<Step>);

#[derive(Clone)]
enum Step {
    /// A combined set, and which of its members leads to the gate.
    Member(SetId, usize),
    /// The layers of a `layered`.
    Level(Arc<dyn Applied>),
}

impl Way {
    pub(super) fn through(&mut self, set: &SetId, member: usize) {
        self.0.push(Step::Member(Arc::clone(set), member));
    }

    pub(super) fn within(&mut self, level: Arc<dyn Applied>) {
        self.0.push(Step::Level(level));
    }

    /// The member of a combined set that leads to the gate.
    pub(crate) fn member(&self, set: &SetId) -> Option<usize> {
        self.0.iter().find_map(|step| match step {
            Step::Member(known, member) if Arc::ptr_eq(known, set) => Some(*member),
            Step::Member(..) | Step::Level(_) => None,
        })
    }

    /// The levels with middleware, from the gate outward.
    fn levels(&self) -> impl Iterator<Item = &Level> {
        let levels = self.0.iter().filter_map(|step| match step {
            Step::Level(level) => Some(level.level()),
            Step::Member(..) => None,
        });
        levels.filter(|level| !level.is_empty())
    }

    /// The number of middleware on this way that ask under this name.
    pub(crate) fn askers(&self, name: &str) -> usize {
        let askers = self.levels().flat_map(|level| level.parts().askers());
        askers.filter(|asker| *asker == name).count()
    }

    /// The progress of a call that enters this level, given its progress outside. `None` if the level is not on this
    /// way, or if the call has skipped a middleware outside of the level.
    pub(super) fn entering(&self, level: &Level, at: Progress) -> Option<Progress> {
        let mut outward = self.levels();
        outward.find(|it| it.bottom == level.bottom)?;
        let passed = outward.next().is_none_or(|outer| outer.bottom == at.0);
        passed.then(|| Progress(level.top()))
    }

    /// The name of the outermost middleware that a call at the gate has not passed, if any.
    ///
    /// Looks from the gate outward for the level that the call is in. If the call is in the innermost one, at its
    /// bottom, it has skipped nothing. If it is in a level further out, it has skipped every level inside of that.
    /// Then we name the outermost of their middleware, the first that the call should have met.
    pub(super) fn skipped(&self, at: Progress) -> Option<Cow<'static, str>> {
        let mut inside: Option<&Level> = None;
        for level in self.levels() {
            if level.holds(at) {
                return match (level.next(at), inside) {
                    (Some(next), _) => Some(next.name()),
                    (None, Some(inside)) => Some(inside.standing.last()?.name()),
                    (None, None) => None,
                };
            }
            inside = Some(level);
        }
        Some(inside?.standing.last()?.name())
    }
}
