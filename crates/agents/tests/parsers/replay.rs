//! Plays transcripts to the parsers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Zoned;
use wiggum_agents::{AgentEvent, AgentSpec, Family, Finished};
use wiggum_core::stream::Stream;
use wiggum_testkit::transcript::Transcript;

/// When and where the transcripts are read.
pub(crate) fn now() -> Zoned {
    "2026-11-15T12:00:00+00:00[UTC]".parse().expect("it is a time")
}

/// All cases, as `agent/case`.
pub(crate) fn case_names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for agent in std::fs::read_dir(root()).expect("there are transcripts").flatten() {
        for case in std::fs::read_dir(agent.path()).expect("agents have directories").flatten() {
            let path = case.path();
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            names.insert(format!("{}/{}", agent.file_name().to_string_lossy(), stem.unwrap_or_default()));
        }
    }
    names
}

pub(crate) fn load(case: &str) -> (Family, Transcript) {
    let transcript = Transcript::read(&root().join(format!("{case}.jsonl"))).expect("it is a transcript");
    let family = Family::from_name(&transcript.head.agent).expect("it is an agent we know");
    (family, transcript)
}

/// What a parser makes of portions of its agent's output.
pub(crate) fn parse<'a>(
    family: Family,
    portions: impl IntoIterator<Item = (Stream, &'a [u8])>,
    exit: wiggum_core::event::Exit,
) -> (Vec<AgentEvent>, Finished) {
    let mut parser = Family::driver(AgentSpec::new(family)).parser();
    let mut events = Vec::new();
    for (stream, bytes) in portions {
        events.extend(parser.push(stream, bytes));
    }
    (events, parser.finish(exit, &now()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}
