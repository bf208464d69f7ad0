//! The files by which an agent knows us: what a plugin says of itself, and what a slash command is.

use serde_json::{Value, json};

use crate::session::slash::{Action, PLUGIN, SlashCommand};

/// In every file of ours; a file without it is somebody else's and is left alone.
pub(crate) const MARK: &str = "by `wiggum install`; `wiggum uninstall` removes it";

/// `.claude-plugin/plugin.json`
pub(crate) fn claude_manifest() -> String {
    pretty(&json!({
        "name": PLUGIN,
        "version": env!("CARGO_PKG_VERSION"),
        "description": format!("Loops inside a session: a task is handed back until it is done ({MARK})"),
        "author": { "name": PLUGIN },
    }))
}

/// `hooks/hooks.json` of a plugin.
pub(crate) fn claude_hooks(hooks: &Value) -> String {
    pretty(&json!({ "description": format!("What sessions tell wiggum ({MARK})"), "hooks": hooks }))
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// `commands/<name>.md`. Only people call it: what the agent itself calls, no hook sees.
pub(crate) fn claude_command(command: &SlashCommand) -> String {
    let hint = match command.arguments {
        "" => String::new(),
        arguments => format!("argument-hint: {}\n", quoted(arguments)),
    };
    format!(
        "---\n# {MARK}\ndescription: {}\n{hint}disable-model-invocation: true\n---\n{}",
        quoted(command.description),
        body(command, "$ARGUMENTS")
    )
}

/// `skills/<name>/SKILL.md` of Codex, which has no commands of one's own.
pub(crate) fn codex_skill(command: &SlashCommand) -> String {
    let description = format!("{}. Only when the user calls ${}.", command.description, command.name);
    let arguments = "What the user wrote after the name of this skill.";
    format!(
        "---\n# {MARK}\nname: {}\ndescription: {}\n---\n{}",
        command.name,
        quoted(&description),
        body(command, arguments)
    )
}

/// The hook has seen the command before the agent reads this.
fn body(command: &SlashCommand, arguments: &str) -> String {
    let off = "the hooks of wiggum are not in force in this session (`wiggum install` connects them, and some \
               agents want them trusted)";
    match command.action {
        Action::Start => format!(
            "Work on this task until all of it is really done. Options such as --max-iterations are for the \
             loop, not for you.\n\n{arguments}\n\nThe loop has told you beside this how to end. If it has not, \
             {off}: say so, and work on the task as usual.\n"
        ),
        Action::Cancel => format!("Tell the user that {off}, so no loop runs here.\n"),
        Action::Show(shown) | Action::Tell(_, shown) => {
            format!("Tell the user that {off}; `wiggum {}` in a terminal shows the same.\n", shown.join(" "))
        }
    }
}

/// A YAML string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
