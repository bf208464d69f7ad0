//! The agent's health in virtual time: the whole sequence from silence to the end, and every way out of it.

#![expect(clippy::unwrap_used, reason = "a test may fail here")]

#[expect(dead_code, reason = "each test file uses its part of this")]
mod support;

use jiff::Timestamp;
use support::{Mood, World};
use wiggum_core::checker;
use wiggum_core::decide::{Action, StopWhy, decide};
use wiggum_core::event::{Answer, EndReason, Event, QuestionKind};
use wiggum_core::health::{self, Health, Novelty, OnEscalation, Pulse, Sample};
use wiggum_core::policy::Millis;
use wiggum_core::state::{Stage, add_millis};

const MINUTE: u64 = 60_000;

/// An agent at work whose signs of progress the test gives.
struct Patient {
    world: World,
    pulse: Pulse,
    began: Timestamp,
    /// Minutes since the start, and what was done.
    log: Vec<(u64, String)>,
    /// What the next look shows.
    sample: Sample,
    /// Processor time that its tools use per minute.
    tools_per_minute: u64,
}

impl Patient {
    fn new(set: impl FnOnce(&mut World)) -> Self {
        let mut world = World::new(1, Mood::Idle);
        set(&mut world);
        world.start(&["a", "b"]);
        let mut patient = Self {
            began: world.now,
            pulse: Pulse::new(world.now, true),
            world,
            log: Vec::new(),
            sample: Sample { tools: Some(Millis(0)), files: Some(1) },
            tools_per_minute: 0,
        };
        patient.next_agent();
        patient
    }

    /// Goes on until an agent is at work again, or the run has ended.
    fn next_agent(&mut self) {
        while self.world.state.run.active && !self.at_work() {
            let plan = decide(&self.world.state, self.world.now);
            plan.actions.iter().for_each(|action| self.world.perform(action));
            if let Some(at) = plan.wake_at.filter(|_| plan.actions.is_empty()) {
                self.world.now = at;
            }
        }
        self.began = self.world.now;
        self.pulse = Pulse::new(self.world.now, true);
    }

    fn at_work(&self) -> bool {
        self.world.state.open.here().is_some_and(|open| open.stage == Stage::Agent)
    }

    fn minutes(&self) -> u64 {
        (self.world.now.as_millisecond() - self.began.as_millisecond()) as u64 / MINUTE
    }

    /// Time passes until then, or until the agent is stopped.
    fn until_minute(&mut self, minute: u64) -> &mut Self {
        let end = add_millis(self.began, minute * MINUTE);
        loop {
            let plan = health::decide(&self.world.state, &self.pulse, self.world.now);
            for action in &plan.actions {
                if self.act(action) {
                    return self;
                }
            }
            if plan.actions.is_empty() {
                match plan.wake_at.filter(|at| *at <= end) {
                    Some(at) => {
                        let passed = (at.as_millisecond() - self.world.now.as_millisecond()) as u64;
                        let used =
                            self.sample.tools.unwrap_or_default().0 + passed * self.tools_per_minute / MINUTE;
                        self.sample.tools = self.sample.tools.map(|_| Millis(used));
                        self.world.now = at;
                    }
                    None => {
                        self.world.now = end;
                        return self;
                    }
                }
            }
        }
    }

    /// Carries out a step, which takes no time here; says whether the agent is stopped.
    fn act(&mut self, action: &Action) -> bool {
        let minute = self.minutes();
        match action {
            Action::FeelPulse { .. } => self.pulse.feel(self.sample, self.world.now),
            Action::Nudge { .. } => self.log.push((minute, "nudge".to_owned())),
            Action::Record(event) => {
                match &**event {
                    Event::HealthChanged { health, .. } => self.log.push((minute, health.name().to_owned())),
                    Event::QuestionRaised { question, .. } => {
                        assert_eq!(question.kind, QuestionKind::Unresponsive);
                        self.log.push((minute, "question".to_owned()));
                    }
                    Event::HandoffStarted { .. } => {}
                    other => panic!("{other:?}"),
                }
                self.world.push(Event::clone(event));
            }
            Action::StopAgent { why, .. } => {
                self.log.push((minute, format!("{why:?}")));
                let (at, action) = (self.world.now, action.clone());
                self.world.perform(&action);
                self.world.now = at;
                return true;
            }
            other => panic!("{other:?}"),
        }
        false
    }

