//! Grants: answers of people to calls that come later (rules G1 to G3).

pub(super) mod grant;
pub(super) mod granting;
pub(super) mod offer;
pub(super) mod offers;
pub(super) mod pattern;
pub(super) mod record;
pub(super) mod text;
pub(super) mod time;
