//! Agents in their sandbox, with the real kernel and the real bwrap: what they cannot write to, what
//! they still can, and that nothing of them is left.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]
#![expect(clippy::print_stderr, reason = "what is not tested is said")]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Output;

use support::Sandbox;
use wiggum_core::event::{Event, FlagKind};
use wiggum_workspace::sandbox;

/// The ways to confine an agent that this system has. None is left out silently.
fn kinds() -> Vec<&'static str> {
    let found = [("bwrap", sandbox::bwrap()), ("landlock", sandbox::landlock())];
    let works = |(name, kind): (&'static str, Result<_, sandbox::SandboxError>)| match kind {
        Ok(_) => Some(name),
        Err(error) => {
            eprintln!("SKIPPED: the sandbox {name} is NOT TESTED here: {error}");
            None
        }
    };
    let kinds: Vec<&str> = found.into_iter().filter_map(works).collect();
    assert!(!kinds.is_empty(), "this system can confine nobody");
    kinds
}

/// Tries things and notes in the workspace what came of them.
const TRY: &str = r#"
try() {
    name=$1
    if sh -c "$2" > /dev/null 2>&1; then echo "$name: done"; else echo "$name: refused"; fi >> tried
}
"#;

/// Does its work and commits it by itself.
const COMMITS: &str = r#"
    echo done > work
    git add work && git -c user.name=A -c user.email=a@example.com commit -q -m "its own" && claim"#;

/// What was tried, in the file of the commit.
fn tried(sandbox: &Sandbox) -> Vec<String> {
    sandbox.read("tried").lines().map(str::to_owned).collect()
}

fn attempts(names: &[&str], outcome: &str) -> Vec<String> {
    names.iter().map(|name| format!("{name}: {outcome}")).collect()
}

/// A home directory with things that are nobody's business.
fn furnish(sandbox: &Sandbox) {
    let home = sandbox.base().join("home");
    for dir in [".ssh", ".config/git", ".config/fish", ".config/some-agent", ".cargo/bin", ".cargo/registry"]
    {
        fs::create_dir_all(home.join(dir)).unwrap();
    }
    for file in [".bashrc", ".gitconfig", ".ssh/authorized_keys", ".config/git/config", ".cargo/env"] {
        fs::write(home.join(file), "before\n").unwrap();
    }
    fs::create_dir(sandbox.base().join("other")).unwrap();
    sandbox.git_in(&sandbox.base().join("other"), &["init", "-q"]);
}

fn home_is_untouched(sandbox: &Sandbox) {
    let home = sandbox.base().join("home");
    for file in [".bashrc", ".gitconfig", ".ssh/authorized_keys", ".config/git/config", ".cargo/env"] {
        assert_eq!(fs::read_to_string(home.join(file)).unwrap(), "before\n", "{file}");
    }
}

