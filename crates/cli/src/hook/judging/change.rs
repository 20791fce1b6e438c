//! The change that an edit, a write or a patch of a client would make, as a difference of the file as it is now
//! (rule S12).
//!
//! We show a difference only where it is certain: the old text stands in the file exactly as often as the tool demands.
//! Otherwise the person sees the old and the new text, each with its name, and why there is no difference. The digest of
//! the file is a pin: if the file has changed since, the hook asks again.
//!
//! | the call | shown |
//! |---|---|
//! | writes a file that is there, or is not | the difference, or the new file |
//! | replaces a text that stands there once, and once is demanded | the difference |
//! | the same, and the text is not there, or there twice | the old and the new text |
//! | writes over what is no text | the new text |
//! | a patch whose places are found | a difference for each file |
//! | another patch | the patch |

use std::path::Path;

use countersign::args::Args;
use countersign::decision::Preview;
use serde_json::{Map, Value};

use super::applying;
use super::file_text::{FileText, read};

/// The change that a call of a client's own tool would make. Nothing for other tools, and where the arguments are not
/// those that we know: then the arguments are shown.
pub(super) fn previews(tool: &str, args: &Args, directory: &Path) -> Vec<Preview> {
    match tool {
        "write_file" => written(args).into_iter().collect(),
        "edit_file" => edited(args),
        "patch" => args.str("patch").map(|text| patched(text, directory)).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn written(args: &Args) -> Option<Preview> {
    let (path, content) = (args.str("path")?, args.str("content")?);
    let shown = match read(Path::new(path)) {
        FileText::Missing => Preview::diff(path, None, content),
        FileText::Text(old) => Preview::diff(path, old.as_str(), content),
        FileText::Other(why, bytes) => {
            Preview::text(format!("the new text of {path} (of what is there: {why})"), content)
                .covering(bytes)
        }
    };
    Some(shown.in_place_of(["content"]))
}

/// One replacement, and how often the tool demands its old text: any number of times from one on if it is `None`.
struct Replacement<'a> {
    old: &'a str,
    new: &'a str,
    times: Option<usize>,
}

impl<'a> Replacement<'a> {
    fn of(map: &'a Map<String, Value>) -> Option<Self> {
        let text = |names: [&str; 3]| names.iter().find_map(|name| map.get(*name)?.as_str());
        let is = |name: &str| map.get(name) == Some(&Value::Bool(true));
        let expected = map.get("expected_replacements").and_then(Value::as_u64);
        let every = ["replace_all", "replaceAll", "allow_multiple"].into_iter().any(is);
        Some(Self {
            old: text(["old_string", "old_str", "oldString"])?,
            new: text(["new_string", "new_str", "newString"])?,
            times: match expected {
                Some(times) => Some(usize::try_from(times).ok()?),
                None if every => None,
                None => Some(1),
            },
        })
    }

    /// The text after the replacement, or why it is not certain which.
    fn apply(&self, text: &str) -> Result<String, String> {
        if self.old.is_empty() {
            return Err("the old text is empty".to_owned());
        }
        let found = text.matches(self.old).count();
        match self.times {
            _ if found == 0 => Err("the old text does not stand there".to_owned()),
            Some(times) if times != found => Err(format!(
                "the old text stands there {found} times, and the tool demands {times}"
            )),
            _ => Ok(text.replace(self.old, self.new)),
        }
    }
}

/// The arguments that an edit has its texts in.
const TEXTS: [&str; 7] =
    ["old_string", "new_string", "old_str", "new_str", "oldString", "newString", "edits"];

fn edited(args: &Args) -> Vec<Preview> {
    let Some(path) = args.str("path") else { return Vec::new() };
    let replacements = match args.get("edits").and_then(Value::as_array) {
        Some(edits) => {
            edits.iter().map(|edit| Replacement::of(edit.as_object()?)).collect::<Option<Vec<_>>>()
        }
        None => Replacement::of(args.as_map()).map(|one| vec![one]),
    };
    let Some(replacements) = replacements.filter(|all| !all.is_empty()) else { return Vec::new() };
    let (why, bytes) = match (read(Path::new(path)), replacements.as_slice()) {
        (FileText::Missing, [Replacement { old: "", new, .. }]) => {
            return vec![Preview::diff(path, None, *new).in_place_of(TEXTS)];
        }
        (FileText::Missing, _) => ("there is no such file".to_owned(), Vec::new()),
        (FileText::Other(why, bytes), _) => (why.to_owned(), bytes),
        (FileText::Text(old), all) => {
            let new = all.iter().try_fold(old.clone(), |text, one| one.apply(&text));
            match new {
                Ok(new) => {
                    return vec![
                        Preview::diff(path, old.as_str(), new.as_str()).in_place_of(TEXTS),
                    ];
                }
                Err(why) => (why, old.into_bytes()),
            }
        }
    };
    let both = |one: &Replacement<'_>| {
        [("old", one.old), ("new", one.new)].map(|(which, text)| {
            let title = format!("the {which} text for {path} (no difference: {why})");
            Preview::text(title, text).covering(&bytes).in_place_of(TEXTS)
        })
    };
    replacements.iter().flat_map(both).collect()
}

