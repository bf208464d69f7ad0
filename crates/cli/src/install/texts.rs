//! What an agent is told about a slash command, in the files by which it knows that command.

use crate::session::slash::{Action, SlashCommand};

/// In every file of ours; a file without it is somebody else's and is left alone.
pub(crate) const MARK: &str = "# by `wiggum install`; `wiggum uninstall` removes it";

/// `.claude/commands/<name>.md`
pub(crate) fn claude_command(command: &SlashCommand) -> String {
    let hint = match command.arguments {
        "" => String::new(),
        arguments => format!("argument-hint: {}\n", quoted(arguments)),
    };
    format!(
        "---\n{MARK}\ndescription: {}\n{hint}---\n{}",
        quoted(command.description),
        body(command, "$ARGUMENTS")
    )
}

/// `skills/<name>/SKILL.md` of Codex, which has no commands of one's own.
pub(crate) fn codex_skill(command: &SlashCommand) -> String {
    let description = format!("{}. Only when the user calls ${}.", command.description, command.name);
    let arguments = "What the user wrote after the name of this skill.";
    format!(
        "---\n{MARK}\nname: {}\ndescription: {}\n---\n{}",
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
        Action::Show(shown) => {
            format!("Tell the user that {off}; `wiggum {}` in a terminal shows the same.\n", shown.join(" "))
        }
    }
}

/// A YAML string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
