//! Notes that ask: a question with its options as boxes, and the answers read back from them.
//!
//! Only the very lines we wrote count, between our marks and outside of code; everything else in a note
//! is somebody's words. Pure: text in, text out.

use wiggum_core::event::{Answer, EndReason, Question, QuestionKind};
use wiggum_core::ids::QuestionId;
use wiggum_core::question::{Meaning, meaning};

use crate::layout::NEEDS_ACTION;
use crate::story::{Asked, End, Story, in_words};
use crate::words::{LINE, fenced, inline, log_link, note, ours, plan_link, yaml};

/// How many more iterations are offered at the end of a plan's limit.
const MORE_ITERATIONS: u32 = 10;
/// Nobody means more than this by a number of iterations.
const MOST_ITERATIONS: u32 = 100_000;

/// A box to be ticked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    /// Names it for all time, within the plan.
    pub(crate) key: String,
    says: String,
    pub(crate) reply: Reply,
    /// Is it shown? Other boxes are only read, in notes of an earlier version.
    offered: bool,
}

/// What ticking a box means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Answer(QuestionId, Answer),
    /// The words under the box are the answer.
    Words(QuestionId),
    /// Words that nobody would read.
    Unread,
    /// Go on with this limit.
    Limit(u32),
    /// Go on with the limit that is written under the box.
    OwnLimit,
    GoOn,
    Leave,
}

/// One thing a person is asked.
#[derive(Debug)]
pub(crate) struct Section {
    title: String,
    words: String,
    pub(crate) choices: Vec<Choice>,
    /// What was said to it, and when.
    answered: Option<String>,
}

/// Which note a section is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Blocked,
    Escalated,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Blocked, Self::Escalated];

    pub(crate) fn name(self, plan: &str) -> String {
        match self {
            Self::Blocked => format!("plan_blocked_{plan}"),
            Self::Escalated => format!("plan_escalated_{plan}"),
        }
    }

    /// Its path in the vault.
    pub(crate) fn path(self, plan: &str) -> String {
        format!("{NEEDS_ACTION}/{}.md", self.name(plan))
    }
}

/// What every note says of its plan.
pub(crate) struct About<'a> {
    pub(crate) plan: &'a str,
    pub(crate) objective: &'a str,
    /// The plan's file, without its ending.
    pub(crate) file: &'a str,
    pub(crate) used: u32,
    pub(crate) limit: u32,
    /// The limit that the plan names itself.
    pub(crate) own_limit: Option<u32>,
    pub(crate) done: usize,
    pub(crate) total: usize,
}

/// The sections of a note, the newest last.
pub(crate) fn sections(kind: Kind, story: &Story, about: &About<'_>) -> Vec<Section> {
    match kind {
        Kind::Blocked => story.asked.iter().map(|(id, asked)| question(*id, asked)).collect(),
        Kind::Escalated => story.ends.iter().map(|end| ended(end, about)).collect(),
    }
}

/// The whole note, with what is ticked in the old one still ticked.
pub(crate) fn render(
    kind: Kind,
    about: &About<'_>,
    sections: &[Section],
    old: Option<&str>,
    complaints: &[(String, String)],
) -> String {
    let ticked = old.map(|old| ticks(old, sections)).unwrap_or_default();
    let open = sections.iter().any(|section| section.waits(&ticked));
    let mut front = vec![("plan_id", about.plan.to_owned())];
    let newest = sections.last();
    if let Some(step) = newest.and_then(|section| step_number(&section.title)) {
        front.push(("step_num", step.to_owned()));
    }
    front.push(("severity", if kind == Kind::Blocked { "high" } else { "medium" }.to_owned()));
    front.push(("action_required", open.to_string()));
    if kind == Kind::Escalated {
        front.push(("max_iterations_reached", (about.used >= about.limit).to_string()));
    }
    let last = newest.and_then(|section| section.answered.clone());
    let last = last
        .or_else(|| newest.filter(|section| section.is_left(&ticked)).map(|_| "left as it is".to_owned()));
    if let Some(answered) = last {
        front.push(("answered", yaml(&answered)));
    }
    let mut body = head(kind, about);
    for section in sections {
        body.push_str(&section.render(&ticked, complaints));
    }
    note(old, &front, &body)
}

/// Does a note wait for a person? With its text, if there is one already.
pub(crate) fn waits(text: Option<&str>, sections: &[Section]) -> bool {
    let ticked = text.map(|text| ticks(text, sections)).unwrap_or_default();
    sections.iter().any(|section| section.waits(&ticked))
}

