//! JSON with byte positions: where every value of a text stands, so that one of them can be
//! replaced without touching the rest.
//!
//! The scanner is strict (no comments, no trailing commas, no unknown escapes) and iterative.
//! It keeps numbers as they are spelled and builds no values; decoding is left to the reader of
//! the one field it wants.

use std::borrow::Cow;
use std::ops::Range;

/// Deeper nesting than any backlog needs; a bound keeps hostile files cheap.
const MAX_DEPTH: usize = 512;

pub const BOM: &str = "\u{feff}";

/// A scanned text: its values in the order of their first byte, each knowing where the next one
/// that is not inside it stands.
pub struct Document<'t> {
    text: &'t str,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy)]
struct Node {
    kind: Kind,
    start: u32,
    end: u32,
    /// Index of the first node after this one and everything in it.
    next: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Object,
    Array,
    String,
    /// A string with at least one escape in it.
    EscapedString,
    Number,
    True,
    False,
    Null,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::String | Self::EscapedString => "a string",
            Self::Number => "a number",
            Self::True | Self::False => "a boolean",
            Self::Null => "null",
        }
    }
}

/// Why a text is not JSON, and at which byte.
#[derive(Debug)]
pub struct SyntaxError {
    pub offset: usize,
    pub message: String,
}

impl<'t> Document<'t> {
    pub fn scan(text: &'t str) -> Result<Self, SyntaxError> {
        if u32::try_from(text.len()).is_err() {
            return Err(SyntaxError {
                offset: 0,
                message: "file too large; expected less than 4 GiB".into(),
            });
        }
        let start = if text.starts_with(BOM) { BOM.len() } else { 0 };
        let nodes = Vec::with_capacity(text.len() / 16);
        let mut scanner = Scanner { bytes: text.as_bytes(), at: start, nodes, open: Vec::new() };
        scanner.document()?;
        Ok(Self { text, nodes: scanner.nodes })
    }

    pub fn root(&self) -> Value<'_> {
        Value { text: self.text, nodes: &self.nodes, index: 0 }
    }
}

/// One value of a document.
#[derive(Clone, Copy)]
pub struct Value<'d> {
    text: &'d str,
    nodes: &'d [Node],
    index: u32,
}

/// One `"key": value` of an object.
#[derive(Clone, Copy)]
pub struct Member<'d> {
    pub key: Value<'d>,
    pub value: Value<'d>,
}

impl<'d> Value<'d> {
    fn node(self) -> Node {
        self.nodes[self.index as usize]
    }

    pub fn kind(self) -> Kind {
        self.node().kind
    }

    pub fn start(self) -> usize {
        self.node().start as usize
    }

    pub fn end(self) -> usize {
        self.node().end as usize
    }

    pub fn span(self) -> Range<usize> {
        self.start()..self.end()
    }

    pub fn raw(self) -> &'d str {
        &self.text[self.span()]
    }

    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    pub fn as_str(self) -> Option<Cow<'d, str>> {
        let node = self.node();
        let inside = || &self.text[node.start as usize + 1..node.end as usize - 1];
        match node.kind {
            Kind::String => Some(Cow::Borrowed(inside())),
            Kind::EscapedString => Some(Cow::Owned(unescape(inside()))),
            Kind::Object | Kind::Array | Kind::Number | Kind::True | Kind::False | Kind::Null => None,
        }
    }

    pub fn as_bool(self) -> Option<bool> {
        match self.kind() {
            Kind::True => Some(true),
            Kind::False => Some(false),
            Kind::Object | Kind::Array | Kind::String | Kind::EscapedString | Kind::Number | Kind::Null => {
                None
            }
        }
    }

    /// A whole number, however it is spelled (`2`, `2.0`, `2e0`).
    pub fn as_integer(self) -> Option<i64> {
        if self.kind() != Kind::Number {
            return None;
        }
        let raw = self.raw();
        if let Ok(number) = raw.parse() {
            return Some(number);
        }
        // Beyond 2^53 a float no longer tells neighbouring integers apart.
        let float: f64 = raw.parse().ok()?;
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53, so exact")]
        (float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0).then_some(float as i64)
    }

    /// The members of an object; none for any other value.
    pub fn members(self) -> impl Iterator<Item = Member<'d>> {
        let mut children = self.children(self.kind() == Kind::Object);
        std::iter::from_fn(move || {
            let key = children.next()?;
            Some(Member { key, value: children.next()? })
        })
    }

    /// The items of an array; none for any other value.
    pub fn items(self) -> impl Iterator<Item = Self> {
        self.children(self.kind() == Kind::Array)
    }

    /// The first member of this name.
    pub fn get(self, key: &str) -> Option<Self> {
        self.members().find(|member| member.key.as_str().is_some_and(|name| name == key)).map(|m| m.value)
    }

    fn children(self, any: bool) -> impl Iterator<Item = Self> {
        let end = if any { self.node().next } else { 0 };
        let mut index = self.index + 1;
        std::iter::from_fn(move || {
            let child = (index < end).then_some(Self { index, ..self })?;
            index = child.node().next;
            Some(child)
        })
    }
}