    /// As [`Self::until_minute`], with something new printed every minute.
    fn chatter_until_minute(&mut self, minute: u64) -> &mut Self {
        for minute in self.minutes() + 1..=minute {
            self.until_minute(minute);
            if self.at_work() {
                self.pulse.hear(self.world.now);
            }
        }
        self
    }

    fn beat(&mut self) -> &mut Self {
        self.pulse.beat(self.world.now);
        self
    }

    fn answer(&mut self, answer: Answer) -> &mut Self {
        let id = *self.world.state.questions.keys().next().unwrap();
        self.world.push(Event::QuestionAnswered { id, answer, by: "test".to_owned() });
        self
    }

    fn health(&self) -> Health {
        self.world.state.open.here().unwrap().vitals.health
    }

    fn check(&self, expected: &[(u64, &str)]) {
        let log: Vec<(u64, &str)> = self.log.iter().map(|(at, what)| (*at, what.as_str())).collect();
        assert_eq!(log, expected);
        assert_eq!(checker::check(&self.world.journal), vec![]);
    }
}

const SEQUENCE: [(u64, &str); 11] = [
    (15, "degraded"),
    (30, "stuck"),
    (30, "nudge"),
    (40, "stuck"),
    (40, "nudge"),
    (50, "stuck"),
    (50, "nudge"),
    (60, "failing"),
    (60, "question"),
    (75, "terminated"),
    (75, "Unresponsive"),
];

#[test]
fn silence_is_nudged_three_times_then_a_person_is_asked_then_the_agent_is_ended() {
    let mut patient = Patient::new(|_| {});
    patient.until_minute(1000).check(&SEQUENCE);
    // Nobody is asked any more about an agent that is gone.
    assert!(patient.world.state.questions.is_empty());
    // What it had done so far is where the next attempt starts.
    patient.world.set_mood(Mood::Liar);
    patient.next_agent();
    assert!(patient.world.journal.iter().any(|e| matches!(e.event, Event::WorkKept { .. })));
    let open = patient.world.state.open.here().cloned().unwrap();
    assert_eq!((open.task.as_str(), open.attempt, open.carried.is_some()), ("a", 2, true));
    assert_eq!(open.vitals.health, Health::Healthy);
}

#[test]
fn two_agents_in_a_row_that_had_to_be_ended_end_the_run() {
    let mut patient = Patient::new(|_| {});
    patient.until_minute(1000);
    patient.next_agent();
    assert!(patient.world.state.run.active);
    patient.until_minute(1000);
    patient.next_agent();
    assert_eq!(patient.world.ended(), EndReason::HealthFailure);
    assert_eq!(patient.world.state.run.iterations, 2);
    assert_eq!(checker::check(&patient.world.journal), vec![]);
}

#[test]
fn an_agent_that_ends_by_itself_in_between_breaks_the_row() {
    let mut patient = Patient::new(|world| {
        world.policy.limits.no_progress = 0;
        world.policy.breaker.no_progress = 0;
    });
    for _ in 0..2 {
        patient.until_minute(1000);
        patient.next_agent();
        patient.world.run_until(|event| matches!(event, Event::Judged { .. }));
        assert_eq!(patient.world.state.run.terminations, 0);
        patient.next_agent();
    }
    assert!(patient.world.state.run.active);
}

#[test]
fn an_agent_that_answers_a_nudge_is_healthy_again_and_the_count_begins_anew() {
    let mut patient = Patient::new(|_| {});
    patient.until_minute(45).beat().until_minute(46);
    assert_eq!(patient.health(), Health::Healthy);
    assert_eq!(patient.world.state.open.here().unwrap().vitals.nudges, 0);
    patient.until_minute(80).check(&[
        (15, "degraded"),
        (30, "stuck"),
        (30, "nudge"),
        (40, "stuck"),
        (40, "nudge"),
        (45, "healthy"),
        (60, "degraded"),
        (75, "stuck"),
        (75, "nudge"),
    ]);
}

#[test]
fn progress_before_half_the_time_leaves_no_trace() {
    let mut patient = Patient::new(|_| {});
    for minute in (10..=200).step_by(10) {
        patient.until_minute(minute).beat();
    }
    patient.check(&[]);
}

#[test]
fn an_agent_that_stirs_while_a_person_is_asked_takes_the_question_back() {
    let mut patient = Patient::new(|_| {});
    patient.until_minute(65).beat().until_minute(70);
    assert_eq!(patient.health(), Health::Healthy);
    assert!(patient.world.state.questions.is_empty());
    assert_eq!(patient.log.last().unwrap().1, "healthy");
}

