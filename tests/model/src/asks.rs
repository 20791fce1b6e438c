//! Asks of equal calls, decided by people and claimed by workers.

use crate::search::{Model, Space};

/// How long a lease is, in ticks.
pub(crate) const LEASE: i8 = 1;

/// Which asks there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asks {
    /// How many people have to agree.
    pub(crate) quorum: u8,
    /// `true` if the call may be run again.
    pub(crate) idempotent: bool,
    /// After how many ticks a pending ask expires.
    pub(crate) deadline: Option<i8>,
    /// For how many ticks an approval is valid.
    pub(crate) valid: Option<i8>,
    /// How many asks of equal calls there may be.
    pub(crate) most: usize,
    /// The last tick.
    pub(crate) end: i8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum AskState {
    Pending,
    Decided,
    Claimed { until: i8 },
    Unknown,
    Executed,
    Released,
    Expired,
    Cancelled,
}

/// An ask, with what has really happened to its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ask {
    pub(crate) state: AskState,
    expires: Option<i8>,
    /// When each person has voted for it.
    votes: [Option<i8>; 2],
    /// The decision: whether it is a yes, who gave it, and when.
    pub(crate) decision: Option<(bool, [bool; 2], i8)>,
    pub(crate) token: u8,
    /// How often its call was run, by a worker whose claim it was.
    runs: u8,
}

/// A worker, and what it holds: the ask, its token, and whether it has run the call.
pub(crate) type Worker = Option<(usize, u8, bool)>;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    now: i8,
    /// `true` if the clock has stepped back.
    stepped: bool,
    pub(crate) asks: Vec<Ask>,
    pub(crate) workers: [Worker; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// An equal call is made: it joins the open ask, or another one is parked.
    Call,
    Decide {
        ask: usize,
        who: usize,
        yes: bool,
    },
    Claim {
        ask: usize,
        worker: usize,
    },
    /// A worker runs the call that it has claimed. It may be late: its lease may be over.
    Run {
        worker: usize,
    },
    Renew {
        worker: usize,
    },
    Settle {
        worker: usize,
    },
    Release {
        worker: usize,
    },
    Crash {
        worker: usize,
    },
    Cancel {
        ask: usize,
    },
    Expire,
    Tick,
    Back,
}

impl Asks {
    /// What time alone changes.
    fn pass(ask: &mut Ask, now: i8) {
        match ask.state {
            AskState::Pending if ask.expires.is_some_and(|at| at <= now) => {
                ask.state = AskState::Expired
            }
            AskState::Claimed { until } if until <= now => ask.state = AskState::Unknown,
            _ => {}
        }
    }

    fn is_aged(self, at: i8, now: i8) -> bool {
        self.valid.is_some_and(|valid| now >= at + valid)
    }

    fn decide(self, ask: &mut Ask, who: usize, yes: bool, now: i8) -> &'static str {
        match ask.state {
            AskState::Expired if ask.decision.is_none() => return "expired",
            AskState::Cancelled => return "cancelled",
            _ => {}
        }
        if let Some((was, by, _)) = ask.decision {
            if was == yes && by[who] {
                return "again";
            }
            let vetoes = !yes && was && ask.state == AskState::Decided && self.quorum > 1;
            if !vetoes {
                return "lost";
            }
        }
        let mut by = [false; 2];
        by[who] = true;
        if yes {
            ask.votes = ask.votes.map(|vote| vote.filter(|at| !self.is_aged(*at, now)));
            let again = ask.votes[who].is_some();
            ask.votes[who].get_or_insert(now);
            by = ask.votes.map(|vote| vote.is_some());
            if by.iter().filter(|voted| **voted).count() < usize::from(self.quorum) {
                return if again { "recorded again" } else { "recorded" };
            }
        }
        ask.decision = Some((yes, by, now));
        ask.state = AskState::Decided;
        "won"
    }

    /// Since when the ask is approved.
    fn approved_since(ask: &Ask) -> Option<i8> {
        let (yes, _, at) = ask.decision?;
        yes.then(|| ask.votes.iter().flatten().copied().fold(at, i8::min))
    }

    fn claim(self, ask: &mut Ask, now: i8) -> &'static str {
        match ask.state {
            AskState::Pending => return "not decided",
            AskState::Expired if Self::approved_since(ask).is_some() => return "aged",
            AskState::Expired | AskState::Cancelled | AskState::Released => return "denied",
            AskState::Executed => return "settled",
            AskState::Unknown if !self.idempotent => return "unknown",
            AskState::Claimed { .. } => return "held",
            AskState::Decided | AskState::Unknown => {}
        }
        let Some(since) = Self::approved_since(ask) else { return "denied" };
        if self.is_aged(since, now) {
            if ask.state == AskState::Decided {
                ask.state = AskState::Expired;
            }
            return "aged";
        }
        ask.token += 1;
        ask.state = AskState::Claimed { until: now + LEASE };
        "claimed"
    }

    fn renew(ask: &mut Ask, token: u8, now: i8) -> &'static str {
        match ask.state {
            AskState::Claimed { .. } | AskState::Unknown if token == ask.token => {
                ask.state = AskState::Claimed { until: now + LEASE };
                "renewed"
            }
            _ => "stale",
        }
    }

    fn settle(ask: &mut Ask, token: u8, end: AskState) -> &'static str {
        if token != ask.token {
            return "stale";
        }
        match ask.state {
            AskState::Claimed { .. } | AskState::Unknown => {
                ask.state = end;
                "settled"
            }
            AskState::Executed | AskState::Released => "settled again",
            _ => "stale",
        }
    }

    fn call(self, world: &mut World) -> &'static str {
        let now = world.now;
        if let Some(last) = world.asks.last_mut() {
            // It is read by the clock, and what time has changed is only written where another ask is parked.
            let mut seen = *last;
            Self::pass(&mut seen, now);
            let yes = seen.decision.is_none_or(|(yes, ..)| yes);
            if matches!(seen.state, AskState::Pending | AskState::Decided) && yes {
                return "open";
            }
            *last = seen;
        }
        world.asks.push(Ask {
            state: AskState::Pending,
            expires: self.deadline.map(|time| now + time),
            votes: [None; 2],
            decision: None,
            token: 0,
            runs: 0,
        });
        "parked"
    }
}

