//! What is generated from the table of keys: the commented `wiggum.toml` of `wiggum init`, the
//! documentation, and the JSON Schema.

use serde_json::{Map, json};

use super::agents::{self, AGENT_KEYS};
use super::keys::{self, KEYS, Key, SECTIONS, Settable};
use super::mcp::{self, SERVER_KEYS};
use super::notify::{self, TARGET_KEYS};
use super::prices::{self, PRICE_KEYS};
use super::value::{Shape, UNITS, Value, Zero};

/// A key that the generated file sets, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Preset {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
    pub(crate) because: String,
}

/// A `wiggum.toml` with every key explained, all commented out but the presets.
pub(crate) fn commented_toml(presets: &[Preset]) -> String {
    let mut text = String::from(
        "# Configuration of wiggum. Lines that begin with \"#\" and a key show its default or an example:\n\
         # remove the \"#\" to set it. `wiggum config show` tells what is in force, and where it comes from.\n",
    );
    for (section, about) in SECTIONS {
        let title = if section.is_empty() { String::new() } else { format!("\n[{section}]") };
        text.push_str(&format!("{title}\n# {about}\n"));
        for key in in_files(section) {
            text.push_str(&commented_key(key, presets.iter().find(|preset| preset.key == key.path)));
        }
    }
    text.push_str(
        "\n# Agents under names of your own, each with a section; see docs/configuration.md for its keys.\n\
         #[agents.fast]\n#family = \"claude\"\n#model = \"haiku\"\n\
         \n# What models cost whose agents do not say it, in dollars per million tokens.\n\
         # Well-known ones have a price already; what stands here wins over it.\n\
         #[prices.\"some-model\"]\n#input = 3\n#output = 15\n\
         \n# MCP servers whose tools a plan may call, beside those of .mcp.json; see docs/mcp.md.\n\
         #[mcp.servers.files]\n#command = \"npx\"\n#args = [\"-y\", \"@modelcontextprotocol/server-filesystem\", \".\"]\n\
         \n# Who is told what happens, once for each receiver; see docs/notifications.md.\n\
         #[[notify]]\n#kind = \"desktop\"\n",
    );
    text
}

fn commented_key(key: &Key, preset: Option<&Preset>) -> String {
    let mut text = String::from("\n");
    for line in wrapped(key.help, 98) {
        text.push_str(&format!("# {line}\n"));
    }
    if let Shape::Choice(_) = key.shape {
        text.push_str(&format!("# One of {}.\n", key.shape.expected()));
    }
    match preset {
        Some(Preset { value, because, .. }) => {
            text.push_str(&format!("# ({because})\n{} = {value}\n", key.name()));
        }
        None => {
            text.push_str(before_example(key));
            text.push_str(&format!("#{} = {}\n", key.name(), shown(key)));
        }
    }
    text
}

/// An example must not be taken for what is in force.
fn before_example(key: &Key) -> &'static str {
    let is_example = key.example.is_some() && key.default().is_empty();
    match key.shape {
        _ if !is_example => "",
        Shape::Duration(Zero::NoLimit) | Shape::Count(Zero::NoLimit) | Shape::Amount(Zero::NoLimit) => {
            "# No limit by default; for example:\n"
        }
        _ => "# Not set by default; for example:\n",
    }
}

