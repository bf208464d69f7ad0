//! A world made from a seed: a backlog, a policy, agents and people.

use std::fmt::Write as _;

use serde_json::json;
use wiggum_core::budget::{AtLimit, Budget, Cap, Period, Strategy};
use wiggum_core::policy::{Baseline, Millis, Policy};

use crate::act::{Act, Mix};
use crate::fault::Fault;
use crate::rng::Rng;
use crate::tools;

/// What all worlds of a simulation have in common.
#[derive(Clone, Debug)]
pub struct Setup {
    pub faults: Vec<Fault>,
    pub agents: Mix,
    /// How many tasks there are; by chance otherwise.
    pub tasks: Option<usize>,
    /// A backlog and a policy to try instead of random ones.
    pub given: Option<Given>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { faults: Fault::ALL.to_vec(), agents: Mix::default(), tasks: None, given: None }
    }
}

/// What somebody wants to know about.
#[derive(Clone, Debug)]
pub struct Given {
    pub backlog_name: String,
    pub backlog: String,
    pub policy: Policy,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) policy: Policy,
    pub(crate) backlog_name: String,
    pub(crate) backlog: String,
    /// The agents there are.
    pub(crate) agents: Vec<String>,
    pub(crate) mix: Mix,
    pub(crate) faults: Vec<Fault>,
    pub(crate) people: People,
    /// How often the engine may be gone.
    pub(crate) crashes: u64,
    /// How often a person starts it again after it ended.
    pub(crate) further_runs: u64,
}

/// Who is there to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum People {
    /// In front of the loop.
    AtTerminal,
    /// Somewhere else, leaving requests.
    Away,
    Nobody,
}

impl World {
    pub(crate) fn seeded(seed: u64, setup: &Setup) -> Self {
        let mut rng = Rng::new(seed);
        let has = |fault: Fault| setup.faults.contains(&fault);
        let out: Vec<Act> = Fault::ALL
            .into_iter()
            .filter(|fault| !has(*fault))
            .flat_map(|fault| fault.acts().iter().copied())
            .collect();
        let people = match rng.below(4) {
            0 => People::Nobody,
            1 => People::AtTerminal,
            _ => People::Away,
        };
        let agents: Vec<String> = (1..=1 + rng.below(3)).map(|n| format!("agent-{n}")).collect();
        let (backlog_name, backlog, mut policy) = match &setup.given {
            Some(given) => (given.backlog_name.clone(), given.backlog.clone(), given.policy.clone()),
            None => {
                let tasks = setup.tasks.unwrap_or_else(|| rng.index(12));
                let (name, text) = backlog(tasks, &mut rng);
                (name.to_owned(), text, policy(&mut rng))
            }
        };
        if setup.given.is_some() && !policy.checks.verify.is_empty() {
            policy.checks.verify = vec![CHECK.to_owned()];
            // It succeeds where work was done, and before there is none.
            policy.checks.baseline = Baseline::Off;
        }
        policy.people.present = people == People::AtTerminal;
        policy.agents.order.clone_from(&agents);
        policy.agents.roles.clear();
        Self {
            crashes: if has(Fault::Crash) { rng.below(6) } else { 0 },
            further_runs: rng.below(4),
            mix: setup.agents.clone().without(&out),
            faults: setup.faults.clone(),
            rng,
            policy,
            backlog_name,
            backlog,
            agents,
            people,
        }
    }
}

/// The check of every simulated world: it succeeds where the work was done.
pub(crate) const CHECK: &str = "simulated-check";

fn policy(rng: &mut Rng) -> Policy {
    let mut policy = Policy::default();
    let limits = &mut policy.limits;
    limits.iterations = Some(if rng.percent(30) { 1 + small(rng, 30) } else { 200 });
    limits.no_progress = small(rng, 5);
    limits.consecutive_errors = small(rng, 5);
    limits.stuck_threshold = 1 + small(rng, 4);
    limits.agent_timeout = rng.percent(40).then(|| Millis::from_secs(600 + rng.below(3000)));
    limits.calls_per_hour = rng.percent(10).then(|| 1 + small(rng, 6));
    limits.duration = rng.percent(20).then(|| Millis::from_secs(1800 + rng.below(40_000)));
    if rng.percent(40) {
        policy.breaker.no_progress = small(rng, 4);
        policy.breaker.same_error = small(rng, 4);
        policy.breaker.cooldown = Millis::from_secs(rng.below(7200));
    }
    policy.retry.max_retries = small(rng, 5);
    policy.retry.backoff = Millis::from_secs(rng.below(60));
    policy.agents.continue_sessions = rng.percent(30);
    policy.agents.max_wait = Millis::from_secs(rng.below(12 * 3600));
    policy.people.wait = Millis::from_secs(rng.below(1200));
    policy.checks.verify = match rng.below(5) {
        0 => Vec::new(),
        1 => vec![CHECK.to_owned(), CHECK.to_owned()],
        _ => vec![CHECK.to_owned()],
    };
    policy.checks.baseline = match rng.below(10) {
        0 => Baseline::Ask,
        1 => Baseline::Repair,
        2 => Baseline::GoOn,
        _ => Baseline::Off,
    };
    policy.checks.complete_without_claim = rng.percent(15);
    if rng.percent(30) {
        policy.budget = budget(rng);
    }
    policy
}

