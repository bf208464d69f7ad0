//! Streams of one JSON object per line, as most agents print them.
//!
//! Around the agent's own events everything may stand: warnings of a wrapper, a child's output, half
//! a line. [`JsonLines`] sorts that out, once for all drivers; a [`Reader`] sees only whole objects.

use std::borrow::Cow;

use jiff::Zoned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use wiggum_core::event::{Exit, Trouble};
use wiggum_core::stream::Stream;

use crate::lines::{Line, Lines};
use crate::{AgentEvent, AgentSpec, Finished, Problem, StreamParser, Tail, said};

const COMPLAINTS_LIMIT: usize = 16 * 1024;
/// How much of a tool's result is shown.
const RESULT_SHOWN: usize = 1000;
/// How much of a tool's input is shown.
const DETAIL_SHOWN: usize = 200;

/// What a driver makes of its agent's events.
pub(crate) trait Reader: Send {
    fn read(&mut self, line: &str, events: &mut Vec<AgentEvent>);

    /// A line that is no event, of an agent that tells some things only there.
    fn overhear(&mut self, _line: &str, _events: &mut Vec<AgentEvent>) {}

    fn finish(&mut self, end: &End<'_>) -> Finished;
}

/// What is known at the end beside the events.
pub(crate) struct End<'a> {
    pub(crate) exit: Exit,
    /// The end of what was no event.
    pub(crate) complaints: String,
    pub(crate) now: &'a Zoned,
}

impl End<'_> {
    /// Why a stream ended without the event that ends it.
    pub(crate) fn cut_short(&self, began: bool) -> Problem {
        if let Some((trouble, message)) = said::in_output(&self.complaints, self.now) {
            return Problem { trouble, message };
        }
        let trouble = match self.exit {
            Exit::Signal { .. } | Exit::TimedOut => Trouble::Interrupted,
            // What a program makes of SIGHUP, SIGINT, SIGKILL and SIGTERM, or its shell for it.
            Exit::Code { code: 129 | 130 | 137 | 143 } => Trouble::Interrupted,
            Exit::Code { code: 0 } => Trouble::Truncated,
            Exit::Code { .. } if began => Trouble::Truncated,
            Exit::Code { .. } | Exit::NotStarted => Trouble::Other,
        };
        // Who was interrupted or believes to be finished did not complain about that.
        let message = match trouble {
            Trouble::Interrupted => String::new(),
            _ if self.exit.success() => String::new(),
            _ => shorten(&said::last_words(&self.complaints), RESULT_SHOWN),
        };
        Problem { trouble, message }
    }

    /// What was the matter with an agent that was still trying again.
    pub(crate) fn retried(&self, words: &str) -> Problem {
        let problem = self.complaint(words);
        let trouble = if problem.trouble == Trouble::Other { Trouble::Overloaded } else { problem.trouble };
        Problem { trouble, ..problem }
    }

    /// What the agent's own words for its failure mean.
    pub(crate) fn complaint(&self, words: &str) -> Problem {
        let trouble = said::in_complaint(words, self.now).unwrap_or(Trouble::Other);
        Problem { trouble, message: inner_message(words) }
    }
}

pub(crate) struct JsonLines<R> {
    reader: R,
    stdout: Lines,
    stderr: Lines,
    complaints: Tail,
    /// As configured, for agents that do not tell.
    model: Option<String>,
}

impl<R: Reader> JsonLines<R> {
    pub(crate) fn new(reader: R, spec: &AgentSpec) -> Self {
        let complaints = Tail::new(COMPLAINTS_LIMIT);
        let model = spec.model.clone();
        Self { reader, stdout: Lines::default(), stderr: Lines::default(), complaints, model }
    }
}

impl<R: Reader> StreamParser for JsonLines<R> {
    fn push(&mut self, stream: Stream, bytes: &[u8]) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        let Self { reader, stdout, stderr, complaints, .. } = self;
        match stream {
            Stream::Stdout => stdout.push(bytes, &mut |line| take(line, reader, complaints, &mut events)),
            Stream::Stderr => stderr.push(bytes, &mut |line| hear(line, reader, complaints, &mut events)),
        }
        events
    }

    fn finish(&mut self, exit: Exit, now: &Zoned) -> Finished {
        let Self { reader, stdout, stderr, complaints, model } = self;
        let mut unseen = Vec::new();
        stdout.finish(&mut |line| take(line, reader, complaints, &mut unseen));
        stderr.finish(&mut |line| hear(line, reader, complaints, &mut unseen));
        let end = End { exit, complaints: complaints.text(), now };
        let mut finished = reader.finish(&end);
        finished.facts.model = finished.facts.model.or(model.take());
        Finished { complaints: end.complaints, ..finished }
    }
}

/// A line of standard output: an event, or a complaint that went astray.
fn take(line: Line<'_>, reader: &mut dyn Reader, complaints: &mut Tail, events: &mut Vec<AgentEvent>) {
    match line {
        Line::Whole(bytes) if bytes.trim_ascii_start().starts_with(b"{") => {
            reader.read(String::from_utf8_lossy(bytes).trim(), events);
        }
        Line::Whole(_) | Line::Overlong(_) => hear(line, reader, complaints, events),
    }
}

