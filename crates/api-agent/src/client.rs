//! The one place that talks to the network.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Zoned};
use serde_json::Value;
use ureq::http::{HeaderMap, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};
use wiggum_agents::api;
use wiggum_core::event::{Trouble, Usage};

use crate::answer::{Answer, Spoilt};
use crate::protocol::{Assembly, Question};
use crate::provider::{Protocol, Provider};
use crate::sse::Events;

/// How much of an error's page is read.
const ERROR_LIMIT: u64 = 64 * 1024;
/// How much of it is shown if it is none that we know how to read.
const ERROR_SHOWN: usize = 300;

/// How long a provider may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Duration,
    /// For the whole head of the answer. A local server first loads the model.
    pub first_byte: Duration,
    /// Without a byte, at any time.
    pub silence: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let patience = Duration::from_secs(300);
        Self { connect: Duration::from_secs(20), first_byte: patience, silence: patience }
    }
}

pub(crate) struct Client {
    agent: Agent,
    protocol: Protocol,
    url: String,
    headers: Vec<(&'static str, String)>,
}

/// What is known of an answer that broke off: the provider asks money for it all the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Partial {
    /// What the provider had told so far.
    pub(crate) told: Option<Usage>,
    /// How many bytes of text the model had written.
    pub(crate) written: usize,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) trouble: Trouble,
    pub(crate) message: String,
}

impl Client {
    pub(crate) fn new(provider: Provider, base_url: &str, key: Option<&str>, timeouts: Timeouts) -> Self {
        let protocol = provider.protocol();
        let base_url = base_url.trim_end_matches('/');
        let own = provider.headers().iter().map(|(name, value)| (*name, (*value).to_owned()));
        let key = key.map(|key| protocol.key_header(key.trim()));
        Self {
            agent: agent(base_url, timeouts),
            protocol,
            url: format!("{base_url}{}", protocol.path()),
            headers: own.chain(key).collect(),
        }
    }

    /// Asks and waits for the whole answer. What the model says goes to `said` as it comes; if the answer
    /// breaks off, `partial` has what there is of it.
    pub(crate) fn ask(
        &self,
        question: &Question<'_>,
        said: &mut dyn FnMut(&str),
        partial: &mut Option<Partial>,
    ) -> Result<Answer, Fault> {
        let body = self.protocol.body(question).to_string();
        let mut request = self.agent.post(&self.url).header("content-type", "application/json");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let response = request.send(&body).map_err(|error| self.unreachable(&error))?;
        if response.status() != 200 {
            return Err(refused(response));
        }
        let mut assembly = self.protocol.assembly();
        let read = read(response, assembly.as_mut(), said);
        let (told, written) = (assembly.used(), assembly.written());
        let answer = read.and_then(|()| assembly.finish().map_err(|spoilt| of_spoilt(&spoilt)));
        *partial = (answer.is_err() && (told.is_some() || written > 0)).then_some(Partial { told, written });
        answer
    }

    fn unreachable(&self, error: &ureq::Error) -> Fault {
        Fault { trouble: Trouble::Network, message: format!("{}: {error}", self.url) }
    }
}

/// Reads an answer to its end, or to where it breaks off.
fn read(
    response: Response<Body>,
    assembly: &mut dyn Assembly,
    said: &mut dyn FnMut(&str),
) -> Result<(), Fault> {
    let mut spoilt = None;
    let mut events = Events::default();
    let mut reader = response.into_body().into_reader();
    let mut buffer = vec![0; 16 * 1024];
    while spoilt.is_none() && !assembly.is_over() {
        let mut take = |data: &str| {
            if spoilt.is_none() {
                spoilt = assembly.read(data, said).err();
            }
        };
        match reader.read(&mut buffer) {
            Ok(0) => {
                events.finish(&mut take);
                break;
            }
            Ok(count) => events
                .push(&buffer[..count], &mut take)
                .map_err(|error| Fault { trouble: Trouble::Other, message: error.to_string() })?,
            Err(error) => return Err(broken(&error)),
        }
    }
    spoilt.map_or(Ok(()), |spoilt| Err(of_spoilt(&spoilt)))
}

