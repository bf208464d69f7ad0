//! One step of a plan: what its bullets say, as the task it is.

use std::ops::Range;

use wiggum_core::ids::TaskId;
use wiggum_core::task::{Task, Work};

use super::{Draft, yaml};
use crate::formats::markdown::region::closes;
use crate::formats::markdown::text::ids;
use crate::formats::markdown::{columns, dedent, fence};
use crate::lookalike::is_label;
use crate::problem::Findings;
use crate::unique;

const KINDS: &str = "mcp_<name>, create_file, notify_human or agent";
/// A step may not write where the loop's state, the repository or the editor's own settings are.
const CLOSED: [&str; 3] = [".wiggum", ".git", ".obsidian"];

/// A bullet under a step that means something to us, with the lines that go on with it.
pub(super) struct Detail {
    pub(super) key: Key,
    pub(super) at: usize,
    /// Its value, to the last line that goes on with it.
    pub(super) span: Range<usize>,
    pub(super) indent: usize,
    pub(super) value: String,
    pub(super) lines: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Dependencies,
    Server,
    Tool,
    Params,
    File,
    Content,
    Message,
    Overwrite,
    Action,
    Agent,
    Model,
    Verify,
    Timeout,
}

impl Key {
    pub(super) fn of(label: &str) -> Option<Self> {
        Some(match label.replace('_', " ").as_str() {
            "dependencies" | "depends on" | "depends" | "deps" => Self::Dependencies,
            "mcp server" | "server" => Self::Server,
            "tool" | "mcp tool" => Self::Tool,
            "params" | "parameters" | "arguments" => Self::Params,
            "file" | "file path" | "path" => Self::File,
            "content" => Self::Content,
            "message" | "notification message" => Self::Message,
            "overwrite" => Self::Overwrite,
            "action type" => Self::Action,
            "agent" => Self::Agent,
            "model" => Self::Model,
            "verify" => Self::Verify,
            "timeout" => Self::Timeout,
            _ => return None,
        })
    }

    /// Words that elsewhere say what a task waits on do so here where they name steps and nothing else.
    pub(super) fn of_bullet(label: &str, said: &str) -> Option<Self> {
        // A bare number may count something else.
        let is_step = |name: &String| {
            let says_step = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("step"));
            let id = step_id(name);
            says_step && id.strip_prefix("step_").is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let names_steps = || {
            let names = ids(said);
            !names.is_empty() && names.iter().all(is_step)
        };
        Self::of(label).or_else(|| (is_label(label) && names_steps()).then_some(Self::Dependencies))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Dependencies => "Dependencies",
            Self::Server => "MCP Server",
            Self::Tool => "Tool",
            Self::Params => "Params",
            Self::File => "File",
            Self::Content => "Content",
            Self::Message => "Message",
            Self::Overwrite => "Overwrite",
            Self::Action => "Action Type",
            Self::Agent => "Agent",
            Self::Model => "Model",
            Self::Verify => "Verify",
            Self::Timeout => "Timeout",
        }
    }

    /// May its value go on over the lines below?
    pub(super) fn may_go_on(self, value: &str) -> bool {
        match self {
            Self::Params | Self::Content | Self::Message => true,
            Self::Dependencies => value.is_empty(),
            Self::Server
            | Self::Tool
            | Self::File
            | Self::Overwrite
            | Self::Action
            | Self::Agent
            | Self::Model
            | Self::Verify
            | Self::Timeout => false,
        }
    }

    /// Said of a step for an agent, such a bullet is part of what the agent is told.
    fn is_for_people(self) -> bool {
        match self {
            Self::Server
            | Self::Tool
            | Self::Params
            | Self::File
            | Self::Content
            | Self::Message
            | Self::Overwrite => true,
            Self::Dependencies | Self::Action | Self::Agent | Self::Model | Self::Verify | Self::Timeout => {
                false
            }
        }
    }
}

pub(super) fn task(draft: Draft, findings: &mut Findings) -> Task {
    let id = TaskId::new(format!("step_{}", draft.number));
    let title = if draft.title.is_empty() { format!("Step {}", draft.number) } else { draft.title.clone() };
    let mut task = Task::new(id, title);
    task.status = draft.status;
    let mut step = Step { draft: &draft, findings };
    step.check_once();
    task.work = step.work(&task.title);
    task.description = step.description(&task.work);
    task.depends_on = unique(step.dependencies());
    task.agent = step.word(Key::Agent);
    task.model = step.word(Key::Model);
    task.verify = step.word(Key::Verify);
    task.timeout_seconds = step.timeout();
    task
}

