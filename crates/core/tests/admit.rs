//! The gate for new and changed tasks: what is admitted, and why the rest is refused.

use jiff::Timestamp;
use proptest::prelude::*;
use uuid::Uuid;
use wiggum_core::admit::{Change, Proposal, Proposer, Refusal};
use wiggum_core::event::{EVENT_VERSION, Envelope, Event};
use wiggum_core::ids::TaskId;
use wiggum_core::policy::Policy;
use wiggum_core::state::Loop;
use wiggum_core::task::{Criterion, FileStatus, Task, Work};

/// `id`, `id: a b` depends on a and b, `id = words` says something, `id!` is done, `id?` skipped.
fn task(said: &str) -> Task {
    let (said, words) = said.split_once('=').unwrap_or((said, ""));
    let (id, depends_on) = said.split_once(':').unwrap_or((said, ""));
    let name = id.trim().trim_end_matches(['!', '?']);
    let words = if words.trim().is_empty() { format!("do {name}") } else { words.trim().to_owned() };
    let mut task = Task::new(name, words);
    task.depends_on = depends_on.split_whitespace().map(TaskId::from).collect();
    task.status = match id.trim().chars().last() {
        Some('!') => FileStatus::Done,
        Some('?') => FileStatus::Skipped,
        Some(_) | None => FileStatus::Open,
    };
    task
}

const PERSON: Proposer = Proposer::Person { insists: false };

fn loop_of(tasks: &[&str]) -> Loop {
    Loop::knowing(&tasks.iter().map(|said| task(said)).collect::<Vec<_>>(), Policy::default())
}

/// `+ task` is added, `~ task` changed, `> id` moved, `- id` taken out.
fn proposal(by: Proposer, changes: &[&str]) -> Proposal {
    let change = |said: &&str| match said.split_at(1) {
        ("+", said) => Change::Add(task(said)),
        ("~", said) => Change::Update(task(said)),
        (">", id) => Change::Move(id.trim().into()),
        ("-", id) => Change::Remove(id.trim().into()),
        _ => panic!("{said}"),
    };
    Proposal { by, changes: changes.iter().map(change).collect() }
}

#[track_caller]
fn check(tasks: &[&str], changes: &[&str], refused: &[&str]) {
    check_by(Proposer::Agent, tasks, changes, refused);
}

#[track_caller]
fn check_by(by: Proposer, tasks: &[&str], changes: &[&str], refused: &[&str]) {
    let admission = wiggum_core::admit(&loop_of(tasks), &proposal(by, changes));
    let said: Vec<String> = admission.refused.iter().map(ToString::to_string).collect();
    assert_eq!(said, refused, "{tasks:?} {changes:?}");
}

#[test]
fn ids_are_there_once() {
    check(&["a"], &["+ b"], &[]);
    check(&["a"], &["+ a = else"], &["`a` is there already"]);
    check(&["a!"], &["+ a = else"], &["`a` is there already"]);
    check(&[], &["+ a", "+ a = else", "+ b"], &["`a` is there already"]);
    check_by(PERSON, &["a"], &["- a", "+ a"], &[]);
    check(&[], &["+  = words"], &["`` needs an id that is not blank"]);
    check(&["a"], &["~ a = one", "~ a = two"], &["`a` is changed twice at once"]);
    check(&["a"], &["~ b", "> b", "- b", "> a"], &["`b` is not there"; 3]);
}

