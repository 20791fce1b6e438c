//! The small languages in which an operand may be a script.

use super::{scripts, yq};
use crate::table::Script;

/// Returns why a script is not known to be harmless.
pub(super) fn check(language: Script, script: &str) -> Result<(), String> {
    match language {
        Script::Sed => scripts::sed(script),
        Script::Awk => scripts::awk(script),
        Script::Jq => scripts::jq(script),
        Script::Yq => yq::yq(script),
        Script::Test => scripts::test(script),
        Script::Name => scripts::name(script),
        Script::Template => scripts::template(script),
        Script::Fields => scripts::fields(script),
        Script::Sql => scripts::sql(script),
        Script::Graphql => scripts::graphql(script),
        Script::Argument => scripts::argument(script),
        Script::Branch => scripts::branch(script),
    }
}

/// The reason to ask about a script, or about a word that has to be a plain name.
pub(super) fn reason(language: Script, script: &str, why: &str) -> String {
    match language {
        Script::Branch | Script::Name => format!("`{script}` is not known here: {why}"),
        _ => format!("the script `{script}` is not known to be harmless: {why}"),
    }
}