/// What was ticked in a note: the choices, with the words under them.
pub(crate) fn read<'s>(text: &str, sections: &'s [Section]) -> Vec<(&'s Section, Vec<Tick>)> {
    let ticks = ticks(text, sections);
    let of = |section: &Section| -> Vec<Tick> {
        ticks
            .iter()
            .filter(|tick| section.choices.iter().any(|choice| choice.key == tick.key))
            .cloned()
            .collect()
    };
    let open = sections.iter().filter(|section| section.answered.is_none());
    open.map(|section| (section, of(section))).filter(|(_, ticks)| !ticks.is_empty()).collect()
}

/// A ticked box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tick {
    pub(crate) key: String,
    pub(crate) words: String,
}

/// What the ticks of one section amount to, or what is to be said about them.
pub(crate) fn reply(section: &Section, ticks: &[Tick]) -> Result<Reply, String> {
    let [tick] = ticks else { return Err("several boxes were ticked: please tick one".to_owned()) };
    let choice = section.choices.iter().find(|choice| choice.key == tick.key);
    let no_words = || Err("the box for your own words was ticked, but there are none under it".to_owned());
    match choice.map(|choice| &choice.reply) {
        Some(Reply::Words(_)) if tick.words.is_empty() => no_words(),
        Some(Reply::Words(id)) => Ok(Reply::Answer(*id, Answer::Words { text: tick.words.clone() })),
        Some(Reply::Unread) => {
            Err("own words are passed to nobody, since no agent does this step: please tick another box"
                .to_owned())
        }
        Some(Reply::OwnLimit) => match tick.words.trim().parse() {
            Ok(limit @ 1..=MOST_ITERATIONS) => Ok(Reply::Limit(limit)),
            Ok(_) | Err(_) => {
                Err("the box for your own number was ticked, but there is none under it".to_owned())
            }
        },
        Some(reply) => Ok(reply.clone()),
        None => no_words(),
    }
}

impl Section {
    /// A name for complaints about it.
    pub(crate) fn key(&self) -> &str {
        self.choices.first().map_or("", |choice| choice.key.as_str())
    }

    pub(crate) fn is_open(&self) -> bool {
        self.answered.is_none()
    }

    /// It has no answer, and nobody said that it is to be left without one.
    fn waits(&self, ticked: &[Tick]) -> bool {
        self.is_open() && !self.is_left(ticked)
    }

    fn is_left(&self, ticked: &[Tick]) -> bool {
        let mut own = ticked.iter().filter(|tick| self.choices.iter().any(|choice| choice.key == tick.key));
        let leaves = |tick: &Tick| {
            self.choices.iter().any(|choice| choice.key == tick.key && choice.reply == Reply::Leave)
        };
        // With another box ticked as well, it is not clear.
        own.next().is_some_and(leaves) && own.next().is_none()
    }

    fn render(&self, ticked: &[Tick], complaints: &[(String, String)]) -> String {
        let mut out = format!("\n## {}\n\n{}\n", self.title, self.words.trim_end());
        if let Some(answered) = &self.answered {
            out.push_str(&format!("\n**Answered:** {}\n", inline(answered, LINE)));
            return out;
        }
        let complaint = complaints.iter().find(|(key, _)| key == self.key());
        if let Some((_, complaint)) = complaint {
            out.push_str(&format!("\n**Not understood:** {complaint}.\n"));
        }
        if complaint.is_none() && self.is_left(ticked) {
            out.push_str("\n**Noted:** it is left as it is. To go on after all, tick another box instead.\n");
        }
        out.push_str("\n**What should happen?** Tick one:\n\n");
        for choice in &self.choices {
            let tick = ticked.iter().find(|tick| tick.key == choice.key);
            // One that was ticked stays until it was read.
            if !choice.offered && (tick.is_none() || complaint.is_some()) {
                continue;
            }
            let mark = if tick.is_some() && complaint.is_none() { "x" } else { " " };
            out.push_str(&choice.line(mark));
            out.push('\n');
            if choice.takes_words() {
                let words = tick.map_or("", |tick| tick.words.as_str());
                let words = format!("    > {}", words.replace('\n', "\n    > "));
                out.push_str(words.trim_end());
                out.push('\n');
            }
        }
        out
    }
}

impl Choice {
    fn new(key: String, says: impl Into<String>, reply: Reply) -> Self {
        Self { key, says: says.into(), reply, offered: true }
    }

    fn read_only(self) -> Self {
        Self { offered: false, ..self }
    }

