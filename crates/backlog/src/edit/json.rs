//! Edits of JSON texts: members set in place, items added, moved and taken out in the style of
//! their neighbours.

use std::ops::Range;

use wiggum_core::task::{Criterion, FileStatus};

use super::{Change, NewTask};
use crate::fields::RANKS;
use crate::formats::words::{OwnWords, Words};
use crate::formats::{Order, Status};
use crate::json::{Document, Member, Value, quote};
use crate::slug::slug;
use crate::{Backlog, Dialect};

/// Status as two flags: done under `done_key`, and `skipped`.
pub(super) fn flag_status(object: &str, done_key: &str, status: FileStatus) -> Vec<Change> {
    with_root(object, |object| {
        let done = set_flag(object, done_key, status == FileStatus::Done, &["id", "title"]);
        let skipped = set_flag(object, "skipped", status == FileStatus::Skipped, &[done_key]);
        done.into_iter().chain(skipped).collect()
    })
}

/// Status as a word, and `skipped` beside it where the format has no word for that.
pub(super) fn word_status(
    object: &str,
    key: &str,
    words: &Words,
    own: OwnWords,
    status: FileStatus,
) -> Vec<Change> {
    with_root(object, |object| {
        let flag = words
            .has_skipped_flag
            .then(|| set_flag(object, "skipped", status == FileStatus::Skipped, &[key]));
        let present = object.get(key).and_then(Value::as_str).and_then(|word| words.meaning_of(&word));
        // Beside the flag a skipped task keeps its word, unless that says that it is done, which would win.
        let is_said = match status {
            FileStatus::Skipped if words.has_skipped_flag => present != Some(FileStatus::Done),
            FileStatus::Open | FileStatus::Done | FileStatus::Failed | FileStatus::Skipped => {
                present == Some(status)
            }
        };
        let word = (!is_said).then(|| {
            set_member(
                object,
                key,
                &quote(words.word_of(status, own)),
                &["title", "name", "description", "id"],
            )
        });
        flag.flatten().into_iter().chain(word).collect()
    })
}

/// A word that says that somebody works on a task, or that nobody does. Any other word stays.
pub(super) fn progress(
    object: &str,
    key: &str,
    words: &Words,
    own: OwnWords,
    is_in_progress: bool,
) -> Vec<Change> {
    with_root(object, |object| {
        let Some(status) = object.get(key) else { return Vec::new() };
        let word = status.as_str().unwrap_or_default();
        let with = match (words.is_in_progress(&word), is_in_progress) {
            (false, true) => quote(words.progress_word(own)),
            (true, false) => quote(words.word_of(FileStatus::Open, own)),
            (true, true) | (false, false) => return Vec::new(),
        };
        vec![Change { range: status.span(), with }]
    })
}

/// Writes numbers behind an object's status. Where one is missing, 0 is what it means already. An object without
/// description or status is in some other format, which may not have these members: only what is there changes.
pub(super) fn numbers(object: &str, values: &[(&str, i64)]) -> Vec<Change> {
    with_root(object, |object| {
        let may_add = ["description", "status"].iter().all(|key| object.get(key).is_some());
        let change = |&(key, number): &(&str, i64)| match object.get(key) {
            Some(value) if value.as_integer() == Some(number) => None,
            Some(value) => Some(Change { range: value.span(), with: number.to_string() }),
            None if may_add && number != 0 => {
                Some(set_member(object, key, &number.to_string(), &["failed_attempts", "status"]))
            }
            None => None,
        };
        // Of two that go to the same place, the later one is put before the other.
        values.iter().rev().filter_map(change).collect()
    })
}

pub(super) fn has_member(object: &str, key: &str) -> bool {
    with_root(object, |object| object.get(key).is_some())
}

/// The text with a task at the end of the list.
pub(super) fn with_added(backlog: &Backlog, task: &NewTask) -> String {
    let mut text = backlog.text.clone();
    let spans = file_order(backlog);
    match spans.last() {
        Some(last) => {
            let style = Style::of(&text[last.clone()]);
            let separator = separator(&text, &backlog.list, &spans, &style);
            let object = style.object(&members(backlog, task, &text[last.clone()], &style));
            text.insert_str(last.end, &format!("{separator}{object}"));
        }
        None => {
            let (style, open, close) = Style::for_empty_list(&text, &backlog.list);
            let object = style.object(&members(backlog, task, "{}", &style));
            text.replace_range(backlog.list.clone(), &format!("[{open}{object}{close}]"));
        }
    }
    text
}

