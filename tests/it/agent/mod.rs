//! The agent loop: its handlers, suspended runs, budgets, outputs, and agents as tools of agents.

mod histories;
mod nesting;
mod outputs;
mod retries;
mod running;
mod sub_agents;
mod usage_limits;
mod variants;
