//! Where a test ends, and what in it keeps it from testing anything: an early return, a condition that is
//! never true, a loop over nothing, failures that are swallowed.

use std::ops::Range;

use super::language::Language;

/// The lines of a test that begins in this line; `lines` have neither comments nor strings. Of a test that
/// has more than so many lines the first are taken.
pub(super) fn extent(language: Language, lines: &[&str], start: usize, most: usize) -> Range<usize> {
    let lines = &lines[..lines.len().min(start + most.max(1))];
    match language {
        Language::Python => start..python_end(lines, start),
        Language::JavaScript | Language::Dart => start..bracket_end(lines, start, &['(']),
        Language::Go | Language::Php if lines[start].contains(".Run(") || !lines[start].contains("func") => {
            start..bracket_end(lines, start, &['('])
        }
        Language::Rust
        | Language::Go
        | Language::Annotated
        | Language::Swift
        | Language::Php
        | Language::Cpp => start..bracket_end(lines, start, &['{']),
        // They end with a word, as much else does: a test goes as far as the next one.
        Language::Ruby | Language::Elixir | Language::Shell => start..lines.len(),
    }
}

/// The line after the one in which the first of these brackets is closed.
fn bracket_end(lines: &[&str], start: usize, opening: &[char]) -> usize {
    let mut depth = 0_usize;
    let mut opened = false;
    for (index, line) in lines.iter().enumerate().skip(start) {
        for c in line.chars() {
            match c {
                '(' | '[' | '{' => {
                    opened |= opening.contains(&c) && depth == 0;
                    depth += 1;
                }
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                // A declaration without a body.
                ';' if depth == 0 && !opened => return index + 1,
                _ => {}
            }
            if opened && depth == 0 {
                return index + 1;
            }
        }
    }
    lines.len()
}

/// More lines than a test has.
pub(super) const LONGEST: usize = 1000;

fn python_end(lines: &[&str], start: usize) -> usize {
    let indent = indent(lines[start]);
    let ends = |line: &&str| {
        let text = line.trim();
        !text.is_empty() && self::indent(line) <= indent && !text.starts_with([')', ']', '}'])
    };
    lines.iter().skip(start + 1).position(ends).map_or(lines.len(), |after| start + 1 + after)
}

pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// What keeps the lines of a test from having an effect. `asserts` tells whether a line asserts something.
pub(super) fn hollow(
    language: Language,
    lines: &[&str],
    asserts: impl Fn(&str) -> bool,
) -> Vec<&'static str> {
    let mut found: Vec<&'static str> = lines.iter().flat_map(|line| dead_in(line)).collect();
    found.extend(is_empty(language, lines).then_some("empty body"));
    found.extend(swallowed(language, lines));
    let returns = match language {
        Language::Python => python_returns(lines, asserts),
        Language::Rust
        | Language::JavaScript
        | Language::Go
        | Language::Annotated
        | Language::Swift
        | Language::Php
        | Language::Cpp
        | Language::Dart => brace_returns(lines, asserts),
        Language::Ruby | Language::Elixir | Language::Shell => 0,
    };
    found.extend(std::iter::repeat_n("early return", returns));
    found
}

/// Is there nothing in the test at all?
fn is_empty(language: Language, lines: &[&str]) -> bool {
    let whole = lines.concat();
    let inside = match language {
        Language::Python => whole.split_once("):").or(whole.split_once(':')).map(|(_, inside)| inside),
        Language::Rust
        | Language::JavaScript
        | Language::Go
        | Language::Annotated
        | Language::Swift
        | Language::Php
        | Language::Cpp
        | Language::Dart => whole.split_once('{').map(|(_, inside)| inside),
        Language::Ruby | Language::Elixir | Language::Shell => None,
    };
    inside.is_some_and(|inside| {
        let inside = inside.trim();
        matches!(inside, "pass" | "...") || !inside.contains(|c: char| c.is_alphanumeric() || c == '_')
    })
}

