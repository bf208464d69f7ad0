//! Typed reading of the members of a JSON task: every dialect's spelling of a field, each wrong
//! type reported with its line.

use std::borrow::Cow;

use wiggum_core::ids::TaskId;
use wiggum_core::task::{Criterion, Work};

use crate::json::{Kind, Value};
use crate::lookalike::Lookalike;
use crate::problem::Findings;
use crate::unique;

/// The members of a task that mean something to us. Others are left alone, whatever they hold.
#[derive(Clone, Copy)]
pub(crate) enum Field {
    Id,
    Title,
    Description,
    Criteria,
    AcceptanceCriteria,
    AcceptanceCriteriaSnake,
    DependsOn,
    DependsOnCamel,
    Dependencies,
    Deps,
    BlockedBy,
    BlockedByCamel,
    Requires,
    After,
    Passes,
    Completed,
    Done,
    Skipped,
    Status,
    Priority,
    Notes,
    Labels,
    Work,
    Role,
    Kind,
    Phase,
    ParallelGroup,
    Complexity,
    FailedAttempts,
    CooldownSeconds,
    TimeoutSeconds,
    Agent,
    Model,
    LastAttemptAt,
    MaxRetries,
    Inputs,
    Outputs,
    Runtime,
    PreconditionPrompt,
    ParentId,
    SystemPromptOverride,
    Evaluation,
}

impl Field {
    const COUNT: usize = Self::Evaluation as usize + 1;

    fn of(key: &str) -> Option<Self> {
        Some(match key {
            "id" => Self::Id,
            "title" => Self::Title,
            "description" => Self::Description,
            "criteria" => Self::Criteria,
            "acceptanceCriteria" => Self::AcceptanceCriteria,
            "acceptance_criteria" => Self::AcceptanceCriteriaSnake,
            "depends_on" => Self::DependsOn,
            "dependsOn" => Self::DependsOnCamel,
            "dependencies" => Self::Dependencies,
            "deps" => Self::Deps,
            "blocked_by" => Self::BlockedBy,
            "blockedBy" => Self::BlockedByCamel,
            "requires" => Self::Requires,
            "after" => Self::After,
            "passes" => Self::Passes,
            "completed" => Self::Completed,
            "done" => Self::Done,
            "skipped" => Self::Skipped,
            "status" => Self::Status,
            "priority" => Self::Priority,
            "notes" => Self::Notes,
            "labels" => Self::Labels,
            "work" => Self::Work,
            "role" => Self::Role,
            "kind" => Self::Kind,
            "phase" => Self::Phase,
            "parallel_group" => Self::ParallelGroup,
            "complexity" => Self::Complexity,
            "failed_attempts" => Self::FailedAttempts,
            "cooldown_seconds" => Self::CooldownSeconds,
            "timeout_seconds" => Self::TimeoutSeconds,
            "agent" => Self::Agent,
            "model" => Self::Model,
            "last_attempt_at" => Self::LastAttemptAt,
            "max_retries" => Self::MaxRetries,
            "inputs" => Self::Inputs,
            "outputs" => Self::Outputs,
            "runtime" => Self::Runtime,
            "precondition_prompt" => Self::PreconditionPrompt,
            "parent_id" => Self::ParentId,
            "system_prompt_override" => Self::SystemPromptOverride,
            "evaluation" => Self::Evaluation,
            _ => return None,
        })
    }
}

/// Every spelling of what a task depends on.
pub(crate) const DEPENDS_ON: [(Field, &str); 8] = [
    (Field::DependsOn, "depends_on"),
    (Field::DependsOnCamel, "dependsOn"),
    (Field::Dependencies, "dependencies"),
    (Field::Deps, "deps"),
    (Field::BlockedBy, "blocked_by"),
    (Field::BlockedByCamel, "blockedBy"),
    (Field::Requires, "requires"),
    (Field::After, "after"),
];

