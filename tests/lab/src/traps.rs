//! The workspaces, made from `traps.txt`: each is a layer that lies over the image.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::{PROJECT, mount, ran, toolchains};

const TRAPS: &str = include_str!("../traps.txt");

/// A workspace: its files, and what is run in it at the end.
#[derive(Debug, Clone, Default)]
struct Workspace {
    files: BTreeMap<String, String>,
    setup: Vec<String>,
}

/// Makes the layers that are missing, and returns each workspace's name with its layer. Each of `operands` is there in each
/// workspace with a home and a plain project, with a content that suits its name.
pub fn layers(
    lab: &Path,
    image: &Path,
    operands: &[String],
) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut layers = BTreeMap::new();
    for (name, workspace) in workspaces() {
        if name == "home" {
            continue;
        }
        let layer = lab.join("layers").join(&name);
        if !layer.join("made").exists() {
            let _ = fs::remove_dir_all(&layer);
            let operands = if name == "empty" { &[] } else { operands };
            make(lab, image, &layer, &workspace, operands)
                .map_err(|error| io::Error::other(format!("workspace {name}: {error}")))?;
        }
        layers.insert(name, layer.join("upper"));
    }
    Ok(layers)
}

fn workspaces() -> Vec<(String, Workspace)> {
    let mut all: Vec<(String, Workspace)> = Vec::new();
    for part in TRAPS.split("\n== ").skip(1) {
        let (header, body) = part.split_once('\n').unwrap_or((part, ""));
        let (name, others) = header.split_once(':').unwrap_or((header, ""));
        let mut workspace = Workspace::default();
        for other in others.split_whitespace() {
            if let Some((_, known)) = all.iter().find(|(known, _)| known == other) {
                workspace = known.clone();
            }
        }
        for file in format!("\n{body}").split("\n-- ").skip(1) {
            let (path, text) = file.split_once(" --\n").unwrap_or((file, ""));
            match path {
                "setup" => workspace.setup.push(with_payloads(text)),
                _ => {
                    workspace.files.insert(path.to_owned(), with_payloads(text) + "\n");
                }
            }
        }
        all.push((name.to_owned(), workspace));
    }
    all
}

