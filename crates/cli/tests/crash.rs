//! Killed at any moment, a loop goes on exactly there.
//!
//! A run of fifteen tasks is killed with SIGKILL at every append and around every effect, started
//! again until it ends, and what it came to is compared with a run that nobody disturbed. The usual
//! test takes seeded chains of kills; `WIGGUM_SWEEP=full` (`cargo xtask soak`) takes every point.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]
#![expect(clippy::print_stderr, reason = "a sweep tells how far it came")]
#![expect(clippy::disallowed_methods, reason = "the program under test is killed here, not supervised")]

#[path = "crash/project.rs"]
mod project;
#[path = "crash/result.rs"]
mod result;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use project::{Project, Ran};
use result::Final;
use wiggum_core::decide::decide;
use wiggum_core::event::{EndReason, Event};

/// A run that needs more starts than this does not get anywhere.
const MAX_STARTS: usize = 400;

#[test]
fn a_run_killed_at_seeded_points_comes_to_the_same() {
    let (undisturbed, points) = undisturbed(&Project::new());
    let chains = if full() { 200 } else { 8 };
    let chains: Vec<Chain> = (0..chains).map(|seed| Chain::seeded(seed, points.len())).collect();
    sweep(&undisturbed, Project::new, &chains);
}

#[test]
fn a_run_killed_at_every_single_point_comes_to_the_same() {
    let (undisturbed, points) = undisturbed(&Project::new());
    let chains: Vec<Chain> = chosen(&points).into_iter().map(Chain::single).collect();
    sweep(&undisturbed, Project::new, &chains);
}

#[test]
fn the_users_own_changes_survive_a_kill_at_every_point() {
    let (undisturbed, points) = undisturbed(&Project::dirty());
    let mut chains: Vec<Chain> = chosen(&points).into_iter().map(Chain::single).collect();
    chains.extend((0..if full() { 40 } else { 4 }).map(|seed| Chain::seeded(seed, points.len())));
    sweep(&undisturbed, Project::dirty, &chains);
}

#[test]
fn an_agent_that_fell_silent_is_given_up_once_wherever_the_plug_is_pulled() {
    let (undisturbed, points) = undisturbed(&Project::silent());
    let given_up = points.iter().position(|point| point == "agent given up").expect("it is given up");
    // All of it takes as long as the silence does, so the usual test takes what is special to it: the
    // looks at the agent, its end, and the first things that are recorded of that.
    let special =
        |name: &str| points[given_up..].iter().position(|point| point == name).map(|at| given_up + at + 1);
    let looks = points.iter().zip(1..).filter(|(name, _)| *name == "before pulse").map(|(_, at)| at);
    let of_its_end =
        ["agent given up", "agent ended", "before append", "work kept"].into_iter().filter_map(special);
    let all: Vec<usize> =
        if full() { (1..=points.len()).collect() } else { looks.take(1).chain(of_its_end).collect() };
    let chains: Vec<Chain> = all.into_iter().map(Chain::single).collect();
    assert!(chains.len() >= 5, "{points:?}");
    sweep(&undisturbed, Project::silent, &chains);
}

/// Points that no story comes by, and why.
const ELSEWHERE: [(&str, &str); 20] = [
    ("before baseline", "swept in witness.rs"),
    ("former definition in place", "swept in witness.rs"),
    ("former definition put away", "swept in witness.rs"),
    ("waiting", "of the simulator"),
    ("in circles", "of the simulator"),
    ("restore intended", "swept in checkpoints.rs"),
    ("tip kept", "swept in checkpoints.rs"),
    ("branch put back", "swept in checkpoints.rs"),
    ("restored", "swept in checkpoints.rs"),
    ("call on its way", "of the simulator"),
    // Work without an agent has stories of its own.
    ("file created", "swept in vault.rs"),
    ("notices given", "swept in vault.rs"),
    ("log written", "swept in vault.rs"),
    ("before the move", "swept in vault.rs"),
    ("plan has both names", "swept in vault.rs"),
    ("plan moved", "swept in vault.rs"),
    ("call prepared", "swept in mail.rs"),
    ("call recorded", "swept in mail.rs"),
    ("call answered", "swept in mail.rs"),
    ("call ended", "swept in mail.rs"),
];