/// What of a line never runs, wherever a statement begins in it.
fn dead_in(line: &str) -> Vec<&'static str> {
    let line: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    let line = line.get(..line.floor_char_boundary(LONGEST_LINE)).unwrap_or_default();
    let starts = line.match_indices(['{', ';', '}']).map(|(at, _)| at + 1);
    std::iter::once(0).chain(starts).filter_map(|at| dead(&line[at..])).collect()
}

/// Longer lines are data; the bound keeps hostile input cheap.
const LONGEST_LINE: usize = 400;

/// A condition that never holds or a loop over nothing, without whitespace.
fn dead(line: &str) -> Option<&'static str> {
    const NEVER: [&str; 17] = [
        "iffalse{",
        "if(false)",
        "ifFalse:",
        "if0:",
        "if(0)",
        "ifnotTrue:",
        "if!true{",
        "if(!true)",
        "whilefalse{",
        "while(false)",
        "whileFalse:",
        "ifcfg!(any())",
        "if1==2",
        "if(1==2)",
        "if(1===2)",
        "ifTYPE_CHECKING:",
        "if!(true)",
    ];
    const AND_FALSE: [&str; 8] =
        ["iffalse&&", "if(false&&", "ifFalseand", "false&&", "Falseand", "&&false{", "&&false)", "andFalse:"];
    const NOTHING: [&str; 16] = [
        "in[]{",
        "in[]:",
        "in():",
        "of[])",
        "in0..0{",
        "in(0..0)",
        "inrange(0):",
        "inVec::new()",
        "iter::empty",
        "[].forEach(",
        "[]{}{",
        ";i<0;",
        "in&[]{",
        "inlist():",
        "in{}:",
        "intuple():",
    ];
    let line = line.trim_start_matches("else");
    if NEVER.iter().any(|start| line.starts_with(start)) {
        return Some("condition that never holds");
    }
    let conditional = line.starts_with("if") || line.starts_with("false&&") || line.starts_with("Falseand");
    if conditional && AND_FALSE.iter().any(|part| line.contains(part)) {
        return Some("condition that never holds");
    }
    let loops = line.starts_with("for") || line.contains(".forEach(");
    let over_nothing = NOTHING.iter().any(|part| line.contains(part))
        || (line.starts_with("for") && line.contains("range[]") && line.contains("{}{"))
        || (line.starts_with("for") && line.contains("inVec::<") && line.contains("::new()"));
    (loops && over_nothing).then_some("loop over nothing")
}

/// Failures that nobody hears of.
fn swallowed(language: Language, lines: &[&str]) -> Vec<&'static str> {
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let compact: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        let hides = match language {
            Language::Python => {
                let broad = ["except:", "exceptException", "exceptBaseException", "exceptAssertionError"];
                let passes = |text: &str| matches!(text.trim(), "pass" | "..." | "return");
                let next = lines.get(index + 1).is_some_and(|next| passes(next));
                let same = compact.rsplit_once(':').is_some_and(|(_, after)| passes(after));
                (broad.iter().any(|start| compact.starts_with(start)) && (next || same))
                    || ["suppress(AssertionError", "suppress(Exception", "suppress(BaseException"]
                        .iter()
                        .any(|text| compact.contains(text))
            }
            Language::JavaScript | Language::Annotated | Language::Php | Language::Dart => {
                let next = lines.get(index + 1).is_some_and(|next| next.trim().starts_with('}'));
                let opens =
                    compact.contains("catch{") || (compact.contains("catch(") && compact.ends_with("){"));
                compact.contains("catch{}")
                    || (compact.contains("catch(") && compact.contains("){}"))
                    || (opens && next)
                    || compact.contains(".catch(()=>{})")
            }
            Language::Rust => compact.contains("let_=") && compact.contains("catch_unwind("),
            Language::Go => compact.contains("recover()"),
            Language::Swift | Language::Ruby | Language::Elixir | Language::Cpp | Language::Shell => false,
        };
        if hides {
            found.push("swallowed failure");
        }
    }
    found
}

/// A block that is open.
#[derive(Clone, Copy)]
struct Block {
    /// Returns in it leave something else than the test.
    is_function: bool,
    /// Something was asserted in it, so that a return from it comes after a failure.
    asserted: bool,
}

