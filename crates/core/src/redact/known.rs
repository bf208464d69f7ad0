//! Secrets whose values are known, and private keys: replaced in texts and in streams, however those are cut.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::disguise::{Form, Reading, beginnings, read};
use super::names::{is_secret_variable, password_in_address};
use super::pem::{self, Head, Inside, Passed};
use super::{REDACTED, encode};

/// Shorter values are words: replacing them would destroy more than it hides.
const MIN_SECRET: usize = 8;
/// A line of a longer secret is one itself if it has this many characters and no spaces, as those of keys do.
const MIN_LINE: usize = 16;

/// The values to hide, each with the name to show instead. Copies share them.
#[derive(Clone)]
pub struct Secrets {
    all: Arc<All>,
}

struct All {
    /// The longest first, so that a secret inside another does not cut it in half.
    secrets: Vec<Secret>,
    /// Bytes by which something to hide begins.
    begins: [bool; 256],
    /// Pairs of bytes by which something to hide begins, a bit for each. Nearly all places of a usual text
    /// are passed over by these two tables.
    pairs: Box<[u64; 1024]>,
}

#[derive(Clone, PartialEq, Eq)]
struct Secret {
    value: Vec<u8>,
    shown: Arc<str>,
    form: Form,
}

impl Secret {
    /// Most secrets are passed over by their first byte.
    fn may_begin_with(&self, byte: u8) -> bool {
        let is_same = self.value[0] == byte;
        match self.form {
            Form::Exact | Form::Base64 => is_same,
            Form::Hex => self.value[0].eq_ignore_ascii_case(&byte),
            Form::Plain => is_same || matches!(byte, b'\\' | b'&' | b'%'),
        }
    }
}

/// What there is at a place of a text.
enum Found<'s> {
    Nothing,
    Secret(usize, &'s str),
    /// The line above a private key.
    KeyHead(usize),
    /// More has to be seen first.
    Unfinished,
}

impl Secrets {
    /// Of variables with these names and values, those that hold secrets.
    pub fn among(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let secret = variables.into_iter().filter(|(name, value)| is_secret_variable(name, value));
        let secrets = secret.flat_map(|(name, value)| {
            let shown: Arc<str> = format!("[{name} redacted]").into();
            let parts = parts(value.trim()).into_iter().filter(|part| part.len() >= MIN_SECRET);
            parts.flat_map(|part| forms(&part, &shown)).collect::<Vec<_>>()
        });
        Self::of(secrets.collect())
    }

    /// With another value to be replaced, however short it is. Longer ones are known in their encodings, too.
    #[must_use]
    pub fn and(self, value: &str, shown: &str) -> Self {
        let shown: Arc<str> = shown.into();
        if value.trim().len() >= MIN_SECRET {
            self.with(parts(value).iter().flat_map(|part| forms(part, &shown)))
        } else {
            self.and_word(value, &shown)
        }
    }

    /// With another value to be replaced where it stands byte for byte.
    #[must_use]
    pub fn and_word(self, value: &str, shown: &str) -> Self {
        self.with([Secret { value: value.into(), shown: shown.into(), form: Form::Exact }])
    }

    fn with(self, more: impl IntoIterator<Item = Secret>) -> Self {
        Self::of(self.all.secrets.iter().cloned().chain(more).collect())
    }

    fn of(mut secrets: Vec<Secret>) -> Self {
        secrets.retain(|secret| !secret.value.is_empty());
        secrets.sort_by(|one, other| {
            let length = other.value.len().cmp(&one.value.len());
            length.then_with(|| one.value.cmp(&other.value)).then_with(|| one.form.cmp(&other.form))
        });
        secrets.dedup_by(|one, other| one.value == other.value && one.form == other.form);
        let mut all = All { secrets: Vec::new(), begins: [false; 256], pairs: Box::new([0; 1024]) };
        all.note(b'-', Some(b'-'));
        for secret in &secrets {
            for (first, second) in beginnings(&secret.value, secret.form) {
                all.note(first, second);
            }
        }
        all.secrets = secrets;
        Self { all: Arc::new(all) }
    }

