//! What a scripted agent does with one attempt, and how often it does what.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use wiggum_agents::api::Line;
use wiggum_core::budget::Ceiling;
use wiggum_core::event::{Exit, Trouble, Usage};

use crate::rng::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// Does the work and says so.
    Done,
    /// Says so.
    Lie,
    /// Leaves half of the work, with an excuse.
    Idle,
    /// Fails, the same way every time.
    Fail,
    /// Fails, another way every time.
    Odd,
    Ask,
    /// Its allowance is used up, until some hours later if it says so.
    Limit,
    Overload,
    /// Its output ends in the middle.
    Truncated,
    /// Does nothing any more, until it is ended.
    Hang,
    /// Does the work, in many times the time.
    Slow,
    /// Does the work, and writes statuses into the backlog that are not its to write.
    Meddle,
    /// Says something new every minute and does nothing, until it is ended.
    Chatter,
    /// Does the work, and waits hours for a build of which it says nothing.
    Build,
}

impl Act {
    pub const ALL: [Self; 14] = [
        Self::Done,
        Self::Lie,
        Self::Idle,
        Self::Fail,
        Self::Odd,
        Self::Ask,
        Self::Limit,
        Self::Overload,
        Self::Truncated,
        Self::Hang,
        Self::Slow,
        Self::Meddle,
        Self::Chatter,
        Self::Build,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Lie => "lie",
            Self::Idle => "idle",
            Self::Fail => "fail",
            Self::Odd => "odd",
            Self::Ask => "ask",
            Self::Limit => "limit",
            Self::Overload => "overload",
            Self::Truncated => "truncated",
            Self::Hang => "hang",
            Self::Slow => "slow",
            Self::Meddle => "meddle",
            Self::Chatter => "chatter",
            Self::Build => "build",
        }
    }

    fn does_the_work(self) -> bool {
        match self {
            Self::Done | Self::Slow | Self::Meddle | Self::Build => true,
            Self::Lie
            | Self::Idle
            | Self::Fail
            | Self::Odd
            | Self::Ask
            | Self::Limit
            | Self::Overload
            | Self::Truncated
            | Self::Hang
            | Self::Chatter => false,
        }
    }
}

/// How often agents do what, as weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix(Vec<(Act, u32)>);

impl Default for Mix {
    fn default() -> Self {
        Self(vec![
            (Act::Done, 50),
            (Act::Lie, 8),
            (Act::Idle, 6),
            (Act::Fail, 5),
            (Act::Odd, 5),
            (Act::Ask, 6),
            (Act::Limit, 4),
            (Act::Overload, 4),
            (Act::Truncated, 3),
            (Act::Hang, 2),
            (Act::Slow, 3),
            (Act::Meddle, 4),
        ])
    }
}

impl Mix {
    /// As in `done=80,lie=10,ask=10`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut mix = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
            let act = Act::ALL.into_iter().find(|act| act.name() == name);
            let Some(act) = act else {
                let known = Act::ALL.map(Act::name).join(", ");
                return Err(format!("nothing an agent does is called `{name}`; there is {known}"));
            };
            let weight = weight.parse().map_err(|_| format!("`{weight}` is no weight for {name}"))?;
            mix.push((act, weight));
        }
        let mix = Self(mix);
        if mix.total() == 0 { Err("agents have to do something".to_owned()) } else { Ok(mix) }
    }

    /// Without some of them; what nobody does any more becomes work that is done.
    #[must_use]
    pub(crate) fn without(mut self, out: &[Act]) -> Self {
        self.0.retain(|(act, _)| !out.contains(act));
        if self.total() == 0 { Self(vec![(Act::Done, 1)]) } else { self }
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|(_, weight)| u64::from(*weight)).sum()
    }

    pub(crate) fn pick(&self, rng: &mut Rng) -> Act {
        let mut left = rng.below(self.total());
        for (act, weight) in &self.0 {
            match left.checked_sub(u64::from(*weight)) {
                None => return *act,
                Some(rest) => left = rest,
            }
        }
        Act::Done
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> =
            self.0.iter().map(|(act, weight)| format!("{}={weight}", act.name())).collect();
        f.write_str(&parts.join(","))
    }
}