fn budget(rng: &mut Rng) -> Budget {
    let mut cap = |percent| Cap {
        max_cost: rng.percent(percent).then(|| 0.5 + rng.below(20) as f64 / 4.0),
        max_tokens: rng.percent(percent / 2).then(|| 10_000 + rng.below(500_000)),
        period: Period::None,
    };
    let (own, project, organisation) = (cap(50), cap(30), cap(20));
    // About what one or two attempts cost, so that some tasks come to their limit.
    let max_cost = rng.percent(50).then(|| 0.25 + rng.below(8) as f64 / 4.0);
    let task = Cap { max_cost, ..Cap::default() };
    let actions = [AtLimit::Deny, AtLimit::Deny, AtLimit::Throttle, AtLimit::Allow, AtLimit::AlertOnly];
    let strategies = [Strategy::Greedy, Strategy::CriticalPath, Strategy::Conservative];
    Budget {
        own,
        task,
        project,
        organisation,
        action: actions[rng.index(actions.len())],
        strategy: strategies[rng.index(strategies.len())],
        ..Budget::default()
    }
}

fn small(rng: &mut Rng, bound: u64) -> u32 {
    u32::try_from(rng.below(bound)).unwrap_or(0)
}

/// A backlog of so many tasks, in one of the formats there are.
fn backlog(tasks: usize, rng: &mut Rng) -> (&'static str, String) {
    let before: Vec<Vec<String>> = (0..tasks).map(|number| dependencies(number, rng)).collect();
    match rng.below(3) {
        0 => ("tasks.json", tasks_json(&before, rng)),
        1 => ("PRD.json", prd_json(&before, rng)),
        _ => ("fix_plan.md", fix_plan(tasks)),
    }
}

fn dependencies(number: usize, rng: &mut Rng) -> Vec<String> {
    let wanted = if rng.percent(40) { rng.index(3) } else { 0 };
    let mut before: Vec<usize> = (0..wanted.min(number)).map(|_| rng.index(number)).collect();
    before.sort_unstable();
    before.dedup();
    before.into_iter().map(name).collect()
}

fn name(number: usize) -> String {
    format!("T{}", number + 1)
}

fn tasks_json(before: &[Vec<String>], rng: &mut Rng) -> String {
    let mut phases = 1;
    let tasks: Vec<serde_json::Value> = before
        .iter()
        .enumerate()
        .map(|(number, depends_on)| {
            phases += u64::from(rng.percent(15));
            let mut task = json!({
                "id": name(number),
                "title": format!("Task {}", number + 1),
                "description": "something to be done",
                "status": "pending",
                "depends_on": depends_on,
                "phase": phases,
                "priority": rng.below(5),
                "complexity": 1 + rng.below(5),
            });
            if rng.percent(20) {
                task["max_retries"] = json!(rng.below(4));
            }
            if let Some(work) = tools::work(&name(number), rng) {
                task["work"] = work;
            }
            if rng.percent(10) {
                task["timeout_seconds"] = json!(60 + rng.below(3000));
            }
            task
        })
        .collect();
    format!("{:#}\n", json!(tasks))
}

fn prd_json(before: &[Vec<String>], rng: &mut Rng) -> String {
    let stories: Vec<serde_json::Value> = before
        .iter()
        .enumerate()
        .map(|(number, depends_on)| {
            let mut story = json!({
                "id": name(number),
                "title": format!("Story {}", number + 1),
                "description": "something to be told",
                "criteria": ["it is there"],
                "passes": false,
                "depends_on": depends_on,
            });
            if let Some(work) = tools::work(&name(number), rng) {
                story["work"] = work;
            }
            story
        })
        .collect();
    format!("{:#}\n", json!({ "userStories": stories }))
}

fn fix_plan(tasks: usize) -> String {
    let mut text = "# Fix plan\n\n".to_owned();
    for number in 1..=tasks {
        // Writing to a string cannot fail.
        let _infallible = writeln!(text, "- [ ] mend part {number}");
    }
    text
}
