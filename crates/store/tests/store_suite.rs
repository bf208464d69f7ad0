//! What every store must do, whatever it keeps its rows in.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod common;

use common::*;
use wiggum_core::event::{Answer, Envelope, Event, Request};
use wiggum_core::ids::{QuestionId, TaskId};
use wiggum_store::{Append, Blob, Delivery, Failing, Left, Pending, Store, StoreError, Undelivered};

/// Each case gets stores of its own; opening twice must give the same store.
type Open<'a> = &'a dyn Fn() -> Store;

type Case = (&'static str, fn(Open<'_>));

const CASES: &[Case] = &[
    ("a loop is found by its identity", a_loop_is_found_by_its_identity),
    ("two who create a loop get the same", two_who_create_a_loop_get_the_same),
    ("events come back as they were", events_come_back_as_they_were),
    ("journals of two loops do not mix", journals_of_two_loops_do_not_mix),
    ("a clock going backwards changes no order", a_clock_going_backwards_changes_no_order),
    ("a writer that is behind is refused", a_writer_that_is_behind_is_refused),
    ("an old epoch is fenced", an_old_epoch_is_fenced),
    ("a released epoch is fenced", a_released_epoch_is_fenced),
    ("a live holder keeps the lease", a_live_holder_keeps_the_lease),
    ("a late release takes nothing away", a_late_release_takes_nothing_away),
    ("unknown loops are refused", unknown_loops_are_refused),
    ("requests wait until handled", requests_wait_until_handled),
    ("the first of several requests is left", the_first_of_several_requests_is_left),
    ("blobs are kept once", blobs_are_kept_once),
    ("projections are disposable", projections_are_disposable),
    ("places in the journal never go back", places_in_the_journal_never_go_back),
    ("what was given up is remembered within bounds", what_was_given_up_is_remembered_within_bounds),
    ("two threads lose nothing", two_threads_lose_nothing),
    ("a whole store has no findings", a_whole_store_has_no_findings),
];

