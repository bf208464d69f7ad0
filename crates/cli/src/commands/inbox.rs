//! `wiggum inbox`: the questions that wait for a person, over all loops.

use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use wiggum_core::event::{Answer, Request};
use wiggum_engine::status::QuestionStatus;
use wiggum_store::LoopRecord;

use crate::args::InboxArgs;
use crate::commands::loops::Loops;
use crate::commands::status::{how_to_answer, question_lines};
use crate::commands::{no_loops, print_json};
use crate::failure::Failure;
use crate::narrate::answer_words;
use crate::term::{self, Style, harmless};

#[derive(Serialize)]
struct Letter {
    loop_id: String,
    loop_name: String,
    #[serde(flatten)]
    question: QuestionStatus,
    /// The command that answers it.
    answer_with: String,
    /// An answer that waits for the loop's next run.
    answered: Option<Answer>,
}

pub(crate) fn inbox(args: &InboxArgs) -> Result<ExitCode, Failure> {
    let json = args.of.output.json;
    let Some(loops) = Loops::open()? else { return no_loops(json) };
    let records = match args.of.which.as_deref() {
        Some(which) => vec![loops.select(Some(which))?],
        None => loops.all()?,
    };
    let mut letters = Vec::new();
    for record in &records {
        letters.extend(of_loop(&loops, record)?);
    }
    if json {
        return print_json(&letters);
    }
    if letters.is_empty() {
        return Ok(term::print("no questions are open\n"));
    }
    let now = Timestamp::now();
    let several = records.len() > 1;
    let texts: Vec<String> = letters.iter().map(|letter| text(letter, several, now)).collect();
    Ok(term::print(&texts.join("\n")))
}

/// The answer that a question has got and nobody has taken up yet.
pub(crate) fn waiting_answer(
    loops: &Loops,
    record: &LoopRecord,
    question: &str,
) -> Result<Option<Answer>, Failure> {
    let pending = loops.store.pending(record.id)?;
    Ok(pending.into_iter().find_map(|pending| match pending.request {
        Request::Answer { question: id, answer } if id.to_string() == question => Some(answer),
        Request::Answer { .. }
        | Request::Pause
        | Request::Resume
        | Request::Stop
        | Request::Skip { .. }
        | Request::Retry { .. }
        | Request::SetStatus { .. }
        | Request::Checkpoint
        | Request::Handoff
        | Request::Nudge { .. }
        | Request::Report { .. } => None,
    }))
}

fn of_loop(loops: &Loops, record: &LoopRecord) -> Result<Vec<Letter>, Failure> {
    let mut letters = Vec::new();
    for question in loops.status(record)?.questions {
        letters.push(Letter {
            loop_id: record.id.to_string(),
            loop_name: record.identity.name.clone(),
            answer_with: how_to_answer(&question),
            answered: waiting_answer(loops, record, &question.id)?,
            question,
        });
    }
    Ok(letters)
}

fn text(letter: &Letter, several: bool, now: Timestamp) -> String {
    let style = Style::for_stdout();
    let question = &letter.question;
    let [head, how] = question_lines(question, now, style);
    let mut lines = Vec::new();
    if several {
        lines.push(style.dim(&format!("loop {}", harmless(&letter.loop_name))));
    }
    lines.push(head);
    lines.extend(harmless(&question.context).lines().map(|line| style.dim(&format!("      {line}"))));
    for (number, option) in question.options.iter().enumerate() {
        lines.push(format!("      {}. {}", number + 1, harmless(option)));
    }
    if !question.question.is_empty() {
        lines.push(format!("      {}", harmless(&question.question)));
    }
    match &letter.answered {
        Some(answer) => {
            lines.push(format!("      answered: {}; `wiggum run` takes it up", answer_words(answer)));
        }
        None => lines.push(how),
    }
    lines.join("\n") + "\n"
}