#[test]
fn what_is_not_the_agents_cannot_be_written_to() {
    let outside = "/etc/wiggum-sandbox-test";
    let script = r#"
        try bashrc 'echo x >> ~/.bashrc'
        try truncate 'truncate -s 0 ~/.bashrc'
        try gitconfig 'echo x >> ~/.gitconfig'
        try ssh 'echo x >> ~/.ssh/authorized_keys'
        try fish 'echo x > ~/.config/fish/config.fish'
        try config 'echo x > ~/.config/git/config'
        try cargo 'echo x > ~/.cargo/bin/cargo; test -e ~/.cargo/bin/cargo'
        try cargo-env 'echo x >> ~/.cargo/env'
        try home 'mkdir ~/new'
        try outside 'echo x > ../outside'
        try other 'echo x > "$SANDBOX/other/file"'
        try hook 'echo x > "$SANDBOX/other/.git/hooks/pre-commit"'
        try etc 'echo x > /etc/wiggum-sandbox-test'
        try remove 'rm -f ~/.bashrc'
        try move 'mv ~/.bashrc here'
        try hard-link 'ln ~/.bashrc here'
        try link 'ln -s ~/.bashrc link; echo x >> link'
        try link-to-directory 'ln -s ~ directory; echo x >> directory/.bashrc'
        try proc 'echo x >> /proc/self/root"$HOME"/.bashrc'
        try child 'setsid sh -c "echo x >> ~/.bashrc"'
        (setsid sh -c 'echo x >> ~/.bashrc && echo "orphan: done" > orphan || echo "orphan: refused" > orphan' 2> /dev/null &)
        until [ -s orphan ]; do :; done
        cat orphan >> tried; rm -f orphan link directory here
        claim"#;
    let names = [
        "bashrc",
        "truncate",
        "gitconfig",
        "ssh",
        "fish",
        "config",
        "cargo",
        "cargo-env",
        "home",
        "outside",
        "other",
        "hook",
        "etc",
        "remove",
        "move",
        "hard-link",
        "link",
        "link-to-directory",
        "proc",
        "child",
        "orphan",
    ];
    for kind in kinds() {
        let sandbox = Sandbox::walled(&["one"]);
        furnish(&sandbox);
        let run = sandbox.run(&format!("{TRY}{script}"), &["--sandbox", kind, "--max-retries", "0"]);
        let reached = fs::exists(outside).unwrap();
        drop(fs::remove_file(outside));
        assert!(!reached, "{kind}");
        let run = run.exits(0);
        assert_eq!(tried(&sandbox), attempts(&names, "refused"), "{kind}");
        home_is_untouched(&sandbox);
        assert!(!sandbox.has_note("outside") && !sandbox.base().join("other/file").exists());
        let says = if kind == "bwrap" { "bwrap with landlock" } else { "landlock (partial)" };
        assert!(run.stdout.contains(&format!("  sandbox {says}: agents write in this workspace")), "{run:?}");
    }
}

#[test]
fn what_is_the_agents_can() {
    let script = r#"
        try workspace 'mkdir -p src/deep && echo x > src/deep/file && mv src/deep/file src/file && rm -r src'
        try temporary 'echo x > "$TMPDIR/file"'
        try system-temporary 'f=$(TMPDIR=/tmp mktemp) && rm "$f"'
        try devices 'echo x > /dev/null && echo x >> /dev/stderr'
        try cache 'mkdir -p ~/.cache/new && echo x > ~/.cache/new/file'
        try cargo 'echo x > ~/.cargo/registry/file'
        try own 'echo x > ~/.config/some-agent/settings'
        try added 'echo x > ~/.gnupg/file'
        try read 'cat ~/.bashrc "$WIGGUM_PROMPT_FILE"'
        try look '"$WIGGUM_BIN" status'
        try add '"$WIGGUM_BIN" task add --id two --description more'
        claim"#;
    let names = [
        "workspace",
        "temporary",
        "system-temporary",
        "devices",
        "cache",
        "cargo",
        "own",
        "added",
        "read",
        "look",
        "add",
    ];
    for kind in kinds() {
        let mut sandbox = Sandbox::walled(&["one"]);
        furnish(&sandbox);
        for dir in [".cache", ".gnupg"] {
            fs::create_dir(sandbox.base().join("home").join(dir)).unwrap();
        }
        sandbox.env("WIGGUM_AGENT_WRITABLE", "[\"~/.gnupg\", \"~/.config/some-agent\"]");
        sandbox.env("WIGGUM_SANDBOX", kind);
        let only_first = format!("{TRY}\n[ $WIGGUM_TASK_ID = one ] || {{ claim; exit; }}\n{script}");
        let run = sandbox.run(&only_first, &["--max-retries", "0"]);
        run.exits(0);
        assert_eq!(tried(&sandbox), attempts(&names, "done"), "{kind}");
        assert_eq!(sandbox.worked_on(), ["one", "two"], "{kind}");
    }
}