/// How many returns leave the test before its end.
fn brace_returns(lines: &[&str], asserts: impl Fn(&str) -> bool) -> usize {
    let mut blocks: Vec<Block> = Vec::new();
    let mut statement = String::new();
    let mut found = 0;
    for (index, line) in lines.iter().enumerate() {
        for (at, c) in line.char_indices() {
            match c {
                '{' => {
                    let is_function = !blocks.is_empty() && is_function(&statement);
                    blocks.push(Block { is_function, asserted: false });
                    statement.clear();
                }
                '}' => {
                    blocks.pop();
                    statement.clear();
                }
                ';' => statement.clear(),
                'r' if line[at..].starts_with("return") && is_word(line, at, "return") => {
                    let leaves = !blocks.is_empty()
                        && blocks.iter().all(|block| !block.is_function)
                        && blocks.last().is_some_and(|block| blocks.len() == 1 || !block.asserted)
                        && begins_statement(&statement);
                    let (own, rest) = line[at..].split_once([';', '}']).unwrap_or((&line[at..], ""));
                    if leaves && !asserts(own) && (has_words(rest) || goes_on(lines, index)) {
                        found += 1;
                    }
                    statement.push(c);
                }
                _ => statement.push(c),
            }
        }
        if asserts(line)
            && let Some(block) = blocks.last_mut()
        {
            block.asserted = true;
        }
        if goes_on_below(line) {
            statement.push(' ');
        } else {
            statement.clear();
        }
    }
    found
}

/// Does the statement go on in the next line, where line ends separate statements?
fn goes_on_below(line: &str) -> bool {
    line.trim_end().ends_with([',', '(', '[', '=', '&', '|', '+', '-', '.', ':', '?', '>'])
}

fn is_function(opener: &str) -> bool {
    let opener = opener.trim();
    let branch =
        ["if ", "if(", "else", "for ", "for(", "while", "match ", "switch", "loop", "try", "unsafe", "do"];
    if branch.iter().any(|start| opener.starts_with(start)) {
        return false;
    }
    ["=>", "function", "fn ", "func", "|", "async", "move"].iter().any(|mark| opener.contains(mark))
}

/// Does a return stand here as a statement, perhaps behind `if (…)`?
fn begins_statement(before: &str) -> bool {
    let before = before.trim();
    before.is_empty() || ((before.starts_with("if ") || before.starts_with("if(")) && before.ends_with(')'))
}

fn is_word(line: &str, at: usize, word: &str) -> bool {
    let joined = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    !line[..at].ends_with(joined)
        && !line[at + word.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Does the test go on after this line?
fn goes_on(lines: &[&str], index: usize) -> bool {
    lines[index + 1..].iter().any(|line| has_words(line))
}

fn has_words(text: &str) -> bool {
    text.contains(char::is_alphanumeric)
}

fn python_returns(lines: &[&str], asserts: impl Fn(&str) -> bool) -> usize {
    let Some(first) = lines.first() else { return 0 };
    let root = indent(first);
    // Blocks by their indentation.
    let mut blocks: Vec<(usize, Block)> = Vec::new();
    let mut found = 0;
    for (index, line) in lines.iter().enumerate().skip(1) {
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        let indent = indent(line);
        blocks.retain(|(of, _)| *of < indent);
        let in_function = blocks.iter().any(|(_, block)| block.is_function);
        let after_failure = blocks.last().is_some_and(|(_, block)| block.asserted);
        let returns = text == "return" || text.starts_with("return ") || text.ends_with(": return");
        if returns
            && !in_function
            && !after_failure
            && indent > root
            && !asserts(text)
            && goes_on(lines, index)
        {
            found += 1;
        }
        if asserts(text)
            && let Some((_, block)) = blocks.last_mut()
        {
            block.asserted = true;
        }
        if text.ends_with(':') {
            let is_function = ["def ", "async def ", "class "].iter().any(|start| text.starts_with(start));
            blocks.push((indent, Block { is_function, asserted: false }));
        }
    }
    found
}
