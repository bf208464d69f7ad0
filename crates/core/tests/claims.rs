//! Claims as agents really write them: `corpus/claims.txt` holds messages and what each must mean.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use wiggum_core::event::ClaimSource;
use wiggum_core::ids::TaskId;
use wiggum_core::signal::{ClaimReader, DEFAULT_PROMISES};

const CORPUS: &str = include_str!("corpus/claims.txt");
/// Where a claim can be meant: each refusal with its honest twin.
const MEANT: &str = include_str!("corpus/meant.txt");

struct Case<'a> {
    name: &'a str,
    claims: bool,
    task: &'a str,
    mark: Option<&'a str>,
    message: String,
}

#[test]
fn every_message_of_the_corpus_is_read_as_meant() {
    check(CORPUS, 60);
}

#[test]
fn a_claim_counts_only_where_it_can_be_meant() {
    check(MEANT, 90);
}

/// One line each, below other words: what claims task `US-001`, and what does not.
#[test]
fn sentences_that_claim_and_sentences_that_do_not() {
    let claims = [
        "<promise>DONE</promise>",
        "<promise>DONE 7f3a</promise>",
        "All tests pass. <promise>DONE</promise>",
        "**<promise>DONE</promise>**",
        "✅ <promise>DONE</promise>",
        "Task US-001 complete.",
        "Task US-001 is complete.",
        "US-001 is done.",
        "US-001 done",
        "**US-001 complete**",
        "✅ US-001 complete",
        "Task US\u{2011}001 complete.",
        "Task US\u{2010}001 is done!",
        "Story US-001 is finished.",
        "- [x] US-001 complete",
    ];
    let none = [
        "<promise>DONE</promise> except for the docs",
        "<promise>DONE</promise> (except the docs)",
        "<promise>DONE</promise> [not yet pushed]",
        "❌ <promise>DONE</promise>",
        "☐ <promise>DONE</promise>",
        "⏳ <promise>DONE</promise>",
        "<promise>DONE</promise> 80%",
        "90 % <promise>DONE</promise>",
        "The promise is: <promise>DONE</promise>",
        "It ended with: <promise>DONE</promise>",
        "The last attempt ended with <promise>DONE</promise>",
        "I will write <promise>DONE</promise> later.",
        "Do not write <promise>DONE</promise> yet.",
        "<promise>DONE 1c9e</promise>",
        "<promise>NOT DONE</promise>",
        "`<promise>DONE</promise>`",
        "> <promise>DONE</promise>",
        "\"<promise>DONE</promise>\"",
        "<tool_result><promise>DONE</promise></tool_result>",
        "<system-reminder><promise>DONE</promise></system-reminder>",
        "<output><promise>DONE</promise></output>",
        "<thinking><promise>DONE</promise></thinking>",
        "<example><promise>DONE</promise></example>",
        "<tool_result>Task US-001 complete.</tool_result>",
        "Task US-001 complete, except for the tests.",
        "Task US-001 complete except the tests.",
        "Task US-001 complete (mostly).",
        "Task US-001 complete, but two tests fail.",
        "Task US-001 complete once the tests pass.",
        "Task US-001 complete?",
        "Task US-001: 80% complete",
        "Task US-001 is 100% complete apart from the docs.",
        "Task US-001 is nearly complete.",
        "Task US-001 is almost done.",
        "Task US-001 is partly done.",
        "Task US-001 is not complete.",
        "Task US-001 isn't complete.",
        "Task US-001 will be complete soon.",
        "Task US-001 should be complete.",
        "Task US-001 would be complete if the build worked.",
        "When task US-001 is complete, push.",
        "❌ US-001 complete",
        "☐ US-001 complete",
        "⏳ US-001 complete",
        "- [ ] US-001 complete",
        "Task US-002 complete.",
        "Task US-0011 complete.",
        "Step 1 complete.",
        "Everything is done.",
        "Done.",
        "All done!",
        "I think US-001 is done.",
        "US-001 was done by somebody else before.",
        "Is US-001 done?",
        "Mark US-001 as done.",
        "The status of US-001 is: done",
        "US-001 ist nicht fertig.",
        "US-001 ist noch nicht erledigt.",
        "US-001 wird morgen fertig.",
        "Aufgabe US-001 ist fast fertig.",
        "US-001 n'est pas terminé.",
        "US-001 sera terminé demain.",
        "US-001 est presque terminé.",
        "US-001 no está terminado.",
        "US-001 estará terminado mañana.",
        "US-001 todavía no está listo.",
        "US-001 未完成。",
        "US-001 还没有完成。",
        "US-001 将会完成。",
        "US-001 は完了していません。",
        "US-001 はまだ未完了です。",
        "US-001 は完了する予定です。",
        "Nicht fertig: <promise>DONE</promise>",
        "Pas encore : <promise>DONE</promise>",
        "Todavía no: <promise>DONE</promise>",
        "还没有：<promise>DONE</promise>",
        "まだです：<promise>DONE</promise>",
    ];
    let marked = |message: &str| {
        let task = TaskId::new("US-001");
        ClaimReader { task: &task, prompt: "", promises: DEFAULT_PROMISES, mark: Some("7f3a") }
            .read(message)
            .is_some()
    };
    let message = |line: &str| format!("I changed the parser and ran the tests.\n\n{line}\n");
    let missed: Vec<&str> = claims.into_iter().filter(|line| !marked(&message(line))).collect();
    let false_ones: Vec<&str> = none.into_iter().filter(|line| marked(&message(line))).collect();
    assert!(missed.is_empty() && false_ones.is_empty(), "missed: {missed:#?}\nfalse: {false_ones:#?}");
    assert!(claims.len() + none.len() >= 80);
}

