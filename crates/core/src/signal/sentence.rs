//! The grammar of "Task X is complete" and of taking it back.

use super::claim::{QUOTED, Statement, is_cheer, is_introduction};
use super::tongues;
use crate::event::{Claim, ClaimSource};
use crate::ids::TaskId;
use crate::text::{clip, fold_whitespace};

/// Can this line say anything about the task at all?
pub(super) fn may_matter(line: &str, task: &TaskId) -> bool {
    let lower = line.to_ascii_lowercase();
    lower.contains("<promise>")
        || names(&lower, task)
        || hints_at_retraction(&lower)
        || tongues::says_not_done(line)
}

fn names(lower: &str, task: &TaskId) -> bool {
    lower.contains(&task.as_str().to_ascii_lowercase())
}

fn hints_at_retraction(lower: &str) -> bool {
    RETRACTION_HINTS.iter().any(|hint| lower.contains(hint))
}

/// What a sentence says about the task.
pub(super) fn read(sentence: &str, task: &TaskId) -> Option<Statement> {
    if sentence.len() > LONGEST_SENTENCE {
        return None;
    }
    if tongues::says_not_done(sentence) {
        return Some(Statement::NotDone);
    }
    let lower = sentence.to_ascii_lowercase();
    let may_retract = hints_at_retraction(&lower);
    if !may_retract && !names(&lower, task) {
        return None;
    }
    let words = tokens(sentence, task);
    if may_retract && takes_back(&words) {
        return Some(Statement::NotDone);
    }
    // A question states nothing; neither does what stands in single quotes.
    if sentence.trim_end().ends_with(['?', '？']) || sentence.starts_with(['\'', '‘', '(']) {
        return None;
    }
    let hedged = words.iter().any(Token::hedges) || tongues::puts_off(sentence) || hedges_aside(sentence);
    if !words.contains(&Token::Task) || hedged || counts_are_partial(sentence) {
        return None;
    }
    let claims = clause_starts(&words).any(|start| is_claim(&words[start..], task));
    claims.then(|| {
        let words = sentence.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_'));
        let text = clip(&fold_whitespace(words), 200).into_owned();
        Statement::Done(Claim { text, source: ClaimSource::Sentence })
    })
}

/// Nobody claims in a longer one; the bound keeps hostile input cheap.
const LONGEST_SENTENCE: usize = 600;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// The id of the task at hand.
    Task,
    Word(String),
    /// A comma, colon, dash, arrow.
    Break,
    /// A bracketed or quoted aside, such as the task's title.
    Aside,
}

impl Token {
    fn is(&self, words: &[&str]) -> bool {
        matches!(self, Self::Word(word) if words.contains(&word.as_str()))
    }

    /// Can this stand beside a claim without changing it: "and all tests pass"?
    fn is_success(&self) -> bool {
        const MORE: [&str; 16] = [
            "as",
            "per",
            "requested",
            "asked",
            "required",
            "expected",
            "instructed",
            "committed",
            "nothing",
            "your",
            "my",
            "i",
            "to",
            "be",
            "reviewed",
            "verify",
        ];
        match self {
            Self::Break => true,
            Self::Word(word) => MORE.contains(&word.as_str()) || is_introduction(&format!("{word} done")),
            Self::Task | Self::Aside => false,
        }
    }

    fn hedges(&self) -> bool {
        self.is(&HEDGES)
            || matches!(self, Self::Word(word) if word.ends_with("n't") || word.ends_with("'ll") || word.ends_with("'d"))
    }
}

/// Words that keep a sentence from being a plain statement that something is finished.
const HEDGES: [&str; 66] = [
    "not",
    "cannot",
    "never",
    "before",
    "until",
    "till",
    "once",
    "when",
    "whenever",
    "if",
    "after",
    "unless",
    "whether",
    "will",
    "would",
    "should",
    "shall",
    "could",
    "might",
    "may",
    "must",
    "going",
    "yet",
    "almost",
    "nearly",
    "partially",
    "partly",
    "mostly",
    "largely",
    "except",
    "but",
    "however",
    "although",
    "though",
    "pending",
    "remaining",
    "remains",
    "remain",
    "needs",
    "still",
    "soon",
    "later",
    "assuming",
    "provided",
    "think",
    "believe",
    "says",
    "said",
    "according",
    "example",
    "only",
    "half",
    "somewhat",
    "todo",
    "without",
    "missing",
    "minus",
    "apart",
    "aside",
    "excluding",
    "excepting",
    "failing",
    "fails",
    "failed",
    "broken",
    "incomplete",
];

