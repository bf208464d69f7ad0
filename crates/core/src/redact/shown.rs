//! Secrets in texts that others wrote, found without knowing them: by the shape of the tokens that services
//! give out, and by the names they stand under. For what is shown and recorded; what is used stays as it is.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use super::view::View;
use super::{REDACTED, is_secret_key, pem};
use crate::task::{Task, Work};

/// How a kind of token begins, and how many characters follow at least.
const SHAPES: [(&str, usize); 44] = [
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("gldt-", 16),
    ("glrt-", 16),
    ("glsa_", 20),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxc-", 10),
    ("xoxd-", 10),
    ("xoxe-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("sk-ant-", 10),
    ("sk-proj-", 10),
    ("sk-", 20),
    ("sk_live_", 10),
    ("sk_test_", 10),
    ("rk_live_", 10),
    ("rk_test_", 10),
    ("whsec_", 16),
    ("AIza", 30),
    ("ya29.", 20),
    ("npm_", 30),
    ("pypi-", 16),
    ("hf_", 20),
    ("gsk_", 20),
    ("xai-", 20),
    ("r8_", 30),
    ("pplx-", 20),
    ("nvapi-", 20),
    ("dop_v1_", 30),
    ("shpat_", 20),
    ("shpss_", 20),
    ("lin_api_", 20),
    ("hvs.", 20),
    ("SG.", 30),
    ("AGE-SECRET-KEY-", 20),
];

/// Keys of Amazon: this, and sixteen capitals and digits.
const AMAZON: [&str; 2] = ["AKIA", "ASIA"];
const AMAZON_LENGTH: usize = 20;
/// The first of the three parts of a JSON web token.
const WEB_TOKEN: &str = "eyJ";
/// A part of such a token is never shorter.
const WEB_TOKEN_PART: usize = 8;
/// No token without a dot in it is shorter.
const LEAST_TOKEN: usize = 15;
/// What follows `Bearer` and the like.
const LEAST_BEARER: usize = 16;
/// What stands under a name of a secret: `pass=x` is an example, `password: hunter2` is not.
const LEAST_ASSIGNED: usize = 4;
const LEAST_SAID: usize = 6;

/// The text without anything that looks like a secret.
pub fn text(text: &str) -> Cow<'_, str> {
    let found = spans(text);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (span, with) in found {
        out.push_str(&text[at..span.start]);
        out.push_str(&with);
        at = span.end;
    }
    out.push_str(&text[at..]);
    Cow::Owned(out)
}

/// The same of a line of JSON, which stays one of the same form.
pub fn json(line: &str) -> Cow<'_, str> {
    // An escaped letter hides what a token begins with.
    if spans(line).is_empty() && !line.contains("\\u") {
        return Cow::Borrowed(line);
    }
    match serde_json::from_str::<Value>(line) {
        Ok(value) => Cow::Owned(params(&value).to_string()),
        Err(_) => text(line),
    }
}

/// Parameters as they may be shown: also without anything that stands under a name that secrets have.
pub fn params(value: &Value) -> Value {
    hidden(value, false)
}

fn hidden(value: &Value, secret: bool) -> Value {
    match value {
        Value::Object(fields) => {
            let shown = fields
                .iter()
                .map(|(name, value)| (text(name).into_owned(), hidden(value, secret || is_secret_key(name))));
            Value::Object(shown.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| hidden(item, secret)).collect()),
        Value::Null | Value::Bool(_) => value.clone(),
        Value::Number(_) | Value::String(_) if secret => Value::from(REDACTED),
        Value::Number(_) => value.clone(),
        Value::String(said) => Value::from(text(said)),
    }
}

/// Work as it may be recorded. Who does it takes what is left out from the backlog itself.
pub fn work(work: &Work) -> Work {
    match work {
        Work::McpCall { server, tool, params: given } => {
            Work::McpCall { server: server.clone(), tool: tool.clone(), params: params(given) }
        }
        Work::File { path, content, overwrite } => {
            let content = text(content).into_owned();
            Work::File { path: path.clone(), content, overwrite: *overwrite }
        }
        Work::Notice { message } => Work::Notice { message: text(message).into_owned() },
        Work::Agent | Work::Command { .. } | Work::Gate { .. } | Work::Flow { .. } => work.clone(),
    }
}