/// In a home directory in which nothing was ever built, programs find the caches that they would make themselves.
#[test]
fn what_tools_need_is_made_before_the_agent_is_confined() {
    for kind in kinds() {
        let mut sandbox = Sandbox::walled(&["one"]);
        let bin = sandbox.base().join("bin");
        fs::create_dir(&bin).unwrap();
        for program in ["npm", "cargo"] {
            fs::write(bin.join(program), "").unwrap();
        }
        // Whatever else is on this machine is not on the path.
        for program in ["sh", "git", "mkdir", "cat", "mktemp", "rm", "touch", "bwrap"] {
            let paths = std::env::var_os("PATH").unwrap();
            let found = std::env::split_paths(&paths).map(|dir| dir.join(program)).find(|path| path.exists());
            if let Some(found) = found {
                symlink(found, bin.join(program)).unwrap();
            }
        }
        sandbox.env("PATH", bin.to_str().unwrap());
        sandbox.env("WIGGUM_SANDBOX", kind);
        let script = r#"
            try cache 'echo x > ~/.cache/file'
            try npm 'mkdir -p ~/.npm/_cacache && echo x > ~/.npm/_cacache/file'
            try registry 'echo x > ~/.cargo/registry/file'
            try lock 'echo x > ~/.cargo/.package-cache'
            claim"#;
        sandbox.run(&format!("{TRY}\n{script}"), &["--max-retries", "0"]).exits(0);
        assert_eq!(tried(&sandbox), attempts(&["cache", "npm", "registry", "lock"], "done"), "{kind}");
        let home = sandbox.base().join("home");
        assert!(
            !home.join("go").exists() && !home.join(".m2").exists(),
            "nothing for programs that are not there"
        );
    }
}

/// The real one, which keeps a log and a cache of whatever it does.
#[test]
fn npm_installs_in_a_fresh_home() {
    let paths = std::env::var_os("PATH").unwrap();
    if !std::env::split_paths(&paths).any(|dir| dir.join("npm").exists()) {
        eprintln!("SKIPPED: npm is not installed: what it does in a fresh home");
        return;
    }
    for kind in kinds() {
        let mut sandbox = Sandbox::walled(&["one"]);
        sandbox.env("WIGGUM_SANDBOX", kind);
        let script = r#"
            mkdir dep && echo '{"name":"dep","version":"1.0.0"}' > dep/package.json
            npm pack --silent ./dep > /dev/null && npm install --silent --offline ./dep-1.0.0.tgz && claim"#;
        sandbox.write(".gitignore", "node_modules\n");
        sandbox.commit_all("ignore");
        sandbox.run(script, &["--max-retries", "0"]).exits(0);
        let cache = if kind == "bwrap" { ".local/state/wiggum/packages/npm" } else { ".npm" };
        assert!(sandbox.base().join("home").join(cache).join("_cacache").is_dir(), "{kind}");
    }
}

#[test]
fn a_home_behind_a_link_is_a_home() {
    for kind in kinds() {
        let mut sandbox = Sandbox::walled(&["one"]);
        let (home, link) = (sandbox.base().join("home"), sandbox.base().join("link"));
        symlink(&home, &link).unwrap();
        sandbox.env("HOME", link.to_str().unwrap());
        sandbox.env("WIGGUM_SANDBOX", kind);
        let agent = "echo x > ~/.cache/x && echo y > x && claim";
        sandbox.run(agent, &["--verify", "test -f ~/.cache/x && test -f x", "--baseline", "off"]).exits(0);
        assert_eq!(home.join(".cache/x").exists(), kind != "bwrap", "{kind}");
    }
}

#[test]
fn a_known_agent_gets_its_own_directories_and_no_others() {
    for kind in kinds() {
        let sandbox = Sandbox::walled(&["one"]);
        furnish(&sandbox);
        let script = r#"
            try own 'echo x > ~/.claude/file && echo "{}" > ~/.claude.json'
            try others 'echo x > ~/.config/some-agent/settings'
            try codex 'mkdir ~/.codex'
            claim"#;
        sandbox.agent_named("claude", &format!("{TRY}{script}"));
        let agent = sandbox.base().join("agents/claude");
        let text = fs::read_to_string(&agent).unwrap();
        fs::write(&agent, format!("#!/bin/sh\n{text}")).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        let run = sandbox.wiggum(&[
            "run",
            "--headless",
            "--sandbox",
            kind,
            "--max-retries",
            "0",
            "--agent-command",
            agent.to_str().unwrap(),
        ]);
        run.exits(0);
        assert_eq!(tried(&sandbox), ["own: done", "others: refused", "codex: refused"], "{kind}");
    }
}

