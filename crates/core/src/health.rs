//! Does the agent at work get anywhere? A pure state machine over its signs of progress.
//!
//! The engine feels the pulse ([`Pulse`]): tool calls, reports, files with new content, a tool that uses the
//! processor for longer than a moment. Those are too many to be recorded; what follows from their absence is
//! ([`Event::HealthChanged`]) and is folded into [`Vitals`]. What an agent prints is no progress, nor is the
//! time that it burns itself: an agent that chatters or spins is as stuck as one that is silent. [`decide`]
//! says the next step: an agent that makes no progress is nudged, then a person is asked, then the policy
//! decides. Every step waits for its moment and for two looks a moment apart, so that nothing is polled and a long
//! build is not taken for a hang.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::decide::{Action, Plan, StopWhy};
use crate::event::{Answer, Event, Question, QuestionKind};
use crate::handoff::Trigger;
use crate::ids::{QuestionId, TaskId};
use crate::mutant::{Mutant, planted};
use crate::policy::Millis;
use crate::state::{Loop, OpenIteration, Stage, add_millis, millis_between};

/// Who the nudges of this machine are by.
pub const NUDGER: &str = "health";

/// Who the nudges of `wiggum monitor` are by.
pub const MONITOR: &str = "monitor";

/// Does a nudge only ask for a sign of progress? Then it is for nobody else.
pub fn is_call(by: &str) -> bool {
    by == NUDGER || by == MONITOR
}

/// What an agent is told that makes no progress.
pub const NUDGE: &str = "There has been no sign of progress for a while. If you wait for something, say what; if a \
                         command hangs, end it and go on another way. Answer with what you do next.";

/// When an agent counts as stuck, and what is done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Rules {
    /// Without any progress for this long an agent is stuck; `None` means never.
    pub stuck_after: Option<Millis>,
    /// How long an answer to a nudge is waited for.
    pub nudge_wait: Millis,
    pub nudges: u32,
    /// How long a person has to decide before the policy does.
    pub escalate_wait: Millis,
    pub on_escalation: OnEscalation,
    /// Agents in a row that were ended for this before the run ends; 0 means never.
    pub max_terminations: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            stuck_after: Some(Millis::from_secs(30 * 60)),
            nudge_wait: Millis::from_secs(10 * 60),
            nudges: 3,
            escalate_wait: Millis::from_secs(15 * 60),
            on_escalation: OnEscalation::Terminate,
            max_terminations: 2,
        }
    }
}

/// What becomes of an agent that answers no nudge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnEscalation {
    /// It is ended, which is an error of the attempt; its work is kept.
    #[default]
    Terminate,
    /// It may take as long as it likes.
    Wait,
    /// It is ended, and the next attempt goes on with its work.
    Handoff,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Health {
    #[default]
    Healthy,
    /// No progress for half the time that makes it stuck.
    Degraded,
    /// Being nudged.
    Stuck,
    /// No nudge was answered; a person is asked.
    Failing,
    /// It was ended for it.
    Terminated,
}

impl Health {
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Stuck => "stuck",
            Self::Failing => "failing",
            Self::Terminated => "terminated",
        }
    }
}

/// What the journal says of the health of the agent at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vitals {
    pub health: Health,
    /// Since when it is that.
    pub since: Timestamp,
    /// When the last step was taken; the next one is counted from there.
    pub stepped_at: Timestamp,
    /// The last sign of progress, as far as it was recorded.
    pub last_beat: Timestamp,
    pub nudges: u32,
    pub detail: String,
    /// What a person is asked about it.
    pub question: Option<QuestionId>,
    /// What a person said.
    told: Option<OnEscalation>,
}

impl Vitals {
    pub(crate) fn new(at: Timestamp) -> Self {
        Self {
            health: Health::Healthy,
            since: at,
            stepped_at: at,
            last_beat: at,
            nudges: 0,
            detail: String::new(),
            question: None,
            told: None,
        }
    }

    pub(crate) fn change(
        &mut self,
        health: Health,
        last_beat: Option<Timestamp>,
        detail: &str,
        at: Timestamp,
    ) {
        if self.health != health {
            self.since = at;
        }
        match health {
            Health::Healthy => self.nudges = 0,
            Health::Stuck => self.nudges += 1,
            Health::Degraded | Health::Failing | Health::Terminated => {}
        }
        self.health = health;
        self.stepped_at = at;
        self.last_beat = last_beat.map_or(self.last_beat, |beat| beat.max(self.last_beat));
        detail.clone_into(&mut self.detail);
    }

    /// Has a person decided what becomes of it?
    pub(crate) fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// A person answered. Words are no decision: they are passed on, and the agent gets its time.
    pub(crate) fn answer(&mut self, answer: &Answer, at: Timestamp) {
        self.question = None;
        match chosen(answer) {
            OnEscalation::Wait => {
                self.change(Health::Healthy, Some(at), "a person allowed more time", at);
                self.told = None;
            }
            decided @ (OnEscalation::Terminate | OnEscalation::Handoff) => self.told = Some(decided),
        }
    }
}

