//! Checks: they run tests that an agent has written, and reach no more than the agent itself.
//!
//! The control of every attack is the same check without walls, which succeeds with it.

use std::fs;

use super::sandboxes;
use super::support::Sandbox;

const TOKEN: &str = "tok-5f7a9c1e3b2d4f60";

/// What the agent's test tries. Results go to a temporary directory, where a check may write.
const ATTACKS: &str = r#"
try() { if sh -c "$2" > /dev/null 2>&1; then echo "$1: done"; else echo "$1: refused"; fi >> "$TMPDIR/tried"; }
echo run >> "$TMPDIR/runs"
try shell 'echo x >> ~/.bashrc'
try truncate 'truncate -s 0 ~/.profile'
try new 'mkdir ~/new-$$'
try ssh 'echo x >> ~/.ssh/authorized_keys'
try git 'git config --file ~/.gitconfig core.pager x-$$'
try program 'echo x > ~/.cargo/bin/cargo-x'
try unit 'echo x > ~/.config/systemd/user/x.service'
try beside 'echo x > "$SANDBOX/other/file"'
try hook 'echo x > "$SANDBOX/other/.git/hooks/pre-commit"'
try journal 'for d in ~/.local/state/wiggum/*-*; do echo x > "$d/x" || exit 1; done'
try agent 'echo x >> ~/.claude/settings.json'
try link 'ln -sf ~ "$TMPDIR/l" && echo x >> "$TMPDIR/l/.bashrc"'
try orphan 'setsid sh -c "echo x >> ~/.bashrc"'
try token 'test -n "$DEPLOY_TOKEN"'
try token-of-others 'for p in /proc/[0-9]*/environ; do grep -qsz ^DEPLOY_TOKEN= "$p" && exit 0; done; exit 1'
try kill 'for p in /proc/[0-9]*; do tr "\0" " " < "$p/cmdline" | grep -qe "[-]-agent-command" && kill -0 "${p#/proc/}" && exit 0; done; exit 1'
try address 'test -n "$PIP_INDEX_URL"'
true
"#;

fn furnished() -> Sandbox {
    let mut sandbox = Sandbox::walled(&["one"]);
    let home = sandbox.base().join("home");
    for dir in [".ssh", ".cargo/bin", ".config/systemd/user", ".claude"] {
        fs::create_dir_all(home.join(dir)).unwrap();
    }
    for file in [".bashrc", ".profile", ".ssh/authorized_keys", ".gitconfig", ".claude/settings.json"] {
        fs::write(home.join(file), "[a]\n").unwrap();
    }
    fs::create_dir(sandbox.base().join("other")).unwrap();
    sandbox.git_in(&sandbox.base().join("other"), &["init", "-q"]);
    fs::create_dir_all(sandbox.base().join("other/.git/hooks")).unwrap();
    sandbox.env("DEPLOY_TOKEN", TOKEN);
    sandbox.env("PIP_INDEX_URL", "https://ann:pw@pypi.example/simple");
    sandbox.write("verify.sh", "sh product.sh\n");
    sandbox.write("product.sh", "true\n");
    sandbox.commit_all("a check");
    sandbox
}

/// The agent writes the attack into what the check runs, and changes the check as well.
fn with_attack(sandbox: &Sandbox) -> String {
    fs::write(sandbox.base().join("attack.sh"), ATTACKS).unwrap();
    "cp \"$SANDBOX/attack.sh\" product.sh; echo '# more' >> verify.sh; claim".to_owned()
}

fn outcomes(sandbox: &Sandbox) -> (Vec<String>, usize) {
    let tried = sandbox.note("tmp/tried");
    (tried.lines().map(str::to_owned).collect(), sandbox.note("tmp/runs").lines().count())
}

/// As the check stands, with its former definition, and in a clean checkout.
#[test]
fn a_test_of_the_agent_reaches_no_more_than_the_agent() {
    for kind in sandboxes() {
        let sandbox = furnished();
        let agent = with_attack(&sandbox);
        let args = ["--sandbox", kind, "--verify", "sh verify.sh", "--max-retries", "0"];
        sandbox.run(&agent, &args).exits(0).says("; so do checks");
        let (tried, runs) = outcomes(&sandbox);
        let through: Vec<&String> = tried.iter().filter(|line| !line.ends_with(": refused")).collect();
        assert!(through.is_empty(), "{kind}: {through:?}");
        assert!(runs >= 3 && tried.len() == runs * 17, "{kind}: {runs} runs, {} tried", tried.len());
        let bashrc = fs::read_to_string(sandbox.base().join("home/.bashrc")).unwrap();
        assert_eq!(bashrc, "[a]\n");
    }
}

