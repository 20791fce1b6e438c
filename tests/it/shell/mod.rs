//! Commands of a shell: read strictly, judged by what they do (rule C1).

mod claims;
#[cfg(unix)]
mod committed;
mod compounds;
mod corpus;
mod expansions;
mod fetching;
mod judging;
mod lab;
#[cfg(unix)]
mod languages;
#[cfg(unix)]
mod outputs;
mod parsing;
mod places;
mod properties;
mod readings;
mod scanners;
#[cfg(unix)]
mod shells;
#[cfg(unix)]
mod texts;
#[cfg(unix)]
mod tool;
mod variables;

use countersign_shell::{Classifier, Dialect, Judgement, Preset, SearchPath, Workspace};

/// A classifier that looks at no file.
fn classifier(preset: Preset) -> Classifier {
    Classifier::new(Workspace::lexical("/src/project").with_home("/users/ann"), preset)
        .with_search_path(SearchPath::unchecked())
}

fn developer(text: &str) -> Judgement {
    classifier(Preset::Developer).judge(text, Dialect::Bash)
}

/// The judgement of a text, with the text.
#[track_caller]
fn allows(text: &str) {
    let judgement = developer(text);
    assert!(judgement.decision().is_allow(), "{text:?}: {judgement}");
}

#[track_caller]
fn asks(text: &str) {
    let judgement = developer(text);
    assert!(!judgement.decision().is_allow(), "{text:?} is allowed: {judgement:#?}");
}
