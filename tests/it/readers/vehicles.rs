//! The ways to write a file: commands, tools and patches. `{}` is the file.

use countersign_cli::hook::Client;
use serde_json::{Value, json};

/// Redirections, also of lists and loops.
pub(super) const REDIRECTIONS: &[&str] = &[
    "printf x > {}",
    "echo x >> {}",
    "echo x >| {}",
    "echo x &> {}",
    "ls &>> {}",
    "ls >& {}",
    "echo x 1> {}",
    "> {} echo x",
    ": > {}",
    "cat README.md > {}",
    "ls 2> {}",
    "git show HEAD:notes.txt > {}",
    "git log > {}",
    "{ echo x; } > {}",
    "(echo x) >> {}",
    "for i in 1 2; do echo $i; done > {}",
    "if true; then echo x; fi > {}",
    "echo x | cat > {}",
    "sort notes.txt | uniq > {}",
    "bash -c 'echo x' > {}",
    "cat > {} <<E\nx\nE\n",
    "ls 3> {}",
];

/// Programs that copy, write or change the file that they name.
pub(super) const PROGRAMS: &[&str] = &[
    "echo x | tee {}",
    "tee -a {} < README.md",
    "cp README.md {}",
    "cp -f notes.txt {}",
    "mv notes.txt {}",
    "ln -sf ../README.md {}",
    "ln -f notes.txt {}",
    "install -m 644 notes.txt {}",
    "dd if=notes.txt of={}",
    "dd of={} < notes.txt",
    "sed -i s/a/b/ {}",
    "sed -i.bak s/a/b/ {}",
    "sort -o {} notes.txt",
    "sort --output={} notes.txt",
    "curl -o {} https://example.com/x",
    "curl -so {} https://example.com/x",
    "wget -O {} https://example.com/x",
    "wget --output-document={} https://example.com/x",
    "touch {}",
    "rsync notes.txt {}",
    "rsync -a host.example:x {}",
    "truncate -s 0 {}",
    "rm -f {}",
    "chmod +x {}",
    "shred {}",
    "sponge {} < notes.txt",
    "patch {} < x.diff",
    "git checkout HEAD -- {}",
    "git restore {}",
    "unlink {}",
    "xargs -a notes.txt cp README.md {}",
    "timeout 5 env A=1 tee {} < notes.txt",
];

/// Options and operands by which programs write a file that is not expected.
pub(super) const OUTPUTS: &[&str] = &[
    "gcc src/x.c -o {}",
    "gcc -MD -MF {} -c src/x.c",
    "lessc src/site.css {}",
    "npx lessc src/site.css {}",
    "sass src/a.scss {}",
    "sass src/a.scss:{}",
    "esbuild src/index.js --outfile={}",
    "tsc --outFile {}",
    "pandoc README.md -o {}",
    "go build -o {} .",
    "rustc src/main.rs -o {}",
    "terser src/index.js -o {}",
    "rollup src/index.js --file={}",
    "find . -name x -fprint {}",
    "git diff --output={}",
    "git archive -o {} HEAD",
    "/usr/bin/time -o {} ls",
    "strace -o {} ls",
    "openssl rand -out {} 16",
    "split -b 1 notes.txt {}",
    "pytest --junitxml={}",
    "eslint src -o {}",
    "jest --json --outputFile={}",
    "mypy --junit-xml {} src",
    "base64 -d notes.txt --output {}",
    "xxd -r notes.txt {}",
    "uniq notes.txt {}",
    "gzip -c notes.txt > {}",
    "coverage json -o {}",
    "dot -Tsvg docs/a.dot -o {}",
];

/// Programs that write into a folder. `{}` is the folder.
pub(super) const INTO_FOLDERS: &[&str] = &[
    "tar -xf a.tar -C {}",
    "tar xf a.tar --directory={}",
    "unzip -o a.zip -d {}",
    "cp notes.txt {}/",
    "cp -t {} notes.txt",
    "mv -t {} notes.txt",
    "git clone https://example.com/x {}",
    "rsync -a docs/ {}/",
    "mkdir -p {}/x",
    "sphinx-build docs {}",
    "tsc --outDir {}",
    "wget -P {} https://example.com/x",
];

