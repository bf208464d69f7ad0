//! What the model can do: look around, change files, run commands, all inside the workspace.
//!
//! A tool's result is data for the model, and its failure is too: a model that asks for what it may
//! not have, or misspells it, is told so and can do better.

mod files;
mod place;
mod run;
mod search;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error;
use wiggum_workspace::paths::Escape;
use wiggum_workspace::process::{LaunchError, ParseError};

pub(crate) use place::Place;

/// How much of a result is given to the model.
const RESULT_LIMIT: usize = 32 * 1024;

/// One thing the model can do.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// The JSON Schema of its arguments.
    pub(crate) parameters: fn() -> Value,
    run: fn(&Place, Value) -> Result<String, ToolError>,
}

#[derive(Debug, Error)]
pub(crate) enum ToolError {
    #[error("there is no tool `{name}`; there are {known}")]
    Unknown { name: String, known: String },
    #[error("the arguments are not JSON: {source}")]
    NotJson { source: serde_json::Error },
    #[error("the arguments do not fit: {source}")]
    Arguments { source: serde_json::Error },
    #[error(transparent)]
    Escape(#[from] Escape),
    #[error("`{path}` must not be changed: it belongs to git or to the loop")]
    Guarded { path: String },
    #[error("`{path}`: {source}")]
    Io { path: String, source: std::io::Error },
    #[error("`{path}` is not a file")]
    NotAFile { path: String },
    #[error("`{path}` is not text")]
    NotText { path: String },
    #[error("`{path}` has {bytes} bytes, which is too much to edit at once")]
    TooBig { path: String, bytes: u64 },
    #[error("`{path}` has {lines} lines, none from {from} on")]
    NoSuchLines { path: String, lines: usize, from: usize },
    #[error("`old` is empty; use `write` for a new file")]
    NothingToReplace,
    #[error("`old` is not in `{path}`; read the file and copy the text exactly, white space included")]
    NotFound { path: String },
    #[error("`old` is {count} times in `{path}`; add lines around it until it is unique, or set `all`")]
    NotUnique { path: String, count: usize },
    #[error("`{pattern}` is not a regular expression: {reason}")]
    Pattern { pattern: String, reason: String },
    #[error("the command cannot be read: {0}")]
    Command(#[from] ParseError),
    #[error("{}", chain(.0))]
    Launch(#[from] LaunchError),
    #[error("{0}")]
    Failed(String),
}

pub(crate) const ALL: [Tool; 6] = [
    Tool {
        name: "read",
        description: "Read a text file, or some of its lines. Long files are cut; read on with `from`.",
        parameters: || {
            json!({"type": "object", "required": ["path"], "properties": {
                "path": {"type": "string", "description": "relative to the workspace"},
                "from": {"type": "integer", "description": "first line, counted from 1"},
                "to": {"type": "integer", "description": "last line"}}})
        },
        run: |place, arguments| files::read(place, &fit(arguments)?),
    },
    Tool {
        name: "list",
        description: "List files and directories, without those that git ignores.",
        parameters: || {
            json!({"type": "object", "properties": {
                "path": {"type": "string", "description": "a directory; the workspace if missing"},
                "depth": {"type": "integer", "description": "how many levels; 2 if missing"}}})
        },
        run: |place, arguments| search::list(place, &fit(arguments)?),
    },
    Tool {
        name: "search",
        description: "Search files for a regular expression, line by line, without those that git ignores.",
        parameters: || {
            json!({"type": "object", "required": ["pattern"], "properties": {
                "pattern": {"type": "string", "description": "a regular expression; (?i) ignores case"},
                "path": {"type": "string", "description": "a file or directory; the workspace if missing"},
                "glob": {"type": "string", "description": "only files of this pattern, such as *.rs"}}})
        },
        run: |place, arguments| search::search(place, &fit(arguments)?),
    },
    Tool {
        name: "edit",
        description: "Replace a text in a file. `old` must be in the file exactly once, white space included.",
        parameters: || {
            json!({"type": "object", "required": ["path", "old", "new"], "properties": {
                "path": {"type": "string"},
                "old": {"type": "string", "description": "the text to be replaced, exactly"},
                "new": {"type": "string", "description": "what takes its place"},
                "all": {"type": "boolean", "description": "replace every occurrence"}}})
        },
        run: |place, arguments| files::edit(place, &fit(arguments)?),
    },
    Tool {
        name: "write",
        description: "Write a whole file, with the directories it needs. For changes prefer `edit`.",
        parameters: || {
            json!({"type": "object", "required": ["path", "content"], "properties": {
                "path": {"type": "string"},
                "content": {"type": "string"}}})
        },
        run: |place, arguments| files::write(place, &fit(arguments)?),
    },
    Tool {
        name: "run",
        description: "Run a command in the workspace and wait for its end. Whatever it leaves running is ended \
                      with it. Of long output the beginning and the end are kept.",
        parameters: || {
            json!({"type": "object", "required": ["command"], "properties": {
                "command": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                    "description": "a shell line, or a program and its arguments"},
                "timeout_seconds": {"type": "integer", "description": "120 if missing, at most 1200"}}})
        },
        run: |place, arguments| run::run(place, &fit(arguments)?),
    },
];

/// Does what the model asks for. The arguments are its own words.
pub(crate) fn call(place: &Place, name: &str, arguments: &str) -> Result<String, ToolError> {
    let Some(tool) = ALL.iter().find(|tool| tool.name == name) else {
        let known = ALL.map(|tool| tool.name).join(", ");
        return Err(ToolError::Unknown { name: name.to_owned(), known });
    };
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    let arguments = serde_json::from_str(arguments).map_err(|source| ToolError::NotJson { source })?;
    (tool.run)(place, arguments)
}

/// What a call is about, for people.
pub(crate) fn detail(arguments: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let words = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    };
    let known = ["command", "pattern", "path"].map(|key| words(&arguments[key]));
    known.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

fn fit<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments).map_err(|source| ToolError::Arguments { source })
}

