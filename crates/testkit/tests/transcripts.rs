//! The transcripts that parsers are tested against are still what the real agents print.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

use std::collections::BTreeSet;
use std::path::Path;

use wiggum_testkit::agents::Agent;
use wiggum_testkit::{Case, Transcript, cases};

/// Runs every steady case with the real agent and compares what kinds of things it says.
fn check(agent: Agent) {
    if agent.program_or_skip("whether its transcripts are still true").is_none() {
        return;
    }
    let all = cases::of(agent);
    let problems: Vec<String> = all.iter().filter(|case| case.steady).filter_map(differs).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn differs(case: &Case) -> Option<String> {
    let name = case.name;
    let recorded = Transcript::read(&case.path()).unwrap();
    let now = match case.run() {
        Ok(transcript) => transcript,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    let (then_kinds, now_kinds) = (recorded.kinds(), now.kinds());
    let same = recorded.exit == now.exit && then_kinds == now_kinds;
    (!same).then(|| {
        let lost: BTreeSet<_> = then_kinds.difference(&now_kinds).collect();
        let new: BTreeSet<_> = now_kinds.difference(&then_kinds).collect();
        format!("{name}: {:?} is now {:?}; lost {lost:#?}; new {new:#?}", recorded.exit, now.exit)
    })
}

#[test]
fn claude_speaks_as_recorded() {
    check(Agent::Claude);
}

#[test]
fn codex_speaks_as_recorded() {
    check(Agent::Codex);
}

#[test]
fn copilot_speaks_as_recorded() {
    check(Agent::Copilot);
}

#[test]
fn gemini_speaks_as_recorded() {
    check(Agent::Gemini);
}

#[test]
fn every_case_has_a_transcript_and_none_names_a_machine() {
    for agent in Agent::ALL {
        let known: BTreeSet<_> = cases::of(agent).iter().map(Case::path).collect();
        let directory = known.first().and_then(|path| path.parent()).map(Path::to_owned).unwrap();
        let found: BTreeSet<_> = directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        // Others were made by hand, of what no case brings about.
        let lost: Vec<_> = known.difference(&found).collect();
        assert!(lost.is_empty(), "cargo run -p wiggum-testkit --example record: {lost:#?}");
        for path in found {
            let transcript = Transcript::read(&path).unwrap();
            assert_eq!(transcript.head.agent, agent.name());
            let text = transcript.to_text().unwrap();
            assert!(!text.contains("/tmp/.tmp"), "{}", path.display());
        }
    }
}
