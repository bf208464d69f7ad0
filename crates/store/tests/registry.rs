//! The registry of a machine's loops: who is in it, and money that is taken by one loop at a time.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

use std::cell::Cell;

use jiff::Timestamp;
use uuid::Uuid;
use wiggum_core::budget::{Budget, Cap, Period, Shared, Span, Spans, Strategy, Sum, admits};
use wiggum_core::ids::LoopId;
use wiggum_store::registry::{Entry, Registry, Reserved};
use wiggum_store::{Holder, Identity};

fn dollars(cost_usd: f64) -> Sum {
    Sum { cost_usd, tokens: 0 }
}

fn entry(number: u128, project: &str) -> Entry {
    Entry {
        id: LoopId(Uuid::from_u128(number)),
        identity: Identity {
            repository: format!("/projects/{number}"),
            backlog: "PRD.json".to_owned(),
            name: "main".to_owned(),
        },
        project: project.to_owned(),
        state_dir: format!("/projects/{number}/.wiggum").into(),
        holder: Some(Holder {
            pid: u32::try_from(number).unwrap(),
            started: "then".to_owned(),
            boot: "boot".to_owned(),
            host: "host".to_owned(),
        }),
        seen_at: Timestamp::from_second(i64::try_from(number).unwrap()).unwrap(),
        spent: Sum::default(),
    }
}

fn open() -> (tempfile::TempDir, Registry) {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::open(&dir.path().join("data/registry.db")).unwrap();
    (dir, registry)
}

fn below(limit: f64) -> impl Fn(&Shared) -> bool {
    move |shared| shared.project.spent.cost_usd + shared.project.reserved.cost_usd < limit
}

#[test]
fn loops_are_listed_with_the_last_one_first_until_they_are_forgotten() {
    let (dir, mut registry) = open();
    for number in [1, 3, 2] {
        registry.note(&entry(number, "p")).unwrap();
    }
    let mut again = entry(1, "p");
    again.seen_at = Timestamp::from_second(9).unwrap();
    again.holder = None;
    registry.note(&again).unwrap();
    registry.forget(entry(2, "p").id).unwrap();
    let other = Registry::open_existing(&dir.path().join("data/registry.db")).unwrap().unwrap();
    assert_eq!(other.entries().unwrap(), [again, entry(3, "p")]);
    assert!(Registry::open_existing(&dir.path().join("none.db")).unwrap().is_none());
}

#[test]
fn what_one_loop_has_set_aside_no_other_gets() {
    let (_dir, mut registry) = open();
    let ask = |registry: &mut Registry, number| {
        registry
            .reserve(&entry(number, "p"), dollars(0.6), &Spans::default(), &|_| true, &below(1.0))
            .unwrap()
    };
    assert!(matches!(ask(&mut registry, 1), Reserved::Granted(_)));
    assert!(matches!(ask(&mut registry, 2), Reserved::Granted(_)));
    let Reserved::Refused(shared) = ask(&mut registry, 3) else { panic!("there was nothing left") };
    assert_eq!((shared.project.reserved, shared.project.in_flight), (dollars(1.2), 2));
    // A loop of another project has its own.
    let other =
        registry.reserve(&entry(4, "q"), dollars(0.6), &Spans::default(), &|_| true, &below(1.0)).unwrap();
    let Reserved::Granted(shared) = other else { panic!("its project has spent nothing") };
    assert_eq!(shared.organisation.reserved, dollars(1.2));
}

#[test]
fn a_call_is_settled_once_and_never_without_having_begun() {
    let (_dir, mut registry) = open();
    let one = entry(1, "p");
    registry.note(&one).unwrap();
    registry.settle(one.id, dollars(5.0), one.seen_at).unwrap();
    assert_eq!(registry.shared("p", &Spans::default()).unwrap().project.spent, dollars(0.0));
    registry.reserve(&one, dollars(1.0), &Spans::default(), &|_| true, &|_| true).unwrap();
    for _ in 0..3 {
        registry.settle(one.id, Sum { cost_usd: 0.5, tokens: 7 }, one.seen_at).unwrap();
    }
    let shared = registry.shared("p", &Spans::default()).unwrap();
    assert_eq!(shared.project.spent, Sum { cost_usd: 0.5, tokens: 7 });
    assert_eq!((shared.project.reserved, shared.project.in_flight), (dollars(0.0), 0));
}