#[test]
fn nothing_is_said_twice() {
    check(&["a = Fix the  tests!"], &["+ b = fix the tests"], &["`b` says the same as `a`"]);
    check(&["a = Fix the tests"], &["+ b = Fix the test"], &[]);
    check(&[], &["+ a = Ä b", "+ b = ä   B.", "+ c = other"], &["`b` says the same as `a`"]);
    // Finished and skipped work may well come again, and so may what makes room for it.
    check(&["a! = Update the changelog"], &["+ b = update the changelog"], &[]);
    check(&["a? = Update the changelog"], &["+ b = update the changelog"], &[]);
    check_by(PERSON, &["a = one"], &["- a", "+ b = one"], &[]);
    let insists = Proposer::Person { insists: true };
    check_by(PERSON, &["a = one"], &["+ b = one"], &["`b` says the same as `a`"]);
    check_by(insists, &["a = one"], &["+ b = one"], &[]);
    check_by(insists, &["a = one"], &["+ a = two"], &["`a` is there already"]);
    // A task says the same as itself, and may be made to say the same as nobody else.
    check(&["a = one", "b = two"], &["~ a = One."], &[]);
    check(&["a = one", "b = two"], &["~ a = two"], &["`a` says the same as `b`"]);
    check(&["a = one", "b = one"], &["~ a: b = one"], &[]);
}

#[test]
fn what_tells_tasks_of_the_same_words_apart() {
    let state = Loop::knowing(&[task("a = Write tests"), task("p"), task("q")], Policy::default());
    let refusals = |change: &dyn Fn(&mut Task)| {
        let mut new = task("b = Write tests");
        change(&mut new);
        wiggum_core::admit(&state, &Proposal::of_person(Change::Add(new))).refused.len()
    };
    assert_eq!(refusals(&|_| {}), 1);
    assert_eq!(refusals(&|task| task.description = "Write tests".to_owned()), 1, "the title only repeats it");
    assert_eq!(refusals(&|task| task.description = "Write tests\nfor the lexer".to_owned()), 0);
    assert_eq!(refusals(&|task| task.parent = Some("p".into())), 0, "a part of another task");
    assert_eq!(refusals(&|task| task.work = Work::Notice { message: "m".to_owned() }), 0);
}

#[test]
fn dependencies_exist() {
    check(&["a"], &["+ b: a"], &[]);
    check(&["a"], &["+ b: a c d"], &["`b` would depend on `c`, `d`, which are not there"]);
    check(&["a"], &["~ a: ghost"], &["`a` would depend on `ghost`, which is not there"]);
    // Also on what comes later, or not at all.
    check(&[], &["+ a: b", "+ b"], &[]);
    check(
        &["z"],
        &["+ a: b", "+ b: c", "+ c: ghost", "+ d", "~ z: a"],
        &[
            "`a` would depend on `b`, which is not there",
            "`b` would depend on `c`, which is not there",
            "`c` would depend on `ghost`, which is not there",
            "`z` would depend on `a`, which is not there",
        ],
    );
    check_by(PERSON, &["a", "b"], &["- a", "+ c: a"], &["`c` would depend on `a`, which is not there"]);
    let mut part = task("b");
    part.parent = Some("ghost".into());
    let admission = wiggum_core::admit(&loop_of(&["a"]), &Proposal::of_person(Change::Add(part)));
    assert_eq!(admission.refused[0].why, Refusal::UnknownDependency { unknown: vec!["ghost".into()] });
}

#[test]
fn nothing_waits_on_itself() {
    check(&[], &["+ a: a"], &["`a` would depend on itself"]);
    check(&["a", "b: a"], &["~ a: b"], &["`a` would depend on itself, through `b`"]);
    check(
        &["a", "b: a", "c: b", "d: c"],
        &["~ a: c", "+ e: d"],
        &["`a` would depend on itself, through `c`, `b`"],
    );
    check(&["a", "b: a", "c: a"], &["~ b: c"], &[]);
    check(
        &["z"],
        &["+ a: b", "+ b: c", "+ c: a", "+ d: z", "+ e: a"],
        &[
            "`a` would depend on itself, through `b`, `c`",
            "`b` would depend on itself, through `c`, `a`",
            "`c` would depend on itself, through `a`, `b`",
            "`e` would depend on `a`, which is not there",
        ],
    );
    // What turns round as a whole is no circle; if half of it is refused, the rest would be one.
    check(&["a: b", "b"], &["~ a", "~ b: a"], &[]);
    check(
        &["a: b", "b", "c"],
        &["~ a: ghost", "~ b: a"],
        &["`a` would depend on `ghost`, which is not there", "`b` would depend on itself, through `a`"],
    );
    check(&["a: b", "b: c", "c"], &["~ a", "~ b: a", "~ c: b x", "+ x"], &[]);
    check(
        &["a: b", "b", "x"],
        &["~ a: x", "~ b: a", "~ x: b"],
        &[
            "`a` would depend on itself, through `x`, `b`",
            "`b` would depend on itself, through `a`, `x`",
            "`x` would depend on itself, through `b`, `a`",
        ],
    );
}