/// Is it the same work, whether secrets were left out of it or not?
pub fn is_same_work(one: &Work, other: &Work) -> bool {
    one == other || work(one) == work(other)
}

/// Was something left out of this work?
pub fn is_redacted(work: &Work) -> bool {
    match work {
        Work::McpCall { params, .. } => params.to_string().contains(REDACTED),
        Work::File { content, .. } => content.contains(REDACTED),
        Work::Notice { message } => message.contains(REDACTED),
        Work::Agent | Work::Command { .. } | Work::Gate { .. } | Work::Flow { .. } => false,
    }
}

/// A task as it may be recorded.
pub fn task(mut task: Task) -> Task {
    if !task.work.is_agents() {
        task.work = work(&task.work);
    }
    task
}

/// What is to be replaced, in order, and by what.
fn spans(text: &str) -> Vec<(Range<usize>, String)> {
    let Some(view) = View::of(text) else { return spans_as_it_stands(text) };
    let found = spans_as_it_stands(&view.text).into_iter();
    found.map(|(span, with)| (view.original(&span), with)).collect()
}

fn spans_as_it_stands(text: &str) -> Vec<(Range<usize>, String)> {
    let bytes = text.as_bytes();
    let mut found: Vec<(Range<usize>, String)> = Vec::new();
    let mut at = 0;
    while let Some(ahead) = bytes[at..].iter().position(|byte| is_word(*byte)) {
        at += ahead;
        let end = bytes[at..].iter().position(|byte| !is_word(*byte)).map_or(bytes.len(), |end| at + end);
        let next = match secret_at(text, at, end) {
            Some((span, with)) => {
                let next = span.end;
                if text[span.clone()] != with {
                    found.push((span, with));
                }
                next
            }
            None => end,
        };
        at = next.max(end);
    }
    found
}

/// A secret that begins at this word, or that this word tells of.
fn secret_at(text: &str, start: usize, end: usize) -> Option<(Range<usize>, String)> {
    let plain = |span: Range<usize>| (span, REDACTED.to_owned());
    let (word, next) = (&text[start..end], text.as_bytes().get(end));
    // Nearly all words are shorter than any token.
    if (word.len() >= LEAST_TOKEN || next == Some(&b'.'))
        && let Some(length) = token(&text[start..])
    {
        return Some(plain(start..start + length));
    }
    if word.starts_with("-----BEGIN") {
        return private_key(text, start).map(plain);
    }
    if next == Some(&b':') && text[end..].starts_with("://") {
        return password_in_address(text, end + 3).map(plain);
    }
    if next == Some(&b' ') && ["bearer", "basic"].iter().any(|known| word.eq_ignore_ascii_case(known)) {
        return bearer(text, end).map(plain);
    }
    under_name(text, start, end)
}

/// How long the token is that the text begins with.
fn token(text: &str) -> Option<usize> {
    let first = *text.as_bytes().first()?;
    if !BEGINS_TOKEN[usize::from(first)] {
        return None;
    }
    let of = |allowed: fn(u8) -> bool| text.bytes().take_while(|byte| allowed(*byte)).count();
    for (prefix, least) in SHAPES {
        if prefix.as_bytes()[0] == first && text.starts_with(prefix) {
            let length = if prefix.ends_with('.') { of(is_dotted) } else { of(is_word) };
            if length >= prefix.len() + least {
                return Some(length);
            }
        }
    }
    if AMAZON.iter().any(|prefix| text.starts_with(prefix)) {
        let length = of(is_word);
        let is_key = text[..length].bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        return (is_key && length == AMAZON_LENGTH).then_some(length);
    }
    if text.starts_with(WEB_TOKEN) {
        let length = of(is_dotted);
        let parts: Vec<&str> = text[..length].trim_end_matches('.').split('.').collect();
        let is_token = parts.len() == 3 && parts.iter().all(|part| part.len() >= WEB_TOKEN_PART);
        return is_token.then_some(length);
    }
    None
}