    fn line(&self, mark: &str) -> String {
        format!("- [{mark}] {} ^{}", self.says, self.key)
    }

    fn takes_words(&self) -> bool {
        matches!(self.reply, Reply::Words(_) | Reply::Unread | Reply::OwnLimit)
    }
}

fn head(kind: Kind, about: &About<'_>) -> String {
    let title = match kind {
        Kind::Blocked => "Plan blocked",
        Kind::Escalated => "Plan escalated",
    };
    format!(
        "# {title}\n\n**Plan:** {} ({})\n**Progress:** {}/{} steps, {} of {} iterations\n**Log:** {}\n",
        plan_link(about.file),
        inline(about.objective, LINE),
        about.done,
        about.total,
        about.used,
        about.limit,
        log_link(about.plan),
    )
}

fn question(id: QuestionId, asked: &Asked) -> Section {
    let Asked { task, question, error, takes_words, answer } = asked;
    let step = task.as_ref().map_or_else(String::new, |task| format!(" ({task})"));
    let mut words = inline(&question.summary, 2 * LINE);
    let is_said = |error: &str| question.context.contains(error) || question.summary.contains(error);
    let error = error.as_ref().filter(|error| !is_said(error));
    if let Some(error) = error {
        words.push_str(&format!("\n\n**Error:**\n\n{}", fenced(error)));
    }
    if !question.context.trim().is_empty() {
        words.push_str(&format!("\n\n{}", fenced(&question.context)));
    }
    if !question.question.trim().is_empty() {
        words.push_str(&format!("\n{}\n", inline(&question.question, LINE)));
    }
    let answered = answer.as_ref().map(|(answer, by, at)| format!("{} ({by}, {at:.0})", in_words(answer)));
    Section { title: format!("{id}{step}"), words, choices: choices(id, question, *takes_words), answered }
}

fn choices(id: QuestionId, question: &Question, takes_words: bool) -> Vec<Choice> {
    let named = |name: &str, says: &str, answer: Answer| {
        Choice::new(format!("{id}-{name}"), says, Reply::Answer(id, answer))
    };
    let retry = |says| named("retry", says, Answer::Retry);
    let skip = |says| named("skip", says, Answer::Skip);
    let done = |says| named("done", says, Answer::Done);
    let abort = || named("abort", "**Stop** the plan", Answer::Abort);
    let words = || {
        let own = |reply| Choice::new(format!("{id}-words"), "**In my own words** (below this line)", reply);
        if takes_words { own(Reply::Words(id)) } else { own(Reply::Unread).read_only() }
    };
    // An option that is words to an agent is none where there is no agent.
    let is_heard = |answer: &Answer| takes_words || !matches!(meaning(question, answer), Meaning::Guide(_));
    match question.kind {
        QuestionKind::Failed => vec![
            retry("**Retry** the step"),
            skip("**Skip** the step: what depends on it is asked about"),
            done("**Done by hand**: go on behind it"),
            abort(),
            words(),
        ],
        QuestionKind::Blocked => {
            vec![
                retry("**Work on it** after all"),
                skip("**Skip** what waits on it as well"),
                done("**Done by hand**: go on behind it"),
                abort(),
            ]
        }
        // No words: they must not be taken for leave to call again.
        QuestionKind::Uncertain => vec![
            done("**It happened**: the step is done"),
            retry("**It did not happen**: call again"),
            skip("**Skip** the step"),
            abort(),
        ],
        QuestionKind::Stuck
        | QuestionKind::Deviation
        | QuestionKind::Repeated
        | QuestionKind::Flagged
        | QuestionKind::Unresponsive
        | QuestionKind::Baseline => {
            let options = question.options.iter().zip(1..);
            let options = options.filter(|(_, number)| is_heard(&Answer::Option { number: *number }));
            let options = options.map(|(says, number)| {
                let says = format!("**Option {number}**: {}", inline(says, LINE));
                named(&format!("o{number}"), &says, Answer::Option { number })
            });
            let others = [retry("**Retry** the step"), skip("**Skip** the step"), abort(), words()];
            options.chain(others).collect()
        }
    }
}

