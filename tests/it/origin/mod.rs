//! The origins of the values of a call: rules O1 to O5.

mod comparing;
mod recording;
