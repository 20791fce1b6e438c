//! The execution cell of a call record, compiled with `loom`'s synchronisation types and run in every interleaving.
#![cfg(test)]

#[path = "../../../src/call/cell.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the crate uses the rest of the cell, and it is private there"
)]
mod cell;

/// In place of `call::sync`.
mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    pub(super) use loom::sync::{Arc, Mutex, MutexGuard};
}

use std::future::Future as _;
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, Waker};

use cell::{Claim, ExecutionCell, HasCell, claim};
use loom::future::block_on;
use loom::thread;
use sync::{Arc, Ordering};

/// A cell whose results are the numbers of the attempts that ran.
struct Call {
    cell: ExecutionCell<usize, ()>,
    /// How many bodies have run: not one of loom's atomics, which would only multiply the interleavings.
    bodies: AtomicUsize,
}

impl HasCell for Call {
    type Ended = usize;
    type Error = ();

    fn cell(&self) -> &ExecutionCell<usize, ()> {
        &self.cell
    }
}

/// The result of an attempt.
#[derive(Debug, PartialEq)]
enum Seen {
    Ran,
    Recorded(usize),
    Unknown,
    Closed,
}

impl Call {
    fn new() -> Arc<Self> {
        Arc::new(Self { cell: ExecutionCell::new(), bodies: AtomicUsize::new(0) })
    }

    fn ran(&self) -> usize {
        self.bodies.load(Ordering::SeqCst)
    }
}

/// One attempt at the gate, of a call that is not repeated. The body is dropped before its end where `dropped`.
fn attempt(call: &Arc<Call>, number: usize, dropped: bool) -> Seen {
    match block_on(claim(call, |_| false)) {
        Claim::Go(guard) => {
            call.bodies.fetch_add(1, Ordering::SeqCst);
            match dropped {
                true => drop(guard),
                false => guard.end(number),
            }
            Seen::Ran
        }
        Claim::Recorded(number) => Seen::Recorded(number),
        Claim::Unknown => Seen::Unknown,
        Claim::Closed => Seen::Closed,
    }
}

/// L2: of three attempts, one of which is dropped in its body, one runs the body, and the others get its end: its result,
/// or that it was not seen. None waits for ever, which loom reports as a deadlock.
#[test]
fn one_of_three_attempts_runs_when_one_is_dropped() {
    let mut model = loom::model::Builder::new();
    // Without a bound this takes longer than a developer waits; `LOOM_MAX_PREEMPTIONS` sets another.
    model.preemption_bound.get_or_insert(2);
    model.check(|| {
        let call = Call::new();
        let others = [(1, false), (2, true)].map(|(number, dropped)| {
            let call = Arc::clone(&call);
            thread::spawn(move || attempt(&call, number, dropped))
        });
        let mut seen = vec![attempt(&call, 0, false)];
        seen.extend(others.map(|other| other.join().unwrap()));
        assert_eq!(call.ran(), 1);
        let ran = seen.iter().position(|it| *it == Seen::Ran).unwrap();
        let told = if ran == 2 { Seen::Unknown } else { Seen::Recorded(ran) };
        assert!(seen.iter().enumerate().all(|(n, it)| n == ran || *it == told), "{seen:?}");
    });
}

/// A pass that is closed starts nothing more, also while attempts run and wait: a turn that closes it and waits for the
/// running attempt to settle sees every body that ever ran.
#[test]
fn nothing_starts_after_a_close() {
    loom::model(|| {
        let call = Call::new();
        let others = [(1, false), (2, true)].map(|(number, dropped)| {
            let call = Arc::clone(&call);
            thread::spawn(move || attempt(&call, number, dropped))
        });
        call.cell.close();
        block_on(call.cell.settled());
        let ran = call.ran();
        let seen = others.map(|other| other.join().unwrap());
        assert_eq!(call.ran(), ran, "a body started after the close");
        assert_eq!(seen.iter().filter(|it| **it == Seen::Ran).count(), ran);
        assert_eq!(attempt(&call, 0, false), Seen::Closed);
    });
}

/// A waiting attempt that is dropped takes no wakeup away from the next.
#[test]
fn a_waiting_attempt_that_is_dropped_takes_no_wakeup() {
    loom::model(|| {
        let call = Call::new();
        let other = thread::spawn({
            let call = Arc::clone(&call);
            move || attempt(&call, 1, false)
        });
        {
            let mut dropped = pin!(claim(&call, |_| false));
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(Claim::Go(guard)) = dropped.as_mut().poll(&mut cx) {
                guard.give_up();
            }
        }
        let own = attempt(&call, 0, false);
        let seen = [own, other.join().unwrap()];
        assert_eq!(call.ran(), 1);
        assert!(seen == [Seen::Ran, Seen::Recorded(0)] || seen == [Seen::Recorded(1), Seen::Ran]);
    });
}

/// A barrier waits until the last body has ended, also where the end comes between looking and waiting.
#[test]
fn a_barrier_sees_the_last_body_end() {
    loom::model(|| {
        let call = Call::new();
        call.cell.body_started();
        let body = thread::spawn({
            let call = Arc::clone(&call);
            move || {
                call.bodies.fetch_add(1, Ordering::SeqCst);
                call.cell.body_ended();
            }
        });
        block_on(call.cell.idle());
        assert_eq!(call.ran(), 1);
        body.join().unwrap();
    });
}
