//! Resources: the loops, and of each its status, its report and its journal in pages.
//!
//! A URI names a loop as people do, and never a file: there is no path to get out of.

use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};
use wiggum_core::event::Envelope;
use wiggum_engine::desk::Loops;
use wiggum_engine::words::describe;
use wiggum_store::LoopRecord;

use crate::office::{Audience, Office};
use crate::refusal::Refusal;
use crate::tools;

const ROOT: &str = "wiggum://loops";
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

/// Events on one page, unless fewer are asked for.
const PAGE: u32 = 100;
const MOST: u32 = 500;

/// The longest text one resource has; events and reports have bounded parts, but may have many.
const MAX_TEXT: usize = 4 * 1024 * 1024;

/// The resources there are now; those of the loops that were made last, if there are very many.
pub(crate) fn list(office: &Office) -> Result<Vec<Resource>, Refusal> {
    let mut listed = Vec::new();
    if office.audience == Audience::Client {
        listed.push(
            Resource::new(ROOT, "loops")
                .with_title("All loops")
                .with_description("The loops of this repository, in one entry each")
                .with_mime_type(JSON),
        );
    }
    let Some(loops) = Loops::of(&office.checkout)? else { return Ok(listed) };
    let mut records = match &office.audience {
        Audience::Client => loops.all()?,
        Audience::Agent(_) => vec![office.select(&loops, None)?],
    };
    records.drain(..records.len().saturating_sub(50));
    for LoopRecord { id, identity, .. } in records {
        for part in Part::ALL {
            listed.push(
                Resource::new(
                    format!("{ROOT}/{id}/{}", part.name()),
                    format!("{} of {}", part.name(), identity.name),
                )
                .with_title(format!("{} of loop {} over {}", part.title(), identity.name, identity.backlog))
                .with_description(part.about())
                .with_mime_type(part.mime()),
            );
        }
    }
    Ok(listed)
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |part: Part| {
        let query = if part == Part::Journal { "{?after,before,limit}" } else { "" };
        ResourceTemplate::new(format!("{ROOT}/{{id}}/{}{query}", part.name()), part.name())
            .with_title(part.title())
            .with_description(part.about())
            .with_mime_type(part.mime())
    };
    Part::ALL.map(template).to_vec()
}

/// What can be read of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Status,
    Journal,
    Report,
    ReportJson,
}

impl Part {
    const ALL: [Self; 4] = [Self::Status, Self::Journal, Self::Report, Self::ReportJson];

    fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Journal => "journal",
            Self::Report => "report",
            Self::ReportJson => "report.json",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Status => "Status",
            Self::Journal => "Journal",
            Self::Report => "Report",
            Self::ReportJson => "Report as JSON",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Status => "Where the loop stands now",
            Self::Journal => {
                "What happened, event by event, the newest first in pages of 100: `?before=SEQ` is the page \
                 before, `?after=SEQ` reads forwards from there, `?limit=N` says how many (500 at most)"
            }
            Self::Report => {
                "The account of the loop for people: what a person should look at, tasks, cost, timeline"
            }
            Self::ReportJson => "The account of the loop for programs",
        }
    }

    fn mime(self) -> &'static str {
        match self {
            Self::Report => MARKDOWN,
            Self::Status | Self::Journal | Self::ReportJson => JSON,
        }
    }
}

pub(crate) fn read(office: &Office, uri: &str) -> Result<ReadResourceResult, Refusal> {
    let (mime, text) = match parse(uri)? {
        Meant::Loops if office.audience == Audience::Client => (JSON, pretty(&tools::list_loops(office)?)),
        Meant::Loops => return Err(Refusal::new("an agent looks at its own loop only")),
        Meant::Part { of, part, page } => (part.mime(), part_text(office, of, part, page)?),
    };
    if text.len() > MAX_TEXT {
        return Err(Refusal::new(format!("{uri} has {} bytes, more than are sent at once", text.len()))
            .hint("read the journal in smaller pages, or call `wiggum report`"));
    }
    let contents = ResourceContents::text(text, uri).with_mime_type(mime);
    Ok(ReadResourceResult::new(vec![contents]))
}

fn part_text(office: &Office, of: &str, part: Part, page: Page) -> Result<String, Refusal> {
    let loops = office.loops()?;
    let record = office.select(&loops, Some(of))?;
    Ok(match part {
        Part::Status => pretty(&tools::status(office, Some(of))?),
        Part::Journal => pretty(&journal(&loops, &record, page)?),
        Part::Report => loops.report(&record)?.markdown(),
        Part::ReportJson => pretty(&tools::value(&loops.report(&record)?)?),
    })
}

