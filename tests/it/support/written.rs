//! Programs that a test writes, and that are run.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a file that can be run, in another process. A file that this process has open for writing is also open in each
/// child that another test starts at that moment, and the system runs no file that is open for writing.
pub(crate) fn write_program(path: &Path, content: impl AsRef<[u8]>) {
    let script = "rm -f -- \"$0\" && cat > \"$0\" && chmod 755 -- \"$0\"";
    let mut command = Command::new("sh");
    let mut child = command.args(["-c", script]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(content.as_ref()).unwrap();
    assert!(child.wait().unwrap().success(), "{} was not written", path.display());
}