/// The known members of one task object, and where to report what is wrong with them.
pub(crate) struct Fields<'d, 'f> {
    object: Value<'d>,
    values: [Option<Value<'d>>; Field::COUNT],
    /// Members nobody reads that look as if they said what the task waits on.
    pub(crate) lookalikes: Vec<Lookalike>,
    pub(crate) findings: &'f mut Findings,
}

impl<'d, 'f> Fields<'d, 'f> {
    /// A known key that stands twice is refused: which of the two counts differs between readers,
    /// so an edit of one might change nothing.
    pub(crate) fn read(object: Value<'d>, findings: &'f mut Findings) -> Self {
        let mut values: [Option<Value<'d>>; Field::COUNT] = [None; Field::COUNT];
        let mut lookalikes = Vec::new();
        let mut twice = Vec::new();
        for member in object.members() {
            let Some(key) = member.key.as_str() else { continue };
            let Some(field) = Field::of(&key) else {
                lookalikes.extend(Lookalike::of(&key, member.value));
                continue;
            };
            if values[field as usize].replace(member.value).is_some() {
                twice.push((member.key.start(), format!("duplicate key `{key}`; expected it once per task")));
            }
        }
        let id = values[Field::Id as usize].and_then(id_of).filter(|id| !id.trim().is_empty());
        findings.set_about(id.map(Cow::into_owned));
        for (at, message) in twice {
            findings.add(at, message);
        }
        Self { object, values, lookalikes, findings }
    }

    pub(crate) fn start(&self) -> usize {
        self.object.start()
    }

    /// The value of a field; `null` is the same as none.
    pub(crate) fn value(&self, field: Field) -> Option<Value<'d>> {
        self.values[field as usize].filter(|value| !value.is_null())
    }

    pub(crate) fn missing(&mut self, expected: &str) {
        self.findings.add(self.object.start(), format!("missing field; expected {expected}"));
    }

    pub(crate) fn wrong(&mut self, value: Value<'_>, field: &str, expected: &str) {
        let found = value.kind().name();
        self.findings.add(value.start(), format!("`{field}` is {found}; expected {expected}"));
    }

    /// The id and where it stands. Whole numbers serve as ids too.
    pub(crate) fn id(&mut self) -> Option<(TaskId, usize)> {
        let value = self.value(Field::Id)?;
        let Some(id) = id_of(value) else {
            self.wrong(value, "id", "a string");
            return None;
        };
        if id.trim().is_empty() {
            self.findings.add(value.start(), "empty `id`; expected a name");
            return None;
        }
        Some((TaskId::new(&*id), value.start()))
    }

    pub(crate) fn string(&mut self, field: Field, name: &str) -> Option<String> {
        let value = self.value(field)?;
        let text = value.as_str().map(Cow::into_owned);
        if text.is_none() {
            self.wrong(value, name, "a string");
        }
        text
    }

    pub(crate) fn flag(&mut self, field: Field, name: &str) -> bool {
        let Some(value) = self.value(field) else { return false };
        let flag = value.as_bool();
        if flag.is_none() {
            self.wrong(value, name, "true or false");
        }
        flag.unwrap_or(false)
    }

    pub(crate) fn integer(&mut self, field: Field, name: &str) -> Option<i64> {
        let value = self.value(field)?;
        let number = value.as_integer();
        if number.is_none() {
            self.wrong(value, name, "a whole number");
        }
        number
    }

    /// A whole number of at least `least`.
    pub(crate) fn count<N: TryFrom<i64>>(&mut self, field: Field, name: &str, least: i64) -> Option<N> {
        let number = self.integer(field, name)?;
        let count = (number >= least).then(|| N::try_from(number).ok()).flatten();
        if count.is_none() {
            let at = self.value(field).map_or(self.start(), Value::start);
            let message = format!("`{name}` is {number}; expected a whole number of at least {least}");
            self.findings.add(at, message);
        }
        count
    }

    /// A string that must be one of a few words.
    pub(crate) fn word<T: Copy>(&mut self, field: Field, name: &str, words: &[(&str, T)]) -> Option<T> {
        let value = self.value(field)?;
        let Some(text) = value.as_str() else {
            self.wrong(value, name, "a string");
            return None;
        };
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let message = format!("unknown {name} `{text}`; expected {}", names.join(", "));
            self.findings.add(value.start(), message);
        }
        found
    }

