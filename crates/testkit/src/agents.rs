//! The real agents: where `cargo xtask test` put them, and how to run them against the stub alone.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agent {
    Claude,
    Codex,
    Copilot,
    Gemini,
}

impl Agent {
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Copilot, Self::Gemini];

    /// The name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Gemini => "gemini",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::Copilot => "@github/copilot",
            Self::Gemini => "@google/gemini-cli",
        }
    }

    /// Its program, if it is installed.
    pub fn program(self) -> Option<PathBuf> {
        Some(programs().join(self.name())).filter(|path| path.exists())
    }

    /// The version that is installed.
    pub fn version(self) -> Option<String> {
        let manifest = cache().join("node_modules").join(self.package()).join("package.json");
        let manifest: serde_json::Value = serde_json::from_str(&fs::read_to_string(manifest).ok()?).ok()?;
        manifest["version"].as_str().map(str::to_owned)
    }

    /// Its program; where there is none, says loudly what is not tested.
    #[expect(clippy::print_stderr, reason = "what is skipped must be seen")]
    pub fn program_or_skip(self, what: &str) -> Option<PathBuf> {
        let program = self.program();
        if program.is_none() {
            eprintln!("SKIPPED: {} is not installed (`cargo xtask test` does that): {what}", self.name());
        }
        program
    }

    /// The environment in which it talks to the stub and to nobody else, with all it keeps below
    /// `home`. Writes the settings it needs there.
    pub fn environment(self, home: &Path, base_url: &str) -> io::Result<Vec<(String, String)>> {
        match self {
            Self::Claude => Ok(claude(home, base_url)),
            Self::Codex => codex(home, base_url),
            Self::Copilot => Ok(copilot(home, base_url)),
            Self::Gemini => gemini(home, base_url),
        }
    }
}

/// What a search path needs to find the agents first.
pub fn search_path() -> OsString {
    let others = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(programs()).chain(std::env::split_paths(&others));
    std::env::join_paths(all).unwrap_or(others)
}

/// Where `cargo xtask test` installs them.
pub(crate) fn cache() -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    target.canonicalize().unwrap_or(target).join("agents")
}

fn programs() -> PathBuf {
    cache().join("node_modules/.bin")
}

fn claude(home: &Path, base_url: &str) -> Vec<(String, String)> {
    let config = home.join(".claude");
    let quiet = [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
        // Without it root may not skip the questions about permissions.
        "IS_SANDBOX",
    ];
    let mut environment = vec![
        pair("ANTHROPIC_BASE_URL", base_url),
        pair("ANTHROPIC_API_KEY", "sk-ant-stub"),
        pair("CLAUDE_CONFIG_DIR", &config.display().to_string()),
    ];
    environment.extend(quiet.map(|name| pair(name, "1")));
    environment
}

/// Fewer retries than usual, and sooner, because tests wait for them.
fn codex(home: &Path, base_url: &str) -> io::Result<Vec<(String, String)>> {
    let config = home.join(".codex");
    fs::create_dir_all(&config)?;
    // A model it knows, or it has no `apply_patch`. Plugins would look for hosts on the network.
    let settings = format!(
        r#"model = "gpt-5.5"
model_provider = "stub"
check_for_update_on_startup = false

[model_providers.stub]
name = "stub"
base_url = "{base_url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 1
stream_max_retries = 1
stream_idle_timeout_ms = 2000

[analytics]
enabled = false

[features]
plugins = false
"#
    );
    fs::write(config.join("config.toml"), settings)?;
    Ok(vec![pair("CODEX_HOME", &config.display().to_string()), pair("OPENAI_API_KEY", "sk-stub")])
}

fn copilot(home: &Path, base_url: &str) -> Vec<(String, String)> {
    vec![
        pair("COPILOT_HOME", &home.join(".copilot").display().to_string()),
        pair("COPILOT_OFFLINE", "true"),
        pair("COPILOT_AUTO_UPDATE", "false"),
        pair("COPILOT_PROVIDER_TYPE", "openai"),
        pair("COPILOT_PROVIDER_BASE_URL", &format!("{base_url}/v1")),
        pair("COPILOT_PROVIDER_API_KEY", "not-a-secret"),
        pair("COPILOT_MODEL", "gpt-5"),
    ]
}

fn gemini(home: &Path, base_url: &str) -> io::Result<Vec<(String, String)>> {
    let config = home.join(".gemini");
    fs::create_dir_all(&config)?;
    let settings = serde_json::json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": true, "disableUpdateNag": true},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
    });
    fs::write(config.join("settings.json"), settings.to_string())?;
    Ok(vec![
        pair("GEMINI_API_KEY", "not-a-secret"),
        pair("GOOGLE_GEMINI_BASE_URL", base_url),
        pair("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        // Otherwise it asks another model which one to take.
        pair("GEMINI_MODEL", "gemini-2.5-pro"),
    ])
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