/// What is inside a private key.
fn private_key(text: &str, start: usize) -> Option<Range<usize>> {
    let pem::Head::Is(head) = pem::head(&text.as_bytes()[start..]) else { return None };
    let (from, mut inside) = (start + head, pem::Inside::default());
    let to = match inside.pass(&text.as_bytes()[from..]) {
        pem::Passed::All => text.len(),
        pem::Passed::To { length, dash } => from + length - usize::from(dash),
    };
    (!inside.is_empty()).then(|| from..text.floor_char_boundary(to))
}

/// `https://user:password@host`.
fn password_in_address(text: &str, start: usize) -> Option<Range<usize>> {
    let ends = |c: char| c.is_whitespace() || "/?#\"'`<>\\".contains(c);
    let authority = &text[start..start + text[start..].find(ends).unwrap_or(text.len() - start)];
    let (user, _) = authority.rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    (!password.is_empty()).then(|| start + name.len() + 1..start + user.len())
}

fn bearer(text: &str, end: usize) -> Option<Range<usize>> {
    let said = text[end..].strip_prefix(' ')?;
    let length = said.bytes().take_while(|byte| is_dotted(*byte) || b"~+/=".contains(byte)).count();
    let has_digit = said[..length].bytes().any(|byte| byte.is_ascii_digit());
    (length >= LEAST_BEARER && has_digit).then(|| end + 1..end + 1 + length)
}

/// What stands under the name of a secret: `"password": "…"`, `password=…`, `password: …`. Quotes may be
/// escaped, in JSON that stands in a string.
fn under_name(text: &str, start: usize, end: usize) -> Option<(Range<usize>, String)> {
    let bytes = text.as_bytes();
    // Nearly all words are followed by something that gives no name to anything.
    if !matches!(bytes.get(end)?, b'"' | b'\'' | b'\\' | b' ' | b'\t' | b':' | b'=') {
        return None;
    }
    let quote = quote_before(text, start);
    let closing_quote = quote.unwrap_or_default();
    if !text[end..].starts_with(closing_quote) {
        return None;
    }
    let sign = after_blanks(bytes, end + closing_quote.len());
    let is_equals = match bytes.get(sign)? {
        b'=' => true,
        b':' => false,
        _ => return None,
    };
    if !is_secret_key(&text[start..end]) {
        return None;
    }
    let at = after_blanks(bytes, sign + 1);
    let value = &text[at..];
    if let Some(opened) = quote_at(value) {
        let inside = at + opened.len();
        let length = closing(&text[inside..], opened);
        return (length > 0).then(|| (inside..inside + length, REDACTED.to_owned()));
    }
    let ends = |c: char| c.is_whitespace() || ",;&{}[]()\"'`<>\\".contains(c);
    let length = value.find(ends).unwrap_or(value.len());
    let said = &value[..length];
    match quote {
        // A number, in JSON.
        Some(quote) => {
            let is_number = said.starts_with(|c: char| c.is_ascii_digit() || c == '-');
            is_number.then(|| (at..at + length, format!("{quote}{REDACTED}{quote}")))
        }
        None => {
            let has_digit = said.bytes().any(|byte| byte.is_ascii_digit());
            let is_one = if is_equals { length >= LEAST_ASSIGNED } else { length >= LEAST_SAID && has_digit };
            is_one.then(|| (at..at + length, REDACTED.to_owned()))
        }
    }
}

