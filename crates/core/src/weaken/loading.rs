//! What ends a process as soon as a module of JavaScript or a package of Go is loaded: the runner of the tests
//! takes an exit with 0 for success.
//!
//! Programs end their process for good reasons, in functions and behind conditions. What counts is what runs
//! where a test merely imports the file, and a function that others import and that does nothing but end.

use super::endings::{
    is_asked_by_user, is_run_as_script, is_success, may_succeed, runs_soon, speaks_of_ending,
};
use super::language::Language;
use super::modules::{exported_names, takes_exit};

/// What of this file ends the process that loads it. `code` has no comments, `plain` has no strings either.
pub(super) fn ends_when_loaded(language: Language, code: &str, plain: &str) -> Vec<String> {
    let Some(tongue) = Tongue::of(language) else { return Vec::new() };
    let first = Walk::new(tongue, code, plain, Vec::new()).run();
    if first.ending.is_empty() {
        return first.found;
    }
    // Functions that only end are ends themselves where they are called.
    let calls = first.ending.iter().map(|name| format!("{name}(")).collect();
    Walk::new(tongue, code, plain, calls).run().found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tongue {
    JavaScript,
    Go,
}

impl Tongue {
    fn of(language: Language) -> Option<Self> {
        match language {
            Language::JavaScript => Some(Self::JavaScript),
            Language::Go => Some(Self::Go),
            Language::Rust
            | Language::Python
            | Language::Annotated
            | Language::Swift
            | Language::Ruby
            | Language::Php
            | Language::Elixir
            | Language::Cpp
            | Language::Dart
            | Language::Shell => None,
        }
    }

    /// Calls that end the process, or put another one in its place.
    fn ends(self) -> &'static [&'static str] {
        match self {
            Self::JavaScript => {
                &["process.exit(", "process.reallyExit(", "process.abort(", "process.kill(process.pid"]
            }
            Self::Go => &["os.Exit(", "syscall.Exit(", "syscall.Exec(", "unix.Exec("],
        }
    }

    /// What a package has no business with while it is loaded: what its runner is told, and what it says.
    fn meddling(self) -> &'static [&'static str] {
        match self {
            Self::JavaScript => &[],
            Self::Go => &[
                "os.Args=",
                "os.Args[",
                "flag.Set(\"test.",
                "flag.CommandLine.Set(\"test.",
                "fmt.Println(\"PASS",
                "fmt.Print(\"PASS",
                "fmt.Printf(\"PASS",
                "os.Stdout.WriteString(\"PASS",
                "println(\"PASS",
            ],
        }
    }
}

/// A bracket `{` that is open.
struct Block {
    /// What of the statement stands before it.
    opener: String,
    kind: Kind,
    /// How many statements in it have ended.
    statements: usize,
    /// Round and square brackets that were open around it.
    brackets: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Runs when it is called.
    Function,
    /// Runs at once, though written as a function: `(() => { … })()`, `func init()`.
    AtOnce,
    Condition,
    /// Loops, literals and everything else.
    Plain,
}

/// Goes through a file and knows which blocks are open.
struct Walk {
    tongue: Tongue,
    code: Vec<char>,
    plain: Vec<char>,
    ends: Vec<String>,
    /// Functions of this file that only end.
    calls: Vec<String>,
    /// Names that a module of JavaScript exports in one place: `module.exports = { add }`.
    exported: String,
    blocks: Vec<Block>,
    /// What came of the statement, with one space where there was any.
    statement: String,
    brackets: usize,
    /// Where the file is imported, what follows is not reached.
    is_left: bool,
    read: Read,
}

#[derive(Default)]
struct Read {
    found: Vec<String>,
    /// Functions that only end the process.
    ending: Vec<String>,
}

impl Walk {
    fn new(tongue: Tongue, code: &str, plain: &str, calls: Vec<String>) -> Self {
        let mut ends: Vec<String> = tongue.ends().iter().map(|end| (*end).to_owned()).collect();
        let is_script = tongue == Tongue::JavaScript;
        ends.extend((is_script && takes_exit(code)).then(|| "exit(".to_owned()));
        Self {
            tongue,
            code: code.chars().collect(),
            plain: plain.chars().collect(),
            ends,
            calls,
            exported: if is_script { exported_names(plain) } else { String::new() },
            blocks: Vec::new(),
            statement: String::new(),
            brackets: 0,
            is_left: false,
            read: Read::default(),
        }
    }

