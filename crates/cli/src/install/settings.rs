//! Our hooks in an agent's JSON settings, put in and taken out without touching another byte.
//!
//! `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "…"}]}]}}`, as Claude Code and Codex
//! both have it. A hook is ours by what it runs, so one installed from another path is found too.

use std::ops::Range;

use serde_json::{Value as Json, json};
use thiserror::Error;
use wiggum_backlog::json::{Document, Kind, Member, Value, quote};
use wiggum_workspace::process::CommandLine;

/// A hook to be there: the agent's name of the event, and what is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) event: &'static str,
    pub(crate) command: String,
    pub(crate) timeout: u32,
}

#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum SettingsError {
    #[error("it is not valid JSON: {message} in line {line}")]
    Syntax { message: String, line: usize },
    #[error("`{path}` in it is {kind}, not {expected}")]
    Shape { path: String, kind: &'static str, expected: &'static str },
}

/// The text with these hooks; unchanged where they are there already.
pub(crate) fn with_hooks(text: &str, hooks: &[Hook]) -> Result<String, SettingsError> {
    let mut text = if text.trim().is_empty() { "{}\n".to_owned() } else { text.to_owned() };
    for hook in hooks {
        let edit = addition(&text, hook)?;
        text = edited(text, edit);
    }
    Ok(text)
}

/// The text without any hook of ours, and without what is then empty.
pub(crate) fn without_hooks(text: &str) -> Result<String, SettingsError> {
    let mut text = text.to_owned();
    while !text.trim().is_empty() {
        let document = scan(&text)?;
        let Some(range) = first_of_ours(document.root()) else { return Ok(text) };
        text = edited(text, Some((range, String::new())));
    }
    Ok(text)
}

/// Is this nothing but an empty object?
pub(crate) fn is_empty(text: &str) -> bool {
    scan(text).is_ok_and(|document| document.root().members().next().is_none())
}

/// Is a hook of ours there?
pub(crate) fn has_hooks(text: &str) -> bool {
    scan(text).is_ok_and(|document| !ours(document.root()).is_empty())
}

/// Whatever is called by the name of our program, and however it ends: a hook that fails must not stop
/// anybody. Agents take some exit codes for an order to go on, and "not found" for an error to show at
/// every stop.
const WHATEVER_HAPPENS: &str = " || exit 0";

/// How a hook of this name is called, in any shell.
pub(crate) fn command(program: &str, name: &str) -> String {
    format!("{}{WHATEVER_HAPPENS}", CommandLine::new(program, ["hook", name]))
}

type Edit = Option<(Range<usize>, String)>;

fn edited(mut text: String, edit: Edit) -> String {
    if let Some((range, with)) = edit {
        text.replace_range(range, &with);
    }
    text
}

fn scan(text: &str) -> Result<Document<'_>, SettingsError> {
    Document::scan(text).map_err(|error| SettingsError::Syntax {
        line: text[..error.offset.min(text.len())].matches('\n').count() + 1,
        message: error.message,
    })
}

fn expect(value: Value<'_>, kind: Kind, path: &str) -> Result<(), SettingsError> {
    if value.kind() == kind {
        return Ok(());
    }
    Err(SettingsError::Shape { path: path.to_owned(), kind: value.kind().name(), expected: kind.name() })
}

fn addition(text: &str, hook: &Hook) -> Result<Edit, SettingsError> {
    let document = scan(text)?;
    let root = document.root();
    expect(root, Kind::Object, "the whole")?;
    let entry = json!({ "hooks": [{ "type": "command", "command": hook.command, "timeout": hook.timeout }] });
    let Some(all) = root.get("hooks") else {
        return Ok(Some(new_member(text, root, "hooks", &json!({ hook.event: [entry] }))));
    };
    expect(all, Kind::Object, "hooks")?;
    let Some(list) = all.get(hook.event) else {
        return Ok(Some(new_member(text, all, hook.event, &json!([entry]))));
    };
    expect(list, Kind::Array, &format!("hooks.{}", hook.event))?;
    match ours(root).into_iter().find(|found| found.list.start() == list.start()) {
        Some(found) => Ok(moved_program(found.hook, &hook.command)),
        None => Ok(Some(new_item(text, list, &entry))),
    }
}

/// A hook of ours that runs another path.
fn moved_program(hook: Value<'_>, command: &str) -> Edit {
    let present = hook.get("command")?;
    (present.as_str()? != command).then(|| (present.span(), quote(command)))
}

/// One hook of ours and what it lies in.
struct Ours<'d> {
    event: Member<'d>,
    list: Value<'d>,
    group: Value<'d>,
    hook: Value<'d>,
}