/// Is something left out in brackets, such as "(without the tests)"?
fn hedges_aside(sentence: &str) -> bool {
    let inside = sentence.split('(').skip(1).map(|rest| rest.split(')').next().unwrap_or(rest));
    inside.flat_map(plain_words).any(|word| Token::Word(word).hedges())
}

const GUARDS: [&str; 30] = [
    "not",
    "cannot",
    "never",
    "before",
    "until",
    "till",
    "once",
    "when",
    "whenever",
    "if",
    "after",
    "unless",
    "will",
    "would",
    "should",
    "shall",
    "could",
    "might",
    "must",
    "going",
    "yet",
    "only",
    "asked",
    "told",
    "instructed",
    "requires",
    "wants",
    "supposed",
    "later",
    "says",
];

/// Does this sentence negate, condition or put off what follows it?
pub(super) fn is_guarded(sentence: &str) -> bool {
    plain_words(sentence).any(|word| {
        GUARDS.contains(&word.as_str())
            || word.ends_with("n't")
            || word.ends_with("'ll")
            || word.ends_with("'d")
    })
}

/// Does this sentence introduce what is yet to be done?
pub(super) fn is_plan(sentence: &str) -> bool {
    const PLAN: [&str; 23] = [
        "next",
        "remaining",
        "plan",
        "steps",
        "todo",
        "todos",
        "remains",
        "outstanding",
        "left",
        "pending",
        "goal",
        "expected",
        "format",
        "example",
        "instructions",
        "output",
        "log",
        "logs",
        "transcript",
        "template",
        "previous",
        "earlier",
        "quoted",
    ];
    plain_words(sentence).any(|word| PLAN.contains(&word.as_str()))
}

/// Does this sentence introduce what could be said, rather than what was done?
pub(super) fn is_mention(sentence: &str) -> bool {
    is_guarded(sentence) || is_plan(sentence) || speaks(sentence) || is_open_ended(sentence)
}

/// Does this sentence want what follows as its last word: "The line is", "it ended with"?
pub(super) fn is_open_ended(sentence: &str) -> bool {
    const OPEN: [&str; 18] = [
        "is", "are", "was", "be", "with", "the", "a", "of", "says", "said", "print", "printed", "wrote",
        "reads", "output", "like", "follows", "expected",
    ];
    !sentence.ends_with('>') && plain_words(sentence).last().is_some_and(|word| OPEN.contains(&word.as_str()))
}

/// Does this sentence say that the task is not done?
pub(super) fn says_not_done_of_task(sentence: &str) -> bool {
    let nobody = TaskId::new("");
    sentence.len() <= LONGEST_SENTENCE
        && hints_at_retraction(&sentence.to_ascii_lowercase())
        && takes_back(&tokens(sentence, &nobody))
}

/// Is this sentence about saying something?
pub(super) fn speaks(sentence: &str) -> bool {
    const SPEECH: [&str; 26] = [
        "output",
        "outputting",
        "print",
        "say",
        "saying",
        "emit",
        "write",
        "writing",
        "promise",
        "claim",
        "claiming",
        "signal",
        "respond",
        "reply",
        "declare",
        "declaring",
        "mark",
        "report",
        "send",
        "end",
        "give",
        "issue",
        "add",
        "state",
        "announce",
        "tell",
    ];
    plain_words(sentence).any(|word| SPEECH.contains(&word.as_str()))
}

fn plain_words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’')
        .filter(|word| !word.is_empty())
        .map(|word| word.to_lowercase().replace('’', "'"))
}

