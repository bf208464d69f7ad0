//! Fields that are known and not honoured yet, though they would change the order of work, its completion or
//! who does it. A task that has one is refused by name; it is never worked on as if the field were not there.

use wiggum_core::ids::TaskId;
use wiggum_core::task::{Task, Work};

use crate::fields::{Field, Fields};
use crate::formats::tasks;
use crate::json::{Kind, Value};

/// What one task asks for and nobody does.
#[derive(Clone, Debug)]
pub(crate) struct NotYet {
    pub(crate) task: TaskId,
    pub(crate) message: String,
    /// Does it matter also once the task is done?
    pub(crate) done_too: bool,
}

impl NotYet {
    pub(crate) fn new(task: &TaskId, message: impl Into<String>) -> Self {
        Self { task: task.clone(), message: message.into(), done_too: false }
    }

    /// A recurring task is not finished when it is done.
    pub(crate) fn recurring(task: &TaskId) -> Self {
        let message = "kind `recurring` is not available yet; expected `milestone`";
        Self { done_too: true, ..Self::new(task, message) }
    }

    pub(crate) fn field(task: &TaskId, what: &str) -> Self {
        Self::new(task, format!("{what} not available yet; expected none"))
    }

    pub(crate) fn unclear_check(task: &TaskId, line: &str) -> Self {
        let backticks = "put a command in backticks, or the words under another label";
        Self::new(task, format!("`{}` may be a command or words; {backticks}", line.trim()))
    }

    pub(crate) fn gastown(task: &TaskId) -> Self {
        Self::new(task, "runtime `gastown` is not available yet; expected `local`")
    }

    pub(crate) fn evaluation(task: &TaskId, mode: &str) -> Self {
        Self::new(task, format!("evaluation mode `{mode}` is not available yet; expected `command`"))
    }
}

pub(crate) const PRECONDITION: &str = "`precondition_prompt` is";
pub(crate) const INPUTS: &str = "`inputs` are";
pub(crate) const OUTPUTS: &str = "`outputs` are";

/// The role of a task that says none: an agent does what it says.
const USUAL_ROLE: &str = "implementer";

/// Roles of the format that ask for more than that.
const OTHER_ROLES: [&str; 3] = ["ideas", "evaluator", "changelog_generator"];

/// A role is honoured where somebody is named for it.
pub(crate) fn role(task: &Task, is_known: &dyn Fn(&str) -> bool) -> Option<String> {
    let role = task.role.as_str();
    if role == USUAL_ROLE || is_known(role) {
        return None;
    }
    let what = match OTHER_ROLES.contains(&role) {
        true => format!("role `{role}` is not available yet"),
        false => format!("unknown role `{role}`"),
    };
    Some(format!("{what}; expected `{USUAL_ROLE}`, or a role of `agent.roles`"))
}

pub(crate) fn work(task: &Task) -> Option<String> {
    match task.work {
        Work::Agent | Work::File { .. } | Work::Notice { .. } | Work::McpCall { .. } => None,
        Work::Command { .. } | Work::Gate { .. } | Work::Flow { .. } => {
            let (name, known) = (task.work.name(), "`agent`, `file`, `notice` or `mcp_call`");
            Some(format!("work of kind `{name}` is not available yet; expected {known}"))
        }
    }
}

/// What a dialect that does not have these fields may have taken over from tasks.json. Anything else under
/// the same names is its owner's.
pub(crate) fn borrowed(fields: &Fields<'_, '_>, task: &TaskId) -> Vec<NotYet> {
    let says = |field, word: &str| text(fields.value(field)).is_some_and(|text| text == word);
    let mode = fields.value(Field::Evaluation).and_then(|evaluation| text(evaluation.get("mode")));
    let mode = mode.filter(|mode| tasks::OTHER_EVALUATIONS.contains(&mode.as_str()));
    let precondition = text(fields.value(Field::PreconditionPrompt)).filter(|text| !text.trim().is_empty());
    let role = OTHER_ROLES.into_iter().find(|role| says(Field::Role, role));
    let found = [
        mode.map(|mode| NotYet::evaluation(task, &mode)),
        says(Field::Kind, "recurring").then(|| NotYet::recurring(task)),
        says(Field::Runtime, "gastown").then(|| NotYet::gastown(task)),
        role.map(|role| {
            let message = format!("role `{role}` is not available yet; expected `{USUAL_ROLE}`");
            NotYet::new(task, message)
        }),
        precondition.map(|_| NotYet::field(task, PRECONDITION)),
        has_outputs(fields).then(|| NotYet::field(task, OUTPUTS)),
    ];
    found.into_iter().flatten().collect()
}

fn has_outputs(fields: &Fields<'_, '_>) -> bool {
    let is_output = |value: Value<'_>| {
        text(value.get("kind")).is_some_and(|kind| tasks::OUTPUT_KINDS.contains(&kind.as_str()))
    };
    fields.value(Field::Outputs).is_some_and(|outputs| outputs.items().any(is_output))
}

/// Words of other formats that say of a task that it is done, where its own format does not. Worked on, it
/// would be done twice.
pub(crate) fn done_elsewhere(fields: &Fields<'_, '_>, task: &TaskId, own: Field) -> Option<NotYet> {
    let (_, own_name) = DONE.into_iter().find(|(field, _)| *field as usize == own as usize)?;
    let others = DONE.into_iter().filter(|(field, _)| *field as usize != own as usize);
    let (_, name) = others.into_iter().find(|(field, _)| is_done(fields.value(*field)))?;
    let message = format!("`{name}` says that it is done, but `{own_name}` does not");
    Some(NotYet::new(task, message))
}

const DONE: [(Field, &str); 4] = [
    (Field::Passes, "passes"),
    (Field::Completed, "completed"),
    (Field::Status, "status"),
    (Field::Done, "done"),
];

fn is_done(value: Option<Value<'_>>) -> bool {
    let word = text(value).unwrap_or_default().to_lowercase();
    let is_word = ["done", "completed", "complete", "finished", "closed", "passed"].contains(&word.as_str());
    is_word || value.and_then(Value::as_bool) == Some(true)
}

/// Numbers by which tasks are meant to be taken, in the order in which they are: the first that comes too late
/// is named.
#[derive(Default)]
pub(crate) struct Ascending {
    highest: Option<i64>,
}

impl Ascending {
    pub(crate) fn next(
        &mut self,
        task: &TaskId,
        key: &str,
        plural: &str,
        value: Option<Value<'_>>,
    ) -> Option<NotYet> {
        self.next_number(task, key, plural, value.and_then(Value::as_integer))
    }

    pub(crate) fn next_number(
        &mut self,
        task: &TaskId,
        key: &str,
        plural: &str,
        number: Option<i64>,
    ) -> Option<NotYet> {
        let number = number?;
        let before = self.highest.replace(self.highest.map_or(number, |highest| highest.max(number)));
        let higher = before.filter(|before| *before > number)?;
        let message = format!(
            "`{key}` {number} comes after {higher}; {plural} are taken in the order of the file: move it before them"
        );
        Some(NotYet::new(task, message))
    }
}

fn text(value: Option<Value<'_>>) -> Option<String> {
    let value = value.filter(|value| matches!(value.kind(), Kind::String | Kind::EscapedString))?;
    value.as_str().map(std::borrow::Cow::into_owned)
}