/// Small languages in which a program is told to write.
pub(super) const SCRIPTS: &[&str] = &[
    "sed -n 'w {}' notes.txt",
    "sed 's/x/y/w {}' notes.txt",
    "awk '{ print > \"{}\" }' notes.txt",
    "awk '{ print $1 >> \"{}\" }' notes.txt",
    "bash -c 'echo x > {}'",
    "git -c alias.x='!touch {}' x",
    "git rebase --exec 'touch {}' HEAD~1",
    "git rebase --exec=\"touch ''{}\" HEAD~1",
    "git submodule foreach 'touch {}'",
    "tar -cf x.tar --checkpoint=1 --checkpoint-action=exec='touch {}' notes.txt",
    "tar --to-command='tee {}' -xf a.tar",
    "make --eval='$(shell touch {})'",
    "make --eval='$(file >{},x)'",
    "make 'X=$(shell touch {})'",
    "sort --compress-program='tee {}' notes.txt",
    "split --filter='tee {}' notes.txt",
    "go build -toolexec 'tee {}' .",
    "curl -w '%output{{}}' https://example.com/x",
    "GIT_TRACE={} git status",
    "export GIT_TRACE2={}; git status",
    "cp README.md \"$(echo {})\"",
    "echo {} | tr x x | xargs touch",
];

/// Tools that may write, with the field of the path; `None` is for shapes of their own.
pub(super) const TOOLS: &[(&str, &str)] = &[
    ("write_file", "path"),
    ("edit_file", "path"),
    ("create_file", "path"),
    ("write", "file_path"),
    ("save", "filename"),
    ("append_file", "target"),
    ("str_replace_editor", "path"),
    ("move_file", "destination"),
    ("copy", "to"),
    ("download", "dest"),
    ("frobnicate", "thing"),
    ("delete_file", "path"),
    ("notebook_edit", "notebook_path"),
    ("write_text", "uri"),
    ("fs", "name"),
    ("update", "resource"),
];

/// The arguments of such a tool.
pub(super) fn arguments(shape: u64, field: &str, path: &str) -> Value {
    match shape {
        0 => json!({ field: path, "content": "x" }),
        1 => json!({ field: path, "old_text": "a", "new_text": "b" }),
        2 => json!({"command": "create", field: path, "file_text": "x"}),
        3 => json!({"files": [{ field: path, "content": "x" }]}),
        4 => json!({"paths": ["README.md", path], "content": "x"}),
        5 => json!({"source": "README.md", field: path}),
        6 => json!({"options": {"output": { field: path }}}),
        _ => json!({ field: path }),
    }
}

/// A patch of a file, in the formats that tools of agents take.
pub(super) fn patch(format: u64, path: &str) -> String {
    match format {
        0 => format!("*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch\n"),
        1 => format!("*** Begin Patch\n*** Add File: {path}\n+b\n*** End Patch"),
        2 => format!(
            "*** Begin Patch\n*** Update File: README.md\n*** Move to: {path}\n@@\n-a\n+b\n*** End Patch\n"
        ),
        3 => format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n"),
        4 => format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"),
        5 => format!("--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+b\n"),
        6 => format!(
            "diff --git a/{path} b/{path}\nnew file mode 100755\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+b\n"
        ),
        7 => format!(
            "diff --git a/README.md b/{path}\nsimilarity index 100%\nrename from README.md\nrename to {path}\n"
        ),
        8 => format!("diff --git a/README.md b/{path}\ncopy from README.md\ncopy to {path}\n"),
        _ => format!(
            "Index: {path}\n====\n--- {path}\t(revision 1)\n+++ {path}\t(working copy)\n@@ -1 +1 @@\n-a\n+b\n"
        ),
    }
}

/// A call of a client's own tool that writes.
pub(super) fn of_a_client(client: Client, which: u64, path: &str) -> (&'static str, Value) {
    let edits = which == 1;
    match client {
        Client::Codex => ("apply_patch", json!({"input": patch(which, path)})),
        Client::Gemini if edits => {
            ("replace", json!({"file_path": path, "old_string": "a", "new_string": "b"}))
        }
        Client::Gemini => ("write_file", json!({"file_path": path, "content": "x"})),
        Client::Copilot if edits => ("edit", json!({"path": path, "old_str": "a", "new_str": "b"})),
        Client::Copilot if which == 2 => ("apply_patch", json!({"input": patch(0, path)})),
        Client::Copilot => ("create", json!({"path": path, "file_text": "x"})),
        Client::Opencode if edits => {
            ("edit", json!({"filePath": path, "oldString": "a", "newString": "b"}))
        }
        Client::Opencode if which == 2 => ("patch", json!({"patchText": patch(0, path)})),
        Client::Opencode => ("write", json!({"filePath": path, "content": "x"})),
        Client::Qwen if edits => {
            ("edit", json!({"file_path": path, "old_string": "a", "new_string": "b"}))
        }
        Client::Qwen => ("write_file", json!({"file_path": path, "content": "x"})),
        Client::Cursor => ("Write", json!({"file_path": path, "content": "x"})),
        _ if edits => ("Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"})),
        _ if which == 2 => ("NotebookEdit", json!({"notebook_path": path, "new_source": "x"})),
        _ => ("Write", json!({"file_path": path, "content": "x"})),
    }
}