/// A line for people.
fn hear(line: Line<'_>, reader: &mut dyn Reader, complaints: &mut Tail, events: &mut Vec<AgentEvent>) {
    match line {
        Line::Whole(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            complaints.push(text.as_bytes());
            complaints.push(b"\n");
            reader.overhear(&text, events);
            events.push(AgentEvent::Output(text.into_owned() + "\n"));
        }
        Line::Overlong(head) => {
            let head = String::from_utf8_lossy(head);
            events.push(AgentEvent::Notice(format!("skipped a line that was too long: {head}…")));
        }
    }
}

/// The value of `"type"`, without reading the rest of the object where the agent writes it first.
pub(crate) fn kind(line: &str) -> Cow<'_, str> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Typed<'a> {
        #[serde(rename = "type", borrow)]
        kind: Loose<Cow<'a, str>>,
    }
    let first = line.strip_prefix("{\"type\":\"").and_then(|rest| rest.split_once('"'));
    match first {
        Some((kind, _)) if !kind.contains('\\') => Cow::Borrowed(kind),
        _ => decode::<Typed<'_>>(line).unwrap_or_default().kind.0,
    }
}

/// What a line says, if it has the shape we know.
pub(crate) fn decode<'a, T: Deserialize<'a>>(line: &'a str) -> Option<T> {
    serde_json::from_str(line).ok()
}

/// A value that counts as missing if it has another type than expected: agents change the shape of
/// one field without regard to who reads the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Loose<T>(pub(crate) T);

impl<'de: 'a, 'a, T: Deserialize<'a> + Default> Deserialize<'de> for Loose<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        Ok(Self(serde_json::from_str(raw.get()).unwrap_or_default()))
    }
}

/// The beginning of a text for people, of which long ones need not be decoded as a whole. Anything
/// but a string, or a list of pieces with a `text`, is shown as it is.
pub(crate) fn shown(raw: &RawValue) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Piece<'a> {
        #[serde(borrow)]
        text: Option<&'a RawValue>,
    }
    let json = raw.get();
    if json.starts_with('[')
        && let Ok(pieces) = serde_json::from_str::<Vec<Piece<'_>>>(json)
    {
        let texts: Vec<String> = pieces.iter().filter_map(|piece| piece.text).map(shown).collect();
        return shorten(&texts.join("\n"), RESULT_SHOWN);
    }
    if !json.starts_with('"') {
        return shorten(json, RESULT_SHOWN);
    }
    let cut = json.floor_char_boundary(2 * RESULT_SHOWN);
    let whole = cut == json.len();
    let head = if whole { &json[..cut - 1] } else { &json[..cut] };
    // A cut within an escape, of up to 12 bytes for both its halves, is moved before it.
    let text = (0..12).find_map(|back| {
        let head = head.get(..head.len() - back)?;
        serde_json::from_str::<String>(&format!("{head}\"")).ok()
    });
    let text = text.unwrap_or_default();
    if whole { shorten(&text, RESULT_SHOWN) } else { shorten(&(text + "…"), RESULT_SHOWN) }
}

/// What a tool is called on, in one line: the part of its input that people recognise it by.
pub(crate) fn detail(input: &RawValue) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Known<'a> {
        #[serde(borrow)]
        command: Loose<Cow<'a, str>>,
        #[serde(borrow)]
        file_path: Loose<Cow<'a, str>>,
        #[serde(borrow, rename = "filePath")]
        camel_path: Loose<Cow<'a, str>>,
        #[serde(borrow)]
        path: Loose<Cow<'a, str>>,
        #[serde(borrow)]
        pattern: Loose<Cow<'a, str>>,
        #[serde(borrow)]
        url: Loose<Cow<'a, str>>,
        #[serde(borrow)]
        query: Loose<Cow<'a, str>>,
        #[serde(borrow)]
        description: Loose<Cow<'a, str>>,
    }
    let known: Known<'_> = decode(input.get()).unwrap_or_default();
    let parts = [
        known.command,
        known.file_path,
        known.camel_path,
        known.path,
        known.pattern,
        known.url,
        known.query,
        known.description,
    ];
    let part = parts.into_iter().map(|part| part.0).find(|part| !part.is_empty());
    one_line(part.as_deref().unwrap_or_else(|| input.get()))
}

pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text[..text.floor_char_boundary(4 * DETAIL_SHOWN)].split_whitespace().collect();
    shorten(&words.join(" "), DETAIL_SHOWN)
}

fn shorten(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A provider's own message, where an agent passes its whole answer on.
pub(crate) fn inner_message(words: &str) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Answer {
        error: Loose<Option<Inner>>,
    }
    #[derive(Deserialize)]
    struct Inner {
        message: String,
    }
    let json = words.find('{').zip(words.rfind('}')).and_then(|(from, to)| words.get(from..=to));
    let answer = json.and_then(decode::<Answer>).and_then(|answer| answer.error.0);
    answer.map_or_else(|| words.to_owned(), |inner| inner.message)
}