fn agent(base_url: &str, timeouts: Timeouts) -> Agent {
    let mut config = Agent::config_builder()
        .user_agent(concat!("wiggum/", env!("CARGO_PKG_VERSION")))
        .http_status_as_error(false)
        // The key is for the address that was configured, and for no other.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(timeouts.connect))
        .timeout_recv_response(Some(timeouts.first_byte))
        .timeout_per_read(Some(timeouts.silence));
    if base_url.starts_with("https:") {
        config = config.tls_config(tls());
    }
    config.build().into()
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

fn broken(error: &std::io::Error) -> Fault {
    Fault { trouble: Trouble::Network, message: format!("the provider's answer broke off: {error}") }
}

fn of_spoilt(spoilt: &Spoilt) -> Fault {
    let message = spoilt.to_string();
    let trouble = match spoilt {
        Spoilt::Error { kind, .. } => api::trouble(None, &format!("{kind}: {message}"), &Zoned::now()),
        Spoilt::NotJson(_) => Trouble::Other,
        Spoilt::Incomplete => Trouble::Truncated,
    };
    Fault { trouble, message }
}

fn refused(response: Response<Body>) -> Fault {
    let status = response.status().as_u16();
    let now = Zoned::now();
    let wait = retry_after(response.headers(), &now);
    let mut page = Vec::new();
    let body = response.into_body().into_reader().take(ERROR_LIMIT).read_to_end(&mut page);
    let page = if body.is_ok() { String::from_utf8_lossy(&page).into_owned() } else { String::new() };
    fault(status, wait, &page, &now)
}

/// What an answer with another status than 200 means.
fn fault(status: u16, wait: Option<Duration>, page: &str, now: &Zoned) -> Fault {
    let (kind, said) = told(page);
    let message = format!("HTTP {status}: {said}");
    let trouble = match status {
        // Nothing at this address, or no such model: a person has to look, not the task to be retried.
        404 => Trouble::Authentication,
        _ => api::trouble(Some(status), &format!("{kind}: {said}"), now),
    };
    let resets_at = wait
        .and_then(|wait| SignedDuration::try_from(wait).ok())
        .and_then(|wait| now.timestamp().checked_add(wait).ok());
    let trouble = match (trouble, resets_at) {
        (Trouble::UsageLimit { resets_at: None }, _) => Trouble::UsageLimit { resets_at },
        (Trouble::Overloaded, Some(at)) if status == 429 => Trouble::UsageLimit { resets_at: Some(at) },
        (trouble, _) => trouble,
    };
    Fault { trouble, message }
}

/// The provider's word for an error, and its sentence.
fn told(page: &str) -> (String, String) {
    let shown = || page[..page.floor_char_boundary(ERROR_SHOWN)].trim().to_owned();
    let Ok(json) = serde_json::from_str::<Value>(page) else { return (String::new(), shown()) };
    let error = json.get("error").filter(|error| !error.is_null()).unwrap_or(&json);
    match Spoilt::of(error) {
        Spoilt::Error { kind, message } if !message.is_empty() => (kind, message),
        _ => (String::new(), shown()),
    }
}

/// How long to wait: a number, or the date of its end.
fn retry_after(headers: &HeaderMap, now: &Zoned) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |name: &str| text(name)?.parse::<f64>().ok();
    let milliseconds = number("retry-after-ms").map(|milliseconds| milliseconds / 1000.0);
    if let Some(seconds) = milliseconds.or_else(|| number("retry-after")) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let end = jiff::fmt::rfc2822::parse(text("retry-after")?).ok()?;
    end.timestamp().duration_since(now.timestamp()).try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-11-15T12:00:00+00:00[UTC]".parse().unwrap()
    }

    #[track_caller]
    fn check(status: u16, wait: Option<u64>, page: &str, trouble: &str, message: &str) {
        let fault = fault(status, wait.map(Duration::from_secs), page, &now());
        assert_eq!((fault.trouble.to_string().as_str(), fault.message.as_str()), (trouble, message));
    }

    #[test]
    fn what_a_refusal_means_is_known_by_status_words_and_headers() {
        let overloaded = "the provider is overloaded";
        let login = "not logged in, or not permitted";
        let page = |kind: &str, message: &str| {
            format!("{{\"error\": {{\"type\": \"{kind}\", \"message\": \"{message}\"}}}}")
        };
        check(429, None, &page("rate_limit_error", "slow down"), overloaded, "HTTP 429: slow down");
        check(
            429,
            Some(90),
            &page("rate_limit_error", "slow down"),
            "usage limit until 2026-11-15T12:01:30Z",
            "HTTP 429: slow down",
        );
        let quota = "You exceeded your current quota";
        check(429, None, &page("insufficient_quota", quota), "usage limit", &format!("HTTP 429: {quota}"));
        check(529, Some(9), &page("overloaded_error", "Overloaded"), overloaded, "HTTP 529: Overloaded");
        check(503, None, "<html>busy</html>", overloaded, "HTTP 503: <html>busy</html>");
        check(401, None, &page("x", "bad key"), login, "HTTP 401: bad key");
        check(404, None, "{\"error\": \"model 'm' not found\"}", login, "HTTP 404: model 'm' not found");
        let long = "This model's maximum context length is 8192 tokens";
        check(400, None, &page("x", long), "the model's context is full", &format!("HTTP 400: {long}"));
        check(
            413,
            None,
            "{\"message\": \"too large\"}",
            "the model's context is full",
            "HTTP 413: too large",
        );
        check(400, None, &page("invalid_request_error", "bad tool"), "failed", "HTTP 400: bad tool");
        check(301, None, "", "failed", "HTTP 301: ");
    }

    #[test]
    fn the_wait_is_read_in_seconds_and_milliseconds() {
        let headers = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, ureq::http::HeaderValue::from_static(value));
            retry_after(&headers, &now())
        };
        assert_eq!(headers("retry-after", "30"), Some(Duration::from_secs(30)));
        assert_eq!(headers("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        let date = headers("retry-after", "Sun, 15 Nov 2026 12:02:00 GMT");
        assert_eq!(date, Some(Duration::from_secs(120)));
        assert_eq!(headers("retry-after", "Sun, 15 Nov 2026 11:00:00 GMT"), None);
        assert_eq!(headers("retry-after", "-1"), None);
        assert_eq!(headers("retry-after", "soon"), None);
    }
}
