//! Changes to the members of a JSON task: values replaced where they stand, members added where there
//! is none yet.

use std::borrow::Cow;

use super::{Id, TaskChange};
use crate::Backlog;
use crate::edit::json::{Style, depends_key, set_member, with_root};
use crate::edit::{Change, replaced};
use crate::fields::{DEPENDS_ON, id_of};
use crate::json::{Kind, Value, quote};

/// The text with the task's members changed.
pub(super) fn changed(backlog: &Backlog, position: usize, change: &TaskChange, id: Id) -> String {
    let changes = backlog.object_changes(position, |object| {
        with_root(object, |root| {
            let mut changes = words(root, change);
            if id == Id::SpelledOut {
                let own = quote(backlog.tasks[position].id.as_str());
                changes.push(set_member(root, "id", &own, &["title"]));
            }
            if let Some(wanted) = &change.depends_on {
                changes.extend(dependencies(backlog, object, root, wanted));
            }
            changes
        })
    });
    replaced(&backlog.text, changes)
}

fn words(root: Value<'_>, change: &TaskChange) -> Vec<Change> {
    let title = change.title.as_ref().map(|title| set_member(root, "title", &quote(title), &["id"]));
    let priority =
        change.priority.map(|number| set_member(root, "priority", &number.to_string(), &["title", "id"]));
    // What is not there says nothing already.
    let is_said = |text: &&String| !text.is_empty() || root.get("description").is_some();
    let description = change.description.as_ref().filter(is_said);
    let description = description.map(|text| set_member(root, "description", &quote(text), &["title", "id"]));
    title.into_iter().chain(description).chain(priority).collect()
}

/// The list in the spelling that is there; a second spelling of it is emptied.
fn dependencies(backlog: &Backlog, object: &str, root: Value<'_>, wanted: &[String]) -> Vec<Change> {
    let lists: Vec<Value<'_>> = DEPENDS_ON.iter().filter_map(|(_, key)| root.get(key)).collect();
    let items: Vec<Value<'_>> = lists.iter().flat_map(|list| list.items()).collect();
    let spelled = |id: &String| {
        let own = items.iter().find(|item| is_called(backlog, **item, id));
        own.map_or_else(|| quote(id), |item| item.raw().to_owned())
    };
    let wanted: Vec<String> = wanted.iter().map(spelled).collect();
    let style = Style::of(object);
    let Some((first, others)) = lists.split_first() else {
        return vec![set_member(root, depends_key(backlog), &style.list(&wanted), &[])];
    };
    let emptied = others.iter().filter(|list| list.kind() == Kind::Array && list.items().next().is_some());
    let emptied = emptied.map(|list| Change { range: list.span(), with: "[]".to_owned() });
    let list = Change { range: first.span(), with: style.like(*first).list(&wanted) };
    emptied.chain([list]).collect()
}

/// ralphy's tasks are called by their titles.
fn is_called(backlog: &Backlog, item: Value<'_>, id: &str) -> bool {
    let Some(name) = id_of(item) else { return false };
    let titled = || backlog.task(id).is_some_and(|task| Cow::Borrowed(task.title.as_str()) == name);
    name == id || (backlog.task(&name).is_none() && titled())
}