/// The text with the tasks' objects in another order; what stands between them stays in place.
pub(super) fn with_moved(backlog: &Backlog, from: usize, target: usize, after: bool) -> String {
    let text = &backlog.text;
    let spans = file_order(backlog);
    let slot_of = |position: usize| {
        let start = backlog.places[position].span.start;
        spans.iter().position(|span| span.start == start).unwrap_or(0)
    };
    let (from_slot, target_slot) = (slot_of(from), slot_of(target));
    let mut objects: Vec<String> = spans.iter().map(|span| text[span.clone()].to_owned()).collect();
    let mut moved = objects.remove(from_slot);
    if backlog.dialect.is_ordered_by_priority() {
        moved = with_priority(&moved, &backlog.text[backlog.places[target].span.clone()]);
    }
    let slot = target_slot - usize::from(from_slot < target_slot) + usize::from(after);
    objects.insert(slot, moved);

    let mut out = String::with_capacity(text.len() + 16);
    let mut copied = 0;
    for (span, object) in spans.iter().zip(&objects) {
        out.push_str(&text[copied..span.start]);
        out.push_str(object);
        copied = span.end;
    }
    out.push_str(&text[copied..]);
    out
}

/// The text without one task and one of the separators around it.
pub(super) fn without(backlog: &Backlog, position: usize) -> String {
    let spans = file_order(backlog);
    let start = backlog.places[position].span.start;
    let slot = spans.iter().position(|span| span.start == start).unwrap_or(0);
    let inside = backlog.list.start + 1..backlog.list.end - 1;
    let mut text = backlog.text.clone();
    text.replace_range(removal(&spans, slot, inside), "");
    text
}

/// The text without some of the tasks; the others keep what stands between each and the one before it.
pub(super) fn without_all(backlog: &Backlog, is_gone: impl Fn(usize) -> bool) -> String {
    let text = &backlog.text;
    let mut items: Vec<(Range<usize>, bool)> = backlog
        .places
        .iter()
        .enumerate()
        .map(|(position, place)| (place.span.clone(), is_gone(position)))
        .collect();
    items.sort_by_key(|(span, _)| span.start);
    let (Some((first, _)), Some((last, _))) = (items.first(), items.last()) else { return text.clone() };
    if items.iter().all(|(_, gone)| *gone) {
        let inside = backlog.list.start + 1..backlog.list.end - 1;
        return format!("{}{}", &text[..inside.start], &text[inside.end..]);
    }
    let mut out = text[..first.start].to_owned();
    let mut is_first = true;
    for (slot, (span, gone)) in items.iter().enumerate() {
        if *gone {
            continue;
        }
        let before = slot.checked_sub(1).map(|before| items[before].0.end);
        if let Some(before) = before.filter(|_| !is_first) {
            out.push_str(&text[before..span.start]);
        }
        out.push_str(&text[span.clone()]);
        is_first = false;
    }
    out.push_str(&text[last.end..]);
    out
}

/// The bytes to take away so that an item goes with one separator.
fn removal(spans: &[Range<usize>], slot: usize, inside: Range<usize>) -> Range<usize> {
    match (slot.checked_sub(1).map(|before| &spans[before]), spans.get(slot + 1)) {
        (_, Some(next)) => spans[slot].start..next.start,
        (Some(before), None) => before.end..spans[slot].end,
        (None, None) => inside,
    }
}

/// An object with the `priority` of another, or with none.
fn with_priority(object: &str, other: &str) -> String {
    let raw = |root: Value<'_>| root.get("priority").map(|value| value.raw().to_owned());
    let priority = with_root(other, raw);
    let change = with_root(object, |root| match &priority {
        Some(_) if raw(root) == priority => None,
        Some(raw) => Some(set_member(root, "priority", raw, &["id"])),
        None => {
            let members: Vec<Member<'_>> = root.members().collect();
            let is_priority = |m: &Member<'_>| m.key.as_str().is_some_and(|key| key == "priority");
            let slot = members.iter().position(is_priority)?;
            let spans: Vec<_> = members.iter().map(|m| m.key.start()..m.value.end()).collect();
            Some(Change { range: removal(&spans, slot, 1..object.len() - 1), with: String::new() })
        }
    });
    let mut object = object.to_owned();
    if let Some(Change { range, with }) = change {
        object.replace_range(range, &with);
    }
    object
}