impl Model for Asks {
    type State = World;
    type Step = Step;

    fn first(&self) -> World {
        World { now: 0, stepped: false, asks: Vec::new(), workers: [None; 2] }
    }

    fn steps(&self, world: &World) -> Vec<Step> {
        let mut steps = Vec::new();
        // An ask that joins is always possible; another one only up to the limit of the model.
        if world.asks.len() < self.most {
            steps.push(Step::Call);
        }
        for ask in 0..world.asks.len() {
            for who in 0..2 {
                steps.extend([true, false].map(|yes| Step::Decide { ask, who, yes }));
            }
            let free = (0..2).filter(|worker| world.workers[*worker].is_none());
            steps.extend(free.map(|worker| Step::Claim { ask, worker }));
            steps.push(Step::Cancel { ask });
        }
        for worker in 0..2 {
            let Some((_, _, ran)) = world.workers[worker] else { continue };
            steps.extend([Step::Renew { worker }, Step::Crash { worker }]);
            steps.push(if ran { Step::Settle { worker } } else { Step::Run { worker } });
            if !ran {
                steps.push(Step::Release { worker });
            }
        }
        steps.push(Step::Expire);
        if world.now < self.end {
            steps.push(Step::Tick);
        }
        if !world.stepped && world.now > 0 {
            steps.push(Step::Back);
        }
        steps
    }

    fn take(&self, world: &World, step: Step) -> (World, &'static str) {
        let mut world = world.clone();
        let now = world.now;
        let passed = |world: &mut World, ask: usize| {
            Self::pass(&mut world.asks[ask], now);
            ask
        };
        let answer = match step {
            Step::Call => self.call(&mut world),
            Step::Decide { ask, who, yes } => {
                let ask = passed(&mut world, ask);
                self.decide(&mut world.asks[ask], who, yes, now)
            }
            Step::Claim { ask, worker } => {
                let ask = passed(&mut world, ask);
                let answer = self.claim(&mut world.asks[ask], now);
                if answer == "claimed" {
                    world.workers[worker] = Some((ask, world.asks[ask].token, false));
                }
                answer
            }
            Step::Run { worker } => {
                if let Some((ask, _, ran)) = &mut world.workers[worker] {
                    *ran = true;
                    world.asks[*ask].runs += 1;
                }
                ""
            }
            Step::Renew { worker } => match world.workers[worker] {
                Some((ask, token, _)) => {
                    let ask = passed(&mut world, ask);
                    Self::renew(&mut world.asks[ask], token, now)
                }
                None => "",
            },
            Step::Settle { worker } | Step::Release { worker } => {
                match world.workers[worker].take() {
                    Some((ask, token, ran)) => {
                        let end = if ran { AskState::Executed } else { AskState::Released };
                        let ask = passed(&mut world, ask);
                        Self::settle(&mut world.asks[ask], token, end)
                    }
                    None => "",
                }
            }
            Step::Crash { worker } => {
                world.workers[worker] = None;
                ""
            }
            Step::Cancel { ask } => {
                let ask = passed(&mut world, ask);
                let ask = &mut world.asks[ask];
                match (ask.state, ask.decision) {
                    (AskState::Pending, _) | (AskState::Decided, Some((true, ..))) => {
                        ask.state = AskState::Cancelled;
                        "cancelled"
                    }
                    (AskState::Cancelled, _) => "cancelled again",
                    _ => "too late",
                }
            }
            Step::Expire => {
                world.asks.iter_mut().for_each(|ask| Self::pass(ask, now));
                ""
            }
            Step::Tick => {
                world.now += 1;
                ""
            }
            Step::Back => {
                (world.now, world.stepped) = (0, true);
                ""
            }
        };
        (world, answer)
    }

