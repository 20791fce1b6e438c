//! Files of rules: how they are read, what they say, and the schema for editors.

pub(super) mod condition_format;
pub(super) mod document;
pub(super) mod example;
pub(super) mod misspelling;
pub(super) mod read_source;
pub(super) mod rule;
pub(super) mod rule_file;
pub(super) mod rule_people;
pub(super) mod rule_set;
pub(super) mod schema;
pub(super) mod shown;
pub(super) mod source;
