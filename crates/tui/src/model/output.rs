//! What an agent says and does, as rows of a screen: words line by line, tool calls folded.
//!
//! Only rows that are seen are ever made. A place is an item and one of its rows, so that nothing has to be
//! counted from the beginning however much there is.

use std::collections::VecDeque;

use wiggum_engine::desk::transcripts::{Entry, EntryKind};

use crate::text::{line, plain, wrap};

/// Bytes that are kept of one item: more than anybody reads of a single result.
const MOST_ITEM: usize = 32 << 10;
/// Bytes that are kept of all; the oldest go first.
const MOST: usize = if cfg!(test) { 1 << 20 } else { 32 << 20 };

/// The output of one attempt.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) iteration: u32,
    pub(crate) attempt: u32,
    items: VecDeque<Item>,
    bytes: usize,
    /// The last line has not ended.
    midline: bool,
    /// Calls without a result, oldest first, counted from the end of the items that were dropped.
    waiting: VecDeque<usize>,
    dropped: usize,
    pub(crate) cursor: At,
    pub(crate) top: At,
    pub(crate) follows: bool,
}

/// An item, and one of its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) item: usize,
    pub(crate) row: usize,
}

#[derive(Debug)]
enum Item {
    Words(String),
    Tool(Tool),
    Notice(String),
    Cut,
}

#[derive(Debug, Default)]
struct Tool {
    name: String,
    detail: String,
    result: Option<String>,
    failed: bool,
    open: bool,
}

/// One row as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kind: RowKind,
    pub(crate) text: String,
    /// What stands at the right edge.
    pub(crate) note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    Words,
    Tool,
    Detail,
    Failed,
    Notice,
}

impl Output {
    pub(crate) fn of(iteration: u32, attempt: u32) -> Self {
        Self { iteration, attempt, follows: true, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn take(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            self.push(entry);
        }
        while self.bytes > MOST && self.items.len() > 1 {
            self.drop_first();
        }
        if self.follows {
            self.go_last();
        }
    }

    fn push(&mut self, Entry { kind, name, text, .. }: Entry) {
        match kind {
            EntryKind::Output => return self.say(&text),
            EntryKind::ToolCall => {
                self.waiting.push_back(self.dropped + self.items.len());
                let (name, detail) = (line(&name), bounded(&text));
                self.add(Item::Tool(Tool { name, detail, ..Tool::default() }));
            }
            EntryKind::ToolResult | EntryKind::ToolError => {
                self.answer(bounded(&text), kind == EntryKind::ToolError);
            }
            EntryKind::Notice => self.add(Item::Notice(bounded(&text))),
            EntryKind::Cut => self.add(Item::Cut),
        }
        self.midline = false;
    }

    /// Words come in pieces of any size.
    fn say(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            let whole = piece.ends_with('\n');
            let clean = bounded(piece);
            let mut lines = clean.split('\n').collect::<Vec<_>>();
            if whole {
                lines.pop();
            }
            for (number, line) in lines.iter().enumerate() {
                match self.items.back_mut() {
                    Some(Item::Words(last)) if self.midline && number == 0 => {
                        if last.len() < MOST_ITEM {
                            last.push_str(line);
                            self.bytes += line.len();
                        }
                    }
                    _ => self.add(Item::Words((*line).to_owned())),
                }
            }
            self.midline = !whole;
        }
    }

    fn answer(&mut self, mut text: String, failed: bool) {
        text.truncate(text.trim_end().len());
        let call = self.waiting.pop_front().and_then(|call| call.checked_sub(self.dropped));
        let call = call.and_then(|call| self.items.get_mut(call));
        let Some(Item::Tool(tool)) = call else {
            self.add(Item::Tool(Tool { result: Some(text), failed, ..Tool::default() }));
            return;
        };
        self.bytes += text.len();
        (tool.result, tool.failed) = (Some(text), failed);
    }

    fn add(&mut self, item: Item) {
        self.bytes += item.bytes();
        self.items.push_back(item);
    }

    fn drop_first(&mut self) {
        let Some(first) = self.items.pop_front() else { return };
        self.bytes = self.bytes.saturating_sub(first.bytes());
        self.dropped += 1;
        for place in [&mut self.cursor, &mut self.top] {
            *place = place.item.checked_sub(1).map_or_else(At::default, |item| At { item, ..*place });
        }
    }

    /// The rows of a window, the first of which is returned too: the cursor is always among them.
    pub(crate) fn window(&self, width: usize, height: usize) -> (At, Vec<(At, Row)>) {
        let top = self.top_of(width, height);
        let mut rows = Vec::with_capacity(height);
        let mut at = top;
        while rows.len() < height && at.item < self.items.len() {
            let all = self.rows(at.item, width);
            let left = height - rows.len();
            let places = (at.row..all.len()).take(left);
            rows.extend(places.map(|row| (At { item: at.item, row }, all[row].clone())));
            at = At { item: at.item + 1, row: 0 };
        }
        (top, rows)
    }