/// The control.
#[test]
fn without_walls_it_reaches_everything() {
    for by_name in [false, true] {
        let mut sandbox = furnished();
        let agent = with_attack(&sandbox);
        sandbox.env("WIGGUM_CHECKS_PASS_ENV", "[\"DEPLOY_*\", \"PIP_INDEX_URL\"]");
        let (variable, value) = match by_name {
            true => ("WIGGUM_CHECKS_UNCONFINED", "sh verify.sh"),
            false => ("WIGGUM_CHECKS_SANDBOX", "none"),
        };
        sandbox.env(variable, value);
        let run = sandbox.run(&agent, &["--verify", "sh verify.sh", "--max-retries", "0"]).exits(0);
        let (tried, _) = outcomes(&sandbox);
        let held: Vec<&String> = tried.iter().filter(|line| !line.ends_with(": done")).collect();
        assert!(held.is_empty(), "{held:?}");
        let said = if by_name { "except for `sh verify.sh`" } else { "checks are not confined" };
        assert!(run.stdout.contains(said), "{}", run.stdout);
    }
}

/// Before any agent works, and before the first attempt at a task with a check of its own.
#[test]
fn the_untouched_tree_is_checked_behind_walls_too() {
    for kind in sandboxes() {
        let sandbox = furnished();
        sandbox.write("product.sh", ATTACKS);
        sandbox.git(&["rm", "-q", "PRD.json"]);
        sandbox.write("TODO.md", "- [ ] one: Do it\n  - verify: sh product.sh\n");
        sandbox.commit_all("an attack of an earlier run");
        let args = ["--sandbox", kind, "--verify", "sh verify.sh", "--max-iterations", "1"];
        drop(sandbox.run("exit 1", &args));
        let (tried, runs) = outcomes(&sandbox);
        assert!(runs >= 2, "{runs}");
        assert!(tried.iter().all(|line| line.ends_with(": refused")), "{kind}: {tried:?}");
    }
}

/// Hooks of a commit run what an agent may have written as well.
#[test]
fn a_hook_is_not_given_secrets() {
    let hook = "#!/bin/sh\nenv > \"$TMPDIR/env\"\n";
    let seen = |sandbox: &Sandbox| sandbox.note("tmp/env").contains(TOKEN);
    for kind in sandboxes().into_iter().chain(["none"]) {
        for passed in [false, true] {
            let mut sandbox = Sandbox::walled(&["one"]);
            sandbox.env("DEPLOY_TOKEN", TOKEN);
            if passed {
                sandbox.env("WIGGUM_CHECKS_PASS_ENV", "DEPLOY_TOKEN");
            }
            sandbox.write_program(".git/hooks/pre-commit", hook);
            sandbox.run("echo x > x; claim", &["--sandbox", kind]).exits(0);
            assert_eq!(seen(&sandbox), passed, "{kind}");
        }
    }
}

#[test]
fn a_red_check_names_what_it_was_not_given() {
    let mut sandbox = Sandbox::with_tasks(&["one"]);
    sandbox.env("DEPLOY_TOKEN", TOKEN);
    sandbox.env("AAA_SECRET", "s3cr3t-value");
    let check = "test -n \"$DEPLOY_TOKEN\" || { echo DEPLOY_TOKEN is missing; false; }";
    let args = ["--verify", check, "--baseline", "go-on", "--max-retries", "1"];
    let words = "withheld from it: DEPLOY_TOKEN, AAA_SECRET (`pass_env` under [checks] passes them on)";
    let run = sandbox.run("keep_prompt; echo $WIGGUM_ATTEMPT > x; claim", &args);
    let shown = sandbox.wiggum(&["show", "one"]).stdout;
    for (place, text) in
        [("the run", &run.stdout), ("show", &shown), ("the next prompt", &sandbox.prompt("one", 2))]
    {
        assert!(text.contains(words), "{place}: {text}");
        assert!(!text.contains(TOKEN), "{place}: {text}");
    }
    // A green check says nothing of it.
    let mut sandbox = Sandbox::walled(&["one"]);
    sandbox.env("DEPLOY_TOKEN", TOKEN);
    let run = sandbox.run("echo x > x; claim", &["--verify", "true"]).exits(0);
    run.never_says("withheld");
    sandbox.env("WIGGUM_CHECKS_PASS_ENV", "DEPLOY_TOKEN");
    sandbox.write("PRD.json", &super::support::prd(&["one", "two"]));
    sandbox.commit_all("more");
    sandbox.run("echo y > y; claim", &["--verify", check]).exits(0);
}

