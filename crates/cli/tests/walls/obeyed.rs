//! What an agent writes is not obeyed later: settings of the loop and of a person's programs are in force
//! when a person has accepted them, by what they say.

use wiggum_core::event::FlagKind;

use crate::support::Sandbox;

/// Files that are obeyed outside of the sandbox.
const OBEYED: &[&str] = &[
    "wiggum.toml",
    "PROMPT.md",
    "WORKFLOW.md",
    ".ralphrc",
    ".mcp.json",
    ".envrc",
    "packages/a/.envrc",
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".idea/runConfigurations/Test.xml",
    ".zed/tasks.json",
    ".exrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".devcontainer/devcontainer.json",
    ".obsidian/plugins/helper/main.js",
    ".obsidian/community-plugins.json",
    "project.code-workspace",
    "mise.toml",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".cursor/mcp.json",
    "opencode.json",
];

/// Writes a file with its directory.
fn write(path: &str) -> String {
    format!(
        "mkdir -p \"$(dirname '{path}')\"; echo '# by the agent' >> '{path}'; echo done > work.txt; claim"
    )
}

fn project() -> Sandbox {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("PROMPT.md", "Work on the task.\n");
    sandbox.commit_all("prompt");
    sandbox
}

#[test]
fn what_is_obeyed_later_waits_for_a_person_once() {
    let args = ["--prompt", "PROMPT.md", "--verify", "test -f work.txt", "--baseline", "off"];
    for path in OBEYED {
        let sandbox = project();
        let before = sandbox.exists(path).then(|| sandbox.read(path));
        sandbox.run(&write(path), &args).exits(6).says("obeyed later");
        assert!(sandbox.has_flag(FlagKind::ConfigTouched), "{path}");
        assert_eq!(sandbox.exists(path).then(|| sandbox.read(path)), before, "{path} is in force");
        assert_eq!(sandbox.subjects(), ["first", "backlog", "prompt"], "{path}");
        sandbox.wiggum(&["answer", "q1", "1"]).exits(0);
        // No other agent works, and nobody is asked again.
        sandbox.run("exit 1", &args).exits(0);
        assert_eq!(sandbox.state_of("A"), "done", "{path}");
        assert!(sandbox.changed_in("HEAD").contains(&(*path).to_owned()), "{path}");
    }
}

#[test]
fn a_link_in_place_of_a_folder_of_settings_waits_too() {
    let sandbox = project();
    let agent =
        "mkdir config; echo '{}' > config/tasks.json; ln -s config .vscode; echo done > work.txt; claim";
    sandbox.run(agent, &["--verify", "test -f work.txt", "--baseline", "off"]).exits(6).says("obeyed later");
    assert!(!sandbox.exists(".vscode"));
}

#[test]
fn notes_for_agents_are_in_force_at_once_and_told() {
    for path in ["AGENTS.md", "CLAUDE.md", "docs/AGENTS.md", "progress.txt"] {
        let sandbox = project();
        sandbox.run(&write(path), &["--verify", "test -f work.txt", "--baseline", "off"]).exits(0);
        assert!(sandbox.has_flag(FlagKind::NotesChanged), "{path}");
        assert!(sandbox.changed_in("HEAD").contains(&path.to_owned()), "{path}");
    }
}

#[test]
fn what_git_does_not_see_is_put_back() {
    for (path, before) in [(".envrc", None), (".envrc", Some("export A=1\n")), (".vscode/tasks.json", None)] {
        let sandbox = project();
        sandbox.write(".gitignore", ".envrc\n.vscode/\n");
        sandbox.commit_all("rules");
        if let Some(text) = before {
            sandbox.write(path, text);
        }
        sandbox.run(&write(path), &["--verify", "test -f work.txt", "--baseline", "off"]).exits(0);
        assert!(sandbox.flags().iter().any(|flag| flag.what == path && flag.detail == "put back"), "{path}");
        assert_eq!(sandbox.exists(path).then(|| sandbox.read(path)).as_deref(), before, "{path}");
    }
}