fn patched(text: &str, directory: &Path) -> Vec<Preview> {
    let differences = applying::differences(text, directory);
    match differences {
        Ok(all) => all.into_iter().map(|it| it.in_place_of(["patch"])).collect(),
        Err(why) => {
            vec![
                Preview::text(format!("the patch (no difference: {why})"), text)
                    .in_place_of(["patch"]),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use countersign::decision::{Change, PreviewContent};
    use serde_json::json;

    use super::*;

    fn shown(tool: &str, args: Value, directory: &Path) -> Vec<Preview> {
        previews(tool, &Args::try_from(args).unwrap(), directory)
    }

    fn lines(preview: &Preview) -> Vec<String> {
        match preview.content() {
            PreviewContent::Diff { lines, .. } => lines.clone(),
            PreviewContent::Text { text } => text.split('\n').map(str::to_owned).collect(),
            _ => panic!("no table"),
        }
    }

    /// S12: "where the old text occurs exactly as often as the tool demands; else old and new text, labelled".
    #[test]
    fn an_edit_is_a_difference_where_its_place_is_certain() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.txt");
        fs::write(&path, "one\ntwo\nthree\ntwo\n").unwrap();
        let edit = |old: &str, new: &str, more: Value| {
            let mut args = json!({"path": path, "old_string": old, "new_string": new});
            args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            shown("edit_file", args, home.path())
        };
        let one = edit("three", "3", json!({}));
        assert_eq!(lines(&one[0]), ["@@ -1,4 +1,4 @@", " one", " two", "-three", "+3", " two"]);
        assert_eq!(one[0].replaced(), TEXTS);

        let twice = edit("two", "2", json!({}));
        let titles: Vec<_> = twice.iter().map(Preview::title).collect();
        assert!(
            titles[0].starts_with("the old text for") && titles[1].starts_with("the new text for")
        );
        assert!(titles[0].contains("stands there 2 times, and the tool demands 1"), "{titles:?}");
        assert_eq!((lines(&twice[0]), lines(&twice[1])), (vec!["two".into()], vec!["2".into()]));

        for every in [json!({"replace_all": true}), json!({"expected_replacements": 2})] {
            let all = edit("two", "2", every);
            assert_eq!(lines(&all[0]).iter().filter(|line| *line == "+2").count(), 2);
        }
        assert!(
            edit("four", "4", json!({"replace_all": true}))[0].title().contains("does not stand")
        );
        assert!(
            edit("two", "2", json!({"expected_replacements": 1}))[0].title().contains("2 times")
        );
    }

    #[test]
    fn several_edits_are_one_difference_in_their_order() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.txt");
        fs::write(&path, "one\n").unwrap();
        let edits = json!([{"old_string": "one", "new_string": "two"}, {"old_string": "two", "new_string": "three"}]);
        let shown = shown("edit_file", json!({"path": path, "edits": edits}), home.path());
        assert_eq!(lines(&shown[0]), ["@@ -1 +1 @@", "-one", "+three"]);
    }

    #[test]
    fn a_file_is_created_changed_or_written_over_and_its_digest_is_pinned() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.txt");
        let write = || shown("write_file", json!({"path": path, "content": "new\n"}), home.path());
        let change = |preview: &Preview| match preview.content() {
            PreviewContent::Diff { change, .. } => Some(*change),
            _ => None,
        };
        let created = write();
        assert_eq!(change(&created[0]), Some(Change::Created));
        fs::write(&path, "old\n").unwrap();
        let changed = write();
        assert_eq!(change(&changed[0]), Some(Change::Changed));
        fs::write(&path, [0xff, 0xfe]).unwrap();
        let binary = write();
        assert!(binary[0].title().contains("it is no text"), "{}", binary[0].title());
        fs::write(&path, [0xff, 0xfd]).unwrap();
        let other = write();
        let digests =
            [&created, &changed, &binary, &other].map(|it| it[0].digest().unwrap().to_owned());
        let distinct: std::collections::BTreeSet<_> = digests.iter().collect();
        assert_eq!(distinct.len(), 4, "another file is another question");
        assert!(
            shown("write_file", json!({"path": home.path(), "content": "x"}), home.path())[0]
                .title()
                .contains("it is no file")
        );
    }

    #[test]
    fn what_is_not_known_is_left_to_the_arguments() {
        let home = tempfile::tempdir().unwrap();
        for (tool, args) in [
            ("write_file", json!({"path": "/a"})),
            ("edit_file", json!({"path": "/a", "new_source": "x"})),
            ("edit_file", json!({"path": "/a", "edits": [{"old_string": "x"}]})),
            ("shell", json!({"command": "ls"})),
        ] {
            assert!(shown(tool, args, home.path()).is_empty());
        }
    }

    #[test]
    fn a_patch_is_a_difference_for_each_file() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
        fs::write(home.path().join("b.txt"), "gone\n").unwrap();
        let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Add File: c.txt\n+new\n\
                     *** Delete File: b.txt\n*** End Patch\n";
        let all = shown("patch", json!({"patch": patch}), home.path());
        assert_eq!(lines(&all[0]), ["@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]);
        assert_eq!(
            (lines(&all[1]), lines(&all[2])),
            (
                vec!["@@ -0,0 +1 @@".to_owned(), "+new".to_owned()],
                vec!["@@ -1 +0,0 @@".to_owned(), "-gone".to_owned()],
            )
        );
        for other in [
            "*** Begin Patch\n*** Update File: a.txt\n@@\n-four\n+4\n*** End Patch",
            "*** Begin Patch\n*** Update File: missing.txt\n@@\n-one\n+1\n*** End Patch",
            "diff --git a/a.txt b/a.txt",
        ] {
            let all = shown("patch", json!({"patch": other}), home.path());
            assert!(all.len() == 1 && all[0].title().starts_with("the patch (no difference"));
            assert_eq!(lines(&all[0]).join("\n"), other);
        }
    }
}