/// What an answer to [`question`] decides.
fn chosen(answer: &Answer) -> OnEscalation {
    match answer {
        Answer::Option { number: 2 } | Answer::Retry => OnEscalation::Handoff,
        Answer::Option { number: 3 } | Answer::Skip | Answer::Abort | Answer::Done => OnEscalation::Terminate,
        Answer::Option { .. } | Answer::Words { .. } => OnEscalation::Wait,
    }
}

/// The signs of progress of an agent at work, which only its engine sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// The last sign of progress.
    pub last_beat: Timestamp,
    /// When it last said something new, or made progress.
    last_heard: Timestamp,
    /// It tells what it does while it does it.
    pub live: bool,
    /// The last look, and when the one before it was.
    sampled: Option<(Timestamp, Sample)>,
    sampled_before: Option<Timestamp>,
}

/// What has to be looked at to be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Processor time that tools of the agent have used so far which were at work in two looks, where the system can
    /// tell: programs that end within a moment do not count. Nothing while it has none at work, as far as it tells.
    pub tools: Option<Millis>,
    /// Another number means that files have content which they did not have before.
    pub files: Option<u64>,
}

/// How much of one processor tools have to use to count as busy. A build uses all of it; a tool that waits
/// and turns a spinner uses a few hundredths.
const BUSY_PERCENT: u64 = 10;

/// How far the two looks before a step are apart: long enough for the system to count what a busy program uses, and
/// longer than a program lives that only prints something.
const MOMENT: u64 = 1000;

impl Pulse {
    pub fn new(at: Timestamp, live: bool) -> Self {
        Self { last_beat: at, last_heard: at, live, sampled: None, sampled_before: None }
    }

    /// It called a tool, or got its result; it reported, or took a nudge.
    pub fn beat(&mut self, at: Timestamp) {
        self.last_beat = self.last_beat.max(at);
        self.hear(at);
    }

    /// It said something new, which is no progress.
    pub fn hear(&mut self, at: Timestamp) {
        self.last_heard = self.last_heard.max(at);
    }

    /// Takes note of a look. It is a sign of progress if something moved since the look before; a look from
    /// before the last sign of progress says nothing of the time after it.
    pub fn feel(&mut self, sample: Sample, at: Timestamp) {
        let before = self.sampled.replace((at, sample));
        self.sampled_before = before.map(|(then, _)| then);
        let before = before.filter(|(then, _)| *then >= self.last_beat);
        if before.is_some_and(|(then, before)| moved(before, sample, millis_between(then, at))) {
            self.beat(at);
        }
    }

    /// When to look before a step that is due since `at`; nothing if that was done.
    fn next_look(&self, rules: &Rules, at: Timestamp) -> Option<Timestamp> {
        let moment = rules.stuck_after.map_or(MOMENT, |span| MOMENT.min(span.0 / 2));
        match self.sampled.map(|(then, _)| then).filter(|then| *then >= at) {
            None => Some(at),
            Some(_) if self.sampled_before.is_some_and(|then| then >= at) => None,
            Some(then) => Some(add_millis(then, moment)),
        }
    }
}

fn moved(before: Sample, now: Sample, elapsed: u64) -> bool {
    let used = match (before.tools, now.tools) {
        (Some(before), Some(now)) => now.0.saturating_sub(before.0),
        (None, _) | (_, None) => 0,
    };
    let busy = used > 0 && used.saturating_mul(100) >= elapsed.saturating_mul(BUSY_PERCENT);
    let changed = before.files.is_some() && now.files.is_some() && before.files != now.files;
    busy || changed
}