    fn top_of(&self, width: usize, height: usize) -> At {
        let furthest = self.back(self.cursor, height.saturating_sub(1), width);
        let top = if self.follows { furthest } else { self.top };
        // With room left at the end, more of what was before is shown.
        let last = self.back(self.end(width), height.saturating_sub(1), width);
        top.max(furthest).min(self.cursor).min(last)
    }

    /// Moves the cursor by rows; at the last one, what comes is followed.
    pub(crate) fn step(&mut self, by: isize, width: usize) {
        let rows = by.unsigned_abs();
        self.cursor =
            if by < 0 { self.back(self.cursor, rows, width) } else { self.forth(self.cursor, rows, width) };
        self.follows = self.cursor == self.end(width);
    }

    pub(crate) fn go_first(&mut self) {
        (self.cursor, self.follows) = (At::default(), self.items.len() <= 1);
    }

    /// The last item; its rows are counted when it is shown.
    pub(crate) fn go_last(&mut self) {
        self.cursor = At { item: self.items.len().saturating_sub(1), row: usize::MAX };
        self.follows = true;
    }

    pub(crate) fn put_cursor(&mut self, at: At, width: usize) {
        self.cursor = at;
        self.follows = at == self.end(width);
    }

    fn end(&self, width: usize) -> At {
        let item = self.items.len().saturating_sub(1);
        At { item, row: self.height(item, width).saturating_sub(1) }
    }

    fn back(&self, from: At, rows: usize, width: usize) -> At {
        let last = self.height(from.item, width).saturating_sub(1);
        let mut at = At { row: from.row.min(last), ..from };
        let mut left = rows;
        while left > at.row {
            let Some(item) = at.item.checked_sub(1) else { return At::default() };
            left -= at.row + 1;
            at = At { item, row: self.height(item, width).saturating_sub(1) };
        }
        At { row: at.row - left, ..at }
    }

    fn forth(&self, from: At, rows: usize, width: usize) -> At {
        let mut at = from;
        let mut left = rows;
        loop {
            let last = self.height(at.item, width).saturating_sub(1);
            at.row = at.row.min(last);
            if left <= last - at.row {
                return At { row: at.row + left, ..at };
            }
            if at.item + 1 >= self.items.len() {
                return At { row: last, ..at };
            }
            left -= last - at.row + 1;
            at = At { item: at.item + 1, row: 0 };
        }
    }

    /// Opens or closes the call under the cursor.
    pub(crate) fn fold(&mut self) {
        if let Some(Item::Tool(tool)) = self.items.get_mut(self.cursor.item) {
            tool.open = !tool.open;
            self.cursor.row = 0;
            self.follows = false;
        }
    }

    /// Opens all calls, or closes them if any is open.
    pub(crate) fn fold_all(&mut self) {
        let open = !self.items.iter().any(|item| matches!(item, Item::Tool(Tool { open: true, .. })));
        for item in &mut self.items {
            if let Item::Tool(tool) = item {
                tool.open = open;
            }
        }
        self.cursor.row = 0;
    }

    /// Goes to the next item with these words, in small letters; says whether there is one.
    pub(crate) fn find(&mut self, words: &str, forward: bool) -> bool {
        let count = self.items.len();
        let places = (1..=count).map(|step| {
            if forward {
                (self.cursor.item + step) % count
            } else {
                (self.cursor.item + count - step) % count
            }
        });
        let has = |item: &usize| self.items.get(*item).is_some_and(|item| item.has(words));
        let Some(item) = places.into_iter().find(has) else { return false };
        (self.cursor, self.follows) = (At { item, row: 0 }, false);
        true
    }

    fn height(&self, item: usize, width: usize) -> usize {
        match self.items.get(item) {
            Some(Item::Words(text)) => wrap(text, width).len(),
            Some(Item::Tool(Tool { open: false, .. }) | Item::Cut) => 1,
            Some(Item::Tool(_) | Item::Notice(_)) => self.rows(item, width).len(),
            None => 0,
        }
    }

    fn rows(&self, item: usize, width: usize) -> Vec<Row> {
        match self.items.get(item) {
            Some(Item::Words(text)) => rows_of(text, width, "", RowKind::Words),
            Some(Item::Notice(text)) => rows_of(text, width, "· ", RowKind::Notice),
            Some(Item::Cut) => {
                vec![row(RowKind::Notice, "… there was more than a transcript holds".to_owned())]
            }
            Some(Item::Tool(tool)) => tool.rows(width),
            None => Vec::new(),
        }
    }
}

impl Item {
    fn bytes(&self) -> usize {
        // What an item takes beside its text.
        const ITSELF: usize = 64;
        ITSELF
            + match self {
                Self::Words(text) | Self::Notice(text) => text.len(),
                Self::Tool(tool) => {
                    tool.name.len() + tool.detail.len() + tool.result.as_ref().map_or(0, String::len)
                }
                Self::Cut => 0,
            }
    }

    fn has(&self, words: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(words);
        match self {
            Self::Words(text) | Self::Notice(text) => has(text),
            Self::Tool(tool) => {
                has(&tool.name) || has(&tool.detail) || tool.result.as_deref().is_some_and(has)
            }
            Self::Cut => false,
        }
    }
}