#[test]
fn sqlite() {
    for (name, case) in CASES {
        eprintln!("{name}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".wiggum/wiggum.db");
        case(&|| Store::open(&path).unwrap());
    }
}

fn a_loop_is_found_by_its_identity(open: Open<'_>) {
    let mut store = open();
    assert_eq!(store.find_loop(&identity("main")).unwrap(), None);
    let main = store.create_loop(&identity("main"), loop_id(1), at(1)).unwrap();
    let side = store.create_loop(&identity("side"), loop_id(2), at(2)).unwrap();
    assert_eq!((main.id, main.created_at), (loop_id(1), at(1)));
    let again = open();
    assert_eq!(again.find_loop(&identity("main")).unwrap(), Some(main.clone()));
    assert_eq!(again.loops().unwrap(), [main, side]);
}

fn two_who_create_a_loop_get_the_same(open: Open<'_>) {
    let (mut one, mut two) = (open(), open());
    let first = one.create_loop(&identity("main"), loop_id(1), at(1)).unwrap();
    let second = two.create_loop(&identity("main"), loop_id(2), at(2)).unwrap();
    assert_eq!(first, second);
    assert_eq!(two.loops().unwrap().len(), 1);
}

fn events_come_back_as_they_were(open: Open<'_>) {
    let mut store = open();
    let (id, epoch) = leased(&mut store);
    let events = [
        Event::LoopCreated {
            loop_id: id,
            name: "main".into(),
            repository: "/repo".into(),
            backlog: "b".into(),
        },
        Event::WorkspaceReset { commit: "c0ffee".into() },
        Event::TaskSkipped { task: TaskId::new("täsk \"1\"\n"), by: "me\u{0}".into() },
    ];
    let envelopes: Vec<Envelope> =
        (1..).zip(events).map(|(seq, event)| Envelope { event, ..envelope(seq, epoch, "") }).collect();
    store.append(&Append { loop_id: id, epoch, envelopes: &envelopes, ..EMPTY }).unwrap();
    let again = open();
    assert_eq!(again.read(id, 0).unwrap(), envelopes);
    assert_eq!(again.read(id, 2).unwrap(), envelopes[2..]);
    assert_eq!(again.read(id, 3).unwrap(), []);
    assert_eq!(again.last_seq(id).unwrap(), 3);
    let mut seen = Vec::new();
    again.for_each(id, 1, |envelope| seen.push(envelope.seq)).unwrap();
    assert_eq!(seen, [2, 3]);
}

fn journals_of_two_loops_do_not_mix(open: Open<'_>) {
    let mut store = open();
    let (main, epoch) = leased(&mut store);
    let side = store.create_loop(&identity("side"), loop_id(2), at(0)).unwrap().id;
    let side_epoch = store.acquire(side, &holder(1), &|_| true, at(0)).unwrap();
    append_one(&mut store, main, epoch, 0, "main 1").unwrap();
    append_one(&mut store, side, side_epoch, 0, "side 1").unwrap();
    append_one(&mut store, main, epoch, 1, "main 2").unwrap();
    assert_eq!(messages(&store, main), ["main 1", "main 2"]);
    assert_eq!(messages(&store, side), ["side 1"]);
    assert_eq!((store.last_seq(main).unwrap(), store.last_seq(side).unwrap()), (2, 1));
}

fn a_clock_going_backwards_changes_no_order(open: Open<'_>) {
    let mut store = open();
    let (id, epoch) = leased(&mut store);
    let envelopes: Vec<Envelope> = [(1, 50), (2, 10), (3, -90)]
        .map(|(seq, second)| Envelope { at: at(second), ..envelope(seq, epoch, "") })
        .into();
    store.append(&Append { loop_id: id, epoch, envelopes: &envelopes, ..EMPTY }).unwrap();
    assert_eq!(store.read(id, 0).unwrap(), envelopes);
}

fn a_writer_that_is_behind_is_refused(open: Open<'_>) {
    let (mut one, mut two) = (open(), open());
    let (id, epoch) = leased(&mut one);
    append_one(&mut one, id, epoch, 0, "first").unwrap();
    for expected in [0, 2] {
        let error = append_one(&mut two, id, epoch, expected, "lost").unwrap_err();
        assert!(matches!(error, StoreError::Conflict { found: 1, .. }), "{error}");
    }
    append_one(&mut two, id, epoch, 1, "second").unwrap();
    assert_eq!(messages(&one, id), ["first", "second"]);
}

fn an_old_epoch_is_fenced(open: Open<'_>) {
    let (mut old, mut new) = (open(), open());
    let (id, epoch) = leased(&mut old);
    append_one(&mut old, id, epoch, 0, "old").unwrap();
    let taken = new.acquire(id, &holder(2), &|_| false, at(1)).unwrap();
    assert_eq!(taken, epoch + 1);
    assert_eq!(new.holder(id).unwrap(), Some(holder(2)));
    let error = append_one(&mut old, id, epoch, 1, "stale").unwrap_err();
    assert!(matches!(error, StoreError::Fenced { epoch: 1, current: 2, .. }), "{error}");
    assert!(error.hint().is_some());
    append_one(&mut new, id, taken, 1, "new").unwrap();
    assert_eq!(messages(&old, id), ["old", "new"]);
}

fn a_released_epoch_is_fenced(open: Open<'_>) {
    let mut store = open();
    let (id, epoch) = leased(&mut store);
    store.release(id, epoch).unwrap();
    assert_eq!(store.holder(id).unwrap(), None);
    let error = append_one(&mut store, id, epoch, 0, "late").unwrap_err();
    assert!(matches!(error, StoreError::Fenced { .. }), "{error}");
    assert_eq!(store.acquire(id, &holder(2), &|_| true, at(1)).unwrap(), epoch + 1);
}

fn a_live_holder_keeps_the_lease(open: Open<'_>) {
    let (mut one, mut two) = (open(), open());
    let (id, epoch) = leased(&mut one);
    let error = two.acquire(id, &holder(2), &|current| *current == holder(1), at(1)).unwrap_err();
    assert!(matches!(&error, StoreError::Held { holder: current, .. } if *current == holder(1)), "{error}");
    append_one(&mut one, id, epoch, 0, "still here").unwrap();
}

fn a_late_release_takes_nothing_away(open: Open<'_>) {
    let mut store = open();
    let (id, epoch) = leased(&mut store);
    store.acquire(id, &holder(2), &|_| false, at(1)).unwrap();
    store.release(id, epoch).unwrap();
    assert_eq!(store.holder(id).unwrap(), Some(holder(2)));
}

fn unknown_loops_are_refused(open: Open<'_>) {
    let mut store = open();
    let unknown = |result: Result<(), StoreError>| {
        assert!(matches!(result, Err(StoreError::UnknownLoop { .. })), "{result:?}");
    };
    unknown(store.acquire(loop_id(9), &holder(1), &|_| false, at(0)).map(drop));
    unknown(store.post(loop_id(9), &Request::Pause, "me", at(0)).map(drop));
    unknown(append_one(&mut store, loop_id(9), 1, 0, "nowhere"));
    assert_eq!(store.last_seq(loop_id(9)).unwrap(), 0);
}

fn requests_wait_until_handled(open: Open<'_>) {
    let (mut engine, mut person) = (open(), open());
    let (id, epoch) = leased(&mut engine);
    let answer = Answer::Words { text: "use \"b\"".into() };
    let requests = [Request::Pause, Request::Answer { question: QuestionId(1), answer }, Request::Resume];
    let ids = requests.clone().map(|request| person.post(id, &request, "me", at(5)).unwrap());
    let pending = engine.pending(id).unwrap();
    assert_eq!(pending.iter().map(|pending| pending.request.clone()).collect::<Vec<_>>(), requests);
    assert_eq!((pending[0].id, pending[0].by.as_str(), pending[0].at), (ids[0], "me", at(5)));
    let envelopes = [envelope(1, epoch, "paused")];
    let batch = Append { loop_id: id, epoch, envelopes: &envelopes, handled: &ids[..2], ..EMPTY };
    engine.append(&batch).unwrap();
    assert_eq!(person.pending(id).unwrap().iter().map(|pending| pending.id).collect::<Vec<_>>(), ids[2..]);
    assert!(engine.append(&batch).is_err());
    engine.append(&Append { loop_id: id, epoch, expected_seq: 1, handled: &ids, ..EMPTY }).unwrap();
    assert_eq!(person.pending(id).unwrap(), []);
    assert_eq!(engine.last_seq(id).unwrap(), 1);
}

fn blobs_are_kept_once(open: Open<'_>) {
    let mut store = open();
    let (id, epoch) = leased(&mut store);
    let texts = [String::new(), "short ü".to_owned(), "long ".repeat(5000), noise(3000)];
    let hashes = texts.each_ref().map(|text| sha256(text));
    let blobs: Vec<Blob<'_>> =
        texts.iter().zip(&hashes).map(|(text, sha256)| Blob { sha256, text }).collect();
    for _ in 0..2 {
        store.append(&Append { loop_id: id, epoch, blobs: &blobs, ..EMPTY }).unwrap();
    }
    for (text, hash) in texts.iter().zip(&hashes) {
        assert_eq!(store.blob(hash).unwrap().as_ref(), Some(text));
    }
    assert_eq!(store.blob(&sha256("never stored")).unwrap(), None);
    assert_eq!(store.check().unwrap(), [""; 0]);
}

/// Text that does not get smaller by compression.
fn noise(length: usize) -> String {
    let mut state = 88_172_645_463_325_252_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from_u32(0x4e00 + (state % 20_000) as u32)
    };
    std::iter::from_fn({
        let mut next = next;
        move || next()
    })
    .take(length)
    .collect()
}

