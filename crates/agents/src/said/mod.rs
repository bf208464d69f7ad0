//! What agents say when something is the matter with them, read from their words.
//!
//! Most agents tell a usage limit, a failed login or an overloaded provider only in a sentence for
//! people. The sentences known so far are here, for all drivers. Where they may stand among a
//! program's ordinary output ([`in_output`]), only those count that nobody writes by accident.

mod reset;

use jiff::Zoned;
use wiggum_core::event::Trouble;

pub(crate) use reset::reset_time;

/// How much of the end of a plain text may tell why its program failed. Agents complain last.
const LAST_LINES: usize = 12;
/// Longer lines are data rather than complaints.
const LONGEST_COMPLAINT: usize = 600;

/// Reads a message that is known to be an agent's complaint.
pub fn in_complaint(text: &str, now: &Zoned) -> Option<Trouble> {
    let text = plain(text);
    kind_in(&text, Place::Complaint).map(|kind| kind.trouble(&text, now))
}

/// Reads a line of which it is not known whether it is a complaint. The time is asked for only then.
pub fn in_line(line: &str, now: impl FnOnce() -> Zoned) -> Option<Trouble> {
    let text = plain(line);
    kind_in(&text, Place::Output).map(|kind| kind.trouble(&text, &now()))
}

/// Reads the last lines of a failed program's output. Gives the line too, as the program's words.
pub(crate) fn in_output(text: &str, now: &Zoned) -> Option<(Trouble, String)> {
    last_lines(text).filter(|line| line.len() <= LONGEST_COMPLAINT).find_map(|line| {
        let text = plain(&line);
        let kind = kind_in(&text, Place::Output)?;
        Some((kind.trouble(&text, now), line))
    })
}

/// What a failed program said about it, for people: its last line about an error, or just its last.
pub(crate) fn last_words(text: &str) -> String {
    let error = last_lines(text).find(|line| plain(line).starts_with("error"));
    error.or_else(|| last_lines(text).next()).unwrap_or_default()
}

/// The last first, without colours.
fn last_lines(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().rev().map(uncoloured).map(|line| line.trim().to_owned());
    lines.filter(|line| !line.is_empty()).take(LAST_LINES)
}

fn uncoloured(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(
            part.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ';')
                .get(1..)
                .unwrap_or_default(),
        );
    }
    text
}

/// Reads a complaint where it does not matter when a limit ends.
pub(crate) fn without_time(text: &str) -> Option<Trouble> {
    let text = plain(text);
    kind_in(&text, Place::Complaint).map(Kind::without_time)
}

/// What an answer's HTTP status means.
pub(crate) fn by_status(status: u16) -> Option<Trouble> {
    Kind::of_status(status).map(Kind::without_time)
}

/// Where words were found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Place {
    /// Among ordinary output.
    Output,
    /// In a message that is a complaint.
    Complaint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    UsageLimit,
    /// A limit on requests in a short time. One with a known end is waited for as any allowance.
    TooFast,
    ContextFull,
    Authentication,
    Overloaded,
    Network,
    SessionLost,
}

impl Kind {
    fn trouble(self, text: &str, now: &Zoned) -> Trouble {
        match self {
            Self::UsageLimit => Trouble::UsageLimit { resets_at: reset_time(text, now) },
            Self::TooFast => match reset_time(text, now) {
                Some(at) => Trouble::UsageLimit { resets_at: Some(at) },
                None => Trouble::Overloaded,
            },
            Self::ContextFull
            | Self::Authentication
            | Self::Overloaded
            | Self::Network
            | Self::SessionLost => self.without_time(),
        }
    }

    fn without_time(self) -> Trouble {
        match self {
            Self::UsageLimit => Trouble::UsageLimit { resets_at: None },
            Self::TooFast | Self::Overloaded => Trouble::Overloaded,
            Self::ContextFull => Trouble::ContextFull,
            Self::Authentication => Trouble::Authentication,
            Self::Network => Trouble::Network,
            Self::SessionLost => Trouble::SessionLost,
        }
    }

    fn of_status(status: u16) -> Option<Self> {
        match status {
            401 | 403 => Some(Self::Authentication),
            402 => Some(Self::UsageLimit),
            408 => Some(Self::Network),
            413 => Some(Self::ContextFull),
            429 => Some(Self::TooFast),
            500..=599 => Some(Self::Overloaded),
            _ => None,
        }
    }
}