#[test]
fn every_crash_point_is_in_some_story() {
    let mut met: BTreeSet<String> = BTreeSet::new();
    for project in [Project::new(), Project::dirty(), Project::silent()] {
        met.extend(undisturbed(&project).1);
    }
    // Some are only passed by whoever finds a killed engine.
    let killed = Project::dirty();
    let middle = killed.run(None).1.iter().position(|point| point == "after agent start").unwrap() + 1;
    let again = Project::dirty();
    assert_eq!(again.run(Some(middle)).0, Ran::Killed);
    met.extend(again.run(None).1);
    let known: BTreeSet<String> = points_in_sources();
    let unmet: Vec<&String> = known
        .iter()
        .filter(|name| !met.contains(*name) && !ELSEWHERE.iter().any(|(other, _)| other == *name))
        .collect();
    assert!(unmet.is_empty(), "no story comes by {unmet:?}");
    for (name, why) in ELSEWHERE {
        assert!(known.contains(name) && !met.contains(name), "{name} is no exception ({why})");
    }
}

/// The names of all crash points there are, by the words of the sources.
fn points_in_sources() -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut names = BTreeSet::new();
    let mut todo: Vec<PathBuf> =
        fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let calls = text.split("crash::point(").skip(1);
            names.extend(
                calls
                    .filter_map(|call| call.trim_start().strip_prefix('"')?.split('"').next())
                    .map(str::to_owned),
            );
        }
    }
    assert!(names.len() > 30, "{names:?}");
    names
}

#[test]
fn the_undisturbed_run_meets_everything_that_could_be_cut_in_half() {
    let project = Project::new();
    let (undisturbed, points) = undisturbed(&project);
    // For whoever changes the stories: `--nocapture` shows what became of them.
    println!("{undisturbed:#?}\n{points:#?}");
    assert!(points.len() > 500, "{}", points.len());
    let kinds: Vec<String> = project.journal().iter().map(|envelope| kind_of(&envelope.event)).collect();
    for kind in [
        "work_kept",
        "workspace_reset",
        "tree_altered",
        "commit_refused",
        "status_put_back",
        "task_failed",
        "question_raised",
        "question_answered",
        "handoff_started",
        "checkpointed",
        "budget_alert",
        "budget_asked",
    ] {
        assert!(kinds.iter().any(|found| found == kind), "{kind} did not happen");
    }
    assert_eq!(project.state().iterations, 20);
}

