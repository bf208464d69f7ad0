//! The providers: where they are, what they speak and which variable usually holds the key.

/// How a provider is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's chat completions, which nearly everybody offers.
    Chat,
    /// Anthropic's Messages.
    Messages,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    OpenAi,
    Anthropic,
    GitHubModels,
    Copilot,
    Ollama,
    /// Whoever answers at a base URL as OpenAI does.
    Compatible,
}

/// What is known of a provider.
struct Facts {
    /// The first is the one it is shown by.
    names: &'static [&'static str],
    protocol: Protocol,
    base_url: Option<&'static str>,
    /// The first that is set is taken.
    key_variables: &'static [&'static str],
    /// Tokens that its usual models take, where that can be said at all.
    context_window: Option<u64>,
    headers: &'static [(&'static str, &'static str)],
}

/// The key for a provider, and where it was looked for.
#[derive(Clone, PartialEq, Eq)]
pub enum Key {
    NotNeeded,
    Found { variable: String, value: String },
    Missing { variable: String },
}

/// Without the key itself, which nobody should read in a log.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotNeeded => f.write_str("NotNeeded"),
            Self::Found { variable, .. } => write!(f, "Found({variable})"),
            Self::Missing { variable } => write!(f, "Missing({variable})"),
        }
    }
}

impl Provider {
    pub const ALL: [Self; 6] =
        [Self::OpenAi, Self::Anthropic, Self::GitHubModels, Self::Copilot, Self::Ollama, Self::Compatible];

    /// Every name that is understood, for configuration.
    pub const NAMES: &'static [&'static str] =
        &["openai", "anthropic", "github-models", "copilot", "ollama", "llama", "openai-compatible"];

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.facts().names.contains(&name))
    }

    pub fn name(self) -> &'static str {
        self.facts().names[0]
    }

    pub fn protocol(self) -> Protocol {
        self.facts().protocol
    }

    /// Where it is, unless it could be anywhere.
    pub fn base_url(self) -> Option<&'static str> {
        self.facts().base_url
    }

    /// Variables that may hold the key, the usual one first. A provider without any needs none.
    pub fn key_variables(self) -> &'static [&'static str] {
        self.facts().key_variables
    }

    /// The key: in the variable that was named, else in the first of its usual ones that is set.
    pub fn key(self, named: Option<&str>, env: &dyn Fn(&str) -> Option<String>) -> Key {
        let variables: Vec<&str> = named.map_or_else(|| self.key_variables().to_vec(), |name| vec![name]);
        let found = variables.iter().find_map(|name| {
            let value = env(name).filter(|value| !value.trim().is_empty())?;
            Some(Key::Found { variable: (*name).to_owned(), value })
        });
        match (found, variables.first()) {
            (Some(found), _) => found,
            (None, Some(variable)) => Key::Missing { variable: (*variable).to_owned() },
            (None, None) => Key::NotNeeded,
        }
    }

    pub fn context_window(self) -> Option<u64> {
        self.facts().context_window
    }

    pub(crate) fn headers(self) -> &'static [(&'static str, &'static str)] {
        self.facts().headers
    }

    fn facts(self) -> &'static Facts {
        match self {
            Self::OpenAi => &Facts {
                names: &["openai"],
                protocol: Protocol::Chat,
                base_url: Some("https://api.openai.com/v1"),
                key_variables: &["OPENAI_API_KEY"],
                context_window: Some(128_000),
                headers: &[],
            },
            Self::Anthropic => &Facts {
                names: &["anthropic"],
                protocol: Protocol::Messages,
                base_url: Some("https://api.anthropic.com/v1"),
                key_variables: &["ANTHROPIC_API_KEY"],
                context_window: Some(200_000),
                headers: &[("anthropic-version", "2023-06-01")],
            },
            Self::GitHubModels => &Facts {
                names: &["github-models"],
                protocol: Protocol::Chat,
                base_url: Some("https://models.github.ai/inference"),
                key_variables: &["GITHUB_TOKEN", "GH_TOKEN"],
                // By plan and model: 8,000 for some, the model's own for others.
                context_window: None,
                headers: &[("x-github-api-version", "2022-11-28")],
            },
            Self::Copilot => &Facts {
                names: &["copilot"],
                protocol: Protocol::Chat,
                base_url: Some("https://api.githubcopilot.com"),
                key_variables: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
                // The smallest of its current models.
                context_window: Some(64_000),
                headers: &[("openai-intent", "conversation-edits"), ("x-initiator", "agent")],
            },
            Self::Ollama => &Facts {
                names: &["ollama", "llama"],
                protocol: Protocol::Chat,
                base_url: Some("http://127.0.0.1:11434/v1"),
                key_variables: &[],
                // Whatever its server was started with.
                context_window: None,
                headers: &[],
            },
            Self::Compatible => &Facts {
                names: &["openai-compatible"],
                protocol: Protocol::Chat,
                base_url: None,
                key_variables: &[],
                context_window: None,
                headers: &[],
            },
        }
    }
}

impl Protocol {
    /// Under which it is stored.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Messages => "messages",
        }
    }

    /// What is asked below the base URL.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Messages => "/messages",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Provider};

    #[test]
    fn the_key_is_where_it_was_said_or_where_it_usually_is() {
        let env = |name: &str| match name {
            "GH_TOKEN" => Some("gh".to_owned()),
            "MINE" => Some("mine".to_owned()),
            "OPENAI_API_KEY" => Some(" ".to_owned()),
            _ => None,
        };
        let found =
            |variable: &str, value: &str| Key::Found { variable: variable.into(), value: value.into() };
        assert_eq!(Provider::GitHubModels.key(None, &env), found("GH_TOKEN", "gh"));
        assert_eq!(Provider::GitHubModels.key(Some("MINE"), &env), found("MINE", "mine"));
        assert_eq!(Provider::Ollama.key(Some("MINE"), &env), found("MINE", "mine"));
        assert_eq!(Provider::Ollama.key(None, &env), Key::NotNeeded);
        assert_eq!(Provider::OpenAi.key(None, &env), Key::Missing { variable: "OPENAI_API_KEY".into() });
        assert_eq!(format!("{:?}", Provider::GitHubModels.key(None, &env)), "Found(GH_TOKEN)");
    }

    #[test]
    fn every_name_is_a_provider_and_every_provider_has_one() {
        let named: Vec<&str> =
            Provider::ALL.iter().flat_map(|provider| provider.facts().names).copied().collect();
        assert_eq!(named, Provider::NAMES);
        for name in Provider::NAMES {
            assert!(Provider::from_name(name).is_some(), "{name}");
        }
        assert_eq!(Provider::from_name("llama"), Some(Provider::Ollama));
        assert_eq!(Provider::from_name("skynet"), None);
    }
}