/// An agent that put a link in the place of one of its directories does not get what it leads to.
#[test]
fn a_link_does_not_widen_the_next_sandbox() {
    for kind in kinds() {
        let sandbox = Sandbox::walled(&["one"]);
        furnish(&sandbox);
        let home = sandbox.base().join("home");
        fs::create_dir_all(home.join(".cache")).unwrap();
        symlink(home.join(".ssh"), home.join(".cache/claude")).unwrap();
        symlink(home.join(".ssh"), home.join(".config/sly")).unwrap();
        let script = r#"
            try through-cache 'echo x >> ~/.cache/claude/authorized_keys'
            try through-config 'echo x >> ~/.config/sly/authorized_keys'
            claim"#;
        let run = sandbox.run(&format!("{TRY}{script}"), &["--sandbox", kind, "--max-retries", "0"]);
        run.exits(0);
        assert_eq!(tried(&sandbox), ["through-cache: refused", "through-config: refused"], "{kind}");
        home_is_untouched(&sandbox);
    }
}

#[test]
fn checks_are_confined_as_agents_are() {
    let check = "echo x > \"$SANDBOX/from-check\"; true";
    for kind in kinds() {
        let sandbox = Sandbox::walled(&["one"]);
        sandbox.run("claim", &["--sandbox", kind, "--verify", check]).exits(0);
        assert!(!sandbox.has_note("from-check"), "{kind}");
    }
}

#[test]
fn without_a_sandbox_nothing_is_confined_and_that_is_said() {
    let sandbox = Sandbox::walled(&["one"]);
    let run = sandbox.run("echo x > ../outside; claim", &["--sandbox", "none"]);
    let run = run.exits(0);
    assert_eq!(sandbox.note("outside"), "x\n");
    assert!(
        run.stdout.contains("  sandbox none, as configured: agents can write wherever you can\n"),
        "{run:?}"
    );
    let doctor = sandbox.wiggum(&["doctor"]);
    assert!(doctor.stdout.contains("sandbox"), "{doctor:?}");
    sandbox.run("claim", &["--sandbox", "cage"]).complains(2, &["--sandbox", "hint: "]);
}

#[test]
fn the_journal_says_what_was_in_force() {
    let sandbox = Sandbox::walled(&["one"]);
    sandbox.run("claim", &[]);
    let said = sandbox.events().into_iter().find_map(|event| match event {
        Event::RunStarted { sandbox, .. } => Some(sandbox),
        _ => None,
    });
    assert!(said.unwrap().starts_with(kinds()[0]));
}