/// What is next for the agent at work, and when.
pub fn decide(state: &Loop, pulse: &Pulse, now: Timestamp) -> Plan {
    let Some(open) = state.open.here().filter(|open| open.stage == Stage::Agent) else {
        return Plan::default();
    };
    let vitals = &open.vitals;
    if vitals.health == Health::Terminated {
        return Plan::default();
    }
    // A person who has decided is heeded whatever the agent does meanwhile.
    if vitals.told.is_none() && vitals.health != Health::Healthy && pulse.last_beat > vitals.last_beat {
        let detail = match vitals.nudges {
            0 => "makes progress again".to_owned(),
            1 => "makes progress after 1 nudge".to_owned(),
            nudges => format!("makes progress after {nudges} nudges"),
        };
        return Plan { actions: vec![changed(open, Health::Healthy, pulse, detail)], ..Plan::default() };
    }
    let Some((at, step)) = next(state, open, pulse) else { return Plan::default() };
    if at > now {
        return Plan { wake_at: Some(at), ..Plan::default() };
    }
    // Nor does it need another look.
    let look = pulse.next_look(&state.policy.health, at).filter(|_| vitals.told.is_none());
    match look {
        Some(look) if look > now => Plan { wake_at: Some(look), ..Plan::default() },
        Some(_) => Plan { actions: vec![Action::FeelPulse { iteration: open.iteration }], ..Plan::default() },
        None => Plan { actions: take(state, open, pulse, step, now), ..Plan::default() },
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Degrade,
    Nudge,
    Escalate,
    Terminate,
    /// At once, because nothing was heard of it for too long.
    EndSilent,
    HandOff,
}

fn next(state: &Loop, open: &OpenIteration, pulse: &Pulse) -> Option<(Timestamp, Step)> {
    let (rules, vitals) = (&state.policy.health, &open.vitals);
    let quiet_since = pulse.last_beat.max(vitals.last_beat);
    let after_quiet = |span: u64| add_millis(quiet_since, span);
    let after_step = |span: Millis| add_millis(vitals.stepped_at, span.0);
    let graduated = match (vitals.health, vitals.told) {
        (_, Some(OnEscalation::Terminate)) => Some((vitals.stepped_at, Step::Terminate)),
        (_, Some(OnEscalation::Handoff)) => Some((vitals.stepped_at, Step::HandOff)),
        (Health::Healthy, _) => rules.stuck_after.map(|span| (after_quiet(span.0 / 2), Step::Degrade)),
        (Health::Degraded, _) => rules.stuck_after.map(|span| (after_quiet(span.0), first(rules))),
        (Health::Stuck, _) if vitals.nudges < rules.nudges => {
            Some((after_step(rules.nudge_wait), Step::Nudge))
        }
        (Health::Stuck, _) => Some((after_step(rules.nudge_wait), Step::Escalate)),
        (Health::Failing, _) => match rules.on_escalation {
            OnEscalation::Terminate => Some((after_step(rules.escalate_wait), Step::Terminate)),
            OnEscalation::Handoff => Some((after_step(rules.escalate_wait), Step::HandOff)),
            OnEscalation::Wait => None,
        },
        (Health::Terminated, _) => None,
    };
    let silence = state.policy.agents.silence.filter(|_| pulse.live);
    let silent_since = pulse.last_heard.max(vitals.last_beat);
    let abrupt = silence.map(|span| (add_millis(silent_since, span.0), Step::EndSilent));
    graduated.into_iter().chain(abrupt).min_by_key(|(at, _)| *at)
}

fn first(rules: &Rules) -> Step {
    if rules.nudges > 0 && !planted(Mutant::SkipsNudges) { Step::Nudge } else { Step::Escalate }
}

fn take(state: &Loop, open: &OpenIteration, pulse: &Pulse, step: Step, now: Timestamp) -> Vec<Action> {
    let (iteration, rules) = (open.iteration, &state.policy.health);
    let quiet = minutes(millis_between(pulse.last_beat, now));
    match step {
        Step::Degrade => {
            vec![changed(open, Health::Degraded, pulse, format!("no progress for {quiet}"))]
        }
        Step::Nudge => {
            let count = format!("nudge {} of {}", open.vitals.nudges + 1, rules.nudges);
            let detail = format!("no progress for {quiet}: {count}");
            vec![
                changed(open, Health::Stuck, pulse, detail),
                Action::Nudge { iteration, text: NUDGE.to_owned() },
            ]
        }
        Step::Escalate => {
            let question = question(&open.task, &quiet, open.vitals.nudges, rules);
            let raised = Event::QuestionRaised {
                id: QuestionId(state.next_question + 1),
                task: Some(open.task.clone()),
                question,
            };
            let detail = format!("no progress for {quiet}: a person is asked");
            vec![changed(open, Health::Failing, pulse, detail), Action::Record(Box::new(raised))]
        }
        Step::Terminate => {
            let detail = match open.vitals.told {
                Some(_) => "ended by a person's word".to_owned(),
                None => format!("ended after {quiet} without progress"),
            };
            vec![
                changed(open, Health::Terminated, pulse, detail),
                Action::StopAgent { iteration, why: StopWhy::Unresponsive },
            ]
        }
        Step::EndSilent => {
            let silent = minutes(millis_between(pulse.last_heard, now));
            let detail = format!("ended after {silent} of silence");
            vec![
                changed(open, Health::Terminated, pulse, detail),
                Action::StopAgent { iteration, why: StopWhy::Unresponsive },
            ]
        }
        Step::HandOff => {
            let detail = format!("handed off after {quiet} without progress");
            let by = if open.vitals.is_told() { "a person" } else { NUDGER };
            let trigger = Trigger::Requested { by: by.to_owned() };
            let handoff = Event::HandoffStarted { iteration, attempt: open.attempt, trigger, asked: false };
            vec![
                changed(open, Health::Terminated, pulse, detail),
                Action::Record(Box::new(handoff)),
                Action::StopAgent { iteration, why: StopWhy::Handoff },
            ]
        }
    }
}

fn changed(open: &OpenIteration, health: Health, pulse: &Pulse, detail: String) -> Action {
    let last_beat = Some(pulse.last_beat);
    let (iteration, attempt) = (open.iteration, open.attempt);
    Action::Record(Box::new(Event::HealthChanged { iteration, attempt, health, last_beat, detail }))
}

/// What a person is asked about an agent that answers no nudge.
fn question(task: &TaskId, quiet: &str, nudges: u32, rules: &Rules) -> Question {
    let wait = minutes(rules.escalate_wait.0);
    let otherwise = match rules.on_escalation {
        OnEscalation::Terminate => format!("Without an answer it is ended after {wait}; its work is kept."),
        OnEscalation::Handoff => format!("Without an answer the next attempt takes over after {wait}."),
        OnEscalation::Wait => "Without an answer it is waited for.".to_owned(),
    };
    let nudged = match nudges {
        0 => String::new(),
        1 => ", and it did not answer a nudge".to_owned(),
        nudges => format!(", and it answered none of {nudges} nudges"),
    };
    Question {
        kind: QuestionKind::Unresponsive,
        summary: format!("the agent at {task} makes no progress for {quiet}{nudged}"),
        context: otherwise,
        options: vec![
            "Allow more time".to_owned(),
            "Force a handoff: end it, and go on from its work".to_owned(),
            "Terminate it".to_owned(),
        ],
        question: "What should become of it?".to_owned(),
    }
}

/// As people say it, to the second where it is short.
fn minutes(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis}ms"),
        1000..120_000 => format!("{}s", millis / 1000),
        120_000..7_200_000 => format!("{}m", millis / 60_000),
        _ => format!("{}h{}m", millis / 3_600_000, millis / 60_000 % 60),
    }
}

