//! What the marks of boxes mean by the file's own account: `[-] = cancelled`, `` `[~]` in progress ``, a list of
//! boxes below a heading "Legend".
//!
//! A line is read as a legend only where it cannot be meant as a task: it is no box, or a box that says nothing
//! but what its mark means.

use wiggum_core::task::FileStatus;

use super::{Line, Lines, atx_level, checkbox, list_item};

/// Marks whose meaning differs between the people who use them. A cross is a cross everywhere.
const UNCLEAR: [&str; 6] = ["-", "~", "/", ">", "?", "!"];

/// Headings below which boxes explain marks.
const HEADINGS: [&str; 8] =
    ["legend", "key", "notation", "symbols", "markers", "status legend", "status key", "checkbox legend"];

/// What words say of a mark. Where one begins with another, the longer stands first.
const WORDS: [(FileStatus, &[&str]); 5] = [
    (
        FileStatus::Skipped,
        &[
            "skipped",
            "skip",
            "cancelled",
            "canceled",
            "won't do",
            "won't fix",
            "wont do",
            "wontfix",
            "dropped",
            "abandoned",
            "not needed",
            "not applicable",
            "not planned",
            "n/a",
            "obsolete",
            "deferred",
            "postponed",
            "rejected",
            "out of scope",
        ],
    ),
    // In progress is open to us: who works on a task is known to the journal alone.
    (
        FileStatus::Open,
        &[
            "in progress",
            "in-progress",
            "inprogress",
            "work in progress",
            "wip",
            "started",
            "doing",
            "ongoing",
            "active",
            "underway",
            "under way",
            "being worked on",
            "partially done",
            "partially complete",
            "partial",
        ],
    ),
    (FileStatus::Open, &["todo", "to do", "to-do", "open", "pending", "not started", "incomplete"]),
    (FileStatus::Done, &["done", "completed", "complete", "finished"]),
    (FileStatus::Failed, &["failed"]),
];

/// What a file says of its marks.
#[derive(Debug, Default)]
pub(super) struct Legend {
    said: Vec<(&'static str, FileStatus)>,
    /// Where the lines start that explain marks and look like boxes.
    lines: Vec<usize>,
}

impl Legend {
    pub(super) fn read(text: &str) -> Self {
        let mut legend = Self::default();
        // Nearly every file has only clear marks.
        if !UNCLEAR.iter().any(|mark| text.contains(&format!("[{mark}]"))) {
            return legend;
        }
        let mut block: Vec<Entry> = Vec::new();
        let mut below_heading = false;
        let mut inside = InsideTask::default();
        for line in Lines::new(text) {
            let item = list_item(line.text);
            let content = item.as_ref().map_or(line.text.trim_start(), |item| item.content);
            // A line that is no item is no task either.
            let entry = Entry::read(line, content, below_heading || item.is_none());
            match (entry, item) {
                (Some(entry), Some(_)) => block.push(entry),
                // Other marks may be explained behind it.
                (Some(entry), None) => {
                    if !inside.goes_on(line.text) {
                        legend.take_line(line.text);
                    }
                    block.push(entry);
                }
                // One task among them, and all are tasks.
                (None, Some(item)) if checkbox(item.content).is_some() => {
                    block.clear();
                    inside = InsideTask { is_inside: true, after_blank: false };
                }
                (None, _) => {
                    legend.take_block(&mut block);
                    if let Some(level) = atx_level(line.text.trim()) {
                        below_heading = is_heading(&line.text.trim()[level..]);
                    }
                    if !inside.goes_on(line.text) {
                        legend.take_line(line.text);
                    }
                }
            }
        }
        legend.take_block(&mut block);
        legend
    }

    pub(super) fn status(&self, mark: &str) -> Option<FileStatus> {
        self.said.iter().find(|(said, _)| *said == mark).map(|(_, status)| *status)
    }

    /// Is the box on the line that starts here an explanation?
    pub(super) fn explains(&self, line_start: usize) -> bool {
        self.lines.binary_search(&line_start).is_ok()
    }

    fn note(&mut self, mark: &str, status: FileStatus) {
        let mark = UNCLEAR.iter().find(|unclear| **unclear == mark);
        if let Some(mark) = mark.filter(|mark| self.status(mark).is_none()) {
            self.said.push((mark, status));
        }
    }

    /// A list in which every box says what its mark means explains at least two of them, unless it says so.
    fn take_block(&mut self, block: &mut Vec<Entry>) {
        let differs = block.iter().any(|entry| entry.mark != block[0].mark);
        for entry in block.drain(..) {
            if differs || entry.is_certain {
                self.lines.push(entry.line_start);
                self.note(&entry.mark, entry.status);
            }
        }
    }

