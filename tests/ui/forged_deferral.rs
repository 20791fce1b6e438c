//! Nobody but the gate can say that a call waits.

use countersign::outcome::{Deferral, DeferralKind};
use countersign::Outcome;

fn main() {
    let _ = Outcome::Deferred(Deferral { kind: DeferralKind::Approval, questions: vec![] });
}