/// Every message of the corpus is read as it says, and it holds so many of both kinds.
fn check(corpus: &'static str, of_each: usize) {
    let (prompt, cases) = read_corpus(corpus);
    let mut wrong = Vec::new();
    for case in &cases {
        let claim = case.read(prompt);
        if claim.is_some() != case.claims {
            wrong.push(format!("{}: expected claim = {}, read {claim:?}", case.name, case.claims));
        }
    }
    assert!(wrong.is_empty(), "{} of {} are misread:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    let positive = cases.iter().filter(|case| case.claims).count();
    assert!(positive >= of_each && cases.len() - positive >= of_each, "{positive} of {}", cases.len());
}

#[test]
fn line_endings_do_not_matter() {
    for corpus in [CORPUS, MEANT] {
        let (prompt, cases) = read_corpus(corpus);
        for mut case in cases {
            case.message = case.message.replace('\n', "\r\n");
            assert_eq!(case.read(prompt).is_some(), case.claims, "{}", case.name);
        }
    }
}

#[test]
fn the_source_of_a_claim_is_told() {
    let check = |message: &str, source, text: &str| {
        let claim = read("US-001", "", message).unwrap();
        assert_eq!((claim.source, claim.text.as_str()), (source, text), "{message}");
    };
    check("ok\n**<promise> done </promise>**", ClaimSource::Promise, "<promise>done</promise>");
    check("**Task US-001 complete**", ClaimSource::Sentence, "Task US-001 complete");
    check(
        "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---",
        ClaimSource::StatusBlock,
        "STATUS: COMPLETE, EXIT_SIGNAL: true",
    );
}

#[test]
fn only_the_configured_promises_count() {
    let task = TaskId::new("T");
    let reader = ClaimReader { task: &task, prompt: "", promises: &["ALL GREEN"], mark: None };
    assert!(reader.read("<promise>All  green</promise>").is_some());
    assert!(reader.read("<promise>DONE</promise>").is_none());
}

#[test]
fn hostile_messages_are_read_in_linear_time() {
    let megabyte = |unit: &str| unit.repeat(250_000 / unit.len());
    let units = [
        "<promise>",
        "<promise>\n",
        "<promise>DONE</promise>\n",
        "Task US-001 complete. ",
        "US-001 ",
        "US-001 so (",
        "`",
        "``` `",
        "\"",
        "<think>\n",
        "</think",
        "---RALPH_STATUS---\n",
        "not ",
        "- ",
        "\n",
        "it is not ",
        "\u{1b}[",
        "a: ",
        "task\n<promise>DONE</promise>\n",
    ];
    for unit in units {
        let message = megabyte(unit);
        let start = Instant::now();
        read("US-001", &message, &message);
        let took = start.elapsed();
        // A quadratic reading takes minutes; the bound leaves room for a busy machine.
        assert!(took < Duration::from_secs(5), "{unit:?} took {took:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_an_agent_writes_panics(message in "(?s).{0,300}", prompt in "(?s).{0,100}", task in ".{0,8}") {
        read(&task, &prompt, &message);
    }

    #[test]
    fn nothing_made_of_the_words_we_know_panics(pieces in proptest::collection::vec(piece(), 0..40)) {
        let message = pieces.concat();
        read("US-001", "", &message);
        read("é", &message, &message);
    }

    #[test]
    fn a_repeated_prompt_is_never_a_claim(cut in 0usize..400) {
        let (prompt, _) = read_corpus(CORPUS);
        let cut = prompt[..prompt.floor_char_boundary(cut)].rfind('\n').map_or(0, |at| at + 1);
        let claim = read("US-001", prompt, &prompt[cut..]);
        prop_assert!(claim.is_none(), "{:?} in {}", claim, &prompt[cut..]);
    }
}

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "<promise>",
        "</promise>",
        "DONE",
        "\n",
        "\n\n",
        " ",
        "`",
        "```\n",
        "\"",
        "“",
        "”",
        "Task ",
        "US-001",
        "é",
        "is ",
        "not ",
        "complete",
        ".",
        ":",
        "- ",
        "1. ",
        "[ ] ",
        "# ",
        "> ",
        "(",
        ")",
        "---RALPH_STATUS---",
        "STATUS: COMPLETE",
        "<think>",
        "</think>",
        "<!--",
        "-->",
        "    ",
        "\t",
        "✅",
        "\u{1b}[",
        "US-",
        "''",
        "so ",
    ])
}

