//! Only the gate can defer a call.

use countersign::outcome::{Deferral, DeferralKind};
use countersign::Outcome;

fn main() {
    let _ = Outcome::Deferred(Deferral { kind: DeferralKind::Approval, questions: [].into() });
}