    fn never(&self, before: &World, step: Step, answer: &str, after: &World) -> Result<(), String> {
        let require = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
        for (at, ask) in after.asks.iter().enumerate() {
            let yes = ask.decision.is_some_and(|(yes, ..)| yes);
            require(ask.runs <= ask.token, "a call ran without a claim of its own")?;
            require(self.idempotent || ask.runs <= 1, "a call ran twice for one approval")?;
            require(ask.token == 0 || yes, "a call was claimed without an approval")?;
            require(self.idempotent || ask.token <= 1, "an approval was claimed twice")?;
            let agreed = ask.decision.is_none_or(|(yes, by, _)| {
                !yes || by.iter().filter(|voted| **voted).count() >= usize::from(self.quorum)
            });
            require(agreed, "too few have approved")?;
            let Some(was) = before.asks.get(at) else { continue };
            require(ask.token >= was.token, "a token fell")?;
            let was_no = was.decision.is_some_and(|(yes, ..)| !yes);
            require(!was_no || ask.decision == was.decision, "a no was overturned")?;
            require(!was_no || ask.token == was.token, "a call was claimed after a no")?;
            let ended = matches!(
                was.state,
                AskState::Executed | AskState::Released | AskState::Expired | AskState::Cancelled
            );
            require(!ended || ask.state == was.state, "what has ended changed")?;
        }
        let open = after.asks.iter().filter(|ask| matches!(ask.state, AskState::Pending));
        require(open.count() <= 1, "two asks of equal calls are pending")?;
        // What a worker has done is recorded, unless another claim has superseded its own.
        if let Step::Settle { worker } = step
            && let Some((ask, token, _)) = before.workers[worker]
        {
            let superseded = before.asks[ask].token > token;
            require((answer == "stale") == superseded, "an outcome was lost")?;
        }
        Ok(())
    }

    /// No worker holds anything, and each ask has ended, or says that its call may have run.
    fn is_over(&self, world: &World) -> bool {
        let ended = |ask: &Ask| match ask.state {
            AskState::Pending => false,
            // Its lease ends behind the time of the model.
            AskState::Claimed { until } => until > self.end,
            AskState::Decided => ask.decision.is_some_and(|(yes, ..)| !yes),
            _ => true,
        };
        world.workers.iter().all(Option::is_none)
            && !world.asks.is_empty()
            && world.asks.iter().all(ended)
    }
}

/// Every kind of ask, over enough time for each deadline.
pub(crate) const ALL: &[Asks] = &[
    Asks { quorum: 1, idempotent: false, deadline: None, valid: None, most: 2, end: 2 },
    Asks { quorum: 1, idempotent: true, deadline: None, valid: None, most: 1, end: 3 },
    Asks { quorum: 1, idempotent: false, deadline: Some(1), valid: None, most: 2, end: 2 },
    Asks { quorum: 1, idempotent: true, deadline: Some(2), valid: Some(2), most: 1, end: 3 },
    Asks { quorum: 2, idempotent: false, deadline: None, valid: None, most: 1, end: 2 },
    Asks { quorum: 2, idempotent: false, deadline: Some(2), valid: Some(1), most: 1, end: 3 },
];

#[test]
fn a_call_runs_at_most_once_for_each_approval_and_a_no_is_never_overturned() {
    for model in ALL {
        let space = Space::of(model);
        println!("{model:?}: {} states", space.len());
        space.everything_can_end();
        let ran = space.states().iter().any(|world| world.asks.iter().any(|ask| ask.runs > 0));
        assert!(ran && space.len() > 1_000, "the search saw something");
    }
}

/// A model that is wrong is found: the search would be worth nothing otherwise.
#[test]
fn a_claim_that_an_unknown_end_does_not_stop_is_found() {
    struct Careless(Asks);
    impl Model for Careless {
        type State = World;
        type Step = Step;
        fn first(&self) -> World {
            self.0.first()
        }
        fn steps(&self, world: &World) -> Vec<Step> {
            self.0.steps(world)
        }
        fn take(&self, world: &World, step: Step) -> (World, &'static str) {
            Asks { idempotent: true, ..self.0 }.take(world, step)
        }
        fn never(
            &self,
            before: &World,
            step: Step,
            answer: &str,
            after: &World,
        ) -> Result<(), String> {
            self.0.never(before, step, answer, after)
        }
        fn is_over(&self, world: &World) -> bool {
            self.0.is_over(world)
        }
    }
    let model = Careless(ALL[0]);
    let found = std::panic::catch_unwind(|| Space::of(&model).len()).unwrap_err();
    let text = found.downcast_ref::<String>().unwrap();
    assert!(text.contains("claimed twice") || text.contains("ran twice"), "{text}");
}