/// Writes the code of the traps out.
fn with_payloads(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let payload = after.split_once('}').and_then(|(inner, end)| Some((payload(inner)?, end)));
        match payload {
            Some((code, end)) => {
                out.push_str(&code);
                rest = end;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out + rest
}

fn payload(inner: &str) -> Option<String> {
    let (language, name) = inner.split_once(':')?;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
    if name.is_empty() || !name.chars().all(plain) {
        return None;
    }
    Some(match language {
        "sh" => format!("touch /tmp/TRAP-{name}"),
        "js" => format!("require('fs').writeFileSync('/tmp/TRAP-{name}', '');"),
        "mjs" => {
            format!("import {{writeFileSync as w_}} from 'node:fs'; w_('/tmp/TRAP-{name}', '');")
        }
        "py" => format!("open('/tmp/TRAP-{name}', 'w').close()"),
        _ => return None,
    })
}

/// Makes a layer: the upper side of an overlay over the image, in which the files are written and the setup is run.
fn make(
    lab: &Path,
    image: &Path,
    layer: &Path,
    workspace: &Workspace,
    operands: &[String],
) -> io::Result<()> {
    let at = |name: &str| layer.join(name);
    for name in ["upper", "work", "root"] {
        fs::create_dir_all(at(name))?;
    }
    let layers = format!(
        "lowerdir={},upperdir={},workdir={}",
        image.display(),
        at("upper").display(),
        at("work").display()
    );
    let root = at("root");
    mount(&["-t", "overlay", "overlay", "-o", &layers], &root)?;
    let made = filled(&root, workspace, operands);
    let _ = ran(Command::new("umount").arg(root.join("dev")));
    let _ = ran(Command::new("umount").arg(root.join("proc")));
    ran(Command::new("umount").arg(&root))?;
    let log = made?;
    fs::write(lab.join("setup.log"), &log)?;
    fs::write(at("made"), log)
}

fn filled(root: &Path, workspace: &Workspace, operands: &[String]) -> io::Result<Vec<u8>> {
    let below = |path: &str| root.join(path.trim_start_matches('/'));
    let project = below(PROJECT);
    fs::create_dir_all(&project)?;
    fs::write(below("/etc/resolv.conf"), "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")?;
    fs::write(below("/etc/hosts"), "127.0.0.1 localhost lab\n::1 localhost\n")?;
    fs::write(
        below("/etc/nsswitch.conf"),
        "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n",
    )?;
    fs::create_dir_all(below("/opt/rustup"))?;
    rustup(root)?;
    for (path, text) in &workspace.files {
        let seen = match path.strip_prefix("~/") {
            Some(path) => format!("/home/dev/{path}"),
            None => format!("{PROJECT}/{path}"),
        };
        let text = text.replace(&format!("MARK<{path}>"), &format!("MARK<{seen}>"));
        write(&below(&seen), &text)?;
    }
    for operand in operands {
        let path = project.join(operand);
        let name = operand.rsplit('/').next().unwrap_or(operand);
        if let Some(content) = content(name).filter(|_| path.symlink_metadata().is_err())
            // A folder of that name is there, or a file stands where its folder would be.
            && write(&path, &content).is_err()
        {
            continue;
        }
    }
    ran(Command::new("chown").args(["-R", "1000:1000"]).arg(below("/home/dev")))?;
    mount(&["-t", "proc", "proc"], &below("/proc"))?;
    mount(&["--bind", "/dev"], &below("/dev"))?;
    let mut log = Vec::new();
    for setup in &workspace.setup {
        let output = Command::new("chroot")
            .arg(root)
            .args(["/usr/bin/setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"])
            .args(["/usr/bin/env", "-i", "-C", PROJECT, "HOME=/home/dev", "LANG=C.UTF-8"])
            .args(["PATH=/usr/local/bin:/usr/bin:/bin", "/bin/bash", "-c", setup])
            .output()?;
        log.extend(output.stdout);
        log.extend(output.stderr);
    }
    Ok(log)
}

/// The proxies of `rustup`, as its installation makes them.
fn rustup(root: &Path) -> io::Result<()> {
    let Some(home) = std::env::var_os("HOME").filter(|_| toolchains().is_some()) else {
        return Ok(());
    };
    let program = Path::new(&home).join(".cargo/bin/rustup");
    let bin = root.join("usr/local/bin");
    fs::create_dir_all(&bin)?;
    fs::copy(fs::canonicalize(program)?, bin.join("rustup"))?;
    for name in
        ["cargo", "rustc", "rustdoc", "rustfmt", "cargo-fmt", "cargo-clippy", "clippy-driver"]
    {
        let _ = fs::remove_file(bin.join(name));
        std::os::unix::fs::symlink("rustup", bin.join(name))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// A content for a file of this name, which an example of the table names. Code is a trap. `None` for what a setup has to
/// make: archives, images, programs.
fn content(name: &str) -> Option<String> {
    let trap = |code: &str| Some(with_payloads(&code.replace("NAME", name)) + "\n");
    let (_, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    match extension {
        "js" | "cjs" | "jsx" => trap("{js:NAME}"),
        "mjs" | "ts" | "tsx" | "mts" => trap("{mjs:NAME}"),
        "py" | "pyi" => trap("{py:NAME}"),
        "sh" | "bash" | "zsh" | "bats" => trap("#!/bin/bash\n{sh:NAME}"),
        "rb" => trap("File.write('/tmp/TRAP-NAME', '')"),
        "pl" | "pm" | "t" => trap("BEGIN { open(my $f, '>', '/tmp/TRAP-NAME'); } 1;"),
        "php" => trap("<?php file_put_contents('/tmp/TRAP-NAME', '');"),
        "lua" => trap("io.open('/tmp/TRAP-NAME', 'w'):close()"),
        "rs" => trap("fn main() { std::fs::write(\"/tmp/TRAP-NAME\", \"\").unwrap(); }"),
        "go" => trap("package main\n\nfunc main() {}"),
        "c" | "h" | "cc" | "cpp" | "hpp" => trap("int main(void) { return 0; }"),
        "json" | "jsonc" | "json5" | "ipynb" => trap("{\"a\": [1, 2], \"name\": \"x\"}"),
        "yaml" | "yml" => trap("a:\n  - 1\n"),
        "toml" | "ini" | "cfg" => trap("[a]\nb = 1\n"),
        "xml" | "svg" | "xsl" | "xsd" => trap("<?xml version=\"1.0\"?>\n<a/>"),
        "html" | "htm" => trap("<!doctype html><title>t</title><p>x"),
        "css" | "scss" => trap("a { color: red }"),
        "sql" => trap("select 1;"),
        "csv" | "tsv" => trap("a,b\n1,2"),
        "md" | "rst" | "txt" | "log" | "conf" | "diff" | "list" | "" => trap("one\ntwo\nthree"),
        _ => None,
    }
}