/// One start of an agent, from the first line to the last.
#[derive(Debug)]
pub(crate) struct Performance {
    pub(crate) act: Act,
    /// What it prints, and when after its start.
    pub(crate) lines: Vec<(Duration, Line)>,
    pub(crate) work: Option<Work>,
    /// When it does it.
    pub(crate) work_at: Duration,
    /// When it ends, unless it never does.
    pub(crate) end: Option<(Duration, Exit)>,
}

/// What an agent leaves in the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Whole,
    Half,
    /// All of it, and statuses in the backlog.
    WholeAndStatuses,
}

impl Performance {
    pub(crate) fn of(act: Act, wall: Timestamp, session: Option<String>, rng: &mut Rng) -> Self {
        let minute = Duration::from_secs(60);
        let took = match act {
            Act::Limit | Act::Overload => rng.duration(Duration::from_millis(300), minute),
            Act::Slow | Act::Build => rng.duration(40 * minute, 240 * minute),
            Act::Done
            | Act::Lie
            | Act::Idle
            | Act::Fail
            | Act::Odd
            | Act::Ask
            | Act::Truncated
            | Act::Hang
            | Act::Chatter
            | Act::Meddle => rng.duration(Duration::from_secs(2), 25 * minute),
        };
        let mut lines = vec![(Duration::ZERO, Line::Started { model: "scripted".to_owned(), session })];
        // Often enough that nobody takes it for dead.
        let signs = u32::try_from(took.as_secs() / 600).unwrap_or(u32::MAX) + 1;
        let total = usage(took, rng);
        let working = !matches!(act, Act::Chatter | Act::Build);
        for sign in (1..=signs).filter(|_| working) {
            let at = took * sign / (signs + 1);
            let usage = part(total, u64::from(sign), u64::from(signs) + 1);
            lines.push((at, Line::Usage { usage, context: None }));
            lines.push((at, Line::Tool { name: "edit".to_owned(), detail: format!("step {sign}") }));
            lines.push((at, Line::Result { text: String::new(), is_error: false }));
        }
        if act == Act::Chatter {
            let says = |minutes: u32| Line::Text { text: format!("working {minutes}\n") };
            lines.extend((1..=CHATTER).map(|minutes| (minutes * minute, says(minutes))));
        }
        if act == Act::Build {
            lines.push((minute, Line::Tool { name: "run".to_owned(), detail: "build".to_owned() }));
            lines.push((took, Line::Result { text: String::new(), is_error: false }));
        }
        lines.push((took, Line::Usage { usage: total, context: None }));
        let last = last_line(act, wall, rng);
        let success = matches!(last, Some(Line::Finished { .. }));
        let code = i32::from(!success && act != Act::Truncated);
        lines.extend(last.map(|line| (took, line)));
        let work = match act {
            Act::Meddle => Some(Work::WholeAndStatuses),
            act if act.does_the_work() => Some(Work::Whole),
            _ => rng.percent(50).then_some(Work::Half),
        };
        let endless = matches!(act, Act::Hang | Act::Chatter);
        let end = (!endless).then_some((took, Exit::Code { code }));
        Self { act, lines, work, work_at: took * 9 / 10, end }
    }

