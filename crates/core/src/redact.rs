//! Keeps secrets out of what is stored and shown: their values are replaced wherever they appear in
//! a stream, also where it is cut into portions.

use std::borrow::Cow;

use serde_json::Value;

/// Shorter values are words: replacing them would destroy more than it hides.
const MIN_SECRET: usize = 8;

/// Does a variable of this name hold a secret? By the names people give them.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words: Vec<&str> = name.split('_').collect();
    let is = |word: &str| words.contains(&word);
    [
        "TOKEN",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "CREDENTIALS",
        "APIKEY",
        "PAT",
        // Whoever knows the address may speak there.
        "WEBHOOK",
    ]
    .into_iter()
    .any(is)
        || (is("KEY") && words.len() > 1 && !is("PUBLIC"))
        || name.ends_with("TOKEN") && name != "TOKENIZERS_PARALLELISM"
        || name.ends_with("PASSWORD")
}

/// Parameters as they may be shown: without what stands under a name that secrets have.
pub fn params(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let shown = fields.iter().map(|(name, value)| {
                let hidden = is_secret_name(name) && !value.is_object();
                (name.clone(), if hidden { Value::from("[redacted]") } else { params(value) })
            });
            Value::Object(shown.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(params).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The values to hide, each with the name to show instead.
#[derive(Clone, Debug)]
pub struct Secrets {
    /// The longest first, so that a secret inside another does not cut it in half.
    values: Vec<(Vec<u8>, String)>,
    /// Bytes that a value begins with.
    begins: [bool; 256],
}

impl Secrets {
    /// Of variables with these names and values, those that hold secrets.
    pub fn among(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let values = variables
            .into_iter()
            .filter(|(name, value)| is_secret_name(name) && value.trim().len() >= MIN_SECRET)
            .map(|(name, value)| (value.trim().as_bytes().to_vec(), format!("[{name} redacted]")));
        Self::of(values.collect())
    }

    /// With another value to be replaced, however short it is.
    #[must_use]
    pub fn and(self, value: &str, shown: &str) -> Self {
        let mut values = self.values;
        values.push((value.as_bytes().to_vec(), shown.to_owned()));
        values.retain(|(value, _)| !value.is_empty());
        Self::of(values)
    }

    fn of(mut values: Vec<(Vec<u8>, String)>) -> Self {
        values.sort_by(|(one, _), (other, _)| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        values.dedup_by(|(one, _), (other, _)| one == other);
        let mut begins = [false; 256];
        for (value, _) in &values {
            begins[usize::from(value[0])] = true;
        }
        Self { values, begins }
    }

    /// The text without secrets.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut hidden = Cow::Borrowed(text);
        for (value, shown) in &self.values {
            if let Ok(value) = std::str::from_utf8(value)
                && hidden.contains(value)
            {
                hidden = Cow::Owned(hidden.replace(value, shown));
            }
        }
        hidden
    }

    /// The bytes without secrets, up to where more has to be seen first.
    fn replace(&self, bytes: &[u8], wait_for_more: impl Fn(&Self, &[u8]) -> bool) -> (Vec<u8>, usize) {
        let mut passed = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let next = bytes[at..].iter().position(|byte| self.begins[usize::from(*byte)]);
            let Some(next) = next.map(|next| at + next) else { break };
            passed.extend_from_slice(&bytes[at..next]);
            at = next;
            let rest = &bytes[at..];
            if wait_for_more(self, rest) {
                return (passed, at);
            }
            match self.at(rest) {
                Some((value, shown)) => {
                    passed.extend_from_slice(shown.as_bytes());
                    at += value.len();
                }
                None => {
                    passed.push(bytes[at]);
                    at += 1;
                }
            }
        }
        passed.extend_from_slice(&bytes[at..]);
        (passed, bytes.len())
    }

    fn at(&self, bytes: &[u8]) -> Option<&(Vec<u8>, String)> {
        self.values.iter().find(|(value, _)| bytes.starts_with(value))
    }

    fn may_begin_with(&self, bytes: &[u8]) -> bool {
        self.values.iter().any(|(value, _)| value.len() > bytes.len() && value.starts_with(bytes))
    }
}

/// One stream without secrets.
#[derive(Clone, Debug)]
pub struct Redactor {
    secrets: Secrets,
    /// The end of what came so far, while it may be the beginning of a secret.
    held: Vec<u8>,
}

impl Redactor {
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, held: Vec::new() }
    }

    /// What can be passed on now.
    pub fn push<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if self.secrets.values.is_empty() {
            return Cow::Borrowed(bytes);
        }
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let (passed, rest) = self.secrets.replace(&held, Secrets::may_begin_with);
        self.held = held[rest..].to_vec();
        Cow::Owned(passed)
    }

    /// What was held back to the end.
    pub fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        self.secrets.replace(&held, |_, _| false).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        let variables =
            [("API_TOKEN", "abcabcabd"), ("DB_PASSWORD", "abcabcabd-longer"), ("HOME", "/base/me12345")];
        Secrets::among(variables.map(|(name, value)| (name.to_owned(), value.to_owned())))
    }

    #[test]
    fn names_of_secrets() {
        for name in [
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "OPENAI_API_KEY",
            "PGPASSWORD",
            "npm_token",
            "GH_PAT",
            "SLACK_WEBHOOK_URL",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in
            ["PATH", "HOME", "KEYBOARD", "KEY", "SSH_PUBLIC_KEY", "TOKENIZERS_PARALLELISM", "MONKEY_BUSINESS"]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_secret_is_hidden_however_it_is_cut() {
        let text = b"x abcabcabcabd y abcabcabd-longer z abcabcab";
        let expected = "x abc[API_TOKEN redacted] y [DB_PASSWORD redacted] z abcabcab";
        for size in 1..text.len() {
            let mut redactor = Redactor::new(secrets());
            let mut seen: Vec<u8> =
                text.chunks(size).flat_map(|part| redactor.push(part).into_owned()).collect();
            seen.extend(redactor.finish());
            assert_eq!(String::from_utf8(seen).unwrap(), expected, "in portions of {size}");
        }
        assert_eq!(secrets().hide("abcabcabd!"), "[API_TOKEN redacted]!");
    }

    #[test]
    fn short_values_and_plain_variables_are_left_alone() {
        let secrets = Secrets::among([("API_KEY".to_owned(), "short".to_owned())]);
        assert_eq!(secrets.hide("short"), "short");
        assert_eq!(self::secrets().hide("/base/me12345"), "/base/me12345");
    }
}