    fn run(mut self) -> Read {
        // Both have a character for each character of the other.
        let length = self.code.len().min(self.plain.len());
        for at in 0..length {
            match self.plain[at] {
                '{' => self.open(at),
                '}' => self.close(),
                ';' => self.end_statement(),
                ',' if self.is_between_members() => self.end_statement(),
                '\n' if self.is_over() => self.end_statement(),
                _ => {
                    self.look(at);
                    self.take(at);
                }
            }
        }
        self.read
    }

    fn take(&mut self, at: usize) {
        match self.plain[at] {
            '(' | '[' => self.brackets += 1,
            ')' | ']' => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
        let c = self.code[at];
        if self.statement.len() > LONGEST_STATEMENT {
            return;
        }
        if c.is_whitespace() {
            if !self.statement.is_empty() && !self.statement.ends_with(' ') {
                self.statement.push(' ');
            }
        } else {
            self.statement.push(if matches!(c, '\'' | '`') { '"' } else { c });
        }
    }

    /// Does the statement end with its line?
    fn is_over(&self) -> bool {
        let statement = self.statement.trim_end();
        self.brackets == self.outer_brackets()
            && !statement.ends_with([',', '=', '&', '|', '+', '.', ':', '?', '>', '('])
            && !(is_condition(statement) && statement.ends_with(')'))
    }

    /// Does a comma separate the members of a literal here?
    fn is_between_members(&self) -> bool {
        let is_literal = self.blocks.last().is_some_and(|block| block.kind == Kind::Plain);
        is_literal && self.brackets == self.outer_brackets()
    }

    fn outer_brackets(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.brackets)
    }

    fn end_statement(&mut self) {
        let statement = compact(&self.statement);
        let leaves = ["if(require.main!==module)return", "if(require.main!=module)return"];
        self.is_left |= self.blocks.is_empty() && leaves.iter().any(|text| statement.starts_with(text));
        self.statement.clear();
        if let Some(block) = self.blocks.last_mut().filter(|_| !statement.is_empty()) {
            block.statements += 1;
        }
    }

    fn open(&mut self, at: usize) {
        let opener = std::mem::take(&mut self.statement).trim_end().to_owned();
        let kind = self.kind_of(&opener, at);
        self.blocks.push(Block { opener, kind, statements: 0, brackets: self.brackets });
    }

    fn close(&mut self) {
        let Some(block) = self.blocks.pop() else { return };
        self.brackets = block.brackets;
        self.statement.clear();
        if self.brackets > self.outer_brackets() {
            // An argument: the statement goes on behind it.
            self.statement = block.opener;
        } else {
            self.statement.push('.');
            self.end_statement();
        }
    }

    fn kind_of(&self, opener: &str, at: usize) -> Kind {
        if is_condition(opener) {
            return Kind::Condition;
        }
        let is_function = match self.tongue {
            Tongue::Go => has_word(opener, "func"),
            Tongue::JavaScript => {
                let loops = ["for", "while", "catch", "with"];
                opener.ends_with("=>")
                    || has_word(opener, "function")
                    || opener.ends_with(')') && !loops.iter().any(|word| starts_with_word(opener, word))
            }
        };
        let is_init = self.tongue == Tongue::Go && self.blocks.is_empty() && opener == "func init()";
        match is_function {
            false => Kind::Plain,
            true if is_init || runs_soon(opener) || self.is_called_at_once(at) => Kind::AtOnce,
            true => Kind::Function,
        }
    }