/// A string as JSON writes it, quotes included.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The text between two quotes whose escapes the scanner has already found valid.
///
/// Half a surrogate pair has no meaning, but programs that cut strings by UTF-16 units write
/// them: it is shown as U+FFFD and left in the file.
fn unescape(inside: &str) -> String {
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = rest.as_bytes().get(at + 1).copied().unwrap_or(b'\\');
        rest = &rest[(at + 2).min(rest.len())..];
        match escape {
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'u' => {
                let (c, used) = unescape_unicode(rest);
                out.push(c);
                rest = &rest[used..];
            }
            other => out.push(char::from(other)),
        }
    }
    out.push_str(rest);
    out
}

/// The character of `XXXX` or `XXXX\uXXXX` at the start of `rest`, and how many bytes it took.
fn unescape_unicode(rest: &str) -> (char, usize) {
    let unit = |from: usize| rest.get(from..from + 4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let first = unit(0).unwrap_or(0xfffd);
    if (0xd800..0xdc00).contains(&first)
        && rest.get(4..6) == Some("\\u")
        && let Some(second) = unit(6)
        && (0xdc00..0xe000).contains(&second)
    {
        let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 10);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 4.min(rest.len()))
}

struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
    nodes: Vec<Node>,
    /// Indexes of the objects and arrays around the present position.
    open: Vec<u32>,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ItemOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), SyntaxError> {
        let mut next = Next::Value;
        loop {
            self.skip_whitespace();
            next = match next {
                Next::ItemOrEnd if self.peek() == Some(b']') => self.close(),
                Next::KeyOrEnd if self.peek() == Some(b'}') => self.close(),
                Next::Value | Next::ItemOrEnd => self.value()?,
                Next::Key | Next::KeyOrEnd => self.key()?,
                Next::CommaOrEnd => match self.open.last() {
                    Some(&container) => self.comma_or_end(container)?,
                    None => break,
                },
            };
        }
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end of the file after the first value")),
        }
    }

    fn value(&mut self) -> Result<Next, SyntaxError> {
        match self.peek() {
            Some(b'{') => self.open(Kind::Object, Next::KeyOrEnd),
            Some(b'[') => self.open(Kind::Array, Next::ItemOrEnd),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Kind::True),
            Some(b'f') => self.literal("false", Kind::False),
            Some(b'n') => self.literal("null", Kind::Null),
            Some(b']' | b'}') if self.last_byte() == Some(b',') => {
                Err(self.error("trailing comma; expected a value after `,` (JSON allows none at the end)"))
            }
            Some(_) | None => Err(self.unexpected("a value")),
        }
    }

    fn open(&mut self, kind: Kind, next: Next) -> Result<Next, SyntaxError> {
        if self.open.len() == MAX_DEPTH {
            return Err(self.error(format!("nested too deeply; expected at most {MAX_DEPTH} levels")));
        }
        self.open.push(to_u32(self.nodes.len()));
        self.push(kind, self.at, self.at + 1);
        self.at += 1;
        Ok(next)
    }

    /// The present byte ends the innermost object or array.
    fn close(&mut self) -> Next {
        self.at += 1;
        let next = to_u32(self.nodes.len());
        if let Some(container) = self.open.pop() {
            let node = &mut self.nodes[container as usize];
            node.end = to_u32(self.at);
            node.next = next;
        }
        Next::CommaOrEnd
    }

    fn comma_or_end(&mut self, container: u32) -> Result<Next, SyntaxError> {
        let is_object = self.nodes[container as usize].kind == Kind::Object;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(if is_object { Next::Key } else { Next::Value })
            }
            Some(b'}') if is_object => Ok(self.close()),
            Some(b']') if !is_object => Ok(self.close()),
            Some(_) | None => {
                let start = self.nodes[container as usize].start as usize;
                let line = line_at(self.bytes, start);
                let close =
                    if is_object { "`,` or `}` closing the `{`" } else { "`,` or `]` closing the `[`" };
                Err(self.unexpected(&format!("{close} of line {line}")))
            }
        }
    }

    fn key(&mut self) -> Result<Next, SyntaxError> {
        match self.peek() {
            Some(b'"') => {}
            Some(b'}') if self.last_byte() == Some(b',') => {
                return Err(self.error("trailing comma; expected another `\"key\"` after `,`"));
            }
            Some(_) | None => return Err(self.unexpected("a key in double quotes")),
        }
        self.string()?;
        self.skip_whitespace();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("`:` after the key"));
        }
        self.at += 1;
        Ok(Next::Value)
    }

    fn string(&mut self) -> Result<Next, SyntaxError> {
        let start = self.at;
        let mut kind = Kind::String;
        self.at += 1;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some(plain) = rest.iter().position(|&b| b == b'"' || b == b'\\' || b < b' ') else {
                self.at = start;
                return Err(self.error("string never ends; expected a closing `\"`"));
            };
            self.at += plain;
            match rest[plain] {
                b'"' => break,
                b'\\' => {
                    kind = Kind::EscapedString;
                    self.escape()?;
                }
                b'\n' | b'\r' => return Err(self.error("line break in a string; expected `\"` or `\\n`")),
                _ => {
                    return Err(self.error("control character in a string; expected it escaped as `\\u00XX`"));
                }
            }
        }
        self.at += 1;
        self.push(kind, start, self.at);
        Ok(Next::CommaOrEnd)
    }

    fn escape(&mut self) -> Result<(), SyntaxError> {
        let hex = |digits: Option<&[u8]>| digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit));
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') if hex(self.bytes.get(self.at + 2..self.at + 6)) => self.at += 6,
            Some(b'u') => {
                return Err(self.error("invalid escape; expected four hexadecimal digits after `\\u`"));
            }
            Some(_) | None => {
                return Err(
                    self.error("invalid escape; expected one of `\\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX`")
                );
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Next, SyntaxError> {
        let start = self.at;
        self.skip_if(b"-");
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        let mut valid = whole == 1 || (whole > 1 && !leading_zero);
        if self.skip_if(b".") {
            valid &= self.digits() > 0;
        }
        if self.skip_if(b"eE") {
            self.skip_if(b"+-");
            valid &= self.digits() > 0;
        }
        if !valid {
            self.at = start;
            return Err(self.error("malformed number; expected digits such as 0, 12, -3.5 or 1e9"));
        }
        self.push(Kind::Number, start, self.at);
        Ok(Next::CommaOrEnd)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn literal(&mut self, word: &str, kind: Kind) -> Result<Next, SyntaxError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.unexpected("a value"));
        }
        self.push(kind, self.at, self.at + word.len());
        self.at += word.len();
        Ok(Next::CommaOrEnd)
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        let next = to_u32(self.nodes.len() + 1);
        self.nodes.push(Node { kind, start: to_u32(start), end: to_u32(end), next });
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_if(&mut self, any_of: &[u8]) -> bool {
        let found = self.peek().is_some_and(|b| any_of.contains(&b));
        self.at += usize::from(found);
        found
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// The last byte before the present position that is not white space.
    fn last_byte(&self) -> Option<u8> {
        self.bytes[..self.at].iter().rev().find(|b| !b.is_ascii_whitespace()).copied()
    }

    fn error(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError { offset: self.at, message: message.into() }
    }

    fn unexpected(&self, expected: &str) -> SyntaxError {
        let rest = String::from_utf8_lossy(&self.bytes[self.at..self.bytes.len().min(self.at + 64)]);
        let found = match rest.chars().next() {
            None => "unexpected end of the file".to_owned(),
            Some('/' | '#') => "comments are not JSON".to_owned(),
            Some('\'') => "single quotes are not JSON".to_owned(),
            Some(c) if c.is_alphanumeric() => {
                let word: String = rest.chars().take_while(|c| c.is_alphanumeric()).take(20).collect();
                format!("unexpected `{word}`")
            }
            Some(c) => format!("unexpected `{}`", c.escape_debug()),
        };
        self.error(format!("{found}; expected {expected}"))
    }
}