struct Step<'d, 'f> {
    draft: &'d Draft,
    findings: &'f mut Findings,
}

impl<'d> Step<'d, '_> {
    fn detail(&self, key: Key) -> Option<&'d Detail> {
        self.draft.details.iter().find(|detail| detail.key == key)
    }

    /// What a bullet of one line says, if it says anything.
    fn word(&self, key: Key) -> Option<String> {
        self.detail(key).map(|detail| yaml::string(&detail.value)).filter(|said| !said.is_empty())
    }

    fn say(&mut self, key: Key, message: String) {
        let at = self.detail(key).map_or(self.draft.start(), |detail| detail.at);
        self.findings.add(at, format!("`step_{}`: {message}", self.draft.number));
    }

    /// Which of two would count is anybody's guess.
    fn check_once(&mut self) {
        for (position, detail) in self.draft.details.iter().enumerate() {
            if self.draft.details[..position].iter().any(|before| before.key == detail.key) {
                let message =
                    format!("`step_{}`: second `{}`; expected it once", self.draft.number, detail.key.name());
                self.findings.add(detail.at, message);
            }
        }
    }

    fn work(&mut self, title: &str) -> Work {
        let said = self.draft.action.clone().or_else(|| self.word(Key::Action)).unwrap_or_default();
        let kind = said.trim().trim_matches(['`', '*', '_', '"', '\'']).to_ascii_lowercase();
        match kind.as_str() {
            "" | "agent" => Work::Agent,
            "create_file" => self.file(),
            "notify_human" => {
                let message = self.text(Key::Message).or_else(|| self.text(Key::Content));
                Work::Notice { message: message.unwrap_or_else(|| title.to_owned()) }
            }
            "mcp" => self.call(),
            kind if kind.starts_with("mcp_") => self.call(),
            _ => {
                self.say(Key::Action, format!("unknown action type `{said}`; expected {KINDS}"));
                Work::Agent
            }
        }
    }

    fn call(&mut self) -> Work {
        let server = self.needed(Key::Server);
        let tool = self.needed(Key::Tool);
        let params = self.detail(Key::Params).map_or_else(String::new, Detail::whole);
        let params = yaml::mapping(&params).unwrap_or_else(|why| {
            self.say(Key::Params, format!("`Params` cannot be read ({why}); expected {{name: value, …}}"));
            serde_json::Value::Null
        });
        Work::McpCall { server, tool, params }
    }

    fn file(&mut self) -> Work {
        let said = self.needed(Key::File);
        let path = inside(&said).unwrap_or_else(|why| {
            self.say(Key::File, format!("the file `{said}` {why}; expected a path inside the vault"));
            String::new()
        });
        let overwrite = match self.word(Key::Overwrite).unwrap_or_default().to_ascii_lowercase().as_str() {
            "yes" | "true" | "on" => true,
            "" | "no" | "false" | "off" => false,
            other => {
                self.say(Key::Overwrite, format!("`Overwrite` is `{other}`; expected yes or no"));
                false
            }
        };
        Work::File { path, content: self.text(Key::Content).unwrap_or_default(), overwrite }
    }

    fn needed(&mut self, key: Key) -> String {
        self.word(key).unwrap_or_else(|| {
            let name = key.name();
            self.say(key, format!("no `{name}`; expected a bullet `- {name}: …` under the step"));
            String::new()
        })
    }

    fn text(&self, key: Key) -> Option<String> {
        self.detail(key).map(Detail::text).filter(|text| !text.is_empty())
    }

    fn dependencies(&self) -> Vec<TaskId> {
        let all = self.draft.details.iter().filter(|detail| detail.key == Key::Dependencies);
        let said = all.map(Detail::whole).collect::<Vec<_>>().join("\n");
        let bullets = said.lines().map(|line| line.trim().trim_start_matches(['-', '*', '+']));
        ids(&bullets.collect::<Vec<_>>().join(",")).iter().map(|name| TaskId::new(step_id(name))).collect()
    }

    fn timeout(&mut self) -> Option<u64> {
        let said = self.word(Key::Timeout)?;
        let digits = said.bytes().take_while(u8::is_ascii_digit).count();
        let factor = match said[digits..].trim() {
            "" | "s" | "sec" | "seconds" => Some(1),
            "m" | "min" | "minutes" => Some(60),
            "h" | "hours" => Some(3600),
            _ => None,
        };
        let seconds = factor.zip(said[..digits].parse::<u64>().ok()).and_then(|(f, n)| n.checked_mul(f));
        if seconds.is_none_or(|seconds| seconds == 0) {
            self.say(Key::Timeout, format!("`Timeout` is `{said}`; expected a time such as 90s, 10m or 2h"));
        }
        seconds
    }

    /// The step's other lines; for an agent also what only another kind of step would use.
    fn description(&self, work: &Work) -> String {
        let mut lines = self.draft.description.clone();
        if *work == Work::Agent {
            for detail in self.draft.details.iter().filter(|detail| detail.key.is_for_people()) {
                lines.push(format!("{}: {}", detail.key.name(), detail.text()));
            }
        }
        lines.join("\n").trim().to_owned()
    }
}

