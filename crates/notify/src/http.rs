//! The one place that posts. Addresses and tokens never leave it in an error.

use std::io::Read;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use ureq::Agent;
use ureq::http::HeaderMap;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use wiggum_core::redact::Secrets;
use wiggum_engine::words::one_line;

use crate::retry::Again;
use crate::send::Outcome;
use crate::shapes::Post;
use crate::target::{Address, Target, Way};

/// How much of an answer is read.
const ANSWER: u64 = 4096;
/// How much of it is shown if it is a refusal.
const SHOWN: usize = 160;

pub(crate) struct Client {
    agent: Agent,
    host: String,
    secrets: Secrets,
}

impl Client {
    pub(crate) fn for_target(target: &Target) -> Self {
        let (to, token) = match &target.way {
            Way::Webhook { to, .. } | Way::Slack { to } | Way::Discord { to } => (Some(to), None),
            Way::Ntfy { to, token } => (Some(to), token.as_ref()),
            Way::Telegram { to, token, .. } => (Some(to), Some(token)),
            Way::Desktop | Way::Bell | Way::Command { .. } | Way::Unusable { .. } => (None, None),
        };
        let mut secrets = to.map_or_else(|| Secrets::among([]), hidden);
        if let Some(token) = token {
            secrets = secrets.and(token.reveal(), "…");
        }
        let host = to.map_or_else(String::new, |to| to.host().to_owned());
        let encrypted = to.is_some_and(|to| to.url().starts_with("https:"));
        let mut config = Agent::config_builder()
            .user_agent(concat!("wiggum/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            // What is in the address, the headers and the body is for this receiver, and for no other.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(target.timeout));
        if encrypted {
            config = config.tls_config(tls());
        }
        Self { agent: config.build().into(), host, secrets }
    }

    pub(crate) fn post(&self, post: &Post, now: Timestamp) -> Outcome {
        let mut request = self.agent.post(&post.url).header("content-type", "application/json");
        for (name, value) in &post.headers {
            request = request.header(*name, value);
        }
        match request.send(&post.body) {
            Err(error) => self.failed(&format!("cannot be reached: {error}"), Again::Later),
            Ok(response) => {
                let (status, headers) = (response.status().as_u16(), response.headers().clone());
                let mut answer = Vec::new();
                // Read also where it says nothing of interest, so that the connection can be used again.
                let read = response.into_body().into_reader().take(ANSWER).read_to_end(&mut answer);
                let answer = String::from_utf8_lossy(if read.is_ok() { &answer } else { &[] }).into_owned();
                match judge(status, &headers, &answer, now) {
                    None => Outcome::Sent,
                    Some(again) => self.failed(&format!("HTTP {status}{}", said(status, &answer)), again),
                }
            }
        }
    }

    fn failed(&self, problem: &str, again: Again) -> Outcome {
        let problem = self.secrets.hide(problem);
        Outcome::failed(one_line(&format!("{}: {problem}", self.host)), again)
    }
}

/// The address as a whole, and what of it stands behind the host.
fn hidden(to: &Address) -> Secrets {
    let behind = to.url().split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, p)| p);
    let parts = behind.split(['/', '?', '&', '=']).filter(|part| part.len() >= 8);
    let secrets = Secrets::among([]).and(to.url(), "…").and(behind, "…");
    parts.fold(secrets, |secrets, part| secrets.and(part, "…"))
}

/// Whom the system trusts: companies look into their connections with certificates of their own.
fn tls() -> TlsConfig {
    let found = rustls_native_certs::load_native_certs();
    let certificates = found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned());
    TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::from(certificates))
        .build()
}

/// Nothing if it was taken; else whether it is worth another try. Who is not let in may be let in once somebody
/// has mended the configuration, so only what is about the message itself counts as a refusal of it.
fn judge(status: u16, headers: &HeaderMap, answer: &str, now: Timestamp) -> Option<Again> {
    match status {
        200..300 => None,
        400 | 413 | 415 | 422 => Some(Again::Refused),
        410 => Some(Again::Never),
        _ => Some(retry_after(headers, answer, now).map_or(Again::Later, Again::After)),
    }
}

/// How long to wait: a number of seconds, the date of its end, or a number inside the answer.
fn retry_after(headers: &HeaderMap, answer: &str, now: Timestamp) -> Option<SignedDuration> {
    let seconds = |number: f64| SignedDuration::try_from_secs_f64(number).ok();
    if let Some(text) = headers.get("retry-after").and_then(|value| value.to_str().ok()).map(str::trim) {
        if let Ok(number) = text.parse::<f64>() {
            return seconds(number);
        }
        return Some(jiff::fmt::rfc2822::parse(text).ok()?.timestamp().duration_since(now));
    }
    let answer: Value = serde_json::from_str(answer).ok()?;
    let inside = answer.get("retry_after").or_else(|| answer.get("parameters")?.get("retry_after"))?;
    seconds(inside.as_f64()?)
}

fn said(status: u16, answer: &str) -> String {
    if (300..400).contains(&status) {
        return ", which leads elsewhere and is not followed".to_owned();
    }
    let answer = answer.trim();
    if answer.is_empty() || answer.starts_with('<') {
        return String::new();
    }
    format!(": {}", &answer[..answer.floor_char_boundary(SHOWN)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ureq::http::HeaderValue;

    fn now() -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn an_answer_says_whether_to_try_again() {
        let none = HeaderMap::new();
        let check = |status: u16, expected: Option<Again>| {
            assert_eq!(judge(status, &none, "", now()), expected, "{status}");
        };
        check(200, None);
        check(204, None);
        check(301, Some(Again::Later));
        check(400, Some(Again::Refused));
        check(401, Some(Again::Later));
        check(404, Some(Again::Later));
        check(410, Some(Again::Never));
        check(500, Some(Again::Later));
    }

    #[test]
    fn a_receiver_says_when_to_come_back() {
        let after = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("retry-after", HeaderValue::from_static(value));
            judge(429, &headers, "", now())
        };
        let wait = |seconds| Some(Again::After(SignedDuration::from_secs(seconds)));
        assert_eq!(after("30"), wait(30));
        assert_eq!(after("Sun, 15 Nov 2026 12:02:00 GMT"), wait(120));
        assert_eq!(after("soon"), Some(Again::Later));
        let telegram = r#"{"ok": false, "parameters": {"retry_after": 7}}"#;
        assert_eq!(judge(429, &HeaderMap::new(), telegram, now()), wait(7));
        let discord = r#"{"message": "slow", "retry_after": 2.0}"#;
        assert_eq!(judge(429, &HeaderMap::new(), discord, now()), wait(2));
    }

    #[test]
    fn no_part_of_an_address_is_told() {
        let to =
            Address::parse("https://hooks.example/services/T0/B0/verysecretpart?key=anothersecret").unwrap();
        let hidden = hidden(&to);
        let told =
            hidden.hide("no https://hooks.example/services/T0/B0/verysecretpart?key=anothersecret here");
        assert_eq!(told, "no … here");
        assert_eq!(hidden.hide("what is verysecretpart or anothersecret?"), "what is … or …?");
    }
}