/// Keeps the beginning and the end of a text that is too long for the model.
fn shorten(text: String) -> String {
    const HEAD: usize = RESULT_LIMIT / 4;
    if text.len() <= RESULT_LIMIT {
        return text;
    }
    let head = &text[..text.floor_char_boundary(HEAD)];
    let tail = &text[text.ceil_char_boundary(text.len() - (RESULT_LIMIT - HEAD))..];
    format!("{head}\n… {} bytes cut …\n{tail}", text.len() - head.len() - tail.len())
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_makes_no_sense_is_answered_with_what_would() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::new(directory.path(), Vec::new()).unwrap();
        let error = |name: &str, arguments: &str| call(&place, name, arguments).unwrap_err().to_string();
        assert!(error("bash", "{}").contains("read, list, search, edit, write, run"));
        assert!(error("read", "{\"path\": ").contains("not JSON"));
        assert!(error("read", "").contains("missing field `path`"));
        assert!(error("read", "[]").contains("do not fit"));
        assert!(error("read", "{\"path\": 3}").contains("do not fit"));
        assert!(call(&place, "list", "").is_ok());
    }

    #[test]
    fn long_results_keep_both_ends() {
        let long = format!("begin{}end", "€".repeat(RESULT_LIMIT));
        let short = shorten(long);
        assert!(short.starts_with("begin") && short.ends_with("end") && short.contains("bytes cut"));
        assert!(short.len() < RESULT_LIMIT + 100);
        assert_eq!(shorten("x".repeat(RESULT_LIMIT)).len(), RESULT_LIMIT);
    }

    #[test]
    fn calls_are_shown_by_what_people_know_them_by() {
        assert_eq!(detail("{\"path\": \"a\", \"pattern\": \"p\"}"), "p");
        assert_eq!(detail("{\"command\": [\"ls\", \"-l\"]}"), "ls -l");
        assert_eq!(detail("nonsense"), "");
    }
}