/// Tells output that says something new from dots, spinners and lines that only come again.
#[derive(Clone, Debug, Default)]
pub struct Novelty {
    /// Hashes of the last different lines.
    recent: [u64; REMEMBERED],
    next: usize,
}

/// A spinner has about ten pictures; what comes again after more lines than this is taken for new.
const REMEMBERED: usize = 32;
/// How much of a line is looked at.
const LOOKED_AT: usize = 1024;

impl Novelty {
    /// Does this say anything that was not said just before?
    pub fn is_new(&mut self, bytes: &[u8]) -> bool {
        // Any order of looking will do, and usually the first line is new already.
        bytes.split(|byte| matches!(byte, b'\n' | b'\r')).any(|line| self.is_new_line(line))
    }

    fn is_new_line(&mut self, line: &[u8]) -> bool {
        let Some(hash) = essence(&line[..line.len().min(LOOKED_AT)]) else { return false };
        if self.recent.contains(&hash) {
            return false;
        }
        self.recent[self.next] = hash;
        self.next = (self.next + 1) % REMEMBERED;
        true
    }
}

/// A hash of the letters and digits of a line, without escape sequences and the time that has passed
/// ("12s"); nothing for a line without any.
fn essence(line: &[u8]) -> Option<u64> {
    // FNV-1a: short, and nobody gains anything by a collision.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut meant = false;
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        if byte == 0x1b {
            rest = after_escape(after);
            continue;
        }
        if byte.is_ascii_digit()
            && let Some(after) = after_elapsed(rest)
        {
            rest = after;
            continue;
        }
        if byte.is_ascii_alphanumeric() || is_letter(rest) {
            meant = true;
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        rest = after;
    }
    meant.then_some(hash)
}

/// The first byte of a letter beyond ASCII. Spinners, boxes and bars lie in U+2000..U+2BFF.
fn is_letter(bytes: &[u8]) -> bool {
    match bytes {
        [0xe2, 0x80..=0xaf, ..] => false,
        [first, ..] => *first >= 0xc3,
        [] => false,
    }
}

/// Behind `[…m` and the like.
fn after_escape(bytes: &[u8]) -> &[u8] {
    let Some(sequence) = bytes.strip_prefix(b"[") else { return bytes.get(1..).unwrap_or_default() };
    let end = sequence.iter().position(|byte| (0x40..=0x7e).contains(byte));
    end.map_or(&[][..], |end| &sequence[end + 1..])
}

/// Behind a number of seconds, minutes or hours.
fn after_elapsed(bytes: &[u8]) -> Option<&[u8]> {
    let digits = bytes.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
    let rest = &bytes[digits..];
    let unit = rest.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(rest.len());
    matches!(&rest[..unit], b"s" | b"ms" | b"m" | b"h" | b"sec" | b"min").then(|| &rest[unit..])
}
