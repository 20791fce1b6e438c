//! A grant with a number of uses, the calls that it answers, and people who revoke it (rules G1 and G2).

use crate::search::{Model, Space};

/// A grant, and calls that it covers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grants {
    pub(crate) uses: u8,
    /// For how many ticks it is valid.
    pub(crate) valid: i8,
    /// How many different calls there are.
    pub(crate) calls: usize,
    pub(crate) end: i8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    New,
    Granted,
    Claimed,
    Executed,
    /// The grant was withdrawn before the call was claimed.
    Void,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    now: i8,
    stepped: bool,
    used: u8,
    revoked: bool,
    expired: bool,
    pub(crate) calls: Vec<Call>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A call asks for an answer by the grant; the second time, its worker has died in between.
    Ask {
        call: usize,
    },
    Claim {
        call: usize,
    },
    Settle {
        call: usize,
    },
    Revoke,
    Expire,
    Tick,
    Back,
}

impl Grants {
    /// The state that revoking and sweeping find.
    fn is_standing(self, world: &World) -> bool {
        !world.revoked && !world.expired && world.used < self.uses
    }
}

impl Model for Grants {
    type State = World;
    type Step = Step;

    fn first(&self) -> World {
        let calls = vec![Call::New; self.calls];
        World { now: 0, stepped: false, used: 0, revoked: false, expired: false, calls }
    }

    fn steps(&self, world: &World) -> Vec<Step> {
        let mut steps = vec![Step::Revoke, Step::Expire];
        for call in 0..self.calls {
            steps.push(Step::Ask { call });
            match world.calls[call] {
                Call::New => {}
                Call::Claimed => steps.push(Step::Settle { call }),
                Call::Granted | Call::Executed | Call::Void => steps.push(Step::Claim { call }),
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
        let in_time = world.now < self.valid;
        let answer = match step {
            Step::Ask { call } => match world.calls[call] {
                Call::New if self.is_standing(&world) && in_time => {
                    world.used += 1;
                    world.calls[call] = Call::Granted;
                    "granted"
                }
                Call::New => "not granted",
                _ => "granted",
            },
            Step::Claim { call } => match world.calls[call] {
                Call::Granted if !in_time || world.revoked || world.expired => {
                    world.calls[call] = Call::Void;
                    "void"
                }
                Call::Granted => {
                    world.calls[call] = Call::Claimed;
                    "claimed"
                }
                Call::Executed => "settled",
                // The approval was given, and the ask has expired with it.
                _ => "aged",
            },
            Step::Settle { call } => {
                world.calls[call] = Call::Executed;
                "settled"
            }
            Step::Revoke => {
                if !in_time && self.is_standing(&world) {
                    world.expired = true;
                }
                if world.revoked {
                    "revoked again"
                } else if world.expired {
                    "over"
                } else {
                    world.revoked = true;
                    "revoked"
                }
            }
            Step::Expire => {
                world.expired |= !in_time && self.is_standing(&world);
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
        require(after.used <= self.uses, "a grant was used too often")?;
        let answered = after.calls.iter().filter(|call| **call != Call::New).count();
        require(answered == usize::from(after.used), "a use was taken twice, or not at all")?;
        require(!before.revoked || after.revoked, "a grant that was revoked stands again")?;
        require(!before.expired || after.expired, "a grant that had expired stands again")?;
        if let Step::Claim { .. } = step {
            let withdrawn = before.revoked || before.expired;
            require(answer != "claimed" || !withdrawn, "a call ran by a grant that was withdrawn")?;
        }
        let ended = |call: &Call| matches!(call, Call::Executed | Call::Void);
        for (was, is) in before.calls.iter().zip(&after.calls) {
            require(!ended(was) || was == is, "what has ended changed")?;
        }
        Ok(())
    }

    fn is_over(&self, world: &World) -> bool {
        world.calls.iter().all(|call| matches!(call, Call::New | Call::Executed | Call::Void))
    }
}

pub(crate) const ALL: &[Grants] = &[
    Grants { uses: 1, valid: 2, calls: 2, end: 2 },
    Grants { uses: 2, valid: 2, calls: 3, end: 3 },
];

#[test]
fn a_grant_answers_as_often_as_it_says_and_nothing_after_it_was_revoked() {
    for model in ALL {
        let space = Space::of(model);
        println!("{model:?}: {} states", space.len());
        space.everything_can_end();
        assert!(space.len() > 100, "the search saw something");
    }
}