/// Found by chance: the update of b falls with c, so that b depends on a as before, on which a would wait.
#[test]
fn what_a_refused_update_leaves_closes_no_circle() {
    let state = loop_of(&["a", "b: a"]);
    let proposal = proposal(Proposer::Agent, &["+ c: c", "~ b: c", "~ a: b"]);
    let refused = wiggum_core::admit(&state, &proposal).refused;
    assert_eq!(refused.iter().map(|refused| refused.place).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn there_is_room_for_so_many() {
    let mut policy = Policy::default();
    policy.limits.max_tasks = 3;
    let admitted = |tasks: &[&str], changes: &[&str]| {
        let tasks: Vec<Task> = tasks.iter().map(|said| task(said)).collect();
        let state = Loop::knowing(&tasks, policy.clone());
        let admission = wiggum_core::admit(&state, &proposal(Proposer::Agent, changes));
        admission.refused.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let full = |id: &str| format!("`{id}` would be more than the 3 tasks that are allowed");
    assert_eq!(admitted(&["a", "b"], &["+ c"]), Vec::<String>::new());
    assert_eq!(admitted(&["a", "b"], &["+ c", "+ d", "+ e"]), [full("d"), full("e")]);
    // What is refused for another reason takes no room, and what is taken out makes some.
    assert_eq!(admitted(&["a", "b"], &["+ a", "+ c", "+ d"]), ["`a` is there already".to_owned(), full("d")]);
    assert_eq!(admitted(&["a!", "b", "c"], &["- a", "+ d", "+ e"]), [full("e")]);
    // A backlog that came with more keeps them, and nothing is added.
    assert_eq!(admitted(&["a", "b", "c", "d", "e"], &["+ f", "~ a: b"]), [full("f")]);
    assert_eq!(
        admitted(&["a", "b"], &["+ c: e", "+ d", "+ e"]),
        ["`c` would depend on `e`, which is not there".to_owned(), full("d"), full("e")]
    );
}

#[test]
fn completed_work_is_not_changed_by_an_agent() {
    check(
        &["a!", "b"],
        &["~ a! = other words", "~ b = new"],
        &["`a` is done: completed work is not changed"],
    );
    check(&["a!", "b"], &["~ a!: b"], &["`a` is done: completed work is not changed"]);
    // Its status is the engine's, and a person may mend a word.
    check(&["a!"], &["~ a"], &[]);
    check(&["a!"], &["- a"], &[]);
    check_by(PERSON, &["a!"], &["~ a! = other words"], &[]);
}

#[test]
fn other_words_do_not_rid_a_task_of_its_checks() {
    let mut checked = task("fix-it = Fix it");
    checked.criteria = vec![Criterion { text: "works".to_owned(), check: Some("make test".to_owned()) }];
    let refused = |known: &Task, changes: &[&str]| -> Vec<String> {
        let state = Loop::knowing(std::slice::from_ref(known), Policy::default());
        let admission = wiggum_core::admit(&state, &proposal(Proposer::Agent, changes));
        admission.refused.iter().map(ToString::to_string).collect()
    };
    let reworded = ["- fix-it", "+ fix-it-done = Fix it (done)", "+ fixed = Fixed point"];
    assert_eq!(
        refused(&checked, &reworded),
        ["`fix-it` was taken out and is still to be done", "`fix-it-done` is `fix-it` in other words"]
    );
    // Somebody may well have found better words, beside which the task stays.
    assert_eq!(
        refused(&task("fix-it = Fix it"), &reworded),
        ["`fix-it` was taken out and is still to be done"]
    );
}

#[test]
fn an_agent_takes_out_no_work_that_is_left() {
    let taken_out = |id: &str| format!("`{id}` was taken out and is still to be done");
    check(&["a", "b", "c!", "d?"], &["- a", "- b"], &[&taken_out("a"), &taken_out("b")]);
    check_by(PERSON, &["a", "b"], &["- a", "- b"], &[]);
    // What is done or skipped may be tidied away.
    check(&["a", "c!", "d?"], &["- c", "- d"], &[]);
    // A task that was split stays beside its parts; what is only called otherwise is there once.
    check(&["a = All of it"], &["- a", "+ b = One half", "+ c: a = The other"], &[&taken_out("a")]);
    check(&["a = one"], &["- a", "+ b = One!"], &[&taken_out("a"), "`b` says the same as `a`"]);
    // It makes no room for others.
    let mut policy = Policy::default();
    policy.limits.max_tasks = 2;
    let state = Loop::knowing(&[task("a"), task("b")], policy);
    let admission = wiggum_core::admit(&state, &proposal(Proposer::Agent, &["- a", "+ c"]));
    assert_eq!(admission.refused.len(), 2, "{admission:?}");
}

#[test]
fn an_agent_does_not_choose_its_checks() {
    let with = |checks: &[&str]| {
        let mut task = task("a");
        let criterion =
            |check: &&str| Criterion { text: "it works".to_owned(), check: Some((*check).to_owned()) };
        task.criteria = checks.iter().map(criterion).collect();
        task
    };
    let refused = |by: Proposer, checks: &[&str]| {
        let state = Loop::knowing(&[with(&["make test"])], Policy::default());
        let changes = vec![Change::Update(with(checks))];
        wiggum_core::admit(&state, &Proposal { by, changes }).whole().map_err(|refused| refused.why)
    };
    assert_eq!(refused(Proposer::Agent, &["true"]), Err(Refusal::CheckTaken));
    assert_eq!(refused(Proposer::Agent, &[]), Err(Refusal::CheckTaken));
    assert_eq!(refused(Proposer::Agent, &["make lint", "make test"]), Ok(()), "one more is welcome");
    assert_eq!(refused(PERSON, &["true"]), Ok(()));
}

#[test]
fn a_proposal_may_be_taken_as_a_whole() {
    let admission = wiggum_core::admit(&loop_of(&["a"]), &proposal(PERSON, &["+ b", "+ a", "+ c: x"]));
    assert_eq!(admission.whole().unwrap_err().to_string(), "`a` is there already");
    assert!(wiggum_core::admit(&loop_of(&["a"]), &proposal(PERSON, &["+ b"])).whole().is_ok());
}

/// Is it new, its number, and what it needs.
type RandomChange = (bool, usize, Vec<usize>);

/// A random proposal over a random backlog, as numbers.
fn changes() -> impl Strategy<Value = (Vec<Vec<usize>>, Vec<RandomChange>)> {
    let known = prop::collection::vec(prop::collection::vec(0..8_usize, 0..3), 0..8);
    let change = (any::<bool>(), 0..12_usize, prop::collection::vec(0..12_usize, 0..3));
    (known, prop::collection::vec(change, 0..10))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is admitted, the result has every id once, known dependencies, no circle and not too many tasks.
    #[test]
    fn what_is_admitted_fits((known, proposed) in changes()) {
        let id = |n: &usize| TaskId::new(format!("t{n}"));
        // Backwards only: a loop's own tasks never form a circle.
        let tasks: Vec<Task> = known.iter().enumerate().map(|(n, needs)| {
            let mut task = Task::new(id(&n), format!("words {n}"));
            task.depends_on = needs.iter().filter(|need| **need < n).map(id).collect();
            task
        }).collect();
        let changes: Vec<Change> = proposed.iter().enumerate().map(|(place, (add, n, needs))| {
            let mut task = Task::new(id(n), format!("new words {place}"));
            task.depends_on = needs.iter().map(id).collect();
            if *add { Change::Add(task) } else { Change::Update(task) }
        }).collect();
        let mut policy = Policy::default();
        policy.limits.max_tasks = 10;
        let state = Loop::knowing(&tasks, policy);
        let proposal = Proposal { by: Proposer::Agent, changes };
        let refused = wiggum_core::admit(&state, &proposal).refused;
        let mut result = tasks.clone();
        for (place, change) in proposal.changes.iter().enumerate() {
            let (Change::Add(task) | Change::Update(task)) = change else { continue };
            if refused.iter().any(|refused| refused.place == place) {
                continue;
            }
            match result.iter_mut().find(|other| other.id == task.id) {
                Some(other) => *other = task.clone(),
                None => result.push(task.clone()),
            }
        }
        prop_assert!(result.len() <= tasks.len().max(10));
        let mut left: Vec<Task> = result.clone();
        while !left.is_empty() {
            let before = left.len();
            let ids: Vec<TaskId> = left.iter().map(|task| task.id.clone()).collect();
            left.retain(|task| task.depends_on.iter().any(|id| ids.contains(id)));
            prop_assert!(left.len() < before, "a circle among {ids:?}");
        }
        for task in &result {
            for needed in &task.depends_on {
                prop_assert!(result.iter().any(|other| other.id == *needed), "{} needs {needed}", task.id);
            }
        }
    }

    /// Tasks that come one by one, or in parts, leave the same behind as all at once.
    #[test]
    fn tasks_may_come_in_parts(needs in prop::collection::vec(prop::collection::vec(0..20_usize, 0..4), 1..20), parts in prop::collection::vec(1..5_usize, 20)) {
        let id = |n: usize| TaskId::new(format!("t{n}"));
        let tasks: Vec<Task> = needs.iter().enumerate().map(|(n, needs)| {
            let mut task = Task::new(id(n), format!("words {n}"));
            task.depends_on = needs.iter().filter(|need| **need != n).map(|need| id(*need)).collect();
            task.phase = u32::try_from(n % 3).unwrap() + 1;
            if n % 4 == 0 { task.status = FileStatus::Done; }
            task
        }).collect();
        let read = |parts: Vec<Vec<Task>>, order: Option<Vec<TaskId>>| {
            let mut state = Loop::default();
            let last = parts.len() - 1;
            for (n, added) in parts.into_iter().enumerate() {
                let order = order.clone().filter(|_| n == last);
                state.apply(&envelope(Event::BacklogRead { revision: String::new(), added, changed: vec![], removed: vec![], order }));
            }
            state
        };
        let mut rest = tasks.as_slice();
        let mut split = Vec::new();
        for part in parts {
            let (head, tail) = rest.split_at(part.min(rest.len()));
            split.push(head.to_vec());
            rest = tail;
        }
        split.push(rest.to_vec());
        let whole = read(vec![tasks.clone()], None);
        // An order makes everything anew.
        let anew = read(vec![tasks.clone()], Some(tasks.iter().map(|task| task.id.clone()).collect()));
        let in_parts = read(split, None);
        prop_assert_eq!(&whole.tasks, &anew.tasks);
        prop_assert_eq!(&in_parts.tasks, &anew.tasks);
    }
}

fn envelope(event: Event) -> Envelope {
    let at = Timestamp::UNIX_EPOCH;
    Envelope { v: EVENT_VERSION, seq: 1, id: Uuid::nil(), at, epoch: 1, event }
}
