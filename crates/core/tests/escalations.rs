//! Questions to a person, as agents really write them.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use wiggum_core::event::{Question, QuestionKind};
use wiggum_core::signal::escalation::{MAX_CONTEXT, MAX_OPTIONS, MAX_SUMMARY, read_escalations};

const PROMPT: &str = "Escalate like this:\n\n```xml\n<escalate type=\"stuck\">\n<summary>One-line description</summary>\n<context>\nWhat you tried\n</context>\n<options>\n1. First path\n2. Second path\n</options>\n<question>What should be decided?</question>\n</escalate>\n```\n";

fn one(message: &str) -> Question {
    let mut found = read_escalations(message, PROMPT);
    assert_eq!(found.len(), 1, "{message}\n{found:?}");
    found.remove(0)
}

fn none(message: &str) {
    let found = read_escalations(message, PROMPT);
    assert!(found.is_empty(), "{message}\n{found:?}");
}

#[test]
fn a_full_block_is_read() {
    let question = one(
        "I need a decision.\n\n<escalate type=\"deviation\">\n<summary>Schema must change</summary>\n<context>\nThe column\n  is too small.\n</context>\n<options>\n1. Widen it\n2. Truncate\n</options>\n<question>Which one?</question>\n</escalate>\n",
    );
    assert_eq!(
        question,
        Question {
            kind: QuestionKind::Deviation,
            summary: "Schema must change".into(),
            context: "The column\n  is too small.".into(),
            options: vec!["Widen it".into(), "Truncate".into()],
            question: "Which one?".into(),
        }
    );
}

#[test]
fn the_kind_is_read_however_it_is_written() {
    let check = |tag: &str, kind| {
        assert_eq!(one(&format!("{tag}<summary>S</summary></escalate>")).kind, kind, "{tag}");
    };
    check("<escalate type=\"stuck\">", QuestionKind::Stuck);
    check("<escalate type='deviation'>", QuestionKind::Deviation);
    check("<escalate type=deviation>", QuestionKind::Deviation);
    check("<escalate id=\"7\" type = \"Deviation\" >", QuestionKind::Deviation);
    check("<ESCALATE TYPE=\"DEVIATION\">", QuestionKind::Deviation);
    check("<escalate\n  type=\"deviation\"\n>", QuestionKind::Deviation);
    check("<escalate type=\"blocked\">", QuestionKind::Stuck);
    check("<escalate>", QuestionKind::Stuck);
}

#[test]
fn missing_parts_are_made_up_for() {
    let check = |body: &str, summary: &str, context: &str, question: &str| {
        let read = one(&format!("<escalate type=\"stuck\">{body}"));
        assert_eq!(
            (read.summary.as_str(), read.context.as_str(), read.question.as_str()),
            (summary, context, question),
            "{body}"
        );
    };
    check("<summary>S</summary></escalate>", "S", "", "");
    check("<question>Which key?</question></escalate>", "Which key?", "", "Which key?");
    check(
        "\nNo API key is set.\nI looked everywhere.\n</escalate>",
        "No API key is set.",
        "No API key is set.\nI looked everywhere.",
        "",
    );
    check("No API key</escalate>", "No API key", "", "");
    check(
        "<summary>S</summary>\nsome loose words\n<question>Q</question></escalate>",
        "S",
        "some loose words",
        "Q",
    );
    check("\n<summary>S</summary>\n<context>C", "S", "C", "");
    check("\n<summary>S\n<context>C</context>\n<question>Q", "S", "C", "Q");
    check("<question>Q</question><summary>S</summary></escalate> Thanks!", "S", "", "Q");
    check("\n**nothing closed**", "**nothing closed**", "", "");
}

