//! What a prompt says of the file that a task comes from: its path, what it says around the task, and the documents
//! that stand beside it.

use std::path::Path;

use wiggum_backlog::{Backlog, Context};
use wiggum_core::ids::TaskId;

/// Documents of a specification, the most telling first.
const BESIDE: [&str; 12] = [
    "spec.md",
    "requirements.md",
    "proposal.md",
    "plan.md",
    "design.md",
    "research.md",
    "data-model.md",
    "contracts",
    "specs",
    "quickstart.md",
    "prd.md",
    "PRD.md",
];

/// The part of a prompt about the file, or nothing where that says no more than the task itself.
pub(crate) fn describe(backlog: &Backlog, name: &str, path: &Path, task: &TaskId) -> String {
    let Context { headings, preamble, section } = backlog.context(task.as_str());
    let beside = beside(name, path);
    if headings.len() < 2 && preamble.is_empty() && section.is_empty() && beside.is_empty() {
        return String::new();
    }
    let place = match headings.is_empty() {
        true => String::new(),
        false => format!(", below \"{}\"", headings.join("\" › \"")),
    };
    let mut text = format!("## Where the task comes from\n\nIt stands in `{name}`{place}.");
    if !preamble.is_empty() {
        text.push_str(&format!(" The file begins:\n\n{preamble}"));
    }
    if !section.is_empty() {
        text.push_str(&format!("\n\nWhat its section says:\n\n{section}"));
    }
    if !beside.is_empty() {
        text.push_str(&format!(
            "\n\nDocuments beside it, to be read where they matter: {}.",
            beside.join(", ")
        ));
    }
    text
}

/// Only what stands in the folder of a specification is about its tasks; the root of a repository has other files of
/// these names.
fn beside(name: &str, path: &Path) -> Vec<String> {
    let (Some(folder), Some((shown, _))) = (path.parent(), name.rsplit_once('/')) else { return Vec::new() };
    let own = path.file_name();
    let there = |document: &&&str| own.is_none_or(|own| own != **document) && folder.join(document).exists();
    BESIDE.iter().filter(there).map(|document| format!("`{shown}/{document}`")).collect()
}