    /// A line of text may explain several marks.
    fn take_line(&mut self, line: &str) {
        let mut at = 0;
        let mut before = "";
        while let Some((mark, range)) = next_mark(line, at) {
            let after =
                &line[range.end..next_mark(line, range.end).map_or(line.len(), |(_, next)| next.start)];
            let before_mark = if before.is_empty() { &line[..range.start] } else { before };
            if let Some(status) = meaning_behind(after).or_else(|| meaning_before(before_mark)) {
                self.note(mark, status);
            }
            before = after;
            at = range.end;
        }
    }
}

/// Does a box without a bullet say what its mark means?
pub(super) fn explains(mark: &str, said: &str) -> bool {
    UNCLEAR.contains(&mark) && meaning_behind(said).is_some()
}

/// What stands under a task is about that task.
#[derive(Default)]
struct InsideTask {
    is_inside: bool,
    after_blank: bool,
}

impl InsideTask {
    fn goes_on(&mut self, line: &str) -> bool {
        let is_blank = line.trim().is_empty();
        let is_nested = line.starts_with(char::is_whitespace);
        let opens = line.starts_with(['#', '>', '|', '<', '`']) || list_item(line).is_some();
        self.is_inside &= is_blank || is_nested || !(self.after_blank || opens);
        self.after_blank = is_blank;
        self.is_inside
    }
}

/// A box that may be an explanation.
struct Entry {
    line_start: usize,
    mark: String,
    status: FileStatus,
    /// It stands below a heading that says so, is written as one, or cannot be a task.
    is_certain: bool,
}

impl Entry {
    fn read(line: Line<'_>, content: &str, is_legend: bool) -> Option<Self> {
        let (mark, said) = checkbox(content)?;
        let is_equated = said.starts_with(['=', ':', '→', '–', '—']) || said.starts_with("->");
        let is_certain = is_equated || is_legend;
        let (status, rest) = meaning(said.trim_start_matches(SEPARATORS))?;
        let is_all = rest.trim_matches(SEPARATORS).is_empty();
        (is_certain || is_all).then(|| Self {
            line_start: line.start,
            mark: mark.to_owned(),
            status,
            is_certain,
        })
    }
}

/// The next `[x]` with any mark that may be explained, also a clear one: words beside that are not about its
/// neighbours.
fn next_mark(line: &str, from: usize) -> Option<(&str, std::ops::Range<usize>)> {
    let mut at = from;
    while let Some(open) = line[at..].find('[').map(|found| at + found) {
        let inside = &line[open + 1..];
        let mark = inside.chars().next().filter(|_| inside.chars().nth(1) == Some(']'));
        if let Some(mark) = mark {
            let end = open + 1 + mark.len_utf8();
            return Some((&line[open + 1..end], open..end + 1));
        }
        at = open + 1;
    }
    None
}

const SEPARATORS: [char; 14] = [' ', '\t', '`', '*', '_', '"', '=', ':', '-', '–', '—', '→', '|', '>'];

/// `= skipped`, `means: in progress`, `for cancelled tasks`.
fn meaning_behind(said: &str) -> Option<FileStatus> {
    let said = said.trim_start_matches(SEPARATORS);
    let mut words = said;
    for lead in ["means ", "is for ", "is ", "are ", "for ", "marks ", "tasks ", "a ", "the ", "that are "] {
        let rest = words.get(..lead.len()).filter(|start| start.eq_ignore_ascii_case(lead));
        words = rest.map_or(words, |_| words[lead.len()..].trim_start_matches(SEPARATORS));
    }
    meaning(words).map(|(status, _)| status)
}

/// `skipped: `, `Mark skipped tasks `, `in progress (`.
fn meaning_before(said: &str) -> Option<FileStatus> {
    let mut words = said.trim_end_matches(SEPARATORS).trim_end_matches(['(', ' ', '`']);
    for trail in [" with", " as", " by", " is", " are", " tasks", " items", " ones"] {
        let start = words.len().saturating_sub(trail.len());
        let found = words.get(start..).filter(|end| end.eq_ignore_ascii_case(trail));
        words = found.map_or(words, |_| words[..start].trim_end_matches(SEPARATORS));
    }
    let lower = words.to_lowercase();
    let ends = |word: &&&str| {
        let before = lower.strip_suffix(**word);
        before.is_some_and(|before| !before.ends_with(char::is_alphanumeric) && !before.ends_with("not "))
    };
    let found = WORDS.iter().find(|(_, words)| words.iter().any(|word| ends(&word)));
    found.map(|(status, _)| *status)
}

/// What a text begins by saying, and what follows that.
fn meaning(said: &str) -> Option<(FileStatus, &str)> {
    let begins = |word: &str| {
        let rest = said.get(..word.len()).filter(|start| start.eq_ignore_ascii_case(word))?;
        let rest = &said[rest.len()..];
        (!rest.starts_with(char::is_alphanumeric)).then_some(rest)
    };
    WORDS.iter().find_map(|(status, words)| Some((*status, words.iter().find_map(|word| begins(word))?)))
}

fn is_heading(heading: &str) -> bool {
    let words = heading.trim().trim_end_matches(':').to_lowercase();
    HEADINGS.contains(&words.trim_matches(|c: char| !c.is_alphanumeric()))
}