/// Line of a byte, counted from 1.
pub fn line_at(bytes: &[u8], offset: usize) -> usize {
    1 + bytes[..offset.min(bytes.len())].iter().filter(|&&b| b == b'\n').count()
}

/// Positions fit: `Document::scan` refused longer texts, and a node takes at least one byte.
fn to_u32(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_error(text: &str, line: usize, expected: &str) {
        let error = Document::scan(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        assert_eq!(line_at(text.as_bytes(), error.offset), line, "{text}: {}", error.message);
        assert!(error.message.contains(expected), "{text}: {}", error.message);
    }

    fn check_string(json: &str, expected: &str) {
        let document = Document::scan(json).unwrap();
        assert_eq!(document.root().as_str().unwrap(), expected, "{json}");
    }

    #[test]
    fn refuses_what_is_not_json_with_the_line() {
        check_error("", 1, "end of the file; expected a value");
        check_error("[1,\n 2\n", 3, "`]` closing the `[` of line 1");
        check_error("{\n\"a\": 1\n\"b\": 2}", 3, "`}` closing the `{` of line 1");
        check_error("{\"a\" 1}", 1, "expected `:`");
        check_error("[1,\n]", 2, "trailing comma");
        check_error("{\"a\":1,\n}", 2, "trailing comma");
        check_error("[1] x", 1, "unexpected `x`; expected the end of the file");
        check_error("[1]\n[2]", 2, "expected the end of the file");
        check_error("[\n// no\n1]", 2, "comments are not JSON");
        check_error("[1 /* no */]", 1, "comments are not JSON");
        check_error("[\n'a']", 2, "single quotes");
        check_error("[\"a\\x\"]", 1, "invalid escape");
        check_error("[\"a\\u12g4\"]", 1, "four hexadecimal digits");
        check_error("[\"a\nb\"]", 1, "line break in a string");
        check_error("[\"a\u{1}b\"]", 1, "control character");
        check_error("[\n\"abc]", 2, "string never ends");
        check_error("[01]", 1, "malformed number");
        check_error("[1.]", 1, "malformed number");
        check_error("[-]", 1, "malformed number");
        check_error("[1e]", 1, "malformed number");
        check_error("[truth]", 1, "unexpected `truth`");
        check_error("{a: 1}", 1, "a key in double quotes");
        check_error("[}", 1, "unexpected `}`");
        check_error(&"[".repeat(100_000), 1, "nested too deeply");
        check_error(&"{\"a\":".repeat(100_000), 1, "nested too deeply");
    }

    #[test]
    fn decodes_strings() {
        check_string(r#""plain é""#, "plain é");
        check_string(r#""a\"\\\/\b\f\n\r\tz""#, "a\"\\/\u{8}\u{c}\n\r\tz");
        check_string(r#""\u00e9\ud83d\ude00""#, "é😀");
        check_string(r#""half \ud83d and \ude00.""#, "half \u{fffd} and \u{fffd}.");
        check_string(r#""\ud83d\u0041""#, "\u{fffd}A");
    }

    #[test]
    fn quotes_what_it_can_read_back() {
        let text = "a\"\\\n\r\t\u{1}\u{1f}é😀/";
        check_string(&quote(text), text);
    }

    #[test]
    fn walks_members_and_items() {
        let document =
            Document::scan("\u{feff} {\"a\": [1, {\"b\": 2}, []], \"c\": {}, \"d\": -1.50}\r\n").unwrap();
        let root = document.root();
        let keys: Vec<_> = root.members().map(|m| m.key.as_str().unwrap().into_owned()).collect();
        assert_eq!(keys, ["a", "c", "d"]);
        let items: Vec<_> = root.get("a").unwrap().items().map(Value::raw).collect();
        assert_eq!(items, ["1", "{\"b\": 2}", "[]"]);
        assert_eq!(root.get("d").unwrap().raw(), "-1.50");
        assert_eq!(root.get("d").unwrap().members().count(), 0);
    }

    #[test]
    fn reads_whole_numbers_in_any_spelling() {
        for (raw, expected) in [
            ("2", Some(2)),
            ("2.0", Some(2)),
            ("2e1", Some(20)),
            ("-7", Some(-7)),
            ("2.5", None),
            ("1e300", None),
            ("9223372036854775807", Some(i64::MAX)),
        ] {
            assert_eq!(Document::scan(raw).unwrap().root().as_integer(), expected, "{raw}");
        }
    }
}