fn after_blanks(bytes: &[u8], from: usize) -> usize {
    from + bytes[from..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// The quote that stands right before this place, with what escapes it.
fn quote_before(text: &str, start: usize) -> Option<&str> {
    let before = text[..start].strip_suffix(['"', '\''])?;
    let escapes = before.bytes().rev().take_while(|byte| *byte == b'\\').count();
    Some(&text[before.len() - escapes..start])
}

/// The quote that a text begins with, with what escapes it.
fn quote_at(text: &str) -> Option<&str> {
    let escapes = text.bytes().take_while(|byte| *byte == b'\\').count();
    text[escapes..].starts_with(['"', '\'']).then(|| &text[..=escapes])
}

/// How much of a text stands before the quote that closes it, which is escaped as the opening one is. Where
/// there is none, the text was cut off: all of its line.
fn closing(text: &str, opened: &str) -> usize {
    let (escapes, quote) = (opened.len() - 1, opened.as_bytes()[opened.len() - 1]);
    let mut before = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\\' => before += 1,
            _ if byte == quote && before <= escapes => return at - before,
            _ => before = 0,
        }
    }
    text.find('\n').unwrap_or(text.len())
}

fn is_word(byte: u8) -> bool {
    WORD[usize::from(byte)]
}

const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let of = byte as u8;
        table[byte] = of.is_ascii_alphanumeric() || matches!(of, b'_' | b'-');
        byte += 1;
    }
    table
};

const BEGINS_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut shape = 0;
    while shape < SHAPES.len() {
        table[SHAPES[shape].0.as_bytes()[0] as usize] = true;
        shape += 1;
    }
    table[AMAZON[0].as_bytes()[0] as usize] = true;
    table[WEB_TOKEN.as_bytes()[0] as usize] = true;
    table
};