fn projections_are_disposable(open: Open<'_>) {
    let mut store = open();
    let (id, epoch) = leased(&mut store);
    assert_eq!(store.projection(id).unwrap(), None);
    let envelopes = [envelope(1, epoch, "a"), envelope(2, epoch, "b")];
    let batch = Append { loop_id: id, epoch, envelopes: &envelopes, projection: Some("{\"n\":2}"), ..EMPTY };
    store.append(&batch).unwrap();
    append_one(&mut store, id, epoch, 2, "c").unwrap();
    assert_eq!(open().projection(id).unwrap(), Some((2, "{\"n\":2}".to_owned())));
    store.forget_projections().unwrap();
    assert_eq!(store.projection(id).unwrap(), None);
    assert_eq!(messages(&store, id), ["a", "b", "c"]);
    let envelopes = [envelope(4, epoch, "d")];
    let batch = Append {
        loop_id: id,
        epoch,
        expected_seq: 3,
        envelopes: &envelopes,
        projection: Some("{}"),
        ..EMPTY
    };
    store.append(&batch).unwrap();
    assert_eq!(store.projection(id).unwrap(), Some((4, "{}".to_owned())));
}

fn the_first_of_several_requests_is_left(open: Open<'_>) {
    let (id, _) = leased(&mut open());
    let answer = |question: u32, answer: Answer| Request::Answer { question: QuestionId(question), answer };
    let same =
        |other: &Pending| matches!(&other.request, Request::Answer { question, .. } if question.0 == 1);
    let same = |waiting: &[Pending]| waiting.iter().find(|other| same(other)).cloned();
    let told: Vec<_> = std::thread::scope(|scope| {
        let each = |number: u32| {
            let mut store = open();
            scope.spawn(move || {
                let (request, by) = (answer(1, Answer::Option { number }), number.to_string());
                (number, store.post_first(id, &request, &by, at(1), Some(0), &same).unwrap())
            })
        };
        let all: Vec<_> = (1..=4).map(each).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let is_first = |told: &Left| matches!(told, Left::First(_));
    let winners: Vec<u32> =
        told.iter().filter(|(_, told)| is_first(told)).map(|(number, _)| *number).collect();
    assert_eq!(winners.len(), 1, "{told:?}");
    for (_, told) in told.iter().filter(|(_, told)| !is_first(told)) {
        assert!(matches!(told, Left::Taken(first) if first.by == winners[0].to_string()), "{told:?}");
    }
    let mut store = open();
    let other = answer(2, Answer::Skip);
    let same = |waiting: &[Pending]| waiting.iter().find(|waiting| waiting.request == other).cloned();
    assert_eq!(store.post_first(id, &other, "x", at(2), Some(7), &same).unwrap(), Left::Moved);
    assert!(is_first(&store.post_first(id, &other, "x", at(2), None, &same).unwrap()));
    assert_eq!(store.pending(id).unwrap().len(), 2);
}

fn places_in_the_journal_never_go_back(open: Open<'_>) {
    let mut store = open();
    let (id, _) = leased(&mut store);
    assert_eq!(store.known_since("hook", at(5)).unwrap(), at(5));
    assert_eq!(store.known_since("hook", at(9)).unwrap(), at(5), "known since the first time");
    assert_eq!(store.delivery(id, "hook").unwrap(), None);
    let failing = Failing { seq: 8, attempts: 2, next_try: at(20), problem: "HTTP 500".into() };
    let place = Delivery { cursor: 7, sent: 3, sent_at: Some(at(10)), failing: Some(failing) };
    store.note_delivery(id, "hook", &place, None).unwrap();
    store.note_delivery(id, "hook", &Delivery { cursor: 6, ..Delivery::default() }, None).unwrap();
    let mut again = open();
    assert_eq!(again.delivery(id, "hook").unwrap().as_ref(), Some(&place));
    assert_eq!(again.deliveries().unwrap(), [(id, "hook".to_owned(), place)]);
    let on = Delivery { cursor: 8, sent: 4, sent_at: Some(at(21)), failing: None };
    again.note_delivery(id, "hook", &on, None).unwrap();
    assert_eq!(store.delivery(id, "hook").unwrap(), Some(on));
    assert_eq!(store.delivery(id, "other").unwrap(), None);
}

fn what_was_given_up_is_remembered_within_bounds(open: Open<'_>) {
    let mut store = open();
    let (id, _) = leased(&mut store);
    for seq in 1..=130 {
        let second = i64::try_from(seq).unwrap();
        let given_up = Undelivered {
            loop_id: id,
            target: "hook".into(),
            seq,
            at: at(second),
            attempts: 9,
            problem: "HTTP 410".into(),
        };
        let place = Delivery { cursor: seq, ..Delivery::default() };
        store.note_delivery(id, "hook", &place, Some(&given_up)).unwrap();
    }
    let found = open().undelivered().unwrap();
    assert_eq!((found.len(), found[0].seq, found[99].seq), (100, 31, 130));
    assert_eq!(store.clear_undelivered("hook").unwrap(), 100);
    assert_eq!(open().undelivered().unwrap(), []);
}

fn two_threads_lose_nothing(open: Open<'_>) {
    const EACH: usize = 40;
    let mut store = open();
    let (id, epoch) = leased(&mut store);
    let stores = [open(), open()];
    let conflicts: usize = std::thread::scope(|scope| {
        let writers = stores.into_iter().zip(["a", "b"]).map(|(mut store, name)| {
            scope.spawn(move || {
                let (mut conflicts, mut written) = (0, 0);
                let mut expected = 0;
                while written < EACH {
                    match append_one(&mut store, id, epoch, expected, &format!("{name}{written}")) {
                        Ok(()) => (written, expected) = (written + 1, expected + 1),
                        Err(StoreError::Conflict { found, .. }) => {
                            (conflicts, expected) = (conflicts + 1, found)
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                conflicts
            })
        });
        let writers: Vec<_> = writers.collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert!(conflicts > 0, "both started at 0, so one of them must have been refused");
    let messages = messages(&store, id);
    for name in ["a", "b"] {
        let own: Vec<&String> = messages.iter().filter(|message| message.starts_with(name)).collect();
        assert_eq!(
            own,
            (0..EACH).map(|n| format!("{name}{n}")).collect::<Vec<_>>().iter().collect::<Vec<_>>()
        );
    }
    assert_eq!(store.last_seq(id).unwrap(), 2 * EACH as u64);
}

fn a_whole_store_has_no_findings(open: Open<'_>) {
    let mut store = open();
    let (id, epoch) = leased(&mut store);
    append_one(&mut store, id, epoch, 0, "fine").unwrap();
    assert_eq!(store.check().unwrap(), [""; 0]);
}

#[test]
#[should_panic(expected = "without gaps")]
fn gaps_in_a_batch_are_a_bug() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&dir.path().join("wiggum.db")).unwrap();
    let (id, epoch) = leased(&mut store);
    let envelopes = [envelope(1, epoch, "a"), envelope(3, epoch, "c")];
    let result = store.append(&Append { loop_id: id, epoch, envelopes: &envelopes, ..EMPTY });
    panic!("not refused: {result:?}");
}