fn tokens(sentence: &str, task: &TaskId) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = sentence;
    let mut boundary = true;
    while let Some(c) = rest.chars().next() {
        if boundary && let Some(after) = strip_id(rest, task.as_str()) {
            tokens.push(Token::Task);
            rest = after;
            boundary = false;
            continue;
        }
        let length = if c.is_alphanumeric() { word_length(rest) } else { c.len_utf8() };
        match c {
            _ if c.is_alphanumeric() => {
                tokens.push(Token::Word(rest[..length].to_lowercase().replace('’', "'")));
            }
            QUOTED => tokens.push(Token::Aside),
            '(' => {
                // A bracket holding just the id emphasises it; any other holds an aside.
                if let Some(close) =
                    rest.find(')').filter(|&close| !rest[1..close].trim().eq_ignore_ascii_case(task.as_str()))
                {
                    tokens.push(Token::Aside);
                    rest = &rest[close + 1..];
                    boundary = true;
                    continue;
                }
            }
            ':' | '：' | ',' | '–' | '—' | '→' | '=' => tokens.push(Token::Break),
            '-' if boundary => tokens.push(Token::Break),
            // Emphasis, brackets, emoji, end marks say nothing by themselves.
            '*' | '_' | '[' | ']' | '#' | '.' | '!' | '…' | ')' | '~' => {}
            _ if c.is_whitespace() || is_cheer(c) => {}
            // Anything else makes this something other than a plain sentence.
            _ => tokens.push(Token::Word(c.to_string())),
        }
        boundary = !rest[..length].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '/' | '.'))
            || c == '.' && length == 1 && rest[1..].starts_with(' ');
        rest = &rest[length..];
    }
    tokens
}

/// Letters, digits and what joins them inside a word: "isn't", "US-002", "100%".
fn word_length(text: &str) -> usize {
    let mut end = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let joins = matches!(c, '\'' | '’' | '-' | '_' | '.' | '/')
            && chars.peek().is_some_and(|(_, next)| next.is_alphanumeric());
        if !c.is_alphanumeric() && !joins && c != '%' {
            break;
        }
        end = at + c.len_utf8();
    }
    end
}

/// What follows the id, if the text begins with exactly that id.
fn strip_id<'a>(text: &'a str, id: &str) -> Option<&'a str> {
    if id.is_empty() {
        return None;
    }
    let (start, rest) = text.split_at_checked(id.len())?;
    if !start.eq_ignore_ascii_case(id) {
        return None;
    }
    let mut following = rest.chars();
    let goes_on = match following.next() {
        Some(c) if c.is_alphanumeric() => true,
        Some('-' | '_' | '.' | '/') => following.next().is_some_and(char::is_alphanumeric),
        _ => false,
    };
    (!goes_on).then_some(rest)
}

/// "3 of 5 criteria", "3/5".
fn counts_are_partial(sentence: &str) -> bool {
    let spaced = sentence.replace('/', " of ");
    let words: Vec<&str> =
        spaced.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.windows(3).any(|three| {
        let number = |word: &str| word.parse::<u64>().ok();
        three[1] == "of" && number(three[0]).zip(number(three[2])).is_some_and(|(part, whole)| part < whole)
    })
}

/// Where a claim may begin: at the start, or after what draws the conclusion.
fn clause_starts(words: &[Token]) -> impl Iterator<Item = usize> {
    let labels = words.iter().position(|token| *token == Token::Break).filter(|&end| {
        end > 0
            && words[..end].iter().all(|token| {
                token.is(&[
                    "status",
                    "final",
                    "result",
                    "summary",
                    "update",
                    "conclusion",
                    "outcome",
                    "great",
                    "good",
                    "news",
                    "verdict",
                    "done",
                    "excellent",
                    "perfect",
                    "ok",
                    "okay",
                    "all",
                    "yes",
                    "now",
                    "overall",
                ])
            })
    });
    let conclusions = words.iter().enumerate().filter(|(at, token)| {
        token.is(&["so", "and", "therefore", "thus", "hence"]) && words[..*at].iter().all(Token::is_success)
    });
    std::iter::once(0).chain(labels.map(|end| end + 1)).chain(conclusions.map(|(at, _)| at + 1))
}