fn ours(root: Value<'_>) -> Vec<Ours<'_>> {
    let mut found = Vec::new();
    let events = root.get("hooks").into_iter().flat_map(Value::members);
    for event in events {
        let list = event.value;
        for group in list.items() {
            let hooks = group.get("hooks").into_iter().flat_map(Value::items);
            let ours = hooks.filter(|hook| is_ours(*hook));
            found.extend(ours.map(|hook| Ours { event, list, group, hook }));
        }
    }
    found
}

fn is_ours(hook: Value<'_>) -> bool {
    let Some(command) = hook.get("command").and_then(Value::as_str) else { return false };
    let Ok(line) = CommandLine::parse(command.trim_end_matches(WHATEVER_HAPPENS)) else { return false };
    let name = std::path::Path::new(&line.program).file_stem().unwrap_or_default();
    name == "wiggum" && line.args.len() == 2 && line.args[0] == *"hook"
}

/// The bytes of the first hook of ours, with everything around it that is empty without it.
fn first_of_ours(root: Value<'_>) -> Option<Range<usize>> {
    let Ours { event, list, group, hook } = ours(root).into_iter().next()?;
    let hooks = group.get("hooks")?;
    if hooks.items().count() > 1 {
        return Some(item_removal(hooks, hook));
    }
    if list.items().count() > 1 {
        return Some(item_removal(list, group));
    }
    let all = root.get("hooks")?;
    if all.members().count() > 1 {
        return Some(member_removal(all, event.key));
    }
    let member = root.members().find(|member| member.value.start() == all.start())?;
    Some(member_removal(root, member.key))
}

fn item_removal(list: Value<'_>, item: Value<'_>) -> Range<usize> {
    removal(list, list.items().map(Value::span).collect(), item.start())
}

fn member_removal(object: Value<'_>, key: Value<'_>) -> Range<usize> {
    let spans = object.members().map(|member| member.key.start()..member.value.end());
    removal(object, spans.collect(), key.start())
}

/// What was appended goes with the separator before it; what stands first, with the one after.
fn removal(container: Value<'_>, spans: Vec<Range<usize>>, start: usize) -> Range<usize> {
    let slot = spans.iter().position(|span| span.start == start).unwrap_or(0);
    match (slot.checked_sub(1).map(|before| spans[before].end), spans.get(slot + 1)) {
        (Some(before), _) => before..spans[slot].end,
        (None, Some(next)) => spans[slot].start..next.start,
        (None, None) => container.start() + 1..container.end() - 1,
    }
}

fn new_member(text: &str, object: Value<'_>, key: &str, value: &Json) -> (Range<usize>, String) {
    let spans: Vec<Range<usize>> =
        object.members().map(|member| member.key.start()..member.value.end()).collect();
    let layout = Layout::of(text, object, &spans);
    let raw = format!("{}{}{}", quote(key), layout.colon, layout.write(value));
    layout.place(object, &spans, &raw)
}

fn new_item(text: &str, list: Value<'_>, value: &Json) -> (Range<usize>, String) {
    let spans: Vec<Range<usize>> = list.items().map(Value::span).collect();
    let layout = Layout::of(text, list, &spans);
    let raw = layout.write(value);
    layout.place(list, &spans, &raw)
}

/// How what is added is laid out: as its neighbours are, on one line where the file is.
struct Layout {
    line_end: Option<&'static str>,
    /// The white space before the container's closing bracket, and that of one level.
    outer: String,
    unit: String,
    colon: &'static str,
    separator: String,
}

impl Layout {
    fn of(text: &str, container: Value<'_>, spans: &[Range<usize>]) -> Self {
        let whole = text.trim();
        let one_line = whole.len() > 2 && !whole.contains('\n');
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let outer = indentation(text, container.start());
        let first = text
            .lines()
            .map(|line| &line[..line.len() - line.trim_start().len()])
            .find(|blank| !blank.is_empty());
        let unit = first.unwrap_or("  ").to_owned();
        let separator = match spans {
            [.., before, last] => text[before.end..last.start].to_owned(),
            [only] => match &text[container.start() + 1..only.start] {
                "" if one_line && !text.contains("\": ") => ",".to_owned(),
                "" => ", ".to_owned(),
                blank => format!(",{blank}"),
            },
            [] => String::new(),
        };
        let colon = if one_line && !text.contains("\": ") { ":" } else { ": " };
        Self { line_end: (!one_line).then_some(line_end), outer, unit, colon, separator }
    }

    fn write(&self, value: &Json) -> String {
        let Some(line_end) = self.line_end else { return value.to_string() };
        let mut bytes = Vec::new();
        let format = serde_json::ser::PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, format);
        if serde::Serialize::serialize(value, &mut serializer).is_err() {
            return value.to_string();
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.replace('\n', &format!("{line_end}{}{}", self.outer, self.unit))
    }

    /// After the last one there is, or as the only one.
    fn place(&self, container: Value<'_>, spans: &[Range<usize>], raw: &str) -> (Range<usize>, String) {
        if let Some(last) = spans.last() {
            return (last.end..last.end, format!("{}{raw}", self.separator));
        }
        let inside = container.start() + 1..container.end() - 1;
        match self.line_end {
            Some(line_end) => {
                (inside, format!("{line_end}{}{}{raw}{line_end}{}", self.outer, self.unit, self.outer))
            }
            None => (inside, raw.to_owned()),
        }
    }
}

/// The white space at the beginning of the line in which this byte stands.
fn indentation(text: &str, at: usize) -> String {
    let line = text[..at].rsplit('\n').next().unwrap_or_default();
    line[..line.len() - line.trim_start().len()].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks(program: &str) -> Vec<Hook> {
        let command = |name: &str| command(program, name);
        vec![
            Hook { event: "Stop", command: command("stop"), timeout: 600 },
            Hook { event: "UserPromptSubmit", command: command("user-prompt-submit"), timeout: 60 },
        ]
    }

    const FILES: [&str; 12] = [
        "{\n  \"model\": \"opus\",\n  \"permissions\": { \"allow\": [\"Bash(ls:*)\"] }\n}\n",
        "{\"model\":\"opus\"}",
        "{\"model\": \"opus\", \"a\": 1.0e3}\n\n",
        "{\r\n\t\"model\": \"opus\"\r\n}\r\n",
        "{\n    \"hooks\": {\n        \"PreToolUse\": [{ \"matcher\": \"Bash\", \"hooks\": [] }]\n    }\n}",
        "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          { \"type\": \"command\", \"command\": \"say done\" }\n        ]\n      }\n    ]\n  }\n}\n",
        "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"say done\"}]}]}}\n",
        "{\n  \"hooks\": { \"Stop\": [ { \"hooks\": [] }, { \"hooks\": [] } ] },\n  \"z\": \"\\u00e9\"\n}\n",
        "\u{feff}{\n  \"a\": {}\n}\n",
        "{ \"a\": 1 }",
        "{\n\"a\": 1\n}",
        "{\"hooks\": {\"UserPromptSubmit\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}]}, \"b\": 2}",
    ];

    #[test]
    fn what_is_put_in_can_be_taken_out_to_the_byte() {
        for text in FILES {
            let added = with_hooks(text, &hooks("/a b/wiggum")).unwrap();
            let value: Json = serde_json::from_str(added.trim_start_matches('\u{feff}')).unwrap();
            assert_eq!(ours(scan(&added).unwrap().root()).len(), 2, "{added}");
            let stop = value["hooks"]["Stop"].as_array().unwrap().last().unwrap();
            assert_eq!(stop["hooks"][0]["command"], "'/a b/wiggum' hook stop || exit 0", "{added}");
            assert_eq!(without_hooks(&added).unwrap(), text);
        }
    }

    #[test]
    fn doing_it_twice_changes_nothing_and_another_path_only_the_path() {
        for text in FILES {
            let added = with_hooks(text, &hooks("/old/wiggum")).unwrap();
            assert_eq!(with_hooks(&added, &hooks("/old/wiggum")).unwrap(), added);
            let moved = with_hooks(&added, &hooks("/new/wiggum")).unwrap();
            assert_eq!(moved, added.replace("/old/", "/new/"));
            // As the first version wrote it.
            let first = added.replace(WHATEVER_HAPPENS, "");
            assert_eq!(with_hooks(&first, &hooks("/old/wiggum")).unwrap(), added);
            assert_eq!(without_hooks(&first).unwrap(), text);
        }
    }

    #[test]
    fn what_is_added_looks_like_the_rest() {
        let added = with_hooks("{\n    \"a\": 1\n}\n", &hooks("wiggum")[..1]).unwrap();
        let expected = "{\n    \"a\": 1,\n    \"hooks\": {\n        \"Stop\": [\n            {\n                \
                        \"hooks\": [\n                    {\n                        \"command\": \"wiggum hook stop || exit 0\",\n                        \
                        \"timeout\": 600,\n                        \"type\": \"command\"\n                    }\n                \
                        ]\n            }\n        ]\n    }\n}\n";
        assert_eq!(added, expected);
        let compact = with_hooks("{\"a\":1}", &hooks("wiggum")[..1]).unwrap();
        assert!(
            compact.starts_with("{\"a\":1,\"hooks\":{\"Stop\":[{") && !compact.contains('\n'),
            "{compact}"
        );
    }

    #[test]
    fn a_hook_of_the_users_beside_ours_stays() {
        let both = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"/x/wiggum hook stop\"},{\"command\":\"mine\"}]}]}}";
        assert_eq!(
            without_hooks(both).unwrap(),
            "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"mine\"}]}]}}"
        );
        let others = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"wiggum run\"},{\"command\":\"my-wiggum hook stop\"}]}]}}";
        assert_eq!(without_hooks(others).unwrap(), others);
    }

    #[test]
    fn files_that_cannot_be_understood_are_refused() {
        for text in [
            "{",
            "// comment\n{}",
            "{\"a\": 1,}",
            "[]",
            "{\"hooks\": []}",
            "{\"hooks\": {\"Stop\": {}}}",
            "x",
        ] {
            assert!(with_hooks(text, &hooks("wiggum")).is_err(), "{text}");
        }
        assert!(is_empty("{ }\n") && !is_empty("{\"a\":1}") && !is_empty("x"));
    }
}