    /// The text without secrets.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let bytes = text.as_bytes();
        let Some(first) = self.all.first(bytes) else { return Cow::Borrowed(text) };
        let mut redactor = Redactor::new(self.clone());
        let mut hidden = bytes[..first].to_vec();
        redactor.replace(&bytes[first..], Portion::Last, &mut hidden);
        // Only whole characters are left out: what is hidden begins and ends with one.
        Cow::Owned(
            String::from_utf8(hidden)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    }

    /// Is there a secret in this text?
    pub fn are_in(&self, text: &str) -> bool {
        matches!(self.hide(text), Cow::Owned(_))
    }
}

/// Names and numbers only: whoever prints it must not print a secret.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<&str> = self.all.secrets.iter().map(|secret| &*secret.shown).collect();
        names.sort_unstable();
        names.dedup();
        f.debug_tuple("Secrets").field(&names).finish()
    }
}

/// A value, and those of its parts that are secrets themselves: the password of an address, the lines of a key.
fn parts(value: &str) -> Vec<Vec<u8>> {
    let mut all = vec![value.as_bytes().to_vec()];
    if let Some((user, password)) = password_in_address(value) {
        // `postgres://postgres:postgres@localhost` says nothing that has to be hidden elsewhere.
        let is_name = user == password || value.matches(password).count() > 1;
        let decoded = percent_decoded(password);
        if !is_name && decoded.len() >= MIN_SECRET {
            all.push(decoded);
        }
    }
    let lines = value.split(['\n', '\r']).flat_map(|line| line.split("\\n")).map(str::trim);
    let is_part = |line: &&str| {
        line.len() >= MIN_LINE
            && line.len() < value.len()
            && !line.contains([' ', '"', '{'])
            && !line.starts_with("--")
    };
    all.extend(lines.filter(is_part).map(|line| line.as_bytes().to_vec()));
    all
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = if *first == b'%' { text_of(after.get(..2)) } else { None };
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                rest = &after[2..];
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    decoded
}

fn text_of(bytes: Option<&[u8]>) -> Option<&str> {
    std::str::from_utf8(bytes?).ok()
}

/// The ways in which a value may be written.
fn forms(value: &[u8], shown: &Arc<str>) -> Vec<Secret> {
    let secret = |value: Vec<u8>, form| Secret { value, shown: Arc::clone(shown), form };
    let mut all = vec![secret(value.to_vec(), Form::Plain), secret(encode::hex(value), Form::Hex)];
    all.extend(encode::base64(value).into_iter().map(|encoded| secret(encoded, Form::Base64)));
    all
}

impl All {
    fn note(&mut self, first: u8, second: Option<u8>) {
        self.begins[usize::from(first)] = true;
        let seconds = second.map_or(0..=u8::MAX, |second| second..=second);
        for second in seconds {
            let pair = usize::from(first) << 8 | usize::from(second);
            self.pairs[pair / 64] |= 1 << (pair % 64);
        }
    }

    /// The next place at which something to hide may begin.
    fn next(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        loop {
            at += bytes.get(at..)?.iter().position(|byte| self.begins[usize::from(*byte)])?;
            let Some(second) = bytes.get(at + 1) else { return Some(at) };
            let pair = usize::from(bytes[at]) << 8 | usize::from(*second);
            if self.pairs[pair / 64] >> (pair % 64) & 1 == 1 {
                return Some(at);
            }
            at += 1;
        }
    }

    /// Where the first thing to hide begins in a text that is whole.
    fn first(&self, bytes: &[u8]) -> Option<usize> {
        let mut from = 0;
        while let Some(at) = self.next(bytes, from) {
            match self.at(&bytes[at..], Portion::Last) {
                Found::Secret(..) | Found::KeyHead(_) => return Some(at),
                Found::Nothing | Found::Unfinished => from = at + 1,
            }
        }
        None
    }