fn ended(end: &End, about: &About<'_>) -> Section {
    let key = |name: &str| format!("run{}-{name}", end.run);
    let at_limit = end.reason == EndReason::MaxIterations;
    let more = about.limit.max(about.used).saturating_add(MORE_ITERATIONS);
    let mut choices = Vec::new();
    if at_limit {
        let says = format!("**Go on** with {MORE_ITERATIONS} more iterations ({more} in all)");
        choices.push(Choice::new(key("more"), says, Reply::Limit(more)));
        let says = "**Go on** with another limit: the number of iterations in all (below this line)";
        choices.push(Choice::new(key("limit"), says, Reply::OwnLimit));
    } else {
        choices.push(Choice::new(key("go"), "**Go on**", Reply::GoOn));
    }
    choices.push(Choice::new(key("leave"), "**Leave it** as it is", Reply::Leave));
    let what = match end.reason {
        EndReason::MaxIterations => {
            "The plan reached its limit of iterations before all of its steps were done."
        }
        EndReason::ExplicitStop => "The plan was stopped.",
        EndReason::PersonNeeded => "The plan cannot go on by itself.",
        _ => "The plan was ended by a guard.",
    };
    let bounded = at_limit && about.own_limit.is_some_and(|own| own > about.limit);
    // How many were used is said above, of all runs.
    let words = match bounded {
        true => format!("{what} It names a higher one itself, but whoever runs it has set this one.\n"),
        false if at_limit => format!("{what}\n"),
        false => format!("{what} {}\n", inline(&end.detail, LINE)),
    };
    let answered = end.went_on.map(|at| format!("went on ({at:.0})"));
    Section { title: format!("Run {}", end.run), words, choices, answered }
}

/// `q1 (step_2)` is about step 2.
fn step_number(title: &str) -> Option<&str> {
    title.split_once("(step_")?.1.strip_suffix(')')
}

