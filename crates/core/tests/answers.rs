//! What answers to questions about a call lead to: only who says "again" has it made again.

use jiff::Timestamp;
use uuid::Uuid;
use wiggum_core::checker;
use wiggum_core::decide::{Action, decide};
use wiggum_core::event::{Answer, BlobRef, Envelope, Event, Failure, Question, QuestionKind};
use wiggum_core::ids::{LoopId, QuestionId, TaskId};
use wiggum_core::policy::{Millis, Policy};
use wiggum_core::question::{Meaning, meaning};
use wiggum_core::state::Loop;
use wiggum_core::task::{FileStatus, Task, Work};

/// A loop over one call and a task that waits on it, without engine or server.
#[derive(Default)]
struct World {
    state: Loop,
    journal: Vec<Envelope>,
    calls: usize,
}

/// How the calls end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    Refused,
    Unknown,
    Well,
}

const KINDS: [QuestionKind; 8] = [
    QuestionKind::Failed,
    QuestionKind::Blocked,
    QuestionKind::Uncertain,
    QuestionKind::Stuck,
    QuestionKind::Deviation,
    QuestionKind::Repeated,
    QuestionKind::Flagged,
    QuestionKind::Unresponsive,
];

impl World {
    fn new(work: Work) -> Self {
        let mut world = Self::default();
        let repository = String::new();
        let backlog = "Plan.md".to_owned();
        let (loop_id, name) = (LoopId(Uuid::nil()), "p".to_owned());
        world.push(Event::LoopCreated { loop_id, name, repository, backlog });
        world.start_run();
        let mut mail = Task::new("mail", "mail");
        mail.work = work;
        let mut later = Task::new("later", "later");
        later.work = Work::Notice { message: "sent".to_owned() };
        later.depends_on = vec!["mail".into()];
        let (changed, removed) = (Vec::new(), Vec::new());
        let added = vec![mail, later];
        world.push(Event::BacklogRead { revision: String::new(), added, changed, removed, order: None });
        world
    }

    fn start_run(&mut self) {
        let mut policy = Box::new(Policy::default());
        policy.retry.max_retries = 0;
        policy.people.present = false;
        let (run, git) = (self.state.run.number + 1, false);
        let (agent, version, sandbox) = (String::new(), "0".to_owned(), String::new());
        self.push(Event::RunStarted { run, policy, agent, version, git, sandbox, tree: String::new() });
    }

    fn push(&mut self, event: Event) {
        let seq = self.state.seq + 1;
        let at = Timestamp::UNIX_EPOCH;
        let envelope = Envelope { v: 1, seq, id: Uuid::nil(), at, epoch: 1, event };
        self.state.apply(&envelope);
        self.journal.push(envelope);
    }

    /// Carries out plans until the run ends; what waits for a time waits for ever.
    fn run(&mut self, ends: Ends) {
        for _ in 0..100 {
            let actions = decide(&self.state, Timestamp::UNIX_EPOCH).actions;
            if actions.is_empty() {
                return;
            }
            for action in actions {
                self.perform(action, ends);
            }
        }
    }

    fn perform(&mut self, action: Action, ends: Ends) {
        match action {
            Action::Record(event) => self.push(*event),
            Action::StartIteration { iteration, task, attempt, agent, carried, accepted } => {
                let (command, workspace, prompt) = (String::new(), String::new(), BlobRef::default());
                let (base, branch, session) = (None, None, None);
                self.push(Event::IterationStarted {
                    iteration,
                    task: task.clone(),
                    attempt,
                    base,
                    branch,
                    carried,
                    command,
                    agent,
                    session,
                    workspace,
                    prompt,
                    accepted,
                });
                self.work(&task, ends);
            }
            Action::TakeTree { iteration, attempt } => {
                self.push(Event::TreeTaken { iteration, attempt, flags: Vec::new() });
            }
            Action::Inspect { iteration, attempt } => self.push(Event::WorkInspected {
                iteration,
                attempt,
                changed: Vec::new(),
                changed_total: 0,
                digest: String::new(),
                flags: Vec::new(),
                former_checks: Vec::new(),
                written_checks: Vec::new(),
                redefined: Vec::new(),
            }),
            Action::Land { iteration, attempt } => {
                let task = self.state.open.here().map(|open| open.task.clone()).expect("it is open");
                self.push(Event::TaskCompleted { iteration, attempt, task, verified: true, commit: None });
            }
            Action::WriteStatus { task, status } => self.push(Event::StatusWritten { task, status }),
            Action::Checkpoint => self.push(Event::Checkpointed {
                iteration: self.state.iterations,
                task: None,
                id: Uuid::nil(),
                checkpoint: BlobRef::default(),
                previous: None,
                by: String::new(),
            }),
            other => panic!("{other:?}"),
        }
    }