    /// What begins here. In the last portion, what is unfinished stays that.
    fn at(&self, bytes: &[u8], portion: Portion) -> Found<'_> {
        if bytes[0] == b'-' {
            match pem::head(bytes) {
                Head::Is(length) => return Found::KeyHead(length),
                Head::Unfinished if portion == Portion::Next => return Found::Unfinished,
                Head::Unfinished | Head::Not => {}
            }
        }
        for secret in self.secrets.iter().filter(|secret| secret.may_begin_with(bytes[0])) {
            match read(bytes, &secret.value, secret.form) {
                Reading::Is(length) => return Found::Secret(length, &secret.shown),
                Reading::Unfinished if portion == Portion::Next => return Found::Unfinished,
                Reading::Unfinished | Reading::Not => {}
            }
        }
        Found::Nothing
    }
}

/// One stream without secrets.
#[derive(Clone, Debug)]
pub struct Redactor {
    secrets: Secrets,
    /// The end of what came so far, while it may be the beginning of a secret.
    held: Vec<u8>,
    /// Within a private key, nothing is passed on.
    key: Option<Inside>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Portion {
    /// More may come.
    Next,
    Last,
}

impl Redactor {
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, held: Vec::new(), key: None }
    }

    /// What can be passed on now.
    pub fn push<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let is_idle = self.held.is_empty() && self.key.is_none();
        if is_idle && self.secrets.all.next(bytes, 0).is_none() {
            return Cow::Borrowed(bytes);
        }
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let mut passed = Vec::with_capacity(all.len());
        let rest = self.replace(&all, Portion::Next, &mut passed);
        all.drain(..rest);
        self.held = all;
        Cow::Owned(passed)
    }

    /// What was held back to the end.
    pub fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let mut passed = Vec::with_capacity(held.len());
        self.replace(&held, Portion::Last, &mut passed);
        passed
    }

    /// Passes on the bytes without secrets; the answer is up to where.
    fn replace(&mut self, bytes: &[u8], portion: Portion, passed: &mut Vec<u8>) -> usize {
        let all = Arc::clone(&self.secrets.all);
        let mut at = self.leave_key(bytes, 0, passed);
        while let Some(next) = all.next(bytes, at) {
            passed.extend_from_slice(&bytes[at..next]);
            at = next;
            match all.at(&bytes[at..], portion) {
                Found::Secret(length, shown) => {
                    passed.extend_from_slice(shown.as_bytes());
                    at += length;
                }
                Found::KeyHead(length) => {
                    passed.extend_from_slice(&bytes[at..at + length]);
                    self.key = Some(Inside::default());
                    at = self.leave_key(bytes, at + length, passed);
                }
                Found::Unfinished => return at,
                Found::Nothing => {
                    passed.push(bytes[at]);
                    at += 1;
                }
            }
        }
        passed.extend_from_slice(&bytes[at..]);
        bytes.len()
    }

    /// Where the key that the stream is in ends.
    fn leave_key(&mut self, bytes: &[u8], at: usize, passed: &mut Vec<u8>) -> usize {
        let Some(key) = &mut self.key else { return at };
        let was_empty = key.is_empty();
        let ended = key.pass(&bytes[at..]);
        if was_empty && !key.is_empty() {
            passed.extend_from_slice(REDACTED.as_bytes());
        }
        match ended {
            Passed::All => bytes.len(),
            Passed::To { length, dash } => {
                self.key = None;
                passed.extend(dash.then_some(b'-'));
                at + length
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(variables: &[(&str, &str)]) -> Secrets {
        Secrets::among(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    fn secrets() -> Secrets {
        among(&[("API_TOKEN", "abcabcabd"), ("DB_PASSWORD", "abcabcabd-longer"), ("HOME", "/base/me12345")])
    }

    /// The text as it comes out of a stream, in portions of every size, and out of `hide`.
    fn check(secrets: &Secrets, text: &str, expected: &str) {
        assert_eq!(secrets.hide(text), expected, "at once: {text:?}");
        for size in 1..=text.len() {
            let mut redactor = Redactor::new(secrets.clone());
            let mut seen: Vec<u8> =
                text.as_bytes().chunks(size).flat_map(|part| redactor.push(part).into_owned()).collect();
            seen.extend(redactor.finish());
            assert_eq!(String::from_utf8(seen).unwrap(), expected, "in portions of {size}: {text:?}");
        }
    }

    #[test]
    fn a_secret_is_hidden_however_it_is_cut() {
        let text = "x abcabcabcabd y abcabcabd-longer z abcabcab";
        check(&secrets(), text, "x abc[API_TOKEN redacted] y [DB_PASSWORD redacted] z abcabcab");
        check(&secrets(), "abcabcabd!", "[API_TOKEN redacted]!");
        check(&secrets(), "abcabcabd-long", "[API_TOKEN redacted]-long");
    }

    #[test]
    fn short_values_and_plain_variables_are_left_alone() {
        check(&among(&[("API_KEY", "short")]), "short c2hvcnQ= 73686f7274", "short c2hvcnQ= 73686f7274");
        check(&secrets(), "/base/me12345", "/base/me12345");
    }

    /// One with everything in it that is written differently somewhere.
    const ODD: &str = "p\"w<&>'\\x\n/%é😀 end";

    #[test]
    fn a_value_is_known_in_every_escape() {
        let json = serde_json::to_string(ODD).unwrap();
        let twice = serde_json::to_string(&json).unwrap();
        let html = ODD.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        let mut ways = vec![
            ODD.to_owned(),
            json.trim_matches('"').to_owned(),
            twice.trim_matches('"').trim_matches('\\').trim_matches('"').to_owned(),
            html.replace('\'', "&#39;"),
            html.replace('\'', "&#x27;").replace('&', "&amp;"),
            ODD.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect(),
            ODD.encode_utf16().map(|unit| format!("\\\\u{unit:04X}")).collect(),
            ODD.bytes().map(|byte| format!("%{byte:02X}")).collect(),
            ODD.bytes().map(|byte| format!("%25{byte:02x}")).collect(),
            ODD.chars().map(|c| format!("&#{};", u32::from(c))).collect(),
            ODD.chars()
                .map(|c| format!("{c}\u{1b}[31m"))
                .collect::<String>()
                .trim_end_matches("\u{1b}[31m")
                .to_owned(),
            ODD.replace('\n', "\r\n"),
            ODD.replace(' ', "+").replace('%', "%25"),
        ];
        ways.push(ways[1].replace('x', "x\\u001b[1;32m"));
        let secrets = among(&[("DB_PASSWORD", ODD)]);
        for way in ways {
            check(&secrets, &format!("a {way}, b"), "a [DB_PASSWORD redacted], b");
        }
    }

    #[test]
    fn a_value_is_known_in_its_encodings() {
        let value = "hunter2-hunter2?>~";
        let secrets = among(&[("API_TOKEN", value)]);
        for before in ["", "x", "xy", "user:"] {
            for after in ["", "z", "zz"] {
                let text = format!("{before}{value}{after}");
                for encoded in encode::base64(text.as_bytes()).into_iter().take(2) {
                    let encoded = String::from_utf8(encoded).unwrap();
                    let shown = secrets.hide(&encoded).into_owned();
                    // What is left over is made of what stands around it.
                    let left = shown.replace("[API_TOKEN redacted]", "");
                    assert!(
                        shown != encoded && left.len() <= 4 + (before.len() + after.len()) * 4 / 3,
                        "{shown}"
                    );
                }
            }
        }
        let hex = String::from_utf8(encode::hex(value.as_bytes())).unwrap();
        check(&secrets, &format!("0x{hex}."), "0x[API_TOKEN redacted].");
        check(&secrets, &hex.to_uppercase(), "[API_TOKEN redacted]");
        let lines: Vec<&str> =
            hex.as_bytes().chunks(10).map(|line| std::str::from_utf8(line).unwrap()).collect();
        check(&secrets, &lines.join("\n"), "[API_TOKEN redacted]");
        check(&secrets, &lines.join("\\n"), "[API_TOKEN redacted]");
        check(&secrets, &lines.join(":"), "[API_TOKEN redacted]");
        check(&secrets, "aHVudGVyMi1o\ndW50ZXIyPz5-", "[API_TOKEN redacted]");
    }

    #[test]
    fn parts_of_a_value_are_secrets_too() {
        let address = "postgres://ann:s3cret%2Fword@db.example/app";
        let secrets = among(&[("MAIN_DB", address)]);
        for text in [address, "s3cret/word", "s3cret%2fword", "s3cret\\/word"] {
            check(&secrets, text, "[MAIN_DB redacted]");
        }
        check(&secrets, "ann at db.example in postgres://", "ann at db.example in postgres://");
        let usual = among(&[("DATABASE_URL", "postgres://postgres:postgres@localhost/app")]);
        check(&usual, "the postgres service, postgres:16", "the postgres service, postgres:16");
        let key = among(&[("SIGNING_KEY", "first-line-of-it-1234\nsecond-line-of-it-5678\nshort")]);
        check(
            &key,
            "1: first-line-of-it-1234\n2: second-line-of-it-5678\n",
            "1: [SIGNING_KEY redacted]\n2: [SIGNING_KEY redacted]\n",
        );
    }

    #[test]
    fn private_keys_are_left_out_line_by_line() {
        let frame = |inside: &str| {
            format!("a -----BEGIN RSA PRIVATE KEY-----{inside}-----END RSA PRIVATE KEY----- b")
        };
        let shown = frame("[redacted]");
        let none = Secrets::among([]);
        for inside in [
            "\nMIIEow+/9==\nabcDEF12\n",
            "\r\n  MIIEow\r\n  abc\r\n  ",
            "\\nMIIEow\\nabc\\n",
            "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\nMIIE\n",
            "\n     2\tMIIEow\n     3\tabc\n     4\t",
            "\n 2→MIIEow\n 3→abc\n 4→",
            "\n> MIIEow\n> abc\n> ",
            "\nMII\u{1b}[0mEow\n",
            "\n12: MIIE\n13: ",
        ] {
            check(&none, &frame(inside), &shown);
        }
        check(&none, "-----BEGIN PRIVATE KEY-----\nMIIEow", "-----BEGIN PRIVATE KEY-----[redacted]");
        let in_json = r#"{"k":"-----BEGIN PRIVATE KEY-----\nMIIE","x":1}"#;
        check(&none, in_json, r#"{"k":"-----BEGIN PRIVATE KEY-----[redacted]","x":1}"#);
    }

    #[test]
    fn usual_text_is_left_alone() {
        let secrets =
            among(&[("API_TOKEN", "hunter2-hunter2"), ("SMTP_PASS", "correct horse"), ("A_KEY", ODD)]);
        for text in [
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
            "--- a/x\n+++ b/x\n-----\n",
            "grep \"-----BEGIN PUBLIC KEY-----\" *.pem",
            "PASS: 12 tests, AUTHOR ann, COMPASS, correct, horse, hunter2",
            "3f2a9c1e5b7d8f60a1b2c3d4e5f60718293a4b5c",
            "{\"text\":\"a\\n\\\"b\\\" \\u00e9 &amp; 100% \\\\server\\\\share\"}",
            "\u{1b}[1mbold\u{1b}[0m",
            "aHVudGVy and 68756e746572",
            "é😀",
        ] {
            check(&secrets, text, text);
        }
        let header = "-----BEGIN PRIVATE KEY-----\" is how it begins, and more words follow";
        check(&secrets, header, header);
    }

    #[test]
    fn nobody_prints_the_values() {
        assert_eq!(
            format!("{:?}", secrets()),
            r#"Secrets(["[API_TOKEN redacted]", "[DB_PASSWORD redacted]"])"#
        );
    }

    #[test]
    fn what_is_held_back_is_bounded() {
        let mut redactor = Redactor::new(among(&[("API_TOKEN", "hunter2-hunter2")]));
        for piece in ["hunter2\u{1b}[0m", "\\", "h\u{1b}]", "%25", "&amp;", "-----BEGIN "] {
            redactor.push(b"hunter2");
            for _ in 0..10_000 {
                redactor.push(piece.as_bytes());
                assert!(redactor.held.len() < 2048, "{} bytes of {piece:?}", redactor.held.len());
            }
        }
    }
}