#[test]
fn options_are_read_however_they_are_listed() {
    let check = |options: &str, expected: &[&str]| {
        let read = one(&format!(
            "<escalate type=\"stuck\">\n<summary>S</summary>\n<options>{options}</options></escalate>"
        ));
        assert_eq!(read.options, expected, "{options}");
    };
    check("\n1. One\n2. Two\n", &["One", "Two"]);
    check("\n1) One\n2) Two\n", &["One", "Two"]);
    check("\n- One\n- Two\n", &["One", "Two"]);
    check("\n  * One\n  * Two\n", &["One", "Two"]);
    check("\nA) One\nB) Two\n", &["One", "Two"]);
    check("\nOption 1: One\nOption 2: Two\n", &["One", "Two"]);
    check("\n- Option A: One\n- Option B: Two\n", &["One", "Two"]);
    check("\nOne\nTwo\n", &["One", "Two"]);
    check("1. One 2. Two 3. Three", &["One", "Two", "Three"]);
    check("\n1. One\n   with more\n   - and detail\n2. Two\n", &["One with more - and detail", "Two"]);
    check("\nYou could:\n1. One\n2. Two\n", &["One", "Two"]);
    check("<option>One</option><option id=\"2\">Two</option>", &["One", "Two"]);
    check("\n<option>1. One\n<option>2. Two\n", &["One", "Two"]);
    check("<![CDATA[\n1. One\n2. a < b\n]]>", &["One", "a < b"]);
    check("\n1. Use v1.2 now\n2. Wait 3. minutes\n", &["Use v1.2 now", "Wait 3. minutes"]);
    check("", &[]);
}

#[test]
fn entities_and_cdata_are_decoded() {
    let question = one(
        "<escalate type=\"stuck\"><summary>a &lt; b &amp;&amp; &quot;c&quot; &#39;d&#x27; &unknown; &</summary><context><![CDATA[<div></context> &lt;]]></context></escalate>",
    );
    assert_eq!(question.summary, "a < b && \"c\" 'd' &unknown; &");
    assert_eq!(question.context, "<div></context> &lt;");
}

#[test]
fn several_blocks_are_several_questions() {
    let message = "<escalate type=\"stuck\"><summary>A</summary></escalate>\ntext\n<escalate type=\"deviation\"><summary>B</summary>\n\n<escalate type=\"stuck\"><summary>A</summary></escalate>";
    let summaries: Vec<String> =
        read_escalations(message, PROMPT).into_iter().map(|question| question.summary).collect();
    assert_eq!(summaries, ["A", "B"], "the repeated question is asked once");
}

#[test]
fn a_fence_around_nothing_but_the_block_is_meant() {
    one(
        "I am blocked:\n\n```xml\n<escalate type=\"stuck\">\n<summary>No network</summary>\n</escalate>\n```\n",
    );
    one("```\n<escalate type=\"stuck\"><summary>No network</summary></escalate>\n```");
}

#[test]
fn a_block_after_words_on_its_line_is_meant() {
    one("Blocked: <escalate type=\"stuck\"><summary>No network</summary></escalate>");
    one("  <escalate type=\"stuck\"><summary>No network</summary></escalate>");
}

#[test]
fn what_is_only_shown_asks_nothing() {
    none("");
    none("<escalate> was not necessary here.");
    none("I did not need to escalate.");
    none("I could use an <escalate> block, but went on.");
    none("I could use `<escalate type=\"stuck\"><summary>S</summary></escalate>` here.");
    none("> <escalate type=\"stuck\">\n> <summary>S</summary>\n> </escalate>");
    none("```\n# the format\n<escalate type=\"stuck\"><summary>S</summary></escalate>\n```");
    none(
        "```\n<escalate type=\"stuck\"><summary>S</summary></escalate>\n<escalate type=\"stuck\"><summary>T</summary></escalate>\n```",
    );
    none("The format:\n\n    <escalate type=\"stuck\">\n    <summary>S</summary>\n    </escalate>\n");
    none("<think>\n<escalate type=\"stuck\"><summary>S</summary></escalate>\n</think>\nI went on.");
    none("<escalate type=\"stuck\"></escalate>");
    none("<escalate type=\"stuck|deviation\"><summary>S</summary></escalate>");
    none("<escalated>yes</escalated>");
    none("&lt;escalate type=\"stuck\"&gt;&lt;summary&gt;S&lt;/summary&gt;&lt;/escalate&gt;");
    none("{\"text\": \"<escalate type='stuck'><summary>S</summary></escalate>\"}");
}