    /// As the engine does: what is known to have happened is not done again.
    fn work(&mut self, task: &TaskId, ends: Ends) {
        let open = self.state.open.here().cloned().expect("it is open");
        let (iteration, attempt) = (open.iteration, open.attempt);
        let entry = self.state.task(task).expect("it is known");
        let is_call = matches!(entry.spec.work, Work::McpCall { .. }) && entry.fate.is_none();
        let (mut error, mut uncertain) = (None, false);
        if is_call {
            self.calls += 1;
            let (server, tool, params) = ("mail".to_owned(), "send".to_owned(), BlobRef::default());
            self.push(Event::CallStarted { iteration, attempt, server, tool, params, repeatable: false });
            uncertain = ends == Ends::Unknown;
            let failure = Failure { message: "busy".to_owned(), signature: "busy".to_owned() };
            error = (ends != Ends::Well).then_some(failure);
        }
        let (duration, result) = (Millis(1), BlobRef::default());
        self.push(Event::WorkEnded {
            iteration,
            attempt,
            duration,
            result,
            error,
            uncertain,
            permanent: false,
        });
    }

    fn raise(&mut self, kind: QuestionKind) -> QuestionId {
        let id = QuestionId(self.state.next_question + 1);
        let options = ["a", "b", "c"].map(str::to_owned).to_vec();
        let words = String::new;
        let question = Question { kind, summary: words(), context: words(), options, question: words() };
        self.push(Event::QuestionRaised { id, task: Some("mail".into()), question });
        id
    }

    fn answer(&mut self, id: QuestionId, answer: Answer) {
        self.push(Event::QuestionAnswered { id, answer, by: "ann".to_owned() });
    }
}

fn call() -> Work {
    let (server, tool, params) = ("mail".to_owned(), "send".to_owned(), serde_json::json!({}));
    Work::McpCall { server, tool, params }
}

fn answers() -> Vec<Answer> {
    let words = Answer::Words { text: "do NOT send this".to_owned() };
    let options = (1..=3).map(|number| Answer::Option { number });
    options.chain([words, Answer::Skip, Answer::Retry, Answer::Abort, Answer::Done]).collect()
}

#[test]
fn only_who_says_again_has_a_call_made_again() {
    // Whether an agent still lives is no question about a call.
    for kind in KINDS.into_iter().filter(|kind| *kind != QuestionKind::Unresponsive) {
        for answer in answers() {
            for ends in [Ends::Refused, Ends::Unknown] {
                let mut world = World::new(call());
                world.run(ends);
                assert_eq!(world.calls, 1);
                let id = world.raise(kind);
                if world.state.refusal(id, &answer).is_some() {
                    continue;
                }
                let question = world.state.questions[&id].question.clone();
                world.answer(id, answer.clone());
                world.start_run();
                world.run(ends);
                let again = usize::from(meaning(&question, &answer) == Meaning::Retry);
                let approved = meaning(&question, &answer) == Meaning::Approve && ends == Ends::Refused;
                assert!(
                    world.calls == 1 + again || approved,
                    "{kind:?}, {answer:?}, {ends:?}: {} calls",
                    world.calls
                );
            }
        }
    }
}