fn kind_of(event: &Event) -> String {
    serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_killed_at_any_time_comes_to_the_same() {
    let (undisturbed, _) = undisturbed(&Project::new());
    let seeds: Vec<u64> = (0..if full() { 60 } else { 4 }).collect();
    each_of(&seeds, |seed| {
        let mut random = Random(*seed);
        let mut kills = 0;
        finish(Project::new(), &undisturbed, &format!("seed {seed}"), |project| {
            kills += 1;
            let ran = if kills <= 12 {
                run_for_events(project, random.below(25), random.below(2) == 0)
            } else {
                project.run(None).0
            };
            (ran, String::new())
        })
    });
}

#[test]
fn a_kill_while_git_commits_leaves_neither_locks_nor_half_a_commit() {
    let (undisturbed, _) = undisturbed(&Project::new());
    each_of(&[0, 2, 5], |let_pass| {
        let project = Project::new();
        project.block_commit(*let_pass);
        let mut kill = true;
        finish(project, &undisturbed, &format!("{let_pass} commits first"), |project| {
            if !std::mem::take(&mut kill) {
                return (project.run(None).0, String::new());
            }
            let mut child = project.wiggum().spawn().unwrap();
            project.await_blocked_commit();
            child.kill().unwrap();
            (project.wait(child), "in the hook of a commit".to_owned())
        })
    });
}

#[test]
fn projections_can_be_thrown_away_at_any_time() {
    let (undisturbed, points) = undisturbed(&Project::new());
    let steps: Vec<usize> = (1..6).map(|part| points.len() * part / 6).collect();
    each_of(&steps, |point| {
        let mut point = Some(*point);
        finish(Project::new(), &undisturbed, &format!("point {point:?}"), |project| {
            let (ran, passed) = project.run(point);
            point = point.filter(|_| ran != Ran::Killed).map(|point| point - passed.len());
            let before = seen(project);
            project.forget_projections();
            assert_eq!(seen(project), before, "the journal alone says what is true");
            (ran, String::new())
        })
    });
}

/// What the journal says is true, and what to do next.
fn seen(project: &Project) -> String {
    let state = project.state();
    // The order of its hash maps is nobody's business.
    let tasks: Vec<String> = state.tasks.iter().map(|entry| format!("{entry:?}")).collect();
    let now = state.last_at.unwrap_or_default();
    let status = wiggum_engine::status::projection(&state, now);
    format!("{tasks:?} {:?} {:?} {:?} {status}", state.open, state.run, decide(&state, now))
}

/// Where to kill: everywhere, between two points (`WIGGUM_SWEEP=190..210`, to look into a failure),
/// or once at a point of each kind.
fn chosen(points: &[String]) -> Vec<usize> {
    let wish = std::env::var("WIGGUM_SWEEP").unwrap_or_default();
    if full() {
        return (1..=points.len()).collect();
    }
    if let Some((from, to)) = wish.split_once("..") {
        return (from.parse().unwrap()..to.parse().unwrap()).collect();
    }
    let mut random = Random(points.len() as u64);
    let mut kinds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (name, point) in points.iter().zip(1..) {
        kinds.entry(name).or_default().push(point);
    }
    kinds.into_values().map(|of_kind| of_kind[random.below(of_kind.len())]).collect()
}

fn full() -> bool {
    std::env::var("WIGGUM_SWEEP").is_ok_and(|value| value == "full")
}

/// Where the plug is pulled: how many crash points after the one before, until there are no more.
#[derive(Debug)]
struct Chain {
    name: String,
    gaps: Vec<usize>,
}

impl Chain {
    fn single(point: usize) -> Self {
        Self { name: format!("point {point}"), gaps: vec![point] }
    }

    /// Some kills early, while it recovers from the kill before, and some later.
    fn seeded(seed: u64, points: usize) -> Self {
        let mut random = Random(seed);
        let kills = 20 + random.below(20);
        let gap = |_| {
            let most = if random.below(2) == 0 { 15 } else { points / 8 };
            1 + random.below(most)
        };
        Self { name: format!("chain {seed}"), gaps: (0..kills).map(gap).collect() }
    }
}

/// What a loop nobody disturbed comes to, and the crash points it passes.
fn undisturbed(project: &Project) -> (Final, Vec<String>) {
    let mut points = Vec::new();
    loop {
        let (ran, passed) = project.run(None);
        points.extend(passed);
        match ran {
            Ran::Exited(0) => break,
            Ran::Exited(_) if project.answer_questions() => {}
            Ran::Exited(_) | Ran::Killed => panic!("{ran:?} without a question or a kill"),
        }
    }
    eprintln!("{} crash points", points.len());
    (Final::of(project), points)
}

/// Works off a loop under each of the chains, on as many threads as there are cores for it.
fn sweep(undisturbed: &Final, new: impl Fn() -> Project + Sync, chains: &[Chain]) {
    let started = Instant::now();
    let kills = AtomicUsize::new(0);
    each_of(chains, |chain| {
        let mut gaps = chain.gaps.iter().copied();
        let mut left = gaps.next();
        let mut killed_at = Vec::new();
        finish(new(), undisturbed, &chain.name, |project| {
            let (ran, passed) = project.run(left);
            if ran == Ran::Killed {
                left = gaps.next();
                kills.fetch_add(1, Ordering::Relaxed);
                killed_at.extend(passed.last().cloned());
            } else {
                left = left.map(|left| left - passed.len());
            }
            (ran, killed_at.last().cloned().unwrap_or_default())
        })
    });
    let (loops, kills) = (chains.len(), kills.load(Ordering::Relaxed));
    eprintln!("{loops} loops, {kills} kills, {:.1} s", started.elapsed().as_secs_f64());
}

/// Starts a loop again and again until it has ended, and compares what it came to.
fn finish(
    project: Project,
    undisturbed: &Final,
    name: &str,
    mut run: impl FnMut(&Project) -> (Ran, String),
) -> Result<(), String> {
    let mut story = Vec::new();
    let worked = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut settled: Vec<(String, usize)> = Vec::new();
        for start in 0.. {
            assert!(start < MAX_STARTS, "it does not get anywhere");
            let (ran, place) = run(&project);
            story.push(format!("{ran:?} {place}"));
            note_settled(&project, &mut settled);
            if has_ended(&project, ran) {
                break;
            }
        }
        for (task, starts) in settled {
            assert!(project.agent_starts().contains(&(task.clone(), starts)), "{task} ran again when done");
        }
        if let Some(difference) = undisturbed.difference(&Final::of(&project)) {
            panic!("{difference}");
        }
    }));
    worked.map_err(|problem| {
        let problem = problem.downcast::<String>().map_or_else(|_| String::new(), |text| *text);
        format!("{name}, in {}\n{}\n{problem}", project.keep().display(), story.join("\n"))
    })
}

