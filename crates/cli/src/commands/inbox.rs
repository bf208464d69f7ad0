//! `wiggum inbox`: the questions that wait for a person, over all loops.

use std::process::ExitCode;

use jiff::Timestamp;
use wiggum_engine::desk::inbox::Letter;

use crate::args::InboxArgs;
use crate::commands::status::question_lines;
use crate::commands::{loops, no_loops, print_json};
use crate::failure::Failure;
use crate::narrate::answer_words;
use crate::term::{self, Style, harmless};

pub(crate) fn inbox(args: &InboxArgs) -> Result<ExitCode, Failure> {
    let json = args.of.output.json;
    let Some(loops) = loops::open()? else { return no_loops(json) };
    let letters = loops.inbox(args.of.which.as_deref())?;
    if json {
        return print_json(&letters);
    }
    if letters.is_empty() {
        return Ok(term::print("no questions are open\n"));
    }
    let now = Timestamp::now();
    let several = args.of.which.is_none() && loops.all()?.len() > 1;
    let texts: Vec<String> = letters.iter().map(|letter| text(letter, several, now)).collect();
    Ok(term::print(&texts.join("\n")))
}

fn text(letter: &Letter, several: bool, now: Timestamp) -> String {
    let style = Style::for_stdout();
    let question = &letter.question;
    let [head, how] = question_lines(question, &letter.answer_with, now, style);
    let mut lines = Vec::new();
    if several {
        let of = format!("loop {} over {}", letter.loop_name, letter.backlog);
        lines.push(style.dim(&harmless(&of)));
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