#[test]
fn words_are_refused_for_a_call_and_heard_by_an_agent() {
    for kind in KINDS {
        for (work, heard) in [
            (call(), false),
            (Work::File { path: "a".into(), content: String::new(), overwrite: false }, false),
            (Work::Notice { message: String::new() }, false),
            (Work::Agent, kind != QuestionKind::Uncertain),
        ] {
            let mut world = World::new(work);
            let id = world.raise(kind);
            let words = Answer::Words { text: "use v2".to_owned() };
            let why = world.state.refusal(id, &words);
            assert_eq!(why.is_none(), heard, "{kind:?}: {why:?}");
            assert_eq!(world.state.takes_words(&world.state.questions[&id]), heard, "{kind:?}");
        }
    }
}

#[test]
fn words_in_a_journal_of_an_older_version_do_not_send_a_mail_now() {
    let mut world = World::new(call());
    world.run(Ends::Refused);
    let id = *world.state.questions.keys().next().expect("it is asked about");
    let asked = world.state.questions[&id].question.clone();
    world.answer(id, Answer::Words { text: "do NOT send this".to_owned() });
    world.start_run();
    world.run(Ends::Well);
    assert_eq!(world.calls, 1);
    let open: Vec<&Question> = world.state.questions.values().map(|asked| &asked.question).collect();
    assert_eq!(open, [&asked], "it is asked again");
    // And where that version went on and made the call, nothing is left to be asked.
    world.answer(QuestionId(2), Answer::Words { text: "send it".to_owned() });
    let start = Action::StartIteration {
        iteration: world.state.iterations + 1,
        task: "mail".into(),
        attempt: 2,
        agent: String::new(),
        carried: None,
        accepted: false,
    };
    world.start_run();
    world.perform(start, Ends::Well);
    world.run(Ends::Well);
    assert_eq!((world.calls, world.state.questions.len()), (2, 0));
}

#[test]
fn a_call_is_the_same_whether_its_secrets_were_recorded_or_not() {
    let with = |password: &str, to: &str| {
        let params = serde_json::json!({"password": password, "to": to});
        Work::McpCall { server: "mail".to_owned(), tool: "send".to_owned(), params }
    };
    for (now, calls) in [(with("[redacted]", "ann"), 1), (with("[redacted]", "bob"), 2)] {
        // As an older version recorded it.
        let mut world = World::new(with("hunter2", "ann"));
        world.run(Ends::Well);
        let mut task = world.state.task(&"mail".into()).unwrap().spec.clone();
        (task.work, task.status) = (now, FileStatus::Open);
        let (added, removed, changed) = (Vec::new(), Vec::new(), vec![task]);
        world.push(Event::BacklogRead { revision: String::new(), added, changed, removed, order: None });
        world.start_run();
        world.run(Ends::Well);
        assert_eq!(world.calls, calls);
    }
}

#[test]
fn an_approved_change_does_not_repeat_the_call_that_made_it() {
    let mut world = World::new(call());
    world.run(Ends::Well);
    assert_eq!(world.calls, 1);
    let id = world.raise(QuestionKind::Flagged);
    world.answer(id, Answer::Option { number: 1 });
    world.start_run();
    world.run(Ends::Well);
    assert_eq!(world.calls, 1);
    assert!(world.state.task(&"mail".into()).is_some_and(|entry| entry.is_done()));
    let again =
        checker::check(&world.journal).into_iter().find(|found| found.message.contains("called again"));
    assert_eq!(again, None);
}

#[test]
fn a_word_that_begins_an_option_is_that_option() {
    let question = Question {
        kind: QuestionKind::Flagged,
        summary: String::new(),
        context: String::new(),
        options: vec!["Accept it".to_owned(), "Have it undone".to_owned(), "Have it explained".to_owned()],
        question: String::new(),
    };
    let meant =
        |text: &str| wiggum_core::question::as_option(&question, &Answer::Words { text: text.to_owned() });
    let words = |text: &str| Answer::Words { text: text.to_owned() };
    assert_eq!(meant(" accept "), Answer::Option { number: 1 });
    assert_eq!(meant("have"), words("have"), "that could be two");
    assert_eq!(meant("accept no mail"), words("accept no mail"));
}
