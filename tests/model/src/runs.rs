//! A run that waits for a person, and the workers that take it up (rule L5).

use crate::search::{Model, Space};

/// How long a lease is, in ticks.
pub(crate) const LEASE: i8 = 1;

/// A run with one call that a person is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Runs {
    pub(crate) end: i8,
}

/// A worker that has taken the run up: its token, and whether the person had answered by then.
pub(crate) type Worker = Option<(u8, bool)>;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    now: i8,
    stepped: bool,
    /// How often the run was saved; 0 before it is there.
    saved: u8,
    over: bool,
    /// Until when the latest lease is; `None` where it was given up.
    lease: Option<i8>,
    token: u8,
    answered: bool,
    closed: bool,
    pub(crate) workers: [Worker; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Suspend,
    Answer,
    Acquire {
        worker: usize,
    },
    Renew {
        worker: usize,
    },
    /// A worker found no answer, and gives the run up again.
    Save {
        worker: usize,
    },
    /// A worker found the answer: the run ends, and its ask is closed with it.
    End {
        worker: usize,
    },
    Crash {
        worker: usize,
    },
    Tick,
    Back,
}

impl Model for Runs {
    type State = World;
    type Step = Step;

    fn first(&self) -> World {
        World {
            now: 0,
            stepped: false,
            saved: 0,
            over: false,
            lease: None,
            token: 0,
            answered: false,
            closed: false,
            workers: [None; 2],
        }
    }

    fn steps(&self, world: &World) -> Vec<Step> {
        // Suspending again, as a worker does whose response was lost, changes nothing.
        let mut steps = vec![Step::Suspend];
        if world.saved > 0 && !world.answered && !world.closed {
            steps.push(Step::Answer);
        }
        for worker in 0..2 {
            match world.workers[worker] {
                None if world.token < 4 && world.saved < 5 => steps.push(Step::Acquire { worker }),
                None => {}
                Some((_, knows)) => {
                    steps.extend([Step::Renew { worker }, Step::Crash { worker }]);
                    steps.push(if knows { Step::End { worker } } else { Step::Save { worker } });
                }
            }
        }
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
        let latest = |world: &World, worker: usize| {
            world.workers[worker].is_some_and(|(token, _)| token == world.token) && !world.over
        };
        let answer = match step {
            Step::Suspend => {
                world.saved = world.saved.max(1);
                "saved"
            }
            Step::Answer => {
                world.answered = true;
                "won"
            }
            Step::Acquire { worker } => {
                if world.saved == 0 {
                    "unknown run"
                } else if world.over {
                    "over"
                } else if world.lease.is_some_and(|until| world.now < until) {
                    "held"
                } else {
                    world.token += 1;
                    world.lease = Some(world.now + LEASE);
                    world.workers[worker] = Some((world.token, world.answered));
                    "acquired"
                }
            }
            // A lease that was given up is not renewed: no worker may begin anything more by it.
            Step::Renew { worker } if latest(&world, worker) && world.lease.is_some() => {
                world.lease = Some(world.now + LEASE);
                "saved"
            }
            Step::Renew { .. } => "stale",
            Step::Save { worker } | Step::End { worker } => {
                let counts = latest(&world, worker);
                let ends = matches!(step, Step::End { .. });
                world.workers[worker] = None;
                if counts {
                    world.saved += 1;
                    world.lease = None;
                    world.over = ends;
                    world.closed |= ends;
                }
                if counts { "saved" } else { "stale" }
            }
            Step::Crash { worker } => {
                world.workers[worker] = None;
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
        require(after.token >= before.token, "a token fell")?;
        require(!before.over || after.over, "a run that had ended continued")?;
        require(!before.over || after.saved == before.saved, "a run that had ended was saved")?;
        require(
            after.closed == after.over,
            "a run has ended and its ask has not, or the other way",
        )?;
        require(!after.over || after.answered, "a run has ended without the answer")?;
        // Only the latest worker of a run saves it.
        if let Step::Save { worker } | Step::End { worker } = step
            && let Some((token, _)) = before.workers[worker]
        {
            let latest = token == before.token && !before.over;
            require((answer == "saved") == latest, "a worker saved a run that another has")?;
        }
        Ok(())
    }

    fn is_over(&self, world: &World) -> bool {
        world.over && world.workers.iter().all(Option::is_none)
    }
}

#[test]
fn no_run_is_lost_and_one_worker_has_it() {
    let model = Runs { end: 3 };
    let space = Space::of(&model);
    println!("{model:?}: {} states", space.len());
    assert!(space.len() > 1_000, "the search saw something");
    // A run that waits can always be taken up again: the limit of the model is the number of tokens, so that states at the
    // limit are left out.
    let lost = space.states().iter().filter(|world| {
        world.saved > 0 && !world.over && world.token < 4 && world.workers == [None; 2]
    });
    for world in lost {
        let later = World {
            now: world.lease.map_or(world.now, |until| until.max(world.now)),
            ..world.clone()
        };
        assert_eq!(model.take(&later, Step::Acquire { worker: 0 }).1, "acquired", "{world:?}");
    }
}
