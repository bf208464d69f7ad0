//! Rewrites the transcripts: `cargo run -p wiggum-testkit --example record -- [AGENT [CASE…]]`.
#![expect(clippy::print_stdout, reason = "people read it")]

use std::error::Error;
use std::time::Instant;

use wiggum_testkit::agents::Agent;
use wiggum_testkit::cases;

fn main() -> Result<(), Box<dyn Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let named = |agent: &Agent| wanted.first().is_none_or(|name| name == agent.name());
    for case in Agent::ALL.into_iter().filter(named).flat_map(cases::of) {
        if wanted.len() > 1 && !wanted.iter().skip(1).any(|name| name == case.name) {
            continue;
        }
        let started = Instant::now();
        let result = case.run();
        let took = started.elapsed().as_secs_f32();
        match result {
            Ok(transcript) => {
                let path = case.path();
                path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
                std::fs::write(path, transcript.to_text()?)?;
                let (lines, exit) = (transcript.lines.len(), transcript.exit);
                println!("{} {}: {lines} lines, {exit:?}, {took:.1} s", case.agent.name(), case.name);
            }
            Err(error) => println!("{} {}: FAILED: {error} ({took:.1} s)", case.agent.name(), case.name),
        }
    }
    Ok(())
}