#[test]
fn an_agent_that_chatters_is_as_stuck_as_one_that_is_silent() {
    // `while :; do echo working $i; done`: always something new, and nothing comes of it.
    Patient::new(|_| {}).chatter_until_minute(80).check(&SEQUENCE);
    // Its honest twin says as much, and calls a tool now and then.
    let mut honest = Patient::new(|_| {});
    for minute in (14..=140).step_by(14) {
        honest.chatter_until_minute(minute).beat();
    }
    honest.check(&[]);
}

#[test]
fn an_agent_that_spins_is_stuck_and_one_that_waits_for_a_busy_tool_is_not() {
    // `while :; do :; done`: all of a processor, and none of it in a tool.
    Patient::new(|_| {}).until_minute(1000).check(&SEQUENCE);
    // An agent that tells its calls and has none under way: whatever runs beside it does not count.
    let mut beside = Patient::new(|_| {});
    beside.sample.tools = None;
    beside.tools_per_minute = MINUTE;
    beside.until_minute(1000).check(&SEQUENCE);
    // The honest twins: a build that uses the processor, and one on another machine that changes files.
    let mut build = Patient::new(|_| {});
    build.tools_per_minute = MINUTE;
    build.until_minute(300).check(&[]);
    let mut remote = Patient::new(|_| {});
    for minute in (20..=200).step_by(20) {
        remote.sample.files = Some(minute);
        remote.until_minute(minute);
    }
    assert!(!remote.log.iter().any(|(_, what)| what == "stuck"), "{:?}", remote.log);
}

#[test]
fn what_it_prints_makes_no_stuck_agent_healthy() {
    let mut patient = Patient::new(|_| {});
    patient.until_minute(45).chatter_until_minute(46);
    assert_eq!(patient.health(), Health::Stuck);
    patient.beat().until_minute(47);
    assert_eq!(patient.health(), Health::Healthy);
}

#[test]
fn a_tool_that_uses_the_processor_is_progress_until_it_hangs() {
    let mut patient = Patient::new(|_| {});
    patient.tools_per_minute = MINUTE;
    patient.until_minute(600).check(&[]);
    // The build is done, and it hangs.
    patient.tools_per_minute = 0;
    patient.log.clear();
    patient.until_minute(1000);
    assert_eq!(patient.log.last().unwrap().1, "Unresponsive");
}

#[test]
fn what_was_used_before_the_last_progress_says_nothing_of_the_time_after_it() {
    let mut patient = Patient::new(|_| {});
    patient.until_minute(20).beat();
    // Used by what led to that sign of progress.
    patient.sample.tools = Some(Millis(5 * MINUTE));
    patient.until_minute(36).check(&[(15, "degraded"), (20, "healthy"), (35, "degraded")]);
}

#[test]
fn turning_a_spinner_is_not_being_busy() {
    let mut patient = Patient::new(|_| {});
    patient.tools_per_minute = MINUTE / 50;
    patient.until_minute(1000).check(&SEQUENCE);
}

#[test]
fn files_that_change_are_progress() {
    let mut patient = Patient::new(|_| {});
    patient.until_minute(20);
    patient.sample.files = Some(2);
    patient.until_minute(31);
    assert_eq!(patient.health(), Health::Healthy);
    // A look at files that cannot be seen says nothing.
    patient.sample.files = None;
    patient.log.clear();
    patient.until_minute(61);
    assert_eq!(patient.health(), Health::Stuck);
}

#[test]
fn a_person_decides_what_becomes_of_it() {
    let allowed = |answer: Answer| {
        let mut patient = Patient::new(|_| {});
        patient.until_minute(61).answer(answer);
        patient.log.clear();
        patient.until_minute(80);
        assert_eq!(checker::check(&patient.world.journal), vec![]);
        patient.log
    };
    let stopped = |why: &str| vec![(61, "terminated".to_owned()), (61, why.to_owned())];
    assert_eq!(allowed(Answer::Option { number: 1 }), vec![(76, "degraded".to_owned())]);
    assert_eq!(allowed(Answer::Words { text: "look at the lock".into() }), vec![(76, "degraded".to_owned())]);
    assert_eq!(allowed(Answer::Option { number: 2 }), stopped("Handoff"));
    assert_eq!(allowed(Answer::Option { number: 3 }), stopped("Unresponsive"));
}

#[test]
fn what_a_person_ended_is_no_failure_of_health() {
    let mut patient = Patient::new(|world| world.policy.health.max_terminations = 1);
    patient.until_minute(61).answer(Answer::Option { number: 3 }).until_minute(80);
    patient.next_agent();
    assert!(patient.world.state.run.active);
}

