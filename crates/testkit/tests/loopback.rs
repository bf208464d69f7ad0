//! The agents of our tests talk to the stub, and to nobody else.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail here, and says what it skips")]

use std::io::ErrorKind;
use std::path::Path;

use wiggum_testkit::agents::Agent;
use wiggum_testkit::{Place, StubModel, Turn, cases};

/// Addresses outside of this machine that an agent tried to reach.
fn strangers(agent: Agent, program: &Path) -> Vec<String> {
    let stub = StubModel::start([Turn::says("Done.")]).unwrap();
    let place = Place::new().unwrap();
    let case = cases::of(agent).into_iter().find(|case| case.name == "success").unwrap();
    let trace = place.home().join("trace");
    let mut strace = place.command(Path::new("strace"));
    strace.args(["-f", "--seccomp-bpf", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o"]);
    strace.arg(&trace).arg(program).args(&case.arguments);
    strace.envs(agent.environment(&place.home(), &stub.base_url()).unwrap());
    let output = match strace.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: strace is not installed: whom {} talks to", agent.name());
            return Vec::new();
        }
        output => output.unwrap(),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!stub.asked().is_empty(), "{} never asked the model", agent.name());
    let trace = String::from_utf8_lossy(&std::fs::read(trace).unwrap()).into_owned();
    let addressed = trace.lines().filter(|line| line.contains("sa_family=AF_INET"));
    addressed
        .filter(|line| !line.contains("\"127.0.0.1\"") && !line.contains("\"::1\""))
        .map(str::to_owned)
        .collect()
}

fn check(agent: Agent) {
    let Some(program) = agent.program_or_skip("whom it talks to") else { return };
    let strangers = strangers(agent, &program);
    assert!(strangers.is_empty(), "{strangers:#?}");
}

#[test]
fn claude_talks_to_nobody_else() {
    check(Agent::Claude);
}

#[test]
fn codex_talks_to_nobody_else() {
    check(Agent::Codex);
}

#[test]
fn copilot_talks_to_nobody_else() {
    check(Agent::Copilot);
}

#[test]
fn gemini_talks_to_nobody_else() {
    check(Agent::Gemini);
}