    /// Does a call follow the bracket that closes this one: `})()`, `}()`?
    fn is_called_at_once(&self, open: usize) -> bool {
        let mut depth = 0_usize;
        let closes = |c: &char| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            depth == 0
        };
        let Some(length) = self.plain[open..].iter().take(LONGEST_BLOCK).position(closes) else {
            return false;
        };
        let rest = self.plain[open + length + 1..].iter().filter(|c| !c.is_whitespace());
        let rest: String = rest.take(").apply(".len()).collect();
        let rest = rest.strip_prefix(')').unwrap_or(&rest);
        ["(", ".call(", ".apply("].iter().any(|call| rest.starts_with(call))
    }

    /// Does the process end here, or does something here meddle with its runner?
    fn look(&mut self, at: usize) {
        if !self.plain[at].is_alphabetic() {
            return;
        }
        let before: String = self.plain[at.saturating_sub("globalThis.".len())..at].iter().collect();
        let is_global = before.ends_with("globalThis.") || before.ends_with("global.");
        let goes_on = before.ends_with(|c| is_joined(c) || c == '.') && !is_global;
        if goes_on {
            return;
        }
        let line = self.line_from(at);
        let end = self.ends.iter().find(|end| line.starts_with(end.as_str())).cloned();
        if let Some(end) = end {
            self.note_end(&end, &line[end.len()..]);
        } else if let Some(call) = self.calls.iter().find(|call| line.starts_with(call.as_str())).cloned() {
            if self.begins_a_call() && !line.ends_with('{') {
                self.note_if_loaded(&call, "");
            }
        } else if let Some(text) = self.tongue.meddling().iter().find(|text| meddles(&line, text)) {
            if self.is_loaded() && !self.is_excused() {
                self.read.found.push(format!("{}… while it is loaded", text.trim_end_matches(['=', '['])));
            }
        } else {
            self.note_alias(&line);
        }
    }

    /// The rest of a line, compact, with the usual names.
    fn line_from(&self, at: usize) -> String {
        let line = self.code[at..].iter().take_while(|c| **c != '\n').filter(|c| !c.is_whitespace());
        let line: String = line.take(80).map(|c| if matches!(c, '\'' | '`') { '"' } else { *c }).collect();
        if !line.starts_with("process[") && !line.starts_with("require(") {
            return line;
        }
        let line = line.replacen("require(\"node:process\")", "process", 1);
        let line = line.replacen("require(\"process\")", "process", 1);
        line.replacen("[\"exit\"]", ".exit", 1).replacen("[\"reallyExit\"]", ".reallyExit", 1)
    }

    /// Is a name that stands here called, rather than declared?
    fn begins_a_call(&self) -> bool {
        let before = self.statement.trim_end();
        let is_call = before.ends_with([')', '=', '&', '|', '>']);
        is_call || matches!(before, "" | "void" | "await" | "else")
    }

    fn note_end(&mut self, end: &str, arguments: &str) {
        if self.is_loaded() {
            self.note_if_loaded(end, arguments);
            return;
        }
        let name = self.function_here().filter(|_| is_success(end, arguments));
        let Some(name) = name else { return };
        if self.tongue == Tongue::JavaScript && self.is_exported(&name) && !speaks_of_ending(&name) {
            self.read.found.push(format!("{name} only ends the process"));
        }
        if self.blocks.iter().all(|block| block.kind == Kind::Function) {
            self.read.ending.push(name);
        }
    }

    fn note_if_loaded(&mut self, end: &str, arguments: &str) {
        let is_sure = self.conditions().is_empty();
        let succeeds = is_success(end, arguments) || is_sure && may_succeed(end, arguments);
        if self.is_loaded() && !self.is_excused() && succeeds {
            self.read.found.push(format!("{end}…) where it is loaded"));
        }
    }

    /// `exports.add = process.exit`
    fn note_alias(&mut self, line: &str) {
        let ends = ["process.exit", "process.reallyExit"];
        let is_value = |end: &&&str| {
            line.strip_prefix(**end)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(';') || rest.starts_with(".bind("))
        };
        let Some(end) = ends.iter().find(is_value) else { return };
        let statement = compact(&self.statement);
        let target = statement.strip_prefix("module.").unwrap_or(&statement);
        let name = target.strip_prefix("exports.").and_then(|rest| rest.strip_suffix('='));
        if let Some(name) = name.filter(|name| !speaks_of_ending(name)) {
            self.read.found.push(format!("{name} is {end}"));
        }
    }

    /// Does what stands here run when the file is loaded?
    fn is_loaded(&self) -> bool {
        let is_called_later = self.blocks.iter().any(|block| block.kind == Kind::Function);
        let is_at_top = match (self.tongue, self.blocks.first()) {
            (Tongue::JavaScript, _) => !self.statement.contains("=>") || runs_soon(&self.statement),
            (Tongue::Go, Some(first)) => first.kind == Kind::AtOnce || first.opener.starts_with("var"),
            (Tongue::Go, None) => self.statement.starts_with("var"),
        };
        // What waits for something first, in the background.
        let waits = self.blocks.iter().any(|block| block.opener.starts_with("go ") && block.statements > 0);
        !is_called_later && is_at_top && !waits && !self.is_left
    }

    /// The conditions around what stands here.
    fn conditions(&self) -> Vec<String> {
        let around = self.blocks.iter().filter(|block| block.kind == Kind::Condition);
        let is_inline = is_condition(&self.statement) || self.statement.contains("&&");
        let inline = is_inline.then_some(&self.statement);
        around.map(|block| &block.opener).chain(inline).map(|text| compact(text)).collect()
    }

    /// Is it behind a condition that holds only where the file is run, or for what a user asked it for?
    fn is_excused(&self) -> bool {
        self.conditions().iter().any(|condition| match self.tongue {
            Tongue::JavaScript => is_run_as_script(condition) || is_asked_by_user(condition, "process."),
            Tongue::Go => condition.contains("reexec.Init()") || is_asked_by_user(condition, "os."),
        })
    }

    /// The function around this place, if this is the first thing that it does.
    fn function_here(&self) -> Option<String> {
        let statement = self.statement.trim_end();
        let is_arrow = self.tongue == Tongue::JavaScript && statement.ends_with("=>");
        if !is_arrow && !matches!(statement, "" | "return") {
            return None;
        }
        let (head, around) = match self.blocks.split_last() {
            Some((block, around)) if !is_arrow && block.kind == Kind::Function && block.statements == 0 => {
                (block.opener.as_str(), around)
            }
            Some(_) | None if is_arrow => (statement, self.blocks.as_slice()),
            Some(_) | None => return None,
        };
        let is_of_exports = |block: &Block| {
            let opener = compact(&block.opener);
            opener.ends_with("exports=") || opener == "exportdefault"
        };
        (around.is_empty() || around.len() == 1 && is_of_exports(&around[0])).then(|| name_of(head)).flatten()
    }

    fn is_exported(&self, name: &str) -> bool {
        let outer = self.blocks.first().map_or(&*self.statement, |block| &block.opener);
        let is_export =
            ["export ", "exports.", "module.exports"].iter().any(|start| outer.starts_with(start));
        is_export || self.exported.split(|c: char| !is_joined(c)).any(|other| other == name)
    }
}

