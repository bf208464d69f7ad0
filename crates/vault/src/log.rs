//! `Logs/Plan_Execution/<id>.md`: every action of a plan, a line each. A line ends with the number of
//! its event as a block id, so that after a crash exactly the missing ones are appended.

use wiggum_core::ids::Seq;

use crate::layout::{LOGS, Vault, VaultError};
use crate::story::News;
use crate::words;

/// A log is looked at from its end; nobody writes that much below our last line.
const TAIL: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Log {
    path: String,
    /// The last event that is in it; nothing if there is no log yet.
    last: Option<Seq>,
}

impl Log {
    pub(crate) fn open(vault: &Vault, plan: &str) -> Result<Self, VaultError> {
        let path = format!("{LOGS}/{plan}.md");
        let text = vault.read(&path)?;
        if let Some(text) = &text
            && let Some(length) = without_torn_line(text)
        {
            vault.cut(&path, length as u64)?;
        }
        Ok(Self { path, last: text.map(|text| last_entry(&text).unwrap_or(0)) })
    }

    pub(crate) fn last(&self) -> Seq {
        self.last.unwrap_or(0)
    }

    /// Appends what is new.
    pub(crate) fn append(
        &mut self,
        vault: &Vault,
        plan: &str,
        objective: &str,
        news: &[News],
    ) -> Result<(), VaultError> {
        let last = self.last();
        let new = news.iter().filter(|news| news.seq > last);
        let mut text: String = new.map(|news| format!("- {} ^e{}\n", news.line, news.seq)).collect();
        if text.is_empty() {
            return Ok(());
        }
        if self.last.is_none() {
            text.insert_str(0, &head(plan, objective));
        }
        vault.append(&self.path, &text)?;
        self.last = news.last().map(|news| news.seq.max(last));
        Ok(())
    }
}

fn head(plan: &str, objective: &str) -> String {
    format!(
        "---\nplan_id: {plan}\n---\n\n# Log of {plan}\n\n{}\n\n",
        words::inline(if objective.is_empty() { plan } else { objective }, words::LINE)
    )
}

fn last_entry(text: &str) -> Option<Seq> {
    let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(TAIL))..];
    tail.lines()
        .rev()
        .find_map(|line| line.starts_with("- ").then(|| line.rsplit_once(" ^e")?.1.parse().ok())?)
}

/// Where the text ends before a line of ours that was cut off by a power failure.
fn without_torn_line(text: &str) -> Option<usize> {
    let start = text.rfind('\n').map_or(0, |at| at + 1);
    text[start..].starts_with("- ").then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(seq: Seq) -> News {
        News { seq, line: format!("entry {seq}"), notice: None }
    }

    #[test]
    fn exactly_the_missing_lines_are_appended() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::open(dir.path()).unwrap();
        vault.make_folders().unwrap();
        let all: Vec<News> = [2, 5, 9].map(news).into();
        let mut log = Log::open(&vault, "p").unwrap();
        assert_eq!(log.last(), 0);
        log.append(&vault, "p", "why", &all[..2]).unwrap();
        log.append(&vault, "p", "why", &all[..2]).unwrap();
        let path = dir.path().join("Logs/Plan_Execution/p.md");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "---\nplan_id: p\n---\n\n# Log of p\n\nwhy\n\n- entry 2 ^e2\n- entry 5 ^e5\n");
        // A person's words stay, a torn line of ours goes.
        std::fs::write(&path, format!("{text}my remark ^e99\n- entry 9 ^")).unwrap();
        let mut log = Log::open(&vault, "p").unwrap();
        assert_eq!(log.last(), 5);
        log.append(&vault, "p", "why", &all).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{text}my remark ^e99\n- entry 9 ^e9\n"));
    }
}