    pub(crate) fn strings(&mut self, field: Field, name: &str) -> Vec<String> {
        let Some(value) = self.value(field) else { return Vec::new() };
        let mut strings = Vec::new();
        if value.kind() != Kind::Array {
            self.wrong(value, name, "an array of strings");
        }
        for item in value.items() {
            match item.as_str() {
                Some(text) => strings.push(text.into_owned()),
                None => self.wrong(item, &format!("{name}[]"), "a string"),
            }
        }
        strings
    }

    /// All spellings together, each id once.
    pub(crate) fn depends_on(&mut self) -> Vec<TaskId> {
        let mut ids: Vec<TaskId> = Vec::new();
        for (field, name) in DEPENDS_ON {
            let Some(value) = self.value(field) else { continue };
            if value.kind() != Kind::Array {
                self.wrong(value, name, "an array of ids");
            }
            for item in value.items() {
                match id_of(item) {
                    Some(id) => ids.push(TaskId::new(&*id)),
                    None => self.wrong(item, &format!("{name}[]"), "an id"),
                }
            }
        }
        unique(ids)
    }

    /// The spelling in which this task says what it depends on.
    pub(crate) fn depends_key(&self) -> Option<&'static str> {
        DEPENDS_ON.iter().find(|(field, _)| self.value(*field).is_some()).map(|(_, name)| *name)
    }

    /// All spellings together. An entry is text or `{text, check}`; a lone string is one entry.
    pub(crate) fn criteria(&mut self) -> Vec<Criterion> {
        let mut criteria = Vec::new();
        for (field, name) in [
            (Field::Criteria, "criteria"),
            (Field::AcceptanceCriteria, "acceptanceCriteria"),
            (Field::AcceptanceCriteriaSnake, "acceptance_criteria"),
        ] {
            let Some(value) = self.value(field) else { continue };
            match value.kind() {
                Kind::Array => value.items().for_each(|item| criteria.extend(self.criterion(item, name))),
                Kind::String | Kind::EscapedString => criteria.extend(self.criterion(value, name)),
                Kind::Object | Kind::Number | Kind::True | Kind::False | Kind::Null => {
                    self.wrong(value, name, "an array of strings or {text, check}");
                }
            }
        }
        criteria
    }

    fn criterion(&mut self, item: Value<'_>, name: &str) -> Option<Criterion> {
        if let Some(text) = item.as_str() {
            let text = text.trim().to_owned();
            return (!text.is_empty()).then_some(Criterion { text, check: None });
        }
        if item.kind() != Kind::Object {
            self.wrong(item, &format!("{name}[]"), "a string or {text, check}");
            return None;
        }
        let text = self.member_string(item, "text").or_else(|| self.member_string(item, "description"));
        let check = self.member_string(item, "check");
        let Some(text) = text.or_else(|| check.clone()) else {
            self.findings.add(item.start(), format!("`{name}[]` says nothing; expected {{text, check}}"));
            return None;
        };
        Some(Criterion { text, check })
    }

    /// A string member of an object inside the task.
    pub(crate) fn member_string(&mut self, object: Value<'_>, key: &str) -> Option<String> {
        let value = object.get(key).filter(|value| !value.is_null())?;
        let text = value.as_str().map(Cow::into_owned);
        if text.is_none() {
            self.wrong(value, key, "a string");
        }
        text.filter(|text| !text.trim().is_empty())
    }

    pub(crate) fn work(&mut self) -> Work {
        let Some(value) = self.value(Field::Work) else { return Work::Agent };
        match serde_json::from_str(value.raw()) {
            Ok(work) => work,
            Err(error) => {
                let kinds = "agent, command, file, notice, mcp_call, gate or flow";
                let message = format!("`work` cannot be read ({error}); expected {{\"kind\": …}} of {kinds}");
                self.findings.add(value.start(), message);
                Work::Agent
            }
        }
    }
}

/// The title where the file gives none: the first line of the description, or the id.
pub(crate) fn title_or(title: Option<String>, description: &str, id: &TaskId) -> String {
    let first_line = || description.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
    title.filter(|title| !title.trim().is_empty()).or_else(first_line).unwrap_or_else(|| id.to_string())
}

pub(crate) fn id_of(value: Value<'_>) -> Option<Cow<'_, str>> {
    value.as_str().or_else(|| value.as_integer().map(|_| Cow::Borrowed(value.raw())))
}