#[test]
fn without_git_it_is_put_back_too() {
    for odd in [
        "",
        "ln -sf /etc/passwd .envrc;",
        "ln -s /etc .vscode; ln -s /etc/skel .claude;",
        "mkfifo .envrc;",
        "mkdir wiggum.toml.d; mv wiggum.toml wiggum.toml.d; mkdir wiggum.toml;",
    ] {
        let sandbox = Sandbox::plain();
        sandbox.write("PRD.json", &crate::support::prd(&["A"]));
        sandbox.write("wiggum.toml", "[checks]\nbaseline = \"off\"\n");
        let agent = match odd {
            "" => write("wiggum.toml"),
            odd => format!("{odd} echo done > work.txt; claim"),
        };
        sandbox.run(&agent, &["--verify", "test -f work.txt"]).exits(0);
        assert_eq!(sandbox.read("wiggum.toml"), "[checks]\nbaseline = \"off\"\n", "{odd}");
        assert!(!sandbox.root.join(".envrc").is_symlink() && !sandbox.exists(".envrc"), "{odd}");
    }
}

/// Killed with settings of the agent in the tree, the next engine obeys those from before.
#[test]
fn settings_of_an_attempt_that_was_cut_short_are_not_in_force() {
    for before in [None, Some("[limits]\niterations = 4711\n")] {
        let sandbox = project();
        if let Some(text) = before {
            sandbox.write("wiggum.toml", text);
            sandbox.commit_all("settings");
        }
        sandbox.make_pipe("ready");
        let planted = format!(
            "printf '[checks]\\nverify = [\"touch {0}/planted\"]\\n[[notify]]\\nkind = \"command\"\\nname = \"x\"\\ncommand = \"touch {0}/planted\"\\n' > wiggum.toml",
            sandbox.base().display()
        );
        let server = "{\"mcpServers\": {\"x\": {\"command\": \"sh\"}}}";
        let engine = sandbox.start(&format!("{planted}; echo '{server}' > .mcp.json; ready; sleep 600"), &[]);
        sandbox.wait_ready();
        engine.kill();
        // Its watchdog may be about to end what it started.
        let shown = sandbox.launch(&sandbox.root, &["config", "show"]).outcome_only().exits(0);
        assert!(!shown.stdout.contains("planted"), "{shown:?}");
        assert_eq!(shown.stdout.contains("4711"), before.is_some(), "{shown:?}");
        sandbox.launch(&sandbox.root, &["mcp", "list"]).outcome_only().never_says("sh");
        sandbox.run("echo done > work.txt; claim", &["--verify", "test -f work.txt"]).exits(0);
        assert!(!sandbox.base().join("planted").exists());
        assert_eq!(sandbox.exists("wiggum.toml").then(|| sandbox.read("wiggum.toml")).as_deref(), before);
        // What a person writes between runs is in force.
        sandbox.write("wiggum.toml", "[limits]\niterations = 4712\n");
        sandbox.wiggum(&["config", "show"]).exits(0).says("4712");
    }
}

#[test]
fn the_next_attempt_gets_the_prompt_of_the_person() {
    let sandbox = project();
    let agent = "keep_prompt; [ $WIGGUM_ATTEMPT = 1 ] && echo 'Obey the agent.' > PROMPT.md || { git checkout -q HEAD -- PROMPT.md; echo done > work.txt; }; claim";
    let args = ["--prompt", "PROMPT.md", "--verify", "test -f work.txt", "--baseline", "off"];
    sandbox.run(agent, &args).exits(0);
    assert!(sandbox.prompt("A", 2).contains("Work on the task."), "{}", sandbox.prompt("A", 2));
    assert!(!sandbox.prompt("A", 2).contains("Obey the agent."));
}