/// Words, what they mean, and the place where they are clear enough. `…` stands for anything on the
/// same line. The first that fits counts: what says when it ends stands before what only says that
/// there were too many requests.
const PHRASES: &[(Kind, Place, &str)] = &[
    (Kind::UsageLimit, Place::Output, "usage limit reached"),
    (Kind::UsageLimit, Place::Output, "hit your…limit"),
    (Kind::UsageLimit, Place::Output, "reached your…limit"),
    (Kind::UsageLimit, Place::Output, "limit reached…resets"),
    (Kind::UsageLimit, Place::Output, "hour limit reached"),
    (Kind::UsageLimit, Place::Output, "weekly limit reached"),
    (Kind::UsageLimit, Place::Output, "session limit reached"),
    (Kind::UsageLimit, Place::Output, "usage limit has been reached"),
    (Kind::UsageLimit, Place::Output, "usage_limit_reached"),
    (Kind::UsageLimit, Place::Output, "exceeded your current quota"),
    (Kind::UsageLimit, Place::Output, "insufficient_quota"),
    (Kind::UsageLimit, Place::Output, "credit balance is too low"),
    (Kind::UsageLimit, Place::Output, "exceeded your premium request"),
    (Kind::UsageLimit, Place::Output, "exhausted your daily quota"),
    (Kind::UsageLimit, Place::Output, "exhausted your capacity"),
    (Kind::UsageLimit, Place::Output, "quota will reset"),
    (Kind::UsageLimit, Place::Complaint, "quota exceeded"),
    (Kind::UsageLimit, Place::Complaint, "quota_exceeded"),
    (Kind::UsageLimit, Place::Complaint, "out of credits"),
    (Kind::UsageLimit, Place::Complaint, "insufficient credits"),
    (Kind::UsageLimit, Place::Complaint, "insufficient balance"),
    (Kind::ContextFull, Place::Output, "prompt is too long"),
    (Kind::ContextFull, Place::Output, "context_length_exceeded"),
    (Kind::ContextFull, Place::Output, "contextwindowexceeded"),
    (Kind::ContextFull, Place::Output, "maximum context length"),
    (Kind::ContextFull, Place::Output, "ran out of room in the model's context"),
    (Kind::ContextFull, Place::Complaint, "exceed…context window"),
    (Kind::ContextFull, Place::Complaint, "context window exceeded"),
    (Kind::ContextFull, Place::Complaint, "token count…exceeds the maximum"),
    (Kind::ContextFull, Place::Complaint, "prompt token count…exceeds the limit"),
    (Kind::SessionLost, Place::Output, "no conversation found with session id"),
    (Kind::SessionLost, Place::Output, "session id…is already in use"),
    (Kind::SessionLost, Place::Output, "no rollout found for thread id"),
    (Kind::SessionLost, Place::Output, "no session, task, or name matched"),
    (Kind::SessionLost, Place::Output, "error: session not found"),
    (Kind::SessionLost, Place::Output, "error resuming session"),
    (Kind::SessionLost, Place::Complaint, "session not found"),
    (Kind::SessionLost, Place::Complaint, "no session…found"),
    (Kind::Authentication, Place::Output, "not logged in"),
    (Kind::Authentication, Place::Output, "please run /login"),
    (Kind::Authentication, Place::Output, "invalid api key"),
    (Kind::Authentication, Place::Output, "invalid x-api-key"),
    (Kind::Authentication, Place::Output, "incorrect api key provided"),
    (Kind::Authentication, Place::Output, "api key not valid"),
    (Kind::Authentication, Place::Output, "no authentication information found"),
    (Kind::Authentication, Place::Output, "failed to authenticate"),
    (Kind::Authentication, Place::Output, "litellm.authenticationerror"),
    (Kind::Authentication, Place::Output, "please set an auth method"),
    (Kind::Authentication, Place::Complaint, "authentication"),
    (Kind::Authentication, Place::Complaint, "unauthorized"),
    (Kind::Authentication, Place::Complaint, "permission denied on resource"),
    (Kind::Authentication, Place::Complaint, "api key"),
    (Kind::Authentication, Place::Complaint, "api_key"),
    (Kind::Authentication, Place::Complaint, "oauth token"),
    (Kind::Authentication, Place::Complaint, "model…not found"),
    (Kind::Authentication, Place::Complaint, "model…does not exist"),
    (Kind::Authentication, Place::Complaint, "model…not supported"),
    (Kind::TooFast, Place::Output, "rate_limit_error"),
    (Kind::TooFast, Place::Output, "litellm.ratelimiterror"),
    (Kind::TooFast, Place::Output, "429 too many requests"),
    (Kind::TooFast, Place::Output, "rate limit reached for"),
    (Kind::TooFast, Place::Complaint, "rate limit"),
    (Kind::TooFast, Place::Complaint, "too many requests"),
    (Kind::TooFast, Place::Complaint, "resource_exhausted"),
    (Kind::TooFast, Place::Complaint, "resource has been exhausted"),
    (Kind::Overloaded, Place::Output, "overloaded_error"),
    (Kind::Overloaded, Place::Output, "503 service unavailable"),
    (Kind::Overloaded, Place::Output, "litellm.internalservererror"),
    (Kind::Overloaded, Place::Output, "litellm.serviceunavailableerror"),
    (Kind::Overloaded, Place::Output, "we're currently experiencing high demand"),
    (Kind::Overloaded, Place::Output, "selected model is at capacity"),
    (Kind::Overloaded, Place::Complaint, "overloaded"),
    (Kind::Overloaded, Place::Complaint, "internal server error"),
    (Kind::Overloaded, Place::Complaint, "service unavailable"),
    (Kind::Overloaded, Place::Complaint, "bad gateway"),
    (Kind::Overloaded, Place::Complaint, "at capacity"),
    (Kind::Network, Place::Output, "unable to connect to api"),
    (Kind::Network, Place::Output, "litellm.apiconnectionerror"),
    (Kind::Network, Place::Output, "stream disconnected before completion"),
    (Kind::Network, Place::Complaint, "econn"),
    (Kind::Network, Place::Complaint, "enotfound"),
    (Kind::Network, Place::Complaint, "etimedout"),
    (Kind::Network, Place::Complaint, "eai_again"),
    (Kind::Network, Place::Complaint, "fetch failed"),
    (Kind::Network, Place::Complaint, "connection error"),
    (Kind::Network, Place::Complaint, "connection refused"),
    (Kind::Network, Place::Complaint, "connection reset"),
    (Kind::Network, Place::Complaint, "connection closed"),
    (Kind::Network, Place::Complaint, "socket"),
    (Kind::Network, Place::Complaint, "network error"),
    (Kind::Network, Place::Complaint, "could not connect"),
    (Kind::Network, Place::Complaint, "cannot connect"),
    (Kind::Network, Place::Complaint, "error sending request"),
    (Kind::Network, Place::Complaint, "request timed out"),
    (Kind::Network, Place::Complaint, "timed out"),
];