pub(super) fn file_order(backlog: &Backlog) -> Vec<Range<usize>> {
    let mut spans: Vec<_> = backlog.places.iter().map(|place| place.span.clone()).collect();
    spans.sort_by_key(|span| span.start);
    spans
}

/// Reads an object that was read before; nothing is changed should that fail.
pub(super) fn with_root<T: Default>(object: &str, edit: impl FnOnce(Value<'_>) -> T) -> T {
    Document::scan(object).map(|document| edit(document.root())).unwrap_or_default()
}

/// A missing flag is as good as `false`.
fn set_flag(object: Value<'_>, key: &str, wanted: bool, after: &[&str]) -> Option<Change> {
    let present = object.get(key).and_then(Value::as_bool).unwrap_or(false);
    (present != wanted).then(|| set_member(object, key, if wanted { "true" } else { "false" }, after))
}

/// Replaces the value of a member, or adds the member behind the first of `after` there is, or
/// else at the end, written like its neighbour.
pub(super) fn set_member(object: Value<'_>, key: &str, raw: &str, after: &[&str]) -> Change {
    if let Some(value) = object.get(key) {
        return Change { range: value.span(), with: raw.to_owned() };
    }
    let members: Vec<Member<'_>> = object.members().collect();
    let slot_of = |name: &&str| members.iter().position(|m| m.key.as_str().is_some_and(|key| key == *name));
    let Some(slot) = after.iter().find_map(slot_of).or(members.len().checked_sub(1)) else {
        let inside = object.start() + 1..object.end() - 1;
        return Change { range: inside, with: format!("{}: {raw}", quote(key)) };
    };
    let text = object.raw();
    let between = |from: usize, to: usize| &text[from - object.start()..to - object.start()];
    let anchor = members[slot];
    let colon = between(anchor.key.end(), anchor.value.start());
    let separator = match (members.get(slot + 1), slot.checked_sub(1).map(|before| members[before])) {
        (Some(next), _) => between(anchor.value.end(), next.key.start()).to_owned(),
        (None, Some(before)) => between(before.value.end(), anchor.key.start()).to_owned(),
        (None, None) => first_separator(between(object.start() + 1, anchor.key.start()), colon),
    };
    let end = anchor.value.end();
    Change { range: end..end, with: format!("{separator}{}{colon}{raw}", quote(key)) }
}

/// What separates a new item from the last one.
pub(super) fn separator(text: &str, list: &Range<usize>, spans: &[Range<usize>], style: &Style) -> String {
    match spans {
        [.., before, last] => text[before.end..last.start].to_owned(),
        [only] => first_separator(&text[list.start + 1..only.start], &style.colon),
        [] => String::new(),
    }
}

/// What separates a second item from the first, judged by the white space before that one.
fn first_separator(before_first: &str, colon: &str) -> String {
    match before_first {
        "" if colon.ends_with(' ') => ", ".to_owned(),
        blank => format!(",{blank}"),
    }
}

/// How the objects of a list are written: the white space at each place.
pub(super) struct Style {
    open: String,
    between: String,
    close: String,
    colon: String,
    list_open: String,
    list_between: String,
    list_close: String,
}

impl Style {
    /// The style of an object that has at least one member.
    pub(super) fn of(object: &str) -> Self {
        let document = Document::scan(object);
        let members: Vec<Member<'_>> = match &document {
            Ok(document) => document.root().members().collect(),
            Err(_) => Vec::new(),
        };
        let [first, ..] = members.as_slice() else { return Self::inline(": ") };
        let colon = object[first.key.end()..first.value.start()].to_owned();
        let open = object[1..first.key.start()].to_owned();
        let last = members[members.len() - 1].value.end();
        let mut style = Self::spaced(open, object[last..object.len() - 1].to_owned(), colon);
        if let [first, second, ..] = members.as_slice() {
            style.between = object[first.value.end()..second.key.start()].to_owned();
        }
        style.with_list_of(&members)
    }

    /// The style for the first object of a list, and the white space at both ends of that list.
    fn for_empty_list(text: &str, list: &Range<usize>) -> (Self, String, String) {
        let before = &text[..list.start];
        let is_whole_file = before.trim_start_matches(crate::json::BOM).trim().is_empty();
        if !is_whole_file && !text[..list.end].contains('\n') {
            let colon = if before.contains("\": ") { ": " } else { ":" };
            return (Self::inline(colon), String::new(), String::new());
        }
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let line = before.rsplit('\n').next().unwrap_or_default();
        let base: String = if is_whole_file { String::new() } else { leading_blank(line).to_owned() };
        let unit = if base.is_empty() { "  ".to_owned() } else { base.clone() };
        let item = format!("{line_end}{base}{unit}");
        let style = Self::spaced(format!("{item}{unit}"), item.clone(), ": ".to_owned());
        (style, item, format!("{line_end}{base}"))
    }

    fn inline(colon: &str) -> Self {
        Self::spaced(String::new(), String::new(), colon.to_owned())
    }

    /// Everything else follows from the white space at both ends of an object.
    fn spaced(open: String, close: String, colon: String) -> Self {
        let is_multiline = open.contains('\n');
        let gap = if colon.ends_with(' ') { ", " } else { "," };
        let unit = open.strip_prefix(close.as_str()).filter(|unit| !unit.is_empty()).unwrap_or("  ");
        let list_open = if is_multiline { format!("{open}{unit}") } else { String::new() };
        Self {
            between: if is_multiline { format!(",{open}") } else { gap.to_owned() },
            list_between: if is_multiline { format!(",{list_open}") } else { gap.to_owned() },
            list_close: if is_multiline { open.clone() } else { String::new() },
            list_open,
            open,
            close,
            colon,
        }
    }

    /// Lists are often written on one line even where objects are not.
    fn with_list_of(self, members: &[Member<'_>]) -> Self {
        let mut lists = members.iter().map(|m| m.value).filter(|value| value.items().nth(1).is_some());
        match lists.next() {
            Some(list) => self.like(list),
            None => self,
        }
    }

    /// The style of a list that is there, as far as it shows.
    pub(super) fn like(mut self, list: Value<'_>) -> Self {
        let items: Vec<Value<'_>> = list.items().collect();
        let raw = |from: usize, to: usize| list.raw()[from - list.start()..to - list.start()].to_owned();
        let [first, .., last] = items.as_slice() else {
            let [only] = items.as_slice() else { return self };
            self.list_open = raw(list.start() + 1, only.start());
            self.list_between = first_separator(&self.list_open, &self.colon);
            self.list_close = raw(only.end(), list.end() - 1);
            return self;
        };
        self.list_open = raw(list.start() + 1, first.start());
        self.list_between = raw(first.end(), items[1].start());
        self.list_close = raw(last.end(), list.end() - 1);
        self
    }

    fn object(&self, members: &[(&str, String)]) -> String {
        let members: Vec<String> =
            members.iter().map(|(key, raw)| format!("{}{}{raw}", quote(key), self.colon)).collect();
        format!("{{{}{}{}}}", self.open, members.join(&self.between), self.close)
    }

    pub(super) fn list(&self, items: &[String]) -> String {
        if items.is_empty() {
            return "[]".to_owned();
        }
        format!("[{}{}{}]", self.list_open, items.join(&self.list_between), self.list_close)
    }

    fn criterion(&self, criterion: &Criterion) -> String {
        let Some(check) = &criterion.check else { return quote(&criterion.text) };
        let gap = if self.colon.ends_with(' ') { ", " } else { "," };
        let colon = self.colon.trim_end_matches(['\n', '\r']);
        format!("{{\"text\"{colon}{}{gap}\"check\"{colon}{}}}", quote(&criterion.text), quote(check))
    }
}

/// The members of a new task, spelled as the dialect and the neighbour spell them.
fn members(backlog: &Backlog, task: &NewTask, neighbour: &str, style: &Style) -> Vec<(&'static str, String)> {
    let profile = backlog.dialect.profile();
    let mut members: Vec<(&'static str, String)> = Vec::new();
    let title = task.title();
    let description = task.description.trim();
    if backlog.dialect != Dialect::Ralphy || task.id != slug(&title) {
        members.push(("id", id_like(neighbour, &task.id)));
    }
    if backlog.tells_attempts() {
        if !description.is_empty() && !task.title.trim().is_empty() {
            members.push(("title", quote(&title)));
        }
        members.push(("description", quote(if description.is_empty() { &title } else { description })));
        members.push(("status", quote("pending")));
        let numbers = [("phase", task.phase.map(i64::from)), ("priority", task.priority)];
        let complexity = [("complexity", task.complexity.map(i64::from))];
        members.extend(task.role.iter().map(|role| ("role", quote(role))));
        let given = numbers.into_iter().chain(complexity);
        members.extend(given.filter_map(|(key, number)| Some((key, number?.to_string()))));
        members.extend(task.parent.iter().map(|parent| ("parent_id", quote(parent))));
    } else {
        members.push((title_key(neighbour), quote(&title)));
        // Behind the title, where ralphy writes it.
        if backlog.dialect == Dialect::Ralphy {
            members.push(("completed", "false".to_owned()));
        }
        members.extend((!description.is_empty()).then(|| ("description", quote(description))));
    }
    let criteria: Vec<String> = task.criteria.iter().map(|criterion| style.criterion(criterion)).collect();
    if !criteria.is_empty() {
        members.push((criteria_key(profile.criteria_key, neighbour), style.list(&criteria)));
    }
    if profile.order == Order::Priority {
        members.extend(new_priority(backlog, task).map(|number| ("priority", number.to_string())));
    }
    match backlog.status {
        Status::Flag("completed") | Status::Text => {}
        Status::Flag(key) => members.push((key, "false".to_owned())),
        Status::Words(..) if backlog.tells_attempts() => {}
        Status::Words(key, words) => {
            members.push((key, quote(words.word_of(FileStatus::Open, backlog.spellings.status))));
        }
    }
    let quoted = |texts: &[String]| style.list(&texts.iter().map(|text| quote(text)).collect::<Vec<_>>());
    if !task.depends_on.is_empty() {
        let ids: Vec<String> = task.depends_on.iter().map(|id| id_like(neighbour, id)).collect();
        members.push((depends_key(backlog), style.list(&ids)));
    }
    if !task.labels.is_empty() {
        members.push(("labels", quoted(&task.labels)));
    }
    members
}

/// An id as a number where the neighbour's is one.
fn id_like(neighbour: &str, id: &str) -> String {
    let is_number = with_root(neighbour, |root| {
        root.get("id").is_some_and(|own| own.as_integer().is_some() && own.as_str().is_none())
    });
    let is_plain = id.parse::<u64>().is_ok_and(|number| number.to_string() == id);
    if is_number && is_plain { id.to_owned() } else { quote(id) }
}

fn title_key(neighbour: &str) -> &'static str {
    if has_member(neighbour, "name") && !has_member(neighbour, "title") { "name" } else { "title" }
}

/// The neighbour's spelling; else the one that does not turn the file into another dialect.
fn criteria_key(usual: &'static str, neighbour: &str) -> &'static str {
    let spellings = ["criteria", "acceptanceCriteria", "acceptance_criteria"];
    spellings.into_iter().find(|key| has_member(neighbour, key)).unwrap_or(usual)
}

/// The spelling that the file uses; else the one of its dialect.
pub(super) fn depends_key(backlog: &Backlog) -> &'static str {
    backlog.spellings.depends_on.unwrap_or(backlog.dialect.profile().depends_key)
}

/// Behind all others, where the order goes by priority.
fn new_priority(backlog: &Backlog, task: &NewTask) -> Option<i64> {
    if !backlog.dialect.is_ordered_by_priority() {
        return None;
    }
    let highest = backlog.places.iter().filter_map(|place| place.rank).max();
    // A word for a priority has no next one, and nor has beads' scale.
    let is_number = file_order(backlog).last().is_some_and(|last| {
        with_root(&backlog.text[last.clone()], |root| {
            root.get("priority").and_then(Value::as_integer).is_some()
        })
    });
    task.priority.or_else(|| {
        highest.filter(|_| is_number).map(|highest| (highest.div_euclid(RANKS)).saturating_add(1))
    })
}

fn leading_blank(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}
