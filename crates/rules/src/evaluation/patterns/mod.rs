//! The classes of calls that rules propose for grants (rule G3).
//!
//! A person who approves a call may want to approve its like from then on. What its like is, is decided here, for each
//! call anew: a later call that a grant answers has to be put into the same class by this code, with the places that its
//! paths lead to at that time.
//!
//! | call | classes, from the narrowest to the widest |
//! |---|---|
//! | a command of the list in `grantable.txt` | the same options and any operands; any of the options that the list has |
//! | a program that the table does not know | its name and the word behind it, the same options, and operands that are plain names or plain files |
//! | a script of the workspace | this script with this content, the word behind it, the same options, and such operands |
//! | `curl` without data and credentials | the same options, and addresses of the same scheme and host |
//! | a text of several commands | one class, for texts whose commands that are asked about are each in the class of one of these |
//! | a tool that changes files of the workspace | this file with any content; any file in its folder |
//! | a tool that fetches an address | addresses of the same scheme and host |
//! | a tool of an MCP server or of a toolset, without commands | this tool, with any arguments, behind the two narrowest of the classes above |
//! | anything else | none: a grant is for exactly the same call |
//!
//! Two calls have a class of the same name only if one grant answers both: what a class is bound to, such as the options
//! and the file of a program, is in its name.
//!
//! A command has no class if it is run by another one, has an assignment, a redirection to anything but `/dev/null` or
//! another output, a word that only the shell knows, or works outside of the workspace, and neither has a text that
//! changes the shell which reads the rest of it (`source`, `alias`).
//!
//! Operands and paths are *plain files*: in the workspace as they are written and as they resolve, and neither secrets,
//! nor what decides about runs and permissions, nor the definition of a build.

mod addresses;
mod commands;
mod files;
mod listed;
mod scripts;
mod texts;
mod unknown;

use std::rc::Rc;

use self::addresses::is_of_client;
pub(crate) use self::files::CONTENT;
use crate::calls::command::CommandView;
use crate::matching::examined_call::ExaminedCall;
use countersign::decision::GrantPattern;

/// The commands of a text that are asked about: the number of the text, and that of the command in it.
pub(super) type AskedCommands = [(usize, usize)];

/// The classes of a call, from the narrowest to the widest. A text has none where `asked` does not say which of its
/// commands are asked about.
pub(super) fn patterns(
    examined: &ExaminedCall<'_>,
    views: &[(Vec<String>, Rc<CommandView>)],
    asked: &AskedCommands,
) -> Vec<GrantPattern> {
    match views {
        [] => {
            let mut classes = files::of_file(examined);
            classes.extend(addresses::of_fetch(examined));
            if let Some(tool) = of_tool(examined) {
                classes.truncate(NARROWER);
                classes.push(tool);
            }
            classes
        }
        [(field, view)] => match (field.as_slice(), &view.refused) {
            ([field], None) => {
                let asked: Vec<usize> = asked.iter().map(|(_, part)| *part).collect();
                texts::of_text(examined, field, view, &asked)
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// How many classes of files are offered beside the one of the tool.
const NARROWER: usize = 2;

/// The class of all calls of a tool. A tool of a coding agent has none: it is one of few that do everything there.
fn of_tool(examined: &ExaminedCall<'_>) -> Option<GrantPattern> {
    let source = examined.call.source.as_ref()?;
    if is_of_client(examined) || examined.shell_field.is_some() {
        return None;
    }
    let tool = countersign::show::escape_name(examined.call.tool);
    let kind = if source.is_server() { "mcp" } else { "set" };
    let name = format!("tool {kind}:{}/{}", source.set(), source.tool());
    let class = GrantPattern::new(name, "any arguments").with_any_args();
    Some(class.with_example(format!("{tool}(…), whatever its arguments are")))
}
