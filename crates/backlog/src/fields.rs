//! Typed reading of the members of a JSON task: every dialect's spelling of a field, each wrong
//! type reported with its line.

use std::borrow::Cow;

use wiggum_core::ids::TaskId;
use wiggum_core::task::{Criterion, Work};

use crate::checks::{Beside, Checks, Sense};
use crate::json::{Kind, Value};
use crate::lookalike::Lookalike;
use crate::problem::Findings;
use crate::unique;

/// The members of a task that mean something to us. Others are left alone, whatever they hold.
#[derive(Clone, Copy)]
pub(crate) enum Field {
    Id,
    Title,
    Name,
    Description,
    Criteria,
    AcceptanceCriteria,
    AcceptanceCriteriaSnake,
    Acceptance,
    Steps,
    TestStrategy,
    Details,
    Design,
    Summary,
    Behaviour,
    Category,
    Subtasks,
    IssueType,
    CreatedAt,
    Passing,
    Implemented,
    State,
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
            "name" => Self::Name,
            "description" => Self::Description,
            "criteria" => Self::Criteria,
            "acceptanceCriteria" => Self::AcceptanceCriteria,
            "acceptance_criteria" => Self::AcceptanceCriteriaSnake,
            "acceptance" => Self::Acceptance,
            "steps" => Self::Steps,
            "testStrategy" => Self::TestStrategy,
            "details" => Self::Details,
            "design" => Self::Design,
            "summary" => Self::Summary,
            "user_visible_behavior" | "userVisibleBehavior" | "behavior" => Self::Behaviour,
            "category" => Self::Category,
            "subtasks" => Self::Subtasks,
            "issue_type" => Self::IssueType,
            "created_at" => Self::CreatedAt,
            "passing" => Self::Passing,
            "implemented" => Self::Implemented,
            "state" => Self::State,
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
    /// Members that say how the task is checked.
    check_members: Vec<(String, Sense, Value<'d>)>,
    /// What is to be said of those, once they are read.
    pub(crate) checks: Checks,
    pub(crate) findings: &'f mut Findings,
}

impl<'d, 'f> Fields<'d, 'f> {
    /// A known key that stands twice is refused: which of the two counts differs between readers,
    /// so an edit of one might change nothing.
    pub(crate) fn read(object: Value<'d>, findings: &'f mut Findings) -> Self {
        let mut values: [Option<Value<'d>>; Field::COUNT] = [None; Field::COUNT];
        let mut lookalikes = Vec::new();
        let mut check_members: Vec<(String, Sense, Value<'d>)> = Vec::new();
        let mut twice = Vec::new();
        for member in object.members() {
            let Some(key) = member.key.as_str() else { continue };
            let Some(field) = Field::of(&key) else {
                if let Some(sense) = Sense::of(&key) {
                    if check_members.iter().any(|(other, ..)| *other == key) {
                        twice.push((member.key.start(), duplicate(&key)));
                    }
                    check_members.push((key.into_owned(), sense, member.value));
                    continue;
                }
                lookalikes.extend(Lookalike::of(&key, member.value));
                continue;
            };
            if values[field as usize].replace(member.value).is_some() {
                twice.push((member.key.start(), duplicate(&key)));
            }
        }
        let id = values[Field::Id as usize].and_then(id_of).filter(|id| !id.trim().is_empty());
        findings.set_about(id.map(Cow::into_owned));
        for (at, message) in twice {
            findings.add(at, message);
        }
        Self { object, values, lookalikes, check_members, checks: Checks::default(), findings }
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
            if let Some(named) = named_alone(value) {
                ids.extend(named.into_iter().map(TaskId::new));
                continue;
            }
            if value.kind() != Kind::Array {
                self.wrong(value, name, "an array of ids");
            }
            for item in value.items() {
                match id_of(item).or_else(|| item.get("id").and_then(id_of)) {
                    Some(id) => ids.push(TaskId::new(&*id)),
                    None => self.wrong(item, &format!("{name}[]"), "an id"),
                }
            }
        }
        unique(ids)
    }

    /// A text, or several of them as lines; nothing where it is anything else.
    pub(crate) fn text(&self, field: Field) -> Option<String> {
        let value = self.value(field)?;
        let text = match value.kind() {
            Kind::Array => value.items().filter_map(said).collect::<Vec<_>>().join("\n"),
            Kind::String | Kind::EscapedString => value.as_str()?.into_owned(),
            Kind::Object | Kind::Number | Kind::True | Kind::False | Kind::Null => return None,
        };
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The texts of a list, or a text alone; objects of it by what they say.
    pub(crate) fn texts(&self, field: Field) -> Vec<String> {
        let Some(value) = self.value(field) else { return Vec::new() };
        match value.kind() {
            Kind::Array => value.items().filter_map(said).collect(),
            Kind::Object
            | Kind::Number
            | Kind::String
            | Kind::EscapedString
            | Kind::True
            | Kind::False
            | Kind::Null => said(value).into_iter().collect(),
        }
    }

    /// The place of a task in the order of priorities: a lower one comes first. Numbers may have fractions, and words
    /// are what they usually mean.
    pub(crate) fn rank(&self) -> Option<i64> {
        let value = self.value(Field::Priority)?;
        if let Some(word) = value.as_str() {
            return rank_of(&word);
        }
        #[expect(clippy::cast_possible_truncation, reason = "as far as it goes is as good as beyond it")]
        value.raw().parse::<f64>().ok().map(|number| (number * 1000.0) as i64)
    }

    /// A priority of which the higher one comes first, as a number or a word.
    pub(crate) fn importance(&mut self) -> Option<i64> {
        let word = self.value(Field::Priority).and_then(Value::as_str).and_then(|word| rank_of(&word));
        match word {
            Some(rank) => Some(4 - rank / RANKS),
            None => self.integer(Field::Priority, "priority"),
        }
    }

    /// The spelling in which this task says what it depends on.
    pub(crate) fn depends_key(&self) -> Option<&'static str> {
        DEPENDS_ON.iter().find(|(field, _)| self.value(*field).is_some()).map(|(_, name)| *name)
    }

    /// All spellings together, and behind them the checks that stand elsewhere in the task. An entry is text or
    /// `{text, check}`; a lone string is one entry.
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
        for (key, sense, value) in std::mem::take(&mut self.check_members) {
            self.checks.add(&key, sense, &plain(value));
        }
        let is_known = |other: &Criterion, known: &[Criterion]| {
            other.check.is_some() && known.iter().any(|criterion| criterion.check == other.check)
        };
        for criterion in std::mem::take(&mut self.checks.criteria) {
            if !is_known(&criterion, &criteria) {
                criteria.push(criterion);
            }
        }
        criteria
    }

