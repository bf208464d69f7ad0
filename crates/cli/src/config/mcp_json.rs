//! `.mcp.json` of a project, as Claude Code writes it: the same servers for its sessions and for ours.
//!
//! What is not about us in it is left alone; a file that cannot be read is refused with the line.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::mcp::{SERVER_KEYS, ServerKey, Setting, UNKNOWN_TYPE, complain_name};
use super::problem::Lines;
use super::value::{Complaint, Value};
use super::{ConfigSource, Layer, Place, Problem};

pub(super) const FILE: &str = ".mcp.json";
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, default, rename = "mcpServers")]
    servers: BTreeMap<String, &'a RawValue>,
}

#[derive(Deserialize)]
struct Server {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// What the file says, if there is one.
pub(super) fn layer(path: &Path, found: io::Result<Vec<u8>>) -> Layer {
    match text_of(found) {
        Ok(Some(text)) => of_text(path, &text),
        Ok(None) => Layer::default(),
        Err(message) => {
            let problem = Problem { place: Place::WholeFile(path.to_owned()), message, hint: None };
            Layer { problems: vec![problem], ..Layer::default() }
        }
    }
}

fn text_of(found: io::Result<Vec<u8>>) -> Result<Option<String>, String> {
    let bytes = match found {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())?;
    Ok(Some(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned)))
}

fn of_text(path: &Path, text: &str) -> Layer {
    let mut layer = Layer::default();
    let document: Document<'_> = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(error) => {
            layer.refuse(place(path, text, 0, &error), complaint(&error));
            return layer;
        }
    };
    for (name, raw) in &document.servers {
        // Where in the text it is: the raw value is a part of it.
        let start = (raw.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let at = Lines::of(text).place(path.to_owned(), start);
        if let Some(complaint) = complain_name(name) {
            layer.refuse(at, complaint);
            continue;
        }
        match serde_json::from_str::<Server>(raw.get()) {
            Ok(server) => layer.mcp.extend(settings(name, server, &at)),
            Err(error) => {
                let Complaint { message, .. } = complaint(&error);
                let message = format!("server `{name}`: {message}");
                layer.refuse(place(path, text, start, &error), Complaint::new(message));
            }
        }
    }
    layer
}

/// The place that an error in a part of the text is about.
fn place(path: &Path, text: &str, start: usize, error: &serde_json::Error) -> Place {
    let part = text.get(start..).unwrap_or_default();
    let line_start: usize =
        part.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    Lines::of(text).place(path.to_owned(), start + line_start + error.column().saturating_sub(1))
}

/// Without the place, which is told in front.
fn complaint(error: &serde_json::Error) -> Complaint {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default().to_owned();
    Complaint::new(message)
        .hint("`mcpServers` holds servers with `command` and `args`, or with `type` and `url`")
}

fn settings(name: &str, server: Server, at: &Place) -> Vec<Setting> {
    let Server { kind, command, args, env, cwd, url, headers } = server;
    let known =
        matches!(kind.as_deref(), None | Some("stdio" | "http" | "streamable-http" | "streamableHttp"));
    let values = [
        ("command", command.map(Value::Text)),
        ("args", (!args.is_empty()).then_some(Value::List(args))),
        ("env", (!env.is_empty()).then_some(Value::Variables(env))),
        ("cwd", cwd.map(Value::Text)),
        ("url", url.map(Value::Text)),
        ("headers", (!headers.is_empty()).then_some(Value::Variables(headers))),
    ];
    let keyed = values
        .into_iter()
        .filter_map(|(key, value)| Some((SERVER_KEYS.iter().find(|known| known.name == key)?, value?)));
    let unknown = kind.filter(|_| !known).map(|kind| (&UNKNOWN_TYPE, Value::Text(kind)));
    keyed.chain(unknown).map(|(key, value)| setting(name, key, value, at)).collect()
}

fn setting(name: &str, key: &'static ServerKey, value: Value, at: &Place) -> Setting {
    let source = match at {
        Place::File { path, line, .. } => ConfigSource::WorkspaceFile { path: path.clone(), line: *line },
        Place::WholeFile(_) | Place::Variable(_) | Place::Flag(_) => ConfigSource::Default,
    };
    Setting { server: name.to_owned(), key, value, source, place: at.clone() }
}
