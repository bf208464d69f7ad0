//! Files that are obeyed later, by the loop itself or by programs of the person outside of any sandbox: a
//! shell, an editor, an agent that is started by hand. What an attempt writes there takes effect only when
//! a person has accepted it.
//!
//! Notes for agents are obeyed at once: that is how a loop learns.

/// Names that count in every directory, since each may be opened as a project.
const ANYWHERE: &[&str] = &[
    // The loop, and what it reads of other tools.
    "wiggum.toml",
    "workflow.md",
    ".ralphrc",
    ".mcp.json",
    // Shells.
    ".envrc",
    "mise.toml",
    ".mise.toml",
    // Editors.
    ".vscode/tasks.json",
    ".vscode/launch.json",
    ".vscode/settings.json",
    ".vscode/mcp.json",
    ".zed/tasks.json",
    ".zed/debug.json",
    ".zed/settings.json",
    ".idea/workspace.xml",
    ".exrc",
    ".vimrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".devcontainer.json",
    ".devcontainer/devcontainer.json",
    ".obsidian/community-plugins.json",
    // Coding agents.
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".gemini/.env",
    ".qwen/settings.json",
    ".cursor/mcp.json",
    ".cursor/hooks.json",
    ".cursor/cli.json",
    ".amp/settings.json",
    ".aider.conf.yml",
    "opencode.json",
    "opencode.jsonc",
    "crush.json",
    ".crush.json",
];

/// Directories of which every file counts.
const BELOW: &[&str] = &[
    ".idea/runconfigurations",
    ".obsidian/plugins",
    ".opencode/plugin",
    ".opencode/plugins",
    ".claude/hooks",
    ".github/hooks",
];

const NOTES: &[&str] = &["agents.md", "claude.md", "gemini.md", "progress.txt", "copilot-instructions.md"];

/// Is this path, relative to the workspace, obeyed by more than the attempt's own agent?
pub fn is_obeyed(path: &str) -> bool {
    // Some file systems do not tell apart what differs in case.
    let path = path.to_lowercase();
    let ends = |name: &&str| path.strip_suffix(*name).is_some_and(ends_a_directory);
    let below = |folder: &&str| {
        path.match_indices(*folder)
            .any(|(at, _)| ends_a_directory(&path[..at]) && path[at + folder.len()..].starts_with('/'))
    };
    ANYWHERE.iter().any(ends) || BELOW.iter().any(below) || path.ends_with(".code-workspace")
}

/// Does this folder hold such files? A link in its place decides what they say.
pub fn holds_obeyed(folder: &str) -> bool {
    let folder = folder.to_lowercase();
    let name = folder.rsplit('/').next().unwrap_or(&folder);
    let holds = |path: &&str| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    ANYWHERE.iter().chain(BELOW).any(holds)
}

/// Is this a file in which agents leave notes for the agents after them?
pub fn is_note(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    NOTES.contains(&name.as_str())
}

/// Those that lie in the workspace itself, where they count also if git does not see them.
pub fn in_workspace() -> impl Iterator<Item = &'static str> {
    ANYWHERE.iter().copied().map(|name| if name == "workflow.md" { "WORKFLOW.md" } else { name })
}

fn ends_a_directory(before: &str) -> bool {
    before.is_empty() || before.ends_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_programs_outside_count_wherever_they_lie() {
        for path in [
            "wiggum.toml",
            "WORKFLOW.md",
            "packages/a/.envrc",
            ".vscode/tasks.json",
            ".VSCode/Tasks.json",
            "site/.obsidian/plugins/x/main.js",
            ".idea/runConfigurations/Test.xml",
            "all.code-workspace",
            ".claude/hooks/stop.sh",
        ] {
            assert!(is_obeyed(path), "{path}");
        }
        for path in
            ["src/wiggum.toml.rs", "docs/my.envrc", "AGENTS.md", ".vscode/snippets.json", "plugins/x.js"]
        {
            assert!(!is_obeyed(path), "{path}");
        }
    }

    #[test]
    fn folders_of_settings_are_known() {
        assert!(holds_obeyed(".vscode") && holds_obeyed("site/.obsidian") && holds_obeyed(".GitHub"));
        assert!(!holds_obeyed("src") && !holds_obeyed(".vscode-test"));
    }

    #[test]
    fn notes_are_told_from_settings() {
        assert!(is_note("AGENTS.md") && is_note("crates/a/CLAUDE.md") && is_note("progress.txt"));
        assert!(!is_note("README.md") && !is_note(".mcp.json"));
    }
}