    /// The criteria of a list in which objects of any kind are welcome, by what they say. The `command` of a step is
    /// a part of the work.
    pub(crate) fn loose_criteria(&mut self, field: Field) -> Vec<Criterion> {
        let Some(value) = self.value(field) else { return Vec::new() };
        let items: Vec<Value<'_>> =
            if value.kind() == Kind::Array { value.items().collect() } else { vec![value] };
        let loose = |item: Value<'_>| {
            let command =
                item.get("command").and_then(Value::as_str).filter(|_| !matches!(field, Field::Steps));
            let command = command.map(Cow::into_owned).filter(|command| !command.trim().is_empty());
            let text = said(item).or_else(|| command.clone());
            let (check, text) = self.check_beside(item, &[], text);
            Some(Criterion { text: text?, check: command.or(check) })
        };
        items.into_iter().filter_map(loose).collect()
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
        let own = self.member_string(item, "check").or_else(|| self.member_string(item, "command"));
        let text = text.or_else(|| said(item)).or_else(|| own.clone());
        let (check, text) = self.check_beside(item, &["check"], text);
        let Some(text) = text else {
            self.findings.add(item.start(), format!("`{name}[]` says nothing; expected {{text, check}}"));
            return None;
        };
        Some(Criterion { text, check: own.or(check) })
    }

    /// The command that an object says beside its text, and that text with what is said of the check in words. An
    /// object that is nothing but a check is called by it.
    fn check_beside(
        &mut self,
        object: Value<'_>,
        known: &[&str],
        text: Option<String>,
    ) -> (Option<String>, Option<String>) {
        let (mut command, mut text) = (None, text);
        for member in object.members() {
            let Some(key) = member.key.as_str().filter(|key| !known.contains(&key.as_ref())) else {
                continue;
            };
            let Some(sense) = Sense::of(&key) else { continue };
            let beside = Beside::of(&key, sense, &plain(member.value));
            self.checks.unclear.extend(beside.unclear);
            command = command.or(beside.command);
            for words in beside.words {
                text = Some(text.map_or_else(|| words.clone(), |text| format!("{text} ({key}: {words})")));
            }
        }
        let text = text.or_else(|| command.clone());
        (command, text)
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

fn duplicate(key: &str) -> String {
    format!("duplicate key `{key}`; expected it once per task")
}

/// A value for readers that do not care where it stands.
fn plain(value: Value<'_>) -> serde_json::Value {
    serde_json::from_str(value.raw()).unwrap_or_default()
}

/// Priorities are compared in thousandths, since people write 1.5 between 1 and 2.
pub(crate) const RANKS: i64 = 1000;

/// What a word says about the order, on the scale from 0 to 4 that most trackers have.
fn rank_of(word: &str) -> Option<i64> {
    let step = match word.trim().to_lowercase().as_str() {
        "critical" | "urgent" | "blocker" | "highest" | "p0" => 0,
        "high" | "important" | "must" | "p1" => 1,
        "medium" | "normal" | "moderate" | "should" | "p2" => 2,
        "low" | "minor" | "could" | "p3" => 3,
        "lowest" | "trivial" | "optional" | "p4" => 4,
        _ => return word.trim().parse::<i64>().ok()?.checked_mul(RANKS),
    };
    Some(step * RANKS)
}

/// What a string or number names that stands where a list is usual; "none" names nothing, also with a remark behind.
fn named_alone(value: Value<'_>) -> Option<Vec<String>> {
    if matches!(value.kind(), Kind::Array) {
        return None;
    }
    let text = id_of(value)?;
    let names = text.split(',').map(str::trim).filter(|name| !names_nothing(name));
    Some(names.map(str::to_owned).collect())
}

/// `none`, `-`, `n/a`, also with a remark in brackets.
pub(crate) fn names_nothing(name: &str) -> bool {
    let word = name.split('(').next().unwrap_or_default().trim().trim_end_matches('.').to_lowercase();
    ["", "none", "nothing", "no", "-", "–", "—", "n/a"].contains(&word.as_str())
}

/// What an item of a list says: itself, or the first of the usual members.
fn said(item: Value<'_>) -> Option<String> {
    let keys = ["text", "description", "title", "name", "step", "criterion"];
    let text = item.as_str().or_else(|| keys.iter().find_map(|key| item.get(key)?.as_str()))?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The title where the file gives none: the first line of the description, or the id.
pub(crate) fn title_or(title: Option<String>, description: &str, id: &TaskId) -> String {
    let first_line = || description.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
    title.filter(|title| !title.trim().is_empty()).or_else(first_line).unwrap_or_else(|| id.to_string())
}

pub(crate) fn id_of(value: Value<'_>) -> Option<Cow<'_, str>> {
    value.as_str().or_else(|| value.as_integer().map(|_| Cow::Borrowed(value.raw())))
}