/// What a task is called. A number alone also counts steps and items, which are no tasks.
const TASK_NOUNS: [&str; 4] = ["task", "story", "user", "ticket"];
const NOUNS: [&str; 7] = ["task", "story", "user", "ticket", "issue", "feature", "requirement"];
const DONE: [&str; 5] = ["complete", "completed", "done", "finished", "completed"];
const ADVERBS: [&str; 15] = [
    "now",
    "fully",
    "all",
    "successfully",
    "100%",
    "officially",
    "already",
    "therefore",
    "entirely",
    "completely",
    "hereby",
    "both",
    "thus",
    "indeed",
    "status",
];
const COPULAS: [&str; 8] = ["is", "has", "been", "was", "are", "have", "be", "being"];

/// The claim itself, from its first word to the end of the sentence.
fn is_claim(words: &[Token], task: &TaskId) -> bool {
    noun_claim(words, task) || verb_claim(words) || label_claim(words)
}

/// "Task X (title) is now complete …", with the task, the title and "is now" left out at will.
fn noun_claim(words: &[Token], task: &TaskId) -> bool {
    let words = skip(words, |token| token.is(&["the", "this", "all"]));
    let named = skip(words, |token| token.is(&NOUNS) || *token == Token::Break);
    let has_noun = words[..words.len() - named.len()].iter().any(|token| token.is(&TASK_NOUNS));
    let [Token::Task, rest @ ..] = named else { return false };
    if !has_noun && !is_distinctive(task.as_str()) {
        return false;
    }
    let rest = skip(rest, |token| {
        token.is(&ADVERBS) || matches!(token, Token::Aside | Token::Break) || is_copula(token)
    });
    match rest {
        [done, after @ ..] if done.is(&DONE) => is_harmless_end(after),
        // "X: title — done"
        [title @ .., Token::Break, done] => {
            let of_part = title.iter().any(|token| token.is(&PARTS));
            done.is(&DONE) && !title.contains(&Token::Task) && title.len() <= 12 && !of_part
        }
        _ => false,
    }
}

/// What is less than the task.
const PARTS: [&str; 12] = [
    "step",
    "phase",
    "part",
    "stage",
    "draft",
    "first",
    "item",
    "subtask",
    "milestone",
    "skeleton",
    "stub",
    "wip",
];

/// "I have completed task X …"
fn verb_claim(words: &[Token]) -> bool {
    let words = skip(words, |token| {
        token.is(&["i", "i've", "we", "we've", "have", "just", "now", "successfully", "fully", "has", "been"])
    });
    let [verb, rest @ ..] = words else { return false };
    let rest = skip(rest, |token| token.is(&NOUNS) || token.is(&["the"]));
    match rest {
        [Token::Task, after @ ..] => verb.is(&["completed", "finished"]) && is_harmless_end(after),
        _ => false,
    }
}

/// "Task complete: X"
fn label_claim(words: &[Token]) -> bool {
    match words {
        [noun, done, Token::Break, Token::Task, after @ ..] => {
            noun.is(&NOUNS) && done.is(&DONE) && is_harmless_end(after)
        }
        [done, Token::Break, Token::Task] => done.is(&DONE),
        _ => false,
    }
}

/// What may follow a claim in the same sentence: words of success, or after a colon or dash what was done.
fn is_harmless_end(after: &[Token]) -> bool {
    match after {
        [Token::Break, did, ..] if did.is(&DID) => true,
        rest => rest.iter().all(Token::is_success),
    }
}

/// How people begin to tell what they did.
const DID: [&str; 16] = [
    "added",
    "implemented",
    "created",
    "fixed",
    "updated",
    "wrote",
    "built",
    "refactored",
    "replaced",
    "introduced",
    "changed",
    "moved",
    "renamed",
    "documented",
    "tested",
    "removed",
];

fn is_copula(token: &Token) -> bool {
    token.is(&COPULAS)
}

fn skip(words: &[Token], mut unwanted: impl FnMut(&Token) -> bool) -> &[Token] {
    let start = words.iter().position(|token| !unwanted(token)).unwrap_or(words.len());
    &words[start..]
}

/// "docs is done" may speak of the documentation; "US-001 is done" cannot.
fn is_distinctive(id: &str) -> bool {
    id.len() > 2
        && id.chars().any(|c| !c.is_ascii_digit())
        && id.contains(|c: char| c.is_ascii_digit() || matches!(c, '-' | '_'))
}