impl Tool {
    fn rows(&self, width: usize) -> Vec<Row> {
        let arrow = if self.open { "▾" } else { "▸" };
        let name = if self.name.is_empty() { "result" } else { &self.name };
        let first = self.detail.lines().next().unwrap_or_default();
        let kind = if self.failed { RowKind::Failed } else { RowKind::Tool };
        let note = match &self.result {
            _ if self.failed => "failed".to_owned(),
            None => String::new(),
            Some(result) => wiggum_engine::words::counted(result.lines().count(), "line"),
        };
        let mut rows =
            vec![Row { kind, text: format!("{arrow} {name}  {first}").trim_end().to_owned(), note }];
        if self.open {
            if self.detail.lines().count() > 1 {
                rows.extend(rows_of(&self.detail, width, "    ", RowKind::Detail));
            }
            let result = self.result.as_deref().unwrap_or_default();
            rows.extend(rows_of(result, width, "  │ ", RowKind::Detail));
        }
        rows
    }
}

fn row(kind: RowKind, text: String) -> Row {
    Row { kind, text, note: String::new() }
}

fn rows_of(text: &str, width: usize, before: &str, kind: RowKind) -> Vec<Row> {
    let room = width.saturating_sub(before.chars().count());
    let lines = text.split('\n').flat_map(|line| wrap(line, room));
    lines.map(|part| row(kind, format!("{before}{part}"))).collect()
}

/// The beginning and the end of what others wrote, made harmless.
fn bounded(text: &str) -> String {
    if text.len() <= MOST_ITEM {
        return plain(text);
    }
    let head = wiggum_core::text::head(text, MOST_ITEM * 3 / 4);
    let tail = wiggum_core::text::tail(text, MOST_ITEM / 4);
    let left_out = text.len() - head.len() - tail.len();
    format!("{}\n… {left_out} bytes left out …\n{}", plain(head), plain(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: EntryKind, name: &str, text: &str) -> Entry {
        Entry { ms: 0, kind, name: name.to_owned(), text: text.to_owned() }
    }

    fn output() -> Output {
        let mut output = Output::of(1, 1);
        output.take(vec![
            entry(EntryKind::Output, "", "I look "),
            entry(EntryKind::Output, "", "around.\nThen "),
            entry(EntryKind::ToolCall, "Bash", "ls -l"),
            entry(EntryKind::ToolCall, "Read", "a.txt"),
            entry(EntryKind::ToolResult, "", "one\ntwo\n"),
            entry(EntryKind::ToolError, "", "no such file"),
            entry(EntryKind::Output, "", "Done.\n"),
        ]);
        output
    }

    fn shown(output: &Output, width: usize, height: usize) -> Vec<String> {
        let (_, rows) = output.window(width, height);
        rows.into_iter().map(|(_, row)| format!("{} {}", row.text, row.note).trim_end().to_owned()).collect()
    }

    #[test]
    fn calls_are_folded_with_their_results_in_the_order_they_came() {
        let mut output = output();
        let folded = ["I look around.", "Then", "▸ Bash  ls -l 2 lines", "▸ Read  a.txt failed", "Done."];
        assert_eq!(shown(&output, 40, 10), folded);
        output.go_first();
        output.step(2, 40);
        output.fold();
        let open = ["▾ Bash  ls -l 2 lines", "  │ one", "  │ two"];
        assert_eq!(shown(&output, 40, 10)[2..5], open);
        output.fold_all();
        assert_eq!(shown(&output, 40, 10), folded);
    }

    #[test]
    fn what_comes_is_followed_until_somebody_looks_elsewhere() {
        let mut output = output();
        assert_eq!(shown(&output, 40, 2), ["▸ Read  a.txt failed", "Done."]);
        output.take(vec![entry(EntryKind::Output, "", "More.\n")]);
        assert_eq!(shown(&output, 40, 2), ["Done.", "More."]);
        output.top = output.window(40, 2).0;
        output.step(-3, 40);
        output.top = output.window(40, 2).0;
        output.take(vec![entry(EntryKind::Output, "", "Even more.\n")]);
        assert_eq!(shown(&output, 40, 2), ["▸ Bash  ls -l 2 lines", "▸ Read  a.txt failed"]);
        output.step(100, 40);
        assert!(output.follows);
        assert!(output.find("ls -l", true) && !output.find("nothing", true));
        assert_eq!(output.cursor.item, 2);
    }

    #[test]
    fn enormous_output_stays_small_and_keeps_its_end() {
        let mut output = Output::of(1, 1);
        let long = "x".repeat(2 * MOST_ITEM);
        for number in 0..40 {
            output.take(vec![
                entry(EntryKind::Output, "", &format!("{long}{number}")),
                entry(EntryKind::ToolCall, "T", &long),
                entry(EntryKind::ToolResult, "", &long),
            ]);
        }
        assert!(output.bytes <= MOST, "{}", output.bytes);
        output.take(vec![entry(EntryKind::Output, "", "the end")]);
        assert_eq!(shown(&output, 80, 1), ["the end"]);
        output.step(-5000, 80);
        assert_eq!(shown(&output, 80, 24).len(), 24);
    }
}
