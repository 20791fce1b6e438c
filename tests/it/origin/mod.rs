//! Where the values of a call come from: rules O1 to O5.

mod comparing;
mod recording;