    /// Ends before the call that would go beyond what it may use, as the built-in agent does. One that
    /// meddles does not care.
    #[must_use]
    pub(crate) fn within(mut self, ceiling: Ceiling) -> Self {
        let is_beyond = |usage: &Usage| {
            ceiling.cost_usd.is_some_and(|limit| usage.cost_usd >= limit)
                || ceiling.tokens.is_some_and(|limit| usage.tokens() >= limit)
        };
        let beyond = |line: &Line| matches!(line, Line::Usage { usage, .. } if is_beyond(usage));
        let Some(crossing) = self.lines.iter().position(|(_, line)| beyond(line)) else { return self };
        let goes_on = matches!(self.lines.get(crossing + 1), Some((_, Line::Tool { .. })));
        if !goes_on || self.act == Act::Meddle {
            return self;
        }
        let at = self.lines[crossing].0;
        self.lines.truncate(crossing + 3);
        let message = "the next call would go beyond".to_owned();
        self.lines.push((at, Line::Failed { trouble: Trouble::Budget, message }));
        self.work = self.work.filter(|_| self.work_at < at);
        self.end = Some((at, Exit::Code { code: 1 }));
        self
    }

    /// The dearest answer of the model.
    pub(crate) fn dearest(&self) -> f64 {
        let cost =
            |line: &Line| if let Line::Usage { usage, .. } = line { Some(usage.cost_usd) } else { None };
        let costs: Vec<f64> = self.lines.iter().filter_map(|(_, line)| cost(line)).collect();
        let first = costs.first().copied().unwrap_or(0.0);
        costs.windows(2).map(|pair| pair[1] - pair[0]).fold(first, f64::max)
    }
}

/// So many parts of a usage, again in amounts that add up exactly.
fn part(total: Usage, parts: u64, of: u64) -> Usage {
    let some = |tokens: u64| tokens * parts / of;
    let cost = (total.cost_usd * 256.0 * parts as f64 / of as f64).floor() / 256.0;
    Usage {
        input_tokens: some(total.input_tokens),
        output_tokens: some(total.output_tokens),
        cost_usd: cost,
        ..Usage::default()
    }
}

/// For so many minutes an agent has something to say: longer than anybody waits for it.
const CHATTER: u32 = 600;

/// More for those who take longer. Amounts that add up exactly, in whatever order.
fn usage(took: Duration, rng: &mut Rng) -> Usage {
    let output_tokens = took.as_secs() * 8 + rng.below(500);
    let input_tokens = output_tokens * (10 + rng.below(20));
    let cost_usd = (input_tokens / 1000 + output_tokens / 100) as f64 / 256.0;
    Usage { input_tokens, output_tokens, cost_usd, ..Usage::default() }
}

fn last_line(act: Act, wall: Timestamp, rng: &mut Rng) -> Option<Line> {
    let finished = |message: &str| Some(Line::Finished { message: message.to_owned() });
    let failed =
        |trouble: Trouble, message: &str| Some(Line::Failed { trouble, message: message.to_owned() });
    match act {
        Act::Done | Act::Slow | Act::Lie | Act::Meddle | Act::Build => {
            finished("All of it is there.\n\n<promise>DONE</promise>")
        }
        Act::Idle => finished("There is more to it than I thought; half of it is there."),
        Act::Fail => failed(Trouble::Other, "the tool crashed"),
        Act::Odd => {
            failed(Trouble::Other, &format!("it {} and then {}", rng.pick(&VERBS)?, rng.pick(&VERBS)?))
        }
        Act::Ask => finished(
            "<escalate type=\"deviation\"><summary>Which way?</summary><options>1. left\n2. right</options>\
             <question>Left or right?</question></escalate>",
        ),
        Act::Limit => {
            let hours = i64::try_from(rng.below(6)).unwrap_or(0);
            let resets_at =
                rng.percent(70).then(|| wall.saturating_add(jiff::SignedDuration::from_hours(hours)));
            failed(Trouble::UsageLimit { resets_at: resets_at.and_then(Result::ok) }, "usage limit reached")
        }
        Act::Overload => failed(Trouble::Overloaded, "overloaded"),
        Act::Truncated | Act::Hang | Act::Chatter => None,
    }
}

const VERBS: [&str; 6] = ["stumbled", "burned", "vanished", "exploded", "melted", "froze"];