fn journal(loops: &Loops, record: &LoopRecord, page: Page) -> Result<Value, Refusal> {
    let last = loops.store.last_seq(record.id)?;
    let most = page.limit.unwrap_or(PAGE).clamp(1, MOST);
    let forwards = page.after.is_some();
    let after = match (page.after, page.before) {
        (Some(after), _) => after,
        (None, before) => {
            let end = before.unwrap_or(u64::MAX).min(last + 1);
            end.saturating_sub(1).saturating_sub(u64::from(most))
        }
    };
    let mut events = loops.store.page(record.id, after, most)?;
    events.retain(|event| page.before.is_none_or(|before| event.seq < before));
    if !forwards {
        events.reverse();
    }
    let oldest = events.iter().map(|event| event.seq).min();
    let newest = events.iter().map(|event| event.seq).max();
    let page_at = |query: String| format!("{ROOT}/{}/journal?{query}", record.id);
    Ok(json!({
        "loop_id": record.id.to_string(),
        "last_seq": last,
        "order": if forwards { "oldest first" } else { "newest first" },
        "older": oldest.filter(|seq| *seq > 1).map(|seq| page_at(format!("before={seq}"))),
        "newer": newest.filter(|seq| *seq < last).map(|seq| page_at(format!("after={seq}"))),
        "events": events.iter().map(shown).collect::<Result<Vec<_>, _>>()?,
    }))
}

fn shown(envelope: &Envelope) -> Result<Value, Refusal> {
    let mut event = tools::value(envelope)?;
    if let Some(object) = event.as_object_mut() {
        object.insert("says".to_owned(), describe(&envelope.event).into());
    }
    Ok(event)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Page {
    after: Option<u64>,
    before: Option<u64>,
    limit: Option<u32>,
}

#[derive(Debug, PartialEq, Eq)]
enum Meant<'a> {
    Loops,
    Part { of: &'a str, part: Part, page: Page },
}

/// What a URI means. What is not exactly one of ours means nothing.
fn parse(uri: &str) -> Result<Meant<'_>, Refusal> {
    let unknown = || {
        Refusal::new(format!("there is no resource {}", wiggum_engine::words::one_line(uri)))
            .hint("there are wiggum://loops and wiggum://loops/{id}/status, journal, report and report.json")
    };
    let rest = uri.strip_prefix(ROOT).ok_or_else(unknown)?;
    if rest.is_empty() {
        return Ok(Meant::Loops);
    }
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    let (of, name) = path.strip_prefix('/').and_then(|path| path.split_once('/')).ok_or_else(unknown)?;
    let part = Part::ALL.into_iter().find(|part| part.name() == name).ok_or_else(unknown)?;
    if of.is_empty() || (query.is_some() && part != Part::Journal) {
        return Err(unknown());
    }
    Ok(Meant::Part { of, part, page: page(query.unwrap_or_default())? })
}

fn page(query: &str) -> Result<Page, Refusal> {
    let mut page = Page::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let wrong = || {
            Refusal::new(format!("`{pair}` is not understood")).hint("after, before and limit are numbers")
        };
        let (name, number) = pair.split_once('=').ok_or_else(wrong)?;
        match name {
            "after" => page.after = Some(number.parse().map_err(|_| wrong())?),
            "before" => page.before = Some(number.parse().map_err(|_| wrong())?),
            "limit" => page.limit = Some(number.parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_uris_mean_something() {
        assert_eq!(parse("wiggum://loops").unwrap(), Meant::Loops);
        let page = Page { after: Some(3), limit: Some(2), ..Page::default() };
        let journal = Meant::Part { of: "main", part: Part::Journal, page };
        assert_eq!(parse("wiggum://loops/main/journal?after=3&limit=2").unwrap(), journal);
        for uri in [
            "",
            "file:///etc/passwd",
            "wiggum://loops/",
            "wiggum://loopsx",
            "wiggum://loops//status",
            "wiggum://loops/main",
            "wiggum://loops/../../etc/passwd",
            "wiggum://loops/main/../status",
            "wiggum://loops/main/status/..",
            "wiggum://loops/main/status?x=1",
            "wiggum://loops/main/journal?after=-1",
            "wiggum://loops/main/journal?limit=99999999999",
            "wiggum://loops/main/%6aournal",
        ] {
            assert!(parse(uri).is_err(), "{uri}");
        }
    }
}