/// What an agent may have is no secret to the tests that it writes.
#[test]
fn a_check_gets_what_the_agent_gets() {
    let mut sandbox = Sandbox::walled(&["one"]);
    sandbox.env("DEPLOY_TOKEN", TOKEN);
    sandbox.env("WIGGUM_AGENT_PASS_ENV", "DEPLOY_TOKEN");
    sandbox.run("echo x > x; claim", &["--verify", "test -n \"$DEPLOY_TOKEN\""]).exits(0);
}

/// Settings of git that came by the environment are complete, or there are none.
#[test]
fn git_works_where_its_settings_are_in_the_environment() {
    let mut sandbox = Sandbox::walled(&["one"]);
    for (name, value) in [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "x.y"),
        ("GIT_CONFIG_VALUE_0", "https://ann:pw@example.com"),
    ] {
        sandbox.env(name, value);
    }
    sandbox.run("git log -1 > x && claim", &["--verify", "git log -1"]).exits(0);
}

fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&paths).any(|dir| dir.join(program).exists());
    if !found {
        eprintln!("SKIPPED: {program} is not installed: its checks in the sandbox are NOT TESTED");
    }
    found
}

/// The honest twin: tools fill their caches, build beside the work tree's files, and talk to themselves by a socket.
#[test]
fn checks_that_build_and_test_pass() {
    let user = std::env::home_dir().unwrap();
    let moved = |variable: &str, usual: &str| {
        std::env::var(variable).unwrap_or_else(|_| user.join(usual).display().to_string())
    };
    let mut recipes = vec!["all: python\n".to_owned()];
    let mut add = |name: &str, recipe: &str| recipes.push(format!("all: {name}\n{name}:\n\t{recipe}\n"));
    add("python", "python3 -m unittest -q test_it && mkdir -p ~/.cache/pip && echo x > ~/.cache/pip/x");
    if has("cargo") {
        add("cargo", "cargo test --offline -q && echo x > ~/.cargo/registry/x");
    }
    if has("npm") {
        add("npm", "npm test --offline");
    }
    for kind in sandboxes() {
        let mut sandbox = Sandbox::walled(&["one"]);
        sandbox.env("RUSTUP_HOME", &moved("RUSTUP_HOME", ".rustup"));
        sandbox.write("Makefile", &format!(".PHONY: all python cargo npm\n{}", recipes.join("\n")));
        sandbox.write(".gitignore", "target\nCargo.lock\n__pycache__\n");
        sandbox.write("Cargo.toml", "[package]\nname = \"p\"\nedition = \"2021\"\n[workspace]\n");
        sandbox.write("src/lib.rs", "#[test]\nfn works() { assert!(std::env::temp_dir().exists()); }\n");
        sandbox.write("package.json", r#"{"name": "p", "scripts": {"test": "node -e 'require(\"net\").createServer().listen(0, function () { this.close() })'"}}"#);
        let test = "import socket, tempfile, unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        \
                    tempfile.TemporaryFile(); s = socket.socket(); s.bind(('127.0.0.1', 0)); s.close()\n";
        sandbox.write("test_it.py", test);
        sandbox.commit_all("a project");
        let args = ["--sandbox", kind, "--verify", "make", "--max-retries", "0"];
        sandbox.run("echo x > x; claim", &args).exits(0).never_says("unverified");
        let cache = if kind == "bwrap" { ".local/state/wiggum/packages/cache" } else { ".cache" };
        assert!(sandbox.base().join("home").join(cache).join("pip/x").exists(), "{kind}");
    }
}

/// What a check starts ends with it, behind walls as well.
#[test]
fn services_of_a_check_end_with_it() {
    for kind in sandboxes() {
        let sandbox = Sandbox::walled(&["one"]);
        let check = "(setsid sleep 1000 &) ; (env -i setsid sleep 1000 &); true";
        sandbox.run("echo x > x; claim", &["--sandbox", kind, "--verify", check]).exits(0);
    }
}