/// Longer ones are data; the bound keeps hostile input cheap.
const LONGEST_STATEMENT: usize = 400;

/// How many characters of a function are gone through to see whether it is called at once.
const LONGEST_BLOCK: usize = 20_000;

fn starts_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(is_joined))
}

fn is_condition(statement: &str) -> bool {
    let statement = statement.trim_start();
    ["if", "else", "switch", "case"].iter().any(|word| starts_with_word(statement, word))
}

/// Where a line begins with this; for an assignment, not with a comparison.
fn meddles(line: &str, text: &str) -> bool {
    let Some(rest) = line.strip_prefix(text) else { return false };
    let assigns = |rest: &str| rest.starts_with('=') && !rest.starts_with("==");
    match text.chars().next_back() {
        Some('=') => !rest.starts_with('='),
        Some('[') => rest.split_once(']').is_some_and(|(_, behind)| assigns(behind)),
        Some(_) | None => true,
    }
}

/// The name of a function by how it begins: `exports.add = (a) =>`, `export function add(`, `func add(`, `add:`.
fn name_of(head: &str) -> Option<String> {
    let head = head.trim_start_matches("export ").trim_start_matches("default ");
    let head = head.strip_prefix("module.").unwrap_or(head);
    let words = ["exports.", "async ", "function ", "const ", "let ", "var ", "func "];
    let head = words.iter().fold(head, |head, word| head.strip_prefix(word).unwrap_or(head));
    let end = head.find(|c: char| !is_joined(c)).unwrap_or(head.len());
    (end > 0).then(|| head[..end].to_owned())
}

pub(super) fn compact(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

pub(super) fn is_joined(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

pub(super) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let is_whole = word.ends_with('.') || !text[at + word.len()..].starts_with(is_joined);
        !text[..at].ends_with(is_joined) && is_whole
    })
}