/// What of the repository is not the agent's: out of reach where the sandbox knows exceptions, else
/// put back and flagged.
#[test]
fn the_state_and_the_hooks_are_not_the_agents() {
    let script = r#"
        for d in "$HOME"/.local/state/wiggum/*-*; do
            try state "echo x >> $d/wiggum.db"; try new "echo x > $d/new"; try loops "mkdir $d/loops/new"
        done
        try hook 'echo "exit 1" > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit'
        try config 'git config user.name Somebody'
        claim"#;
    for kind in kinds() {
        let sandbox = Sandbox::walled(&["one"]);
        fs::create_dir_all(sandbox.root.join(".git/hooks")).unwrap();
        let run = sandbox.run(&format!("{TRY}{script}"), &["--sandbox", kind, "--max-retries", "0"]);
        run.exits(0);
        assert!(!sandbox.exists(".git/hooks/pre-commit"));
        if kind == "bwrap" {
            // In a repository of its own an agent does what it likes.
            assert_eq!(tried(&sandbox)[..3], attempts(&["state", "new", "loops"], "refused"));
            assert_eq!(tried(&sandbox)[3..], attempts(&["hook", "config"], "done"));
            assert!(!sandbox.git(&["config", "--local", "--list"]).contains("Somebody"));
            assert!(!sandbox.has_flag(FlagKind::HooksTouched));
        } else {
            assert_eq!(tried(&sandbox)[..3], attempts(&["state", "new", "loops"], "refused"));
            assert!(sandbox.has_flag(FlagKind::HooksTouched));
        }
    }
}

#[test]
fn an_agent_commits_in_worktrees_and_submodules() {
    for kind in kinds() {
        let sandbox = Sandbox::walled(&["one"]);
        let tree = sandbox.base().join("tree");
        sandbox.git(&["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
        let upper = sandbox.base().join("upper");
        fs::create_dir(&upper).unwrap();
        sandbox.git_in(&upper, &["init", "-q"]);
        let source = sandbox.root.to_str().unwrap();
        sandbox
            .git_in(&upper, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", source, "inner"]);
        for place in [sandbox.root.clone(), tree, upper.join("inner")] {
            let command = sandbox.agent(COMMITS);
            let run = sandbox.wiggum_in(
                &place,
                &["run", "--headless", "--sandbox", kind, "--max-retries", "0", "--agent-command", &command],
            );
            run.exits(0);
            assert_eq!(fs::read_to_string(place.join("work")).unwrap(), "done\n");
            assert_eq!(sandbox.git_in(&place, &["status", "--porcelain"]), "");
        }
    }
}

/// Stopped in a sandbox, an agent has its time to end, and nothing of it is left.
#[test]
fn a_stopped_agent_ends_in_order_and_nothing_is_left() {
    for kind in kinds() {
        let mut sandbox = Sandbox::walled(&["one"]);
        for pipe in ["ready", "saved"] {
            sandbox.make_pipe(pipe);
        }
        let base = sandbox.base().display().to_string();
        sandbox.env("WIGGUM_AGENT_WRITABLE", &format!("[\"{base}/ready\", \"{base}/saved\"]"));
        let script = r#"
            trap 'sleep 0.7; echo saved > "$SANDBOX/saved"; exit 0' INT
            (setsid sleep 1000 &)
            ready
            while :; do sleep 1; done"#;
        let started = sandbox.start(script, &["--sandbox", kind]);
        sandbox.wait_ready();
        started.signal("INT");
        assert_eq!(sandbox.receive("saved"), "saved", "{kind}");
        started.finish().exits(130);
    }
}

/// After a kill of the engine and of its watchdog the next engine ends what the sandboxed agent left.
#[test]
fn a_killed_engine_leaves_nothing_for_long() {
    for kind in kinds() {
        let mut sandbox = Sandbox::walled(&["one"]);
        sandbox.make_pipe("ready");
        sandbox.env("WIGGUM_AGENT_WRITABLE", &format!("{}/ready", sandbox.base().display()));
        let started = sandbox.start("(env -i setsid sleep 1000 &)\nhang", &["--sandbox", kind]);
        sandbox.wait_ready();
        started.kill_with_watchdog();
        assert!(!sandbox.processes().is_empty(), "{kind}");
        let run = sandbox.run("claim", &["--sandbox", kind]);
        run.exits(0);
    }
}

#[test]
fn a_missing_agent_is_still_called_missing() {
    for kind in kinds() {
        let sandbox = Sandbox::walled(&["one"]);
        sandbox.write_program("agent", "#!/bin/sh\nrm agent\n");
        sandbox.commit_all("an agent that removes itself");
        let args = ["run", "--headless", "--sandbox", kind, "--max-wait", "0s", "--agent-command", "./agent"];
        sandbox.wiggum(&args).says("the agent's program is missing");
    }
}

/// A `wiggum` on a kernel that knows no Landlock.
fn without_landlock(sandbox: &Sandbox, args: &[&str]) -> Option<Output> {
    let mut strace = sandbox.command("strace");
    strace.args(["-f", "-o", "/dev/null", "-e", "inject=landlock_create_ruleset:error=ENOSYS"]);
    strace.arg(env!("CARGO_BIN_EXE_wiggum")).args(args).current_dir(&sandbox.root);
    let output = strace.output();
    if output.is_err() {
        eprintln!("SKIPPED: strace is missing, so a kernel without Landlock is NOT TESTED");
    }
    output.ok()
}

#[test]
fn nothing_runs_as_if_it_were_confined() {
    let sandbox = Sandbox::walled(&["one"]);
    let args = ["sandboxed-exec", "landlock", "/", "--", "/usr/bin/touch", "made"];
    let Some(output) = without_landlock(&sandbox, &args) else { return };
    assert_eq!(output.status.code(), Some(126), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("this kernel has no Landlock"), "{output:?}");
    assert!(!sandbox.exists("made"));
    sandbox.wiggum(&args).exits(0);
    assert!(sandbox.exists("made"));
    sandbox.wiggum(&["sandboxed-exec", "nothing", "--", "/usr/bin/touch", "more"]).complains(126, &[]);
    assert!(!sandbox.exists("more"));
}

#[test]
fn what_takes_the_place_of_landlock_is_said() {
    let mut sandbox = Sandbox::walled(&["one"]);
    let command = sandbox.agent("claim");
    let run = ["run", "--headless", "--agent-command", &command];
    let landlock = [&run[..], &["--sandbox", "landlock"]].concat();
    let Some(refused) = without_landlock(&sandbox, &landlock) else { return };
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("hint: --sandbox auto"), "{refused:?}");
    if kinds().contains(&"bwrap") {
        let auto = without_landlock(&sandbox, &run).unwrap();
        assert!(String::from_utf8_lossy(&auto.stdout).contains("  sandbox bwrap: agents write"), "{auto:?}");
    }
    // With the few programs that it takes, and no bwrap among them.
    let bin = sandbox.base().join("bin");
    fs::create_dir(&bin).unwrap();
    for program in ["git", "sh", "strace", "sleep"] {
        let path = std::env::split_paths(&std::env::var_os("PATH").unwrap()).find_map(|dir| {
            let path = dir.join(program);
            path.exists().then_some(path)
        });
        symlink(path.unwrap(), bin.join(program)).unwrap();
    }
    sandbox.env("PATH", bin.to_str().unwrap());
    let none = without_landlock(&sandbox, &["doctor"]).unwrap();
    let said = String::from_utf8_lossy(&none.stdout);
    let expected = "none, agents can write wherever you can: bwrap is not installed";
    assert!(said.contains(expected) && said.contains("this kernel has no Landlock"), "{said}");
}

/// A step of a plan that is an agent's.
const AGENT_STEP: &str = "---
plan_id: tidy
objective: \"Tidy up\"
total_steps: 1
completed_steps: 0
status: approved
approval_required: false
iterations_used: 0
max_iterations: 3
---
- [ ] **Step 1:** Tidy the notes (action_type: agent)
  - Prompt: tidy them
";

#[test]
fn an_agent_of_a_plan_neither_approves_nor_answers() {
    let script = r#"
        cd Notes
        try notes 'echo tidy > list.md'
        try approve 'echo x > ../Approved/Plans/more.md'
        try approve-by-moving 'mv ../Plans/wish.md ../Approved/Plans/wish.md'
        try swap 'mv ../Approved ../Elsewhere'
        try answer 'echo x > ../Needs_Action/plan_blocked_tidy.md'
        try log 'echo x >> ../Logs/Plan_Execution/tidy.md'
        try journal 'for d in "$HOME"/.local/state/wiggum/*-*; do echo x > "$d/journal.db"; done'
        claim"#;
    for kind in kinds() {
        let sandbox = Sandbox::walled(&["one"]);
        sandbox.wiggum(&["vault", "init", "v"]).exits(0);
        sandbox.write("v/Notes/list.md", "untidy\n");
        sandbox.write("v/Plans/wish.md", &AGENT_STEP.replace("tidy", "wish"));
        sandbox.write("v/Approved/Plans/tidy.md", AGENT_STEP);
        let command = sandbox.agent(&format!("{TRY}{script}"));
        sandbox.write("v/wiggum.toml", &format!("[agent]\ncommand = {command:?}\nsandbox = {kind:?}\n"));
        sandbox.wiggum(&["vault", "run", "v"]).exits(0);
        let tried = sandbox.read("v/Notes/tried");
        let refused =
            attempts(&["approve", "approve-by-moving", "swap", "answer", "log", "journal"], "refused");
        let expected = [vec!["notes: done".to_owned()], refused].concat();
        assert_eq!(tried.lines().collect::<Vec<_>>(), expected, "{kind}");
        assert!(sandbox.exists("v/Done/tidy.md") && sandbox.exists("v/Plans/wish.md"), "{kind}");
    }
}