fn kind_in(text: &str, place: Place) -> Option<Kind> {
    kind_of(text, place).or_else(|| status_in(text, place))
}

fn kind_of(text: &str, place: Place) -> Option<Kind> {
    if place == Place::Output && reports_tests(text) {
        return None;
    }
    PHRASES
        .iter()
        .filter(|(_, clear_in, _)| *clear_in <= place)
        .find(|(_, _, phrase)| text.lines().any(|line| says(line, phrase)))
        .map(|(kind, _, _)| *kind)
}

/// The report of a test about such words, a line of code or of a list: not a program's own complaint.
fn reports_tests(line: &str) -> bool {
    let starts =
        ["test ", "fail ", "ok ", "not ok ", "pass ", "✓", "✗", "- ", "+ ", "* ", "# ", "> ", "| ", "//"];
    starts.iter().any(|start| line.starts_with(start)) || line.contains("assert")
}

fn says(line: &str, phrase: &str) -> bool {
    let mut rest = line;
    phrase.split('…').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// A status that is named as one: "API Error: 529", "status 503", "HTTP 401".
fn status_in(text: &str, place: Place) -> Option<Kind> {
    let names: &[&str] = match place {
        Place::Output => &["api error: ", "last status: "],
        Place::Complaint => {
            &["error: ", "error ", "status: ", "status ", "status code ", "code: ", "\"code\":", "http ", "("]
        }
    };
    names.iter().find_map(|name| {
        text.match_indices(name).find_map(|(at, _)| {
            let digits: String =
                text[at + name.len()..].chars().take_while(char::is_ascii_digit).take(4).collect();
            if digits.len() == 3 { Kind::of_status(digits.parse().ok()?) } else { None }
        })
    })
}

/// Small letters, and the apostrophe that keyboards have.
fn plain(text: &str) -> String {
    text.to_lowercase().replace(['’', '‘'], "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-11-15T12:00:00+00:00[UTC]".parse().unwrap()
    }

    #[track_caller]
    fn complaint(text: &str, expected: &str) {
        let trouble = in_complaint(text, &now()).map_or("nothing".to_owned(), |trouble| trouble.to_string());
        assert_eq!(trouble, expected, "{text}");
    }

    #[track_caller]
    fn output(text: &str, expected: &str) {
        let said = in_output(text, &now()).map_or("nothing".to_owned(), |(trouble, _)| trouble.to_string());
        assert_eq!(said, expected, "{text}");
    }

    #[test]
    fn limits_are_read_with_their_end() {
        output("Claude AI usage limit reached|1794729540", "usage limit until 2026-11-15T07:59:00Z");
        output(
            "You've hit your session limit · resets 7:35pm (UTC)",
            "usage limit until 2026-11-15T19:35:00Z",
        );
        output(
            "You've hit your weekly limit · resets Nov 18, 9am (UTC)",
            "usage limit until 2026-11-18T09:00:00Z",
        );
        output("5-hour limit reached ∙ resets 3pm (UTC)", "usage limit until 2026-11-15T15:00:00Z");
        complaint(
            "You’ve hit your usage limit. Upgrade to Pro (https://x.y/z) or try again at 7:43 PM.",
            "usage limit until 2026-11-15T19:43:00Z",
        );
        output("You've hit your 5-hour limit", "usage limit");
        output("5-hour limit reached", "usage limit");
        output("Weekly limit reached for this model.", "usage limit");
        complaint("Session limit reached", "usage limit");
        complaint("Quota exceeded. Check your plan and billing details.", "usage limit");
        complaint(
            "You have exhausted your capacity on this model. Your quota will reset after 1h30m.",
            "usage limit until 2026-11-15T13:30:00Z",
        );
        complaint(
            "Rate limit reached for gpt-5. Please try again in 20s.",
            "usage limit until 2026-11-15T12:00:20Z",
        );
        complaint("exceeded retry limit, last status: 429 Too Many Requests", "the provider is overloaded");
    }

    #[test]
    fn other_troubles_are_told_apart() {
        complaint("We’re currently experiencing high demand, retry later", "the provider is overloaded");
        complaint("API Error: 529 {\"type\":\"error\"}", "the provider is overloaded");
        complaint("API Error: Unable to connect to API (ECONNRESET)", "the provider cannot be reached");
        complaint("Invalid API key · Fix external API key", "not logged in, or not permitted");
        complaint("unexpected status 401 Unauthorized: no", "not logged in, or not permitted");
        complaint("Prompt is too long", "the model's context is full");
        complaint("No conversation found with session ID: 1-2", "its session is not known any more");
        complaint("Something else happened", "nothing");
    }

    #[test]
    fn only_the_last_lines_of_an_output_count() {
        let later = "still working\n".repeat(LAST_LINES);
        output(&format!("Invalid API key\n{later}"), "nothing");
        output("working\n\nInvalid API key\n\n", "not logged in, or not permitted");
        let said = in_output("a\n  API Error: 529 Overloaded  \nb", &now()).unwrap();
        assert_eq!(said, (Trouble::Overloaded, "API Error: 529 Overloaded".to_owned()));
    }

    #[test]
    fn ordinary_output_is_not_mistaken_for_a_complaint() {
        for text in [
            "error: test failed, to rerun pass `--lib`",
            "test api::rate_limit_error_is_shown ... FAILED",
            "- usage limit reached is now shown to users",
            "assertion failed: message.contains(\"invalid api key\")",
            "connection refused (os error 111)",
            "Error: 503",
            "expected 401, got 200",
            "I could not finish: the rate limit test is flaky and the socket timed out.",
            "thread 'main' panicked at src/main.rs:429:5",
            "Added authentication and API key handling",
        ] {
            output(text, "nothing");
        }
    }
}