/// The default as it is written in a file, or the example where the default is nothing.
fn shown(key: &Key) -> String {
    let default = key.default();
    match key.example {
        Some(example) if default.is_empty() => example.to_owned(),
        Some(_) | None => default.to_string(),
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| line.is_empty() || line.len() + 1 + word.len() <= width);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => line.push_str(&format!(" {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// `docs/configuration.md`.
pub(crate) fn configuration_markdown() -> String {
    let mut text = String::from(MARKDOWN_HEAD);
    for (section, about) in SECTIONS {
        let title = if section.is_empty() { "At the top".to_owned() } else { format!("`[{section}]`") };
        text.push_str(&format!(
            "\n## {title}\n\n{about}\n\n| key | value | default | meaning |\n|---|---|---|---|\n"
        ));
        for key in in_files(section) {
            text.push_str(&markdown_row(key));
        }
    }
    text.push_str(
        "\n## `[agents.NAME]`\n\nAn agent under a name of your own, for `agent.name`, `agent.fallback`, `agent.roles` and the `agent` of a \
         task.\nA section with the name of a family (`[agents.claude]`) describes that one.\n\n\
         | key | value | meaning |\n|---|---|---|\n",
    );
    for key in AGENT_KEYS {
        let words = escaped(&value_words(key.shape));
        text.push_str(&format!("| `{}` | {words} | {} |\n", key.name, escaped(key.help)));
    }
    text.push_str(
        "\n## `[prices.\"MODEL\"]`\n\nWhat a model costs whose agent does not say it, in dollars per million tokens. \
         The agent's own figure is taken where\nthere is one. Models that have no section have the price of the built-in \
         table, if it knows them ([Budgets](budgets.md#prices)).\n\n| key | value | meaning |\n|---|---|---|\n",
    );
    for (name, help) in PRICE_KEYS {
        text.push_str(&format!("| `{name}` | {} | {help} |\n", value_words(prices::SHAPE)));
    }
    text.push_str(
        "\n## `[mcp.servers.NAME]`\n\nAn MCP server: a program (`command`) or an address (`url`). Beneath these, the servers of \
         `.mcp.json` in the workspace\nare there too. `${NAME}` and `${NAME:-default}` in the values are replaced by variables \
         of the environment; see\n[mcp.md](mcp.md).\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
    );
    for key in SERVER_KEYS {
        let (words, default) = (escaped(&value_words(key.shape)), key.shown_default());
        text.push_str(&format!("| `{}` | {words} | {default} | {} |\n", key.name, escaped(key.help)));
    }
    text.push_str(
        "\n## `[[notify]]`\n\nWho is told what happens, once for each receiver; see [notifications.md](notifications.md). Receivers of \
         your own file are\ntold too, unless the workspace has one of the same name.\n\n\
         | key | value | for | meaning |\n|---|---|---|---|\n",
    );
    for key in TARGET_KEYS {
        let words = escaped(&value_words(key.shape));
        let kinds = if key.kinds.is_empty() { "all".to_owned() } else { key.kinds.join(", ") };
        text.push_str(&format!("| `{}` | {words} | {kinds} | {} |\n", key.name, escaped(key.help)));
    }
    text.push_str(
        "\n## Flags and variables\n\nEmpty variables count as not set. Where several are set, the one further right \
         wins. A list or table is written\nas in TOML: `WIGGUM_VERIFY='[\"cargo test\", \"cargo clippy\"]'`.\n\n\
         | key | flag of `wiggum run` | variables |\n|---|---|---|\n",
    );
    for key in KEYS {
        let flag = key.flag.map_or(String::new(), |flag| format!("`{flag}`"));
        let variables: Vec<_> = key.variables().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!("| `{}` | {flag} | {} |\n", key.path, variables.join(", ")));
    }
    text.push_str("\nOnly by flag or variable, for one run:\n\n");
    for key in KEYS.iter().filter(|key| key.settable == Settable::PerRun) {
        text.push_str(&format!("- `{}`: {}\n", key.path, key.help));
    }
    text.push_str("\nOnly in your own file or by variable, since agents write to the workspace:\n\n");
    for key in KEYS.iter().filter(|key| key.settable == Settable::ByUser) {
        text.push_str(&format!("- `{}`: {}\n", key.path, key.help));
    }
    text
}

const MARKDOWN_HEAD: &str = "\
# Configuration

<!-- Generated from the table of keys; do not edit. -->

Nothing has to be configured: `wiggum run --agent-command '…'` is enough. What you do not want to repeat goes into
`wiggum.toml` in the workspace; `wiggum init` writes one with every key explained.

Later wins:

1. built-in defaults
2. `~/.config/wiggum/config.toml` (or below `$XDG_CONFIG_HOME`)
3. `wiggum.toml` in the workspace
4. environment variables
5. flags

`wiggum config show` says for every key what is in force and where it was set, with file and line. A value replaces the
one of an earlier layer as a whole, lists and tables too. Unknown keys and values that make no sense are refused, all at
once, with their place.

Durations are written `\"45s\"`, `\"90m\"`, `\"1h30m\"` or `\"500ms\"`; a bare number is seconds. Paths in files are relative to the
workspace, those of flags and variables to the current directory; `~/` in a file is your home directory.
";

fn markdown_row(key: &Key) -> String {
    let default = key.default();
    let default = if default.is_empty() { "none".to_owned() } else { format!("`{default}`") };
    let help = escaped(key.help);
    format!("| `{}` | {} | {} | {help} |\n", key.name(), escaped(&value_words(key.shape)), escaped(&default))
}

fn value_words(shape: Shape) -> String {
    match shape {
        Shape::Name => "name".to_owned(),
        Shape::Path => "path".to_owned(),
        Shape::Command => "command".to_owned(),
        Shape::Commands => "command or list".to_owned(),
        Shape::Globs => "list of patterns".to_owned(),
        Shape::Count(_) => "number".to_owned(),
        Shape::Duration(_) => "duration".to_owned(),
        Shape::Amount(_) => "amount".to_owned(),
        Shape::Parts => "part or list".to_owned(),
        Shape::Fraction(_) => "part of a whole".to_owned(),
        Shape::Switch => "`true`, `false`".to_owned(),
        Shape::Choice(words) => {
            words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
        }
        Shape::Words => "text or list".to_owned(),
        Shape::Variables | Shape::Pairs => "table of texts".to_owned(),
    }
}

fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|")
}

/// The JSON Schema of `wiggum.toml`.
pub(crate) fn config_schema() -> serde_json::Value {
    let mut properties = Map::new();
    for (section, about) in SECTIONS {
        let keys: Map<_, _> = in_files(section).map(|key| (key.name().to_owned(), key_schema(key))).collect();
        if section.is_empty() {
            properties.extend(keys);
        } else {
            let schema = json!({
                "type": "object",
                "description": about,
                "properties": keys,
                "additionalProperties": false,
            });
            properties.insert((*section).to_owned(), schema);
        }
    }
    properties.insert(agents::SECTION.to_owned(), agents_schema());
    properties.insert(prices::SECTION.to_owned(), prices_schema());
    properties.insert(mcp::SECTION.to_owned(), mcp_schema());
    properties.insert(notify::SECTION.to_owned(), notify_schema());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "wiggum.toml",
        "description": "Configuration of a wiggum loop.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn agents_schema() -> serde_json::Value {
    let keys: Map<_, _> = AGENT_KEYS
        .iter()
        .map(|key| {
            let mut schema = shape_schema(key.shape);
            schema.insert("description".to_owned(), key.help.into());
            (key.name.to_owned(), schema.into())
        })
        .collect();
    json!({
        "type": "object",
        "description": "Agents under names of your own.",
        "additionalProperties": { "type": "object", "properties": keys, "additionalProperties": false },
    })
}

fn mcp_schema() -> serde_json::Value {
    let key = |key: &mcp::ServerKey| {
        let mut schema = shape_schema(key.shape);
        schema.insert("description".to_owned(), key.help.into());
        (key.name.to_owned(), serde_json::Value::from(schema))
    };
    let keys: Map<_, _> = SERVER_KEYS.iter().map(key).collect();
    let server = json!({ "type": "object", "properties": keys, "additionalProperties": false });
    let servers = json!({ "type": "object", "description": "MCP servers.", "additionalProperties": server });
    json!({
        "type": "object",
        "description": "MCP servers whose tools may be called.",
        "properties": { mcp::SERVERS: servers },
        "additionalProperties": false,
    })
}

fn notify_schema() -> serde_json::Value {
    let key = |key: &notify::TargetKey| {
        let mut schema = shape_schema(key.shape);
        schema.insert("description".to_owned(), key.help.into());
        (key.name.to_owned(), serde_json::Value::from(schema))
    };
    let keys: Map<_, _> = TARGET_KEYS.iter().map(key).collect();
    json!({
        "type": "array",
        "description": "Who is told what happens.",
        "items": { "type": "object", "properties": keys, "required": ["kind"], "additionalProperties": false },
    })
}

fn prices_schema() -> serde_json::Value {
    let price = |(name, help): &(&str, &str)| {
        let mut schema = shape_schema(prices::SHAPE);
        schema.insert("description".to_owned(), (*help).into());
        ((*name).to_owned(), serde_json::Value::from(schema))
    };
    let keys: Map<_, _> = PRICE_KEYS.iter().map(price).collect();
    json!({
        "type": "object",
        "description": "What models cost, in dollars per million tokens.",
        "additionalProperties": {
            "type": "object", "properties": keys, "required": ["input", "output"], "additionalProperties": false,
        },
    })
}

fn key_schema(key: &Key) -> serde_json::Value {
    let mut schema = shape_schema(key.shape);
    schema.insert("description".to_owned(), key.help.into());
    let default = key.default();
    if default != Value::None {
        schema.insert("default".to_owned(), default.into());
    }
    schema.into()
}

fn shape_schema(shape: Shape) -> Map<String, serde_json::Value> {
    // At least one character that is not white space.
    let text = json!({ "type": "string", "pattern": "\\S" });
    let least = |zero: Zero| match zero {
        Zero::Number | Zero::NoLimit => 0,
        Zero::Refused => 1,
    };
    let schema = match shape {
        Shape::Name => json!({ "type": "string", "pattern": "^[^\\s./\\\\][^\\s/\\\\]{0,63}$" }),
        Shape::Path | Shape::Command => text,
        Shape::Commands | Shape::Globs | Shape::Words => {
            json!({ "anyOf": [text, { "type": "array", "items": text }] })
        }
        Shape::Count(zero) => json!({ "type": "integer", "minimum": least(zero), "maximum": u32::MAX }),
        Shape::Duration(zero) => json!({ "anyOf": [
            { "type": "string", "pattern": duration_pattern() },
            { "type": "integer", "minimum": least(zero), "maximum": u32::MAX },
        ] }),
        Shape::Amount(Zero::Number | Zero::NoLimit) => json!({ "type": "number", "minimum": 0 }),
        Shape::Amount(Zero::Refused) => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Shape::Parts => {
            let part = json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 });
            json!({ "anyOf": [part, { "type": "array", "items": part }] })
        }
        Shape::Fraction(_) => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Shape::Switch => json!({ "type": "boolean" }),
        Shape::Choice(words) => json!({ "type": "string", "enum": words }),
        Shape::Variables | Shape::Pairs => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
    };
    match schema {
        serde_json::Value::Object(schema) => schema,
        other => unreachable!("{other} is written above as an object"),
    }
}

/// Like what [`super::value::parse_duration`] reads, but for the order of the units.
fn duration_pattern() -> String {
    let units: Vec<_> = UNITS.iter().flat_map(|(names, _)| names.iter().copied()).collect();
    format!(r"^\s*([0-9]+|([0-9]+\s*({})\s*)+)\s*$", units.join("|"))
}

fn in_files(section: &str) -> impl Iterator<Item = &'static Key> {
    keys::of_section(section).filter(|key| key.settable == Settable::Everywhere)
}