#[test]
fn the_dead_give_back_what_they_had_set_aside_but_not_what_they_spent() {
    let (_dir, mut registry) = open();
    let mut dead = entry(1, "p");
    dead.spent = dollars(0.25);
    registry.reserve(&dead, dollars(0.9), &Spans::default(), &|_| true, &|_| true).unwrap();
    let looked = Cell::new(false);
    let is_alive = |holder: &Holder| {
        looked.set(true);
        holder.pid != 1
    };
    let granted =
        registry.reserve(&entry(2, "p"), dollars(0.1), &Spans::default(), &is_alive, &below(1.0)).unwrap();
    let Reserved::Granted(shared) = granted else { panic!("the dead need nothing") };
    assert!(looked.get());
    assert_eq!((shared.project.spent, shared.project.in_flight), (dollars(0.25), 0));
    // A journal that lost the last call in a crash does not make it undone.
    dead.spent = dollars(0.1);
    registry.note(&dead).unwrap();
    assert_eq!(registry.shared("p", &Spans::default()).unwrap().project.spent, dollars(0.25));
}

/// A loop as the registry sees it: between calls, in one that will cost so much, or dead.
#[derive(Clone, Copy)]
enum Life {
    Idle,
    Calls(f64),
    Dead,
}

#[test]
fn loops_in_any_order_overspend_by_no_more_than_their_calls_under_way() {
    const LIMIT: f64 = 3.0;
    const DEAREST: f64 = 0.5;
    const LOOPS: usize = 5;
    for (seed, strategy) in
        (0..60).zip([Strategy::Greedy, Strategy::CriticalPath, Strategy::Conservative].into_iter().cycle())
    {
        let (_dir, mut registry) = open();
        let budget = Budget {
            project: Cap { max_cost: Some(LIMIT), max_tokens: None, period: Period::None },
            strategy,
            ..Budget::default()
        };
        let mut random = seed * 2 + 1_u64;
        let mut below = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        let mut lives = [Life::Idle; LOOPS];
        let (mut settled, mut refused) = (0.0, 0);
        while refused < 40 {
            let at = usize::try_from(below(LOOPS as u64)).unwrap();
            let entry = entry(at as u128 + 1, "p");
            let alive = |holder: &Holder| !matches!(lives[holder.pid as usize - 1], Life::Dead);
            lives[at] = match lives[at] {
                Life::Calls(_) if below(8) == 0 => Life::Dead,
                Life::Calls(cost) => {
                    registry.settle(entry.id, dollars(cost), entry.seen_at).unwrap();
                    settled += cost;
                    Life::Idle
                }
                Life::Dead if below(2) == 0 => Life::Dead,
                Life::Dead | Life::Idle => {
                    let admits = |shared: &Shared| admits(&budget, dollars(DEAREST), shared);
                    match registry
                        .reserve(&entry, dollars(DEAREST), &Spans::default(), &alive, &admits)
                        .unwrap()
                    {
                        Reserved::Granted(shared) => {
                            assert!(settled < LIMIT, "seed {seed}: granted after {settled}");
                            assert!((shared.project.spent.cost_usd - settled).abs() < 1e-9, "seed {seed}");
                            Life::Calls((below(50) + 1) as f64 / 100.0)
                        }
                        Reserved::Refused(_) => {
                            refused += 1;
                            Life::Idle
                        }
                    }
                }
            };
        }
        let most = match strategy {
            Strategy::Greedy => LIMIT + LOOPS as f64 * DEAREST,
            Strategy::CriticalPath => LIMIT + DEAREST,
            Strategy::Conservative => LIMIT,
        };
        assert!(settled <= most + 1e-9, "seed {seed}: {settled} with {strategy:?}");
        assert!(settled > LIMIT - DEAREST - 1e-9, "seed {seed}: {settled} with {strategy:?}");
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Budgets of the project that last from one second to another, and of the organisation for ever.
fn from(begins: i64, ends: i64) -> Spans {
    Spans { project: Some(Span { begins: at(begins), ends: at(ends) }), organisation: None }
}

#[test]
fn only_what_was_spent_in_the_time_under_way_counts() {
    let (_dir, mut registry) = open();
    for (number, cost, when) in [(1, 0.5, 100), (2, 0.25, 200), (1, 1.0, 300)] {
        let mut entry = entry(number, "p");
        entry.seen_at = at(when);
        registry.reserve(&entry, dollars(0.0), &Spans::default(), &|_| true, &|_| true).unwrap();
        registry.settle(entry.id, dollars(cost), at(when)).unwrap();
    }
    let spent = |spans: &Spans| {
        let shared = registry.shared("p", spans).unwrap();
        (shared.project.spent.cost_usd, shared.project.resets_at, shared.organisation.spent.cost_usd)
    };
    assert_eq!(spent(&Spans::default()), (1.75, None, 1.75));
    assert_eq!(spent(&from(100, 400)), (1.75, Some(at(400)), 1.75));
    assert_eq!(spent(&from(101, 400)), (1.25, Some(at(400)), 1.75));
    assert_eq!(spent(&from(301, 400)), (0.0, Some(at(400)), 1.75));
    assert_eq!(registry.shared("q", &from(0, 400)).unwrap().project.spent, dollars(0.0));
}

#[test]
fn a_loop_that_tells_its_sum_only_now_and_then_spent_the_difference_until_then() {
    let (_dir, mut registry) = open();
    let mut one = entry(1, "p");
    for (spent, when) in [(0.5, 100), (0.5, 150), (2.0, 200)] {
        (one.spent, one.seen_at) = (dollars(spent), at(when));
        registry.note(&one).unwrap();
    }
    let spent = |begins| registry.shared("p", &from(begins, 999)).unwrap().project.spent.cost_usd;
    assert_eq!((spent(0), spent(101), spent(201)), (2.0, 1.5, 0.0));
}

#[test]
fn a_loop_that_is_not_known_is_entered_with_when_it_spent_what() {
    let (_dir, mut registry) = open();
    let mut one = entry(1, "p");
    (one.spent, one.seen_at) = (dollars(2.5), at(900));
    assert!(!registry.knows(one.id).unwrap());
    registry.enter(&one, &[(at(100), dollars(2.0)), (at(800), dollars(0.5))]).unwrap();
    assert!(registry.knows(one.id).unwrap());
    let spent = |begins| registry.shared("p", &from(begins, 999)).unwrap().project.spent.cost_usd;
    assert_eq!((spent(0), spent(101), spent(801)), (2.5, 0.5, 0.0));
    assert_eq!(registry.entries().unwrap()[0].spent, dollars(2.5));
}

#[test]
fn what_a_call_has_used_so_far_is_seen_by_others_and_spent_if_its_loop_dies() {
    let (_dir, mut registry) = open();
    let (one, two) = (entry(1, "p"), entry(2, "p"));
    let none = Spans::default();
    for entry in [&one, &two] {
        registry.reserve(entry, dollars(0.25), &none, &|_| true, &|_| true).unwrap();
    }
    // Never less than what was set aside for it, and not seen by itself.
    assert_eq!(registry.note_use(one.id, dollars(0.125), &none).unwrap().project.reserved, dollars(0.25));
    assert_eq!(registry.note_use(two.id, dollars(0.125), &none).unwrap().project.reserved, dollars(0.25));
    registry.note_use(one.id, dollars(2.0), &none).unwrap();
    let seen = registry.note_use(two.id, dollars(0.125), &none).unwrap().project;
    assert_eq!((seen.spent, seen.reserved, seen.in_flight), (dollars(0.0), dollars(2.0), 1));
    // Nobody settles the call of a loop that was killed.
    let asked = registry.reserve(&two, dollars(0.25), &none, &|holder| holder.pid == 2, &|_| true).unwrap();
    let Reserved::Granted(shared) = asked else { panic!("it was admitted") };
    assert_eq!((shared.project.spent, shared.project.reserved), (dollars(2.125), dollars(0.0)));
    // Its own journal knows less when it comes back.
    registry.note(&one).unwrap();
    assert_eq!(registry.shared("p", &none).unwrap().project.spent, dollars(2.125));
}

#[test]
fn a_registry_of_the_first_format_keeps_what_it_knows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("registry.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(include_str!("../src/registry.sql")).unwrap();
    old.execute(
        "INSERT INTO loops (id, repository, backlog, name, project, state_dir, seen_at, spent_usd, spent_tokens)
         VALUES (?1, '/r', 'b', 'main', 'p', '/r/.wiggum', '1970-01-01T00:01:40Z', 1.5, 7)",
        [Uuid::from_u128(1).as_bytes()],
    )
    .unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    drop(old);
    let registry = Registry::open(&path).unwrap();
    let spent = |begins| registry.shared("p", &from(begins, 999)).unwrap().project.spent;
    assert_eq!((spent(100), spent(101)), (Sum { cost_usd: 1.5, tokens: 7 }, Sum::default()));
    assert_eq!(registry.entries().unwrap().len(), 1);
}
