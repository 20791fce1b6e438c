//! A call on its way: which ways to a gate are refused (rule D9), and the history of denials (rule D11).

mod ask_history;
mod levels;