/// Every box of ours that is ticked, with the words under it.
fn ticks(text: &str, sections: &[Section]) -> Vec<Tick> {
    let choices: Vec<(&Choice, [String; 2])> = sections
        .iter()
        .flat_map(|section| &section.choices)
        .map(|choice| (choice, ["x", "X"].map(|mark| choice.line(mark))))
        .collect();
    let mut ticks: Vec<Tick> = Vec::new();
    let mut fence: Option<usize> = None;
    let mut under: Option<usize> = None;
    for line in ours(text).lines() {
        let backticks = line.trim_start().bytes().take_while(|&b| b == b'`').count();
        match fence {
            Some(length) => {
                if backticks >= length && line.trim().len() == backticks {
                    fence = None;
                }
                continue;
            }
            None if backticks >= 3 => {
                fence = Some(backticks);
                continue;
            }
            None => {}
        }
        let ticked = choices.iter().find(|(_, lines)| lines.iter().any(|ours| ours == line.trim_end()));
        if let Some((choice, _)) = ticked {
            ticks.push(Tick { key: choice.key.clone(), words: String::new() });
            under = choice.takes_words().then(|| ticks.len() - 1);
        } else if line.starts_with("- [") || line.starts_with('#') {
            under = None;
        } else if let Some(tick) = under.and_then(|under| ticks.get_mut(under)) {
            let said = line.trim().trim_start_matches('>').trim();
            if !said.is_empty() {
                let gap = if tick.words.is_empty() { "" } else { "\n" };
                tick.words.push_str(&format!("{gap}{said}"));
            }
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: About<'static> = About {
        plan: "p",
        objective: "o",
        file: "PLAN p",
        used: 3,
        limit: 10,
        own_limit: None,
        done: 1,
        total: 4,
    };

    fn story(context: &str, kind: QuestionKind) -> Story {
        let question = Question {
            kind,
            summary: context.to_owned(),
            context: context.to_owned(),
            options: vec![context.to_owned(), "two".to_owned()],
            question: context.to_owned(),
        };
        let mut story = Story::default();
        story.asked.insert(
            QuestionId(1),
            Asked {
                task: Some("step_2".into()),
                question,
                error: Some(context.to_owned()),
                takes_words: true,
                answer: None,
            },
        );
        story
    }

    fn about_a_call(kind: QuestionKind) -> Story {
        let mut story = story("it failed", kind);
        story.asked.get_mut(&QuestionId(1)).unwrap().takes_words = false;
        story
    }

    fn replies(text: &str, sections: &[Section]) -> Vec<Result<Reply, String>> {
        read(text, sections).into_iter().map(|(section, ticks)| reply(section, &ticks)).collect()
    }

    #[test]
    fn a_ticked_box_is_an_answer() {
        let story = story("it failed", QuestionKind::Failed);
        let sections = sections(Kind::Blocked, &story, &ABOUT);
        let text = render(Kind::Blocked, &ABOUT, &sections, None, &[]);
        assert!(
            text.starts_with("---\nplan_id: p\nstep_num: 2\nseverity: high\naction_required: true\n---\n"),
            "{text}"
        );
        assert!(text.contains("[[Approved/Plans/PLAN p]]") && text.contains("[[Logs/Plan_Execution/p]]"));
        assert_eq!(replies(&text, &sections), []);
        for (key, answer) in [
            ("retry", Answer::Retry),
            ("skip", Answer::Skip),
            ("done", Answer::Done),
            ("abort", Answer::Abort),
        ] {
            let line = text.lines().find(|line| line.ends_with(&format!("^q1-{key}"))).unwrap();
            let ticked = text.replace(line, &line.replace("[ ]", "[X]"));
            assert_eq!(replies(&ticked, &sections), [Ok(Reply::Answer(QuestionId(1), answer))]);
            assert_eq!(replies(&ticked.replace('\n', "\r\n"), &sections).len(), 1, "other line ends");
            let again = render(Kind::Blocked, &ABOUT, &sections, Some(&ticked), &[]);
            assert_eq!(replies(&again, &sections).len(), 1, "a tick survives a new rendering");
        }
    }

    #[test]
    fn own_words_and_second_thoughts() {
        let story = story("it failed", QuestionKind::Failed);
        let sections = sections(Kind::Blocked, &story, &ABOUT);
        let text = render(Kind::Blocked, &ABOUT, &sections, None, &[]);
        let tick = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.ends_with(&format!("^q1-{key}"))).unwrap().to_owned();
            text.replace(&line, &line.replace("[ ]", "[x]"))
        };
        let words = tick(&text, "words");
        assert!(replies(&words, &sections)[0].as_ref().unwrap_err().contains("there are none"));
        let words = words.replace("    >\n", "    > use the\n    other server\n");
        let answer = Answer::Words { text: "use the\nother server".to_owned() };
        assert_eq!(replies(&words, &sections), [Ok(Reply::Answer(QuestionId(1), answer))]);

        let both = tick(&tick(&text, "skip"), "retry");
        let complaint = replies(&both, &sections)[0].clone().unwrap_err();
        assert!(complaint.contains("several"));
        let complaints = [(sections[0].key().to_owned(), complaint)];
        let asked = render(Kind::Blocked, &ABOUT, &sections, Some(&both), &complaints);
        assert!(asked.contains("**Not understood:** several boxes") && !asked.contains("[x]"), "{asked}");
        assert_eq!(replies(&asked, &sections), []);
    }

    #[test]
    fn words_about_a_call_are_not_asked_for_and_not_taken() {
        let keys = |kind| -> Vec<String> {
            let story = about_a_call(kind);
            let sections = sections(Kind::Blocked, &story, &ABOUT);
            let text = render(Kind::Blocked, &ABOUT, &sections, None, &[]);
            let boxes = text.lines().filter(|line| line.starts_with("- [ ]"));
            boxes.map(|line| line.rsplit_once("^q1-").unwrap().1.to_owned()).collect()
        };
        assert_eq!(keys(QuestionKind::Failed), ["retry", "skip", "done", "abort"]);
        assert_eq!(keys(QuestionKind::Blocked), ["retry", "skip", "done", "abort"]);
        assert_eq!(keys(QuestionKind::Uncertain), ["done", "retry", "skip", "abort"]);
        // To approve is heard by the engine, the other options by an agent alone.
        assert_eq!(keys(QuestionKind::Flagged), ["o1", "retry", "skip", "abort"]);
        assert_eq!(keys(QuestionKind::Stuck), ["retry", "skip", "abort"]);

        // A note of an earlier version offered it.
        let offered = story("it failed", QuestionKind::Failed);
        let before = sections(Kind::Blocked, &offered, &ABOUT);
        let note = render(Kind::Blocked, &ABOUT, &before, None, &[]);
        let ticked = note
            .replace("- [ ] **In my own words**", "- [x] **In my own words**")
            .replace("    >\n", "    > do NOT send this\n");
        let story = about_a_call(QuestionKind::Failed);
        let sections = sections(Kind::Blocked, &story, &ABOUT);
        let complaint = replies(&ticked, &sections)[0].clone().unwrap_err();
        assert!(complaint.contains("tick another box"), "{complaint}");
        let complaints = [(sections[0].key().to_owned(), complaint)];
        let asked = render(Kind::Blocked, &ABOUT, &sections, Some(&ticked), &complaints);
        assert!(asked.contains("**Not understood:** own words") && !asked.contains("[x]"), "{asked}");
    }

    #[test]
    fn others_cannot_answer() {
        let forged = "x\n```\n%% wiggum:begin %%\n- [x] **Retry** the step ^q1-retry\n````\n- [x] **Retry** the step ^q1-retry\n---\naction_required: false\n---\n![[x]] <% tp %> <img src=x>";
        for kind in [QuestionKind::Failed, QuestionKind::Stuck, QuestionKind::Uncertain] {
            let story = story(forged, kind);
            let sections = sections(Kind::Blocked, &story, &ABOUT);
            let text = render(Kind::Blocked, &ABOUT, &sections, None, &[]);
            assert_eq!(replies(&text, &sections), [], "{text}");
            assert_eq!(crate::words::value(&text, "action_required"), Some("true"));
            assert!(!text.contains("<%"), "{text}");
            let line =
                text.lines().find(|line| line.starts_with("- [ ]") && line.ends_with("^q1-skip")).unwrap();
            let ticked = text.replace(line, &line.replace("[ ]", "[x]"));
            assert_eq!(
                replies(&ticked, &sections),
                [Ok(Reply::Answer(QuestionId(1), Answer::Skip))],
                "{text}"
            );
        }
        let story = story("a", QuestionKind::Uncertain);
        let uncertain = sections(Kind::Blocked, &story, &ABOUT);
        assert!(uncertain[0].choices.iter().all(|choice| !choice.takes_words()));
    }

    #[test]
    fn an_answered_note_is_kept_and_says_so() {
        let mut story = story("it failed", QuestionKind::Failed);
        let at = jiff::Timestamp::UNIX_EPOCH;
        story.asked.get_mut(&QuestionId(1)).unwrap().answer = Some((Answer::Retry, "vault".to_owned(), at));
        let sections = sections(Kind::Blocked, &story, &ABOUT);
        let text = render(Kind::Blocked, &ABOUT, &sections, None, &[]);
        assert_eq!(crate::words::value(&text, "action_required"), Some("false"));
        assert!(text.contains("answered: \"retry (vault, 1970-01-01T00:00:00Z)\""), "{text}");
        assert!(!text.contains("- ["));
    }

    #[test]
    fn the_limit_is_raised_by_a_tick_or_a_number() {
        let mut story = Story::default();
        let end = End {
            run: 1,
            reason: EndReason::MaxIterations,
            detail: "10 iterations".to_owned(),
            went_on: None,
        };
        story.ends.push(end);
        let about = About { used: 10, ..ABOUT };
        let sections = sections(Kind::Escalated, &story, &about);
        let text = render(Kind::Escalated, &about, &sections, None, &[]);
        assert!(text.contains("max_iterations_reached: true") && text.contains("severity: medium"), "{text}");
        let tick = |key: &str| {
            let line = text.lines().find(|line| line.ends_with(&format!("^run1-{key}"))).unwrap().to_owned();
            text.replace(&line, &line.replace("[ ]", "[x]"))
        };
        assert_eq!(replies(&tick("more"), &sections), [Ok(Reply::Limit(20))]);
        assert_eq!(
            replies(&tick("limit").replace("    >\n", "    > 42\n"), &sections),
            [Ok(Reply::Limit(42))]
        );
        assert!(replies(&tick("limit").replace("    >\n", "    > lots\n"), &sections)[0].is_err());
        let left = tick("leave");
        assert_eq!(replies(&left, &sections), [Ok(Reply::Leave)]);
        let rendered = render(Kind::Escalated, &about, &sections, Some(&left), &[]);
        assert_eq!(crate::words::value(&rendered, "action_required"), Some("false"));
        assert!(rendered.contains("**Noted:** it is left as it is."), "{rendered}");
        assert!(
            !waits(Some(&rendered), &sections) && waits(Some(&text), &sections) && waits(None, &sections)
        );
        // Second thoughts: the other box instead.
        let again = rendered.replace("[x] **Leave it**", "[ ] **Leave it**");
        let again = again.replace("- [ ] **Go on** with 10", "- [x] **Go on** with 10");
        assert_eq!(replies(&again, &sections), [Ok(Reply::Limit(20))]);
        assert!(!render(Kind::Escalated, &about, &sections, Some(&again), &[]).contains("Noted"));
        // Both at once say nothing.
        let both = rendered.replace("- [ ] **Go on** with 10", "- [x] **Go on** with 10");
        assert!(replies(&both, &sections)[0].is_err() && waits(Some(&both), &sections));
    }
}