impl Detail {
    /// May it go on with a line that is not indented, as a paragraph of Markdown does?
    pub(super) fn takes_lazy_lines(&self) -> bool {
        let lines = || std::iter::once(&self.value).chain(&self.lines);
        match self.key {
            Key::Content | Key::Message => lines().any(|line| !line.trim().is_empty()),
            Key::Params => {
                let count = |signs: [char; 2]| lines().map(|line| line.matches(signs).count()).sum::<usize>();
                count(['{', '[']) > count(['}', ']'])
            }
            Key::Dependencies
            | Key::Server
            | Key::Tool
            | Key::File
            | Key::Overwrite
            | Key::Action
            | Key::Agent
            | Key::Model
            | Key::Verify
            | Key::Timeout => false,
        }
    }

    /// The value with all lines that go on with it, as YAML would have them.
    fn whole(&self) -> String {
        let block = self.block();
        let block = fenced(&block).unwrap_or(block);
        let first = self.value.as_str();
        if block.is_empty() { first.to_owned() } else { format!("{first}\n{block}").trim_start().to_owned() }
    }

    /// The value as words: one line as it is, a block with its line ends.
    fn text(&self) -> String {
        let block = self.block();
        let first = yaml::string(&self.value);
        let is_sign = matches!(first.as_str(), "" | "|" | ">" | "|-" | ">-" | "|+" | ">+");
        // A fence may be opened by the bullet itself.
        let all = if fence(&first).is_some() { format!("{first}\n{block}") } else { block };
        let body = match fenced(&all) {
            Some(inside) if is_sign || fence(&first).is_some() => inside,
            Some(_) | None if is_sign => all,
            Some(_) | None if all.is_empty() => return first,
            Some(_) | None => format!("{first}\n{all}"),
        };
        if body.is_empty() { body } else { body + "\n" }
    }

    /// The lines that go on, without what they are indented by and without blank ones at the ends.
    fn block(&self) -> String {
        let indents = self.lines.iter().filter(|line| !line.trim().is_empty()).map(|line| columns(line));
        let indent = indents.min().unwrap_or(0);
        let lines: Vec<&str> = self.lines.iter().map(|line| dedent(line, indent)).collect();
        let start = lines.iter().position(|line| !line.trim().is_empty()).unwrap_or(lines.len());
        let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(start, |last| last + 1);
        lines[start..end].join("\n")
    }
}

/// What stands in the fence a text starts with.
fn fenced(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let (marker, length) = fence(lines.next()?.trim())?;
    let inside: Vec<&str> = lines.take_while(|line| !closes(line.trim(), marker, length)).collect();
    let indent = inside.iter().filter(|line| !line.trim().is_empty()).map(|line| columns(line)).min();
    // A fence in a bullet may be indented less than what it holds.
    let own = columns(text);
    let cut = indent.unwrap_or(0).min(own);
    Some(inside.iter().map(|line| dedent(line, cut)).collect::<Vec<_>>().join("\n"))
}

/// `1`, `Step 1` and `step-1` are `step_1`.
fn step_id(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let number = lower.strip_prefix("step").unwrap_or(&lower).trim_start_matches(['_', '-', ' ', '#']);
    match number.parse::<u32>() {
        Ok(number) => format!("step_{number}"),
        Err(_) => name.to_owned(),
    }
}

/// A path relative to the vault, without a leading `vault/`; or what is wrong with it.
fn inside(said: &str) -> Result<String, &'static str> {
    let path = said.replace('\\', "/");
    let has_drive = path.get(1..2) == Some(":");
    if path.starts_with('/') || path.starts_with('~') || has_drive {
        return Err("is not relative");
    }
    if path.contains('\0') {
        return Err("has a zero byte in its name");
    }
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err("leaves the vault");
    }
    if parts.len() > 1 && parts[0] == "vault" {
        parts.remove(0);
    }
    if parts.first().is_some_and(|first| CLOSED.iter().any(|closed| first.eq_ignore_ascii_case(closed))) {
        return Err("is none of a plan's business");
    }
    if path.ends_with('/') {
        return Err("names a folder");
    }
    Ok(parts.join("/"))
}