/// Remembers how often the agent had been started for tasks that are done now.
fn note_settled(project: &Project, settled: &mut Vec<(String, usize)>) {
    let state = project.state();
    for (task, starts) in project.agent_starts() {
        let done = state.tasks.iter().any(|entry| entry.spec.id.as_str() == task && entry.is_done());
        if done && settled.iter().all(|(known, _)| *known != task) {
            settled.push((task, starts));
        }
    }
}

/// Is it over for good? Answers what a person is asked. A kill after the very last event counts as
/// the end as well.
fn has_ended(project: &Project, ran: Ran) -> bool {
    let ended = project.state().run.ended;
    match (ran, ended) {
        (Ran::Exited(0), _) => true,
        (Ran::Exited(_), _) => {
            assert!(
                project.answer_questions(),
                "it ended without a question: {:?}",
                project.state().run.ended
            );
            false
        }
        (Ran::Killed, Some((EndReason::GoalAchieved, _))) => true,
        (Ran::Killed, Some(_)) => {
            project.answer_questions();
            false
        }
        (Ran::Killed, None) => false,
    }
}

/// Lets it run until it has told of so many events, and kills it.
fn run_for_events(project: &Project, events: usize, whole_group: bool) -> Ran {
    let mut child = project.wiggum().stdout(Stdio::piped()).process_group(0).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.take(events).for_each(|line| drop(line.unwrap()));
    if whole_group {
        let group = format!("-{}", child.id());
        // It may have ended by itself.
        drop(Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status());
    } else {
        drop(child.kill());
    }
    project.wait(child)
}

/// On two threads; every failure is told, since they often explain each other.
fn each_of<T: Sync>(items: &[T], work: impl Fn(&T) -> Result<(), String> + Sync) {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let worker = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(failure) = work(item) {
                eprintln!("{failure}\n");
                failures.lock().unwrap().push(failure);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(worker);
        scope.spawn(worker);
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {} failed:\n{}", failures.len(), items.len(), failures.join("\n\n"));
}

/// SplitMix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % limit.max(1) as u64).unwrap()
    }
}