#[test]
fn an_agent_given_up_in_an_interrupted_attempt_does_not_count_twice() {
    let mut patient = Patient::new(|world| world.policy.health.max_terminations = 2);
    patient.until_minute(76);
    assert_eq!((patient.health(), patient.world.state.run.terminations), (Health::Terminated, 1));
    // The engine is gone before the agent's end is on record.
    patient.world.push(Event::Interrupted {
        iteration: 1,
        attempt: 1,
        reason: "the engine was gone".to_owned(),
        ended_processes: 1,
        kept: None,
    });
    assert_eq!(patient.world.state.run.terminations, 0);
    assert_eq!(checker::check(&patient.world.journal), vec![]);
}

#[test]
fn a_persons_word_holds_although_the_agent_stirs() {
    let mut patient = Patient::new(|_| {});
    patient.until_minute(61).answer(Answer::Option { number: 3 }).beat().until_minute(62);
    assert_eq!(patient.log.last().unwrap().1, "Unresponsive");
    assert!(!patient.log.iter().any(|(_, what)| what == "healthy"), "{:?}", patient.log);
    assert_eq!(checker::check(&patient.world.journal), vec![]);
}

#[test]
fn the_policy_decides_when_nobody_does() {
    let ends = |on_escalation| {
        let mut patient = Patient::new(|world| world.policy.health.on_escalation = on_escalation);
        patient.until_minute(10_000);
        assert_eq!(checker::check(&patient.world.journal), vec![]);
        patient.log.last().unwrap().clone()
    };
    assert_eq!(ends(OnEscalation::Terminate), (75, format!("{:?}", StopWhy::Unresponsive)));
    assert_eq!(ends(OnEscalation::Handoff), (75, format!("{:?}", StopWhy::Handoff)));
    assert_eq!(ends(OnEscalation::Wait), (60, "question".to_owned()));
}

#[test]
fn without_nudges_a_person_is_asked_at_once_and_without_a_limit_nobody_ever() {
    let mut patient = Patient::new(|world| world.policy.health.nudges = 0);
    patient.until_minute(31).check(&[(15, "degraded"), (30, "failing"), (30, "question")]);
    let mut patient = Patient::new(|world| world.policy.health.stuck_after = None);
    patient.until_minute(10_000).check(&[]);
}

#[test]
fn the_old_limit_on_silence_ends_agents_at_once_that_tell_what_they_do() {
    let silence = |world: &mut World| world.policy.agents.silence = Some(Millis(20 * MINUTE));
    let mut patient = Patient::new(silence);
    patient.until_minute(100).check(&[(15, "degraded"), (20, "terminated"), (20, "Unresponsive")]);
    let mut patient = Patient::new(silence);
    patient.pulse.live = false;
    patient.until_minute(100).check(&SEQUENCE);
    // Who talks is not silent; that nothing comes of it is seen all the same.
    Patient::new(silence).chatter_until_minute(80).check(&SEQUENCE);
}

#[test]
fn dots_spinners_and_lines_that_come_again_say_nothing_new() {
    let mut novelty = Novelty::default();
    let mut check = |text: &str, new: bool| assert_eq!(novelty.is_new(text.as_bytes()), new, "{text:?}");
    for text in ["", ".", "...\n", "\r", "⠋", "\u{1b}[2K\r⠙ ", "|/-\\", "█████░░░", "—"]
    {
        check(text, false);
    }
    check("Thinking", true);
    check("\r\u{1b}[36m⠹ Thinking… (12s)\u{1b}[0m", false);
    check("\r⠸ Thinking… (13.5s)", false);
    check("Compiling a v1.0\n", true);
    check("Compiling b v1.0\nCompiling a v1.0\n", true);
    check("Compiling b v1.0\n", false);
    check("10%", true);
    check("11%", true);
    check("überlegt", true);
    // Not for ever: a test that runs again says something, if much was said in between.
    for number in 0..40 {
        check(&format!("line {number}"), true);
    }
    check("Thinking", true);
}

#[test]
fn the_checker_sees_steps_that_were_left_out() {
    let mut patient = Patient::new(|_| {});
    let (iteration, attempt, detail) = (1, 1, String::new());
    let health = Health::Terminated;
    patient.world.push(Event::HealthChanged { iteration, attempt, health, last_beat: None, detail });
    let found = checker::check(&patient.world.journal);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message.contains("from healthy to terminated"), "{found:?}");
}
