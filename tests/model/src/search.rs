//! Searches all states of a model, breadth first.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

/// A model: its first state, the steps from each state, and what may not be.
pub(crate) trait Model {
    type State: Clone + Eq + Hash + Debug;
    type Step: Copy + Debug;

    fn first(&self) -> Self::State;

    /// The steps that may be taken.
    fn steps(&self, state: &Self::State) -> Vec<Self::Step>;

    /// The state behind a step, and the answer that the ledger gives; `""` for a step that asks it nothing.
    fn take(&self, state: &Self::State, step: Self::Step) -> (Self::State, &'static str);

    /// What must never be, from one state to the next: an error says what was.
    fn never(
        &self,
        before: &Self::State,
        step: Self::Step,
        answer: &str,
        after: &Self::State,
    ) -> Result<(), String>;

    /// Returns `true` if everything has come to an end.
    fn is_over(&self, state: &Self::State) -> bool;
}

/// All states of a model that can be reached.
pub(crate) struct Space<'m, M: Model> {
    model: &'m M,
    states: Vec<M::State>,
    /// The state and the step that led to each state but the first.
    from: Vec<Option<(usize, M::Step)>>,
    /// Which state each step leads to, by state.
    next: Vec<Vec<usize>>,
}

impl<'m, M: Model> Space<'m, M> {
    /// Searches all states. Panics with the steps that lead to it where something is that must never be.
    pub(crate) fn of(model: &'m M) -> Self {
        let mut space = Self { model, states: Vec::new(), from: Vec::new(), next: Vec::new() };
        let mut known = HashMap::new();
        known.insert(model.first(), 0);
        space.states.push(model.first());
        space.from.push(None);
        let mut at = 0;
        while at < space.states.len() {
            let state = space.states[at].clone();
            let mut next = Vec::new();
            for step in model.steps(&state) {
                let (after, answer) = model.take(&state, step);
                if let Err(broken) = model.never(&state, step, answer, &after) {
                    panic!(
                        "{broken}: {:?}, then {step:?}: {answer}\n{state:?}\n{after:?}",
                        space.way(at)
                    );
                }
                let number = *known.entry(after).or_insert_with_key(|after| {
                    space.states.push(after.clone());
                    space.from.push(Some((at, step)));
                    space.states.len() - 1
                });
                next.push(number);
            }
            space.next.push(next);
            at += 1;
        }
        space
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    pub(crate) fn states(&self) -> &[M::State] {
        &self.states
    }

    /// The shortest way to a state.
    pub(crate) fn way(&self, mut at: usize) -> Vec<M::Step> {
        let mut way = Vec::new();
        while let Some((before, step)) = self.from[at] {
            way.push(step);
            at = before;
        }
        way.reverse();
        way
    }

    /// Panics where a state is one from which no end can be reached.
    pub(crate) fn everything_can_end(&self) {
        let mut before = vec![Vec::new(); self.len()];
        for (at, next) in self.next.iter().enumerate() {
            next.iter().for_each(|number| before[*number].push(at));
        }
        let over = (0..self.len()).filter(|at| self.model.is_over(&self.states[*at]));
        let mut open: Vec<usize> = over.collect();
        assert!(!open.is_empty(), "nothing ever ends");
        let mut can_end = vec![false; self.len()];
        open.iter().for_each(|at| can_end[*at] = true);
        while let Some(at) = open.pop() {
            for earlier in &before[at] {
                if !std::mem::replace(&mut can_end[*earlier], true) {
                    open.push(*earlier);
                }
            }
        }
        if let Some(lost) = can_end.iter().position(|can| !can) {
            panic!("this can never end: {:?}\n{:?}", self.way(lost), self.states[lost]);
        }
    }
}

/// Numbers for random ways (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % most as u64) as usize
    }
}

/// A random way through a model.
pub(crate) fn random_way<M: Model>(model: &M, random: &mut Random, length: usize) -> Vec<M::Step> {
    let (mut state, mut way) = (model.first(), Vec::new());
    for _ in 0..length {
        let steps = model.steps(&state);
        if steps.is_empty() {
            break;
        }
        let step = steps[random.below(steps.len())];
        way.push(step);
        state = model.take(&state, step).0;
    }
    way
}

#[test]
fn a_search_finds_a_state_that_cannot_end() {
    /// Counts up to 3, or jumps into a hole.
    struct Hole;
    impl Model for Hole {
        type State = u8;
        type Step = u8;
        fn first(&self) -> u8 {
            0
        }
        fn steps(&self, state: &u8) -> Vec<u8> {
            if *state < 3 { vec![1, 9] } else { Vec::new() }
        }
        fn take(&self, state: &u8, step: u8) -> (u8, &'static str) {
            (if step == 9 { 9 } else { state + 1 }, "")
        }
        fn never(&self, _: &u8, _: u8, _: &str, _: &u8) -> Result<(), String> {
            Ok(())
        }
        fn is_over(&self, state: &u8) -> bool {
            *state == 3
        }
    }
    let model = Hole;
    let space = Space::of(&model);
    assert_eq!(space.len(), 5);
    assert!(
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| space.everything_can_end()))
            .is_err()
    );
}