fn is_dotted(byte: u8) -> bool {
    is_word(byte) || byte == b'.'
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Made up, with the parts joined here so that nobody takes them for lost ones.
    fn tokens() -> Vec<String> {
        let long = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        let mut all: Vec<String> = SHAPES.iter().map(|(prefix, _)| format!("{prefix}{long}")).collect();
        all.push(format!("{}{}", "AKIA", "IOSFODNN7EXAMPLE"));
        all.push(format!("{WEB_TOKEN}hbGciOiJIUzI1NiJ9.{WEB_TOKEN}zdWIiOiIxMjM0In0.{long}"));
        all
    }

    #[test]
    fn tokens_are_known_by_their_shape() {
        for token in tokens() {
            for (before, after) in
                [("", ""), ("note: \"", "\""), ("use ", ", please"), ("x=", "&y=1"), ("(", ").")]
            {
                let said = format!("{before}{token}{after}");
                assert_eq!(text(&said), format!("{before}{REDACTED}{after}"), "{token}");
            }
            let embedded = format!("x{token}");
            assert_eq!(text(&embedded), embedded, "part of another word");
        }
        let all = tokens().join(" ");
        assert_eq!(text(&all).split(' ').filter(|word| *word != REDACTED).count(), 0);
    }

    #[test]
    fn words_are_left_alone() {
        for said in [
            "",
            "sk-learn and task-runner-for-all-of-the-things",
            "ghp_short AKIA AKIAshort npm_config_registry pypi-server hf_hub",
            "the password is in the safe; token: see docs; Basic authentication",
            "max_tokens=4096 input_tokens: 12345678 \"output_tokens\": 5, key: value",
            "monkey=banana1234 \"tokenizer\": \"cl100k_base\" public_key=abcdef123456",
            "https://example.com/a:b@c user@host http://localhost:8080/x",
            "password=\"\" token=\nsecret:",
            "{\"password\": null, \"token\": true, \"secret\": []}",
            "Äpfel und Bearer",
        ] {
            assert_eq!(text(said), said);
        }
    }

    #[test]
    fn names_tell_what_stands_under_them() {
        for (said, shown) in [
            (r#"{"password":"hunter2","to":"a"}"#, r#"{"password":"[redacted]","to":"a"}"#),
            (r#"{"apiKey": "a\"b", "x": 1}"#, r#"{"apiKey": "[redacted]", "x": 1}"#),
            (r#"{"pin": 12345678, "x": 1}"#, r#"{"pin": "[redacted]", "x": 1}"#),
            (r#""excerpt":"{\"password\":\"hunter2\"}""#, r#""excerpt":"{\"password\":\"[redacted]\"}""#),
            (r#"{\"token\":\"cut off"#, r#"{\"token\":\"[redacted]"#),
            ("curl ?token=abcd1234&x=1", "curl ?token=[redacted]&x=1"),
            ("PGPASSWORD=letmein psql", "PGPASSWORD=[redacted] psql"),
            ("password: hunter2\nuser: ann", "password: [redacted]\nuser: ann"),
            ("client-secret = 'q w e'", "client-secret = '[redacted]'"),
            ("Authorization: Bearer abcdef0123456789", "Authorization: Bearer [redacted]"),
            ("postgres://ann:s3cret@db/x", "postgres://ann:[redacted]@db/x"),
            ("https://x:abc@host", "https://x:[redacted]@host"),
        ] {
            assert_eq!(text(said), shown);
            assert_eq!(text(&text(said)), shown, "once is enough");
        }
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nrest";
        let shown = "-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----\nrest";
        assert_eq!(text(key), shown);
        assert_eq!(text("-----BEGIN CERTIFICATE-----\nMIIE\n"), "-----BEGIN CERTIFICATE-----\nMIIE\n");
    }

    #[test]
    fn disguises_are_seen_through() {
        let token = format!("{}{}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        for said in [
            token.replace("_a1", "_\u{1b}[31ma1\u{1b}[0m"),
            token.replace('g', "\\u0067"),
            token.replace('_', "&#95;").replace('B', "&#x42;"),
        ] {
            assert_eq!(text(&format!("x {said} y")), "x [redacted] y", "{said:?}");
        }
        let line = json!({"note": token}).to_string().replace("ghp", "g\\u0068p");
        assert_eq!(json(&line), r#"{"note":"[redacted]"}"#);
        for said in ["\u{1b}[1mbold\u{1b}[0m é", "\\u00e9 &#38; \u{1b}[ \\u12", "&#xffffffff; \\ud800"] {
            assert_eq!(text(said), said);
        }
    }

    #[test]
    fn params_lose_their_secrets_and_keep_their_form() {
        let token = format!("{}{}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let given = json!({
            "to": "ann", "note": format!("use {token}"), "password": "x", "pin": 1234, "ok": true,
            "credentials": {"user": "ann", "list": ["a", {"b": 2}]}, "headers": {"X-Api-Key": "k"}, "n": 7,
            "key": "ABC-1", "max_tokens": 100,
        });
        let shown = json!({
            "to": "ann", "note": "use [redacted]", "password": "[redacted]", "pin": "[redacted]", "ok": true,
            "credentials": {"user": "[redacted]", "list": ["[redacted]", {"b": "[redacted]"}]},
            "headers": {"X-Api-Key": "[redacted]"}, "n": 7, "key": "ABC-1", "max_tokens": 100,
        });
        assert_eq!(params(&given), shown);
        assert_eq!(json(&given.to_string()), shown.to_string());
    }

    /// Everything a value has but its texts and numbers.
    fn form(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(name, value)| (name.clone(), form(value))).collect())
            }
            Value::Array(items) => items.iter().map(form).collect(),
            Value::Null | Value::Bool(_) => value.clone(),
            Value::Number(_) | Value::String(_) => Value::Null,
        }
    }

    proptest::proptest! {
        #[test]
        fn json_stays_json_of_the_same_form(parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "password", "token", "\"", "'", "\\", ":", "=", " ", "\n", "{", "}", "[", ",", "a1b2c3d4", "12",
                "x://u:p@h", "Bearer abcdefgh12345678", "-----BEGIN PRIVATE KEY-----", "ä",
            ]), 0..24),
            depth in 0..3usize,
        ) {
            let said = parts.concat();
            let mut value = json!({"password": said, "note": said, "list": [said, 5, null], "token": 7});
            for _ in 0..depth {
                // As JSON that stands in a string.
                value = json!({"excerpt": value.to_string(), "after": "all"});
            }
            let shown = json(&value.to_string()).into_owned();
            let read: Value = serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown}"));
            proptest::prop_assert_eq!(form(&read), form(&value), "{}", shown);
            proptest::prop_assert!(read.to_string().matches("[redacted]").count() >= 1);
            proptest::prop_assert_eq!(json(&shown), shown.as_str());
            text(&said);
        }
    }
}