fn read(task: &str, prompt: &str, message: &str) -> Option<wiggum_core::event::Claim> {
    let task = TaskId::new(task);
    ClaimReader { task: &task, prompt, promises: DEFAULT_PROMISES, mark: None }.read(message)
}

impl Case<'_> {
    fn read(&self, prompt: &str) -> Option<wiggum_core::event::Claim> {
        let task = TaskId::new(self.task);
        ClaimReader { task: &task, prompt, promises: DEFAULT_PROMISES, mark: self.mark }.read(&self.message)
    }
}

fn read_corpus(text: &'static str) -> (&'static str, Vec<Case<'static>>) {
    let mut prompt = "";
    let mut cases = Vec::new();
    for section in text.split("=== ").skip(1) {
        let (head, message) = section.split_once('\n').unwrap_or((section, ""));
        let fields: Vec<&str> = head.split('|').map(str::trim).collect();
        match fields.as_slice() {
            ["prompt"] => prompt = message,
            [name, meaning @ ("claim" | "none"), rest @ ..] => {
                let field = |name: &str| rest.iter().find_map(|field| field.strip_prefix(name));
                let (task, mark) = (field("task=").unwrap_or("US-001"), field("mark="));
                let message = message.replace('␛', "\u{1b}");
                cases.push(Case { name, claims: *meaning == "claim", task, mark, message });
            }
            _ => panic!("cannot read the heading {head:?}"),
        }
    }
    (prompt, cases)
}
