//! The judgement of commands: their parts, operands, variables, directories and outputs.

pub(super) mod addresses;
pub(super) mod bindings;
pub(super) mod classify;
pub(super) mod conditions;
mod daily;
pub(super) mod directories;
pub(super) mod environment;
mod everyday;
pub(super) mod flow;
mod found;
mod implied;
pub(super) mod judgement;
mod languages;
mod lines;
pub(super) mod lists;
pub(super) mod operands;
pub(super) mod outputs;
pub(super) mod printf;
mod printing;
pub(super) mod scripts;
pub(super) mod simple;
pub(super) mod values;
pub(super) mod wrappers;
pub(super) mod yq;