/// What a sentence that takes a claim back is recognised by at a glance.
const RETRACTION_HINTS: [&str; 22] = [
    "not ",
    "n't",
    "n’t",
    "incomplete",
    "retract",
    "take that back",
    "take it back",
    "scratch that",
    "premature",
    "too soon",
    "still fail",
    "are failing",
    "is failing",
    "wait",
    "actually",
    "hold on",
    "oops",
    "correction",
    "disregard",
    "ignore",
    "unfinished",
    "still broken",
];

/// "Wait, the tests fail", "It is not done after all", "I take that back".
fn takes_back(words: &[Token]) -> bool {
    let of_others = words.iter().any(|token| {
        token.is(&[
            "unrelated",
            "pre-existing",
            "preexisting",
            "existing",
            "already",
            "previously",
            "before",
            "main",
            "flaky",
            "optional",
        ])
    });
    if of_others {
        return false;
    }
    says_not_done(words) || says_still_failing(words) || retracts(words)
}

fn says_not_done(words: &[Token]) -> bool {
    const SUBJECTS: [&str; 13] = [
        "it",
        "it's",
        "this",
        "that",
        "task",
        "story",
        "i",
        "i'm",
        "i've",
        "we",
        "we're",
        "we've",
        "implementation",
    ];
    const BETWEEN: [&str; 22] = [
        "is", "was", "am", "are", "have", "has", "been", "yet", "actually", "really", "fully", "quite",
        "still", "be", "as", "it", "this", "claim", "mark", "say", "call", "declare",
    ];
    const NOT: [&str; 11] = [
        "not",
        "isn't",
        "wasn't",
        "aren't",
        "haven't",
        "hasn't",
        "can't",
        "cannot",
        "nowhere",
        "never",
        "incomplete",
    ];
    words.iter().enumerate().any(|(at, subject)| {
        if !(subject.is(&SUBJECTS) || *subject == Token::Task) {
            return false;
        }
        let after =
            skip(&words[at + 1..], |token| token.is(&BETWEEN) || matches!(token, Token::Task | Token::Aside));
        let [not, rest @ ..] = after else { return false };
        if not.is(&["incomplete", "unfinished"]) {
            return true;
        }
        let rest =
            skip(rest, |token| token.is(&BETWEEN) || *token == Token::Task || token.is(&["task", "the"]));
        not.is(&NOT) && rest.first().is_some_and(|token| token.is(&DONE))
    }) || matches!(words, [not, done] | [not, done, _] if not.is(&["not"]) && done.is(&DONE))
        || matches!(words, [not, yet, done, ..] if not.is(&["not"]) && yet.is(&["yet"]) && done.is(&DONE))
}

fn says_still_failing(words: &[Token]) -> bool {
    const FAILING: [&str; 7] = ["fail", "fails", "failing", "failed", "broken", "red", "errors"];
    let what =
        words.iter().position(|token| token.is(&["tests", "test", "build", "checks", "suite", "verify"]));
    let Some(what) = what else { return false };
    let still = words.iter().any(|token| {
        token.is(&["still", "wait", "actually", "oops", "however", "unfortunately", "but", "so"])
    });
    let negated =
        words.iter().any(|token| token.is(&["no", "not", "none", "zero", "0", "longer", "would", "used"]));
    still && !negated && words[what..].iter().any(|token| token.is(&FAILING))
}

fn retracts(words: &[Token]) -> bool {
    let text: Vec<&str> = words
        .iter()
        .map(|token| match token {
            Token::Word(word) => word.as_str(),
            Token::Task => "X",
            Token::Break | Token::Aside => ",",
        })
        .collect();
    let text = text.join(" ");
    [
        "take that back",
        "take it back",
        "scratch that",
        "spoke too soon",
        "was premature",
        "claimed too early",
        "retract",
        "disregard the",
        "disregard that",
        "ignore the promise",
        "ignore the above",
        "ignore that promise",
        "cannot claim",
        "can't claim",
        "must not claim",
        "won't claim",
    ]
    .iter()
    .any(|phrase| text.contains(phrase))
}