#[test]
fn the_prompts_own_example_asks_nothing() {
    none(PROMPT);
    none(&PROMPT.replace("```xml\n", "").replace("```", ""));
    none("<escalate type=\"deviation\">\n<summary>One-line   description</summary>\n</escalate>");
    one(
        "<escalate type=\"stuck\">\n<summary>The database is down</summary>\n<question>What should be decided?</question>\n</escalate>",
    );
}

#[test]
fn what_reaches_the_inbox_is_bounded() {
    let long = "é".repeat(20_000);
    let options: String = (1..=30).map(|n| format!("{n}. option {n}\n")).collect();
    let question = one(&format!(
        "<escalate type=\"stuck\">\n<summary>{long}</summary>\n<context>{long}</context>\n<options>\n{options}</options>\n<question>{long}</question>\n</escalate>"
    ));
    assert!(question.summary.len() <= MAX_SUMMARY);
    assert!(question.context.len() <= MAX_CONTEXT);
    assert!(question.question.len() <= MAX_CONTEXT);
    assert_eq!(question.options.len(), MAX_OPTIONS);
    let many = "<escalate type=\"stuck\"><summary>A</summary></escalate>\n".to_owned();
    let many: String = (0..50).map(|n| many.replace('A', &format!("A{n}"))).collect();
    assert!(read_escalations(&many, "").len() <= 9);
}

#[test]
fn a_megabyte_of_tags_is_read_at_once() {
    let message = "<escalate".repeat(1_000_000 / 9);
    let start = Instant::now();
    assert_eq!(read_escalations(&message, &message), []);
    assert!(start.elapsed() < Duration::from_secs(2), "took {:?}", start.elapsed());
}

#[test]
fn hostile_messages_are_read_in_linear_time() {
    let units = [
        "<escalate",
        "<escalate ",
        "<escalate>",
        "<escalate>\n",
        "<escalate type=\"stuck\"><summary>",
        "<summary>",
        "</escalate>",
        "<![CDATA[",
        "&",
        "&#",
        "<option>",
        "1. ",
        "\n- ",
        "```\n<escalate>\n",
        "> <escalate>\n",
        "<context",
        "`<escalate>",
    ];
    for unit in units {
        let body = unit.repeat(250_000 / unit.len());
        for message in [body.clone(), format!("<escalate type=\"stuck\"><summary>S</summary><options>{body}")]
        {
            let start = Instant::now();
            read_escalations(&message, &body);
            let took = start.elapsed();
            assert!(took < Duration::from_secs(5), "{unit:?} took {took:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_an_agent_writes_panics(message in "(?s).{0,300}", prompt in "(?s).{0,100}") {
        read_escalations(&message, &prompt);
        read_escalations(&format!("<escalate>{message}"), &prompt);
        read_escalations(&format!("<escalate><options>{message}"), &prompt);
    }

    #[test]
    fn nothing_made_of_tags_panics(pieces in proptest::collection::vec(prop::sample::select(vec![
        "<escalate", " type=", "\"", "stuck", ">", "<summary>", "</summary>", "<context>", "</context>", "<options>", "</options>", "<option>",
        "</option>", "<question>", "</question>", "</escalate>", "<![CDATA[", "]]>", "&lt;", "&#", ";", "\n", "```\n", "> ", "1. ", "- ", "é", " ", "    ", "`",
    ]), 0..50)) {
        let message = pieces.concat();
        for question in read_escalations(&message, "") {
            prop_assert!(!question.summary.is_empty());
            prop_assert!(question.summary.len() <= MAX_SUMMARY && question.options.len() <= MAX_OPTIONS);
        }
        prop_assert!(read_escalations(&message, &message).is_empty(), "an echo asks nothing");
    }
}
