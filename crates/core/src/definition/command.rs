//! Reads a check's command as far as needed to know which programs it runs and on what.
//!
//! Not a shell: quoting, sequences, pipelines, sub-shells, `cd`, variables with plain values, loops over
//! words and the usual wrappers are understood; what is computed while it runs is not.

use std::collections::BTreeMap;

/// One program with its arguments, and where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Simple {
    /// The directory it runs in, relative to where the whole command starts; empty for that itself.
    pub(super) directory: String,
    pub(super) words: Vec<String>,
    /// What it prints are arguments of a program that runs something, as in `pytest $(cat list)`.
    pub(super) is_argument: bool,
}

impl Simple {
    /// The program's name without its directory.
    pub(super) fn program(&self) -> &str {
        let first = self.words.first().map_or("", String::as_str);
        first.rsplit('/').next().unwrap_or(first)
    }

    /// What follows the program.
    pub(super) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// How deep `sh -c` and substitutions are followed.
const MAX_DEPTH: usize = 4;

/// How many commands one command stands for, where its variables have several values.
const MAX_VARIANTS: usize = 100;

/// The programs that a command line runs, in their order.
pub(super) fn simple_commands(line: &str) -> Vec<Simple> {
    Scope::default().commands(line)
}

/// The variables that a script has set to plain text so far; of a loop, all values that it goes through.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    variables: BTreeMap<String, Vec<String>>,
}

impl Scope {
    /// The programs that the next line runs, in their order.
    pub(super) fn commands(&mut self, line: &str) -> Vec<Simple> {
        let mut found = Vec::new();
        self.read(line, "", 0, &mut found);
        found
    }

    fn read(&mut self, line: &str, directory: &str, depth: usize, found: &mut Vec<Simple>) {
        let mut directories = vec![directory.to_owned()];
        for (words, inner) in split(line) {
            let directory = directories.first().cloned().unwrap_or_default();
            let from = found.len();
            if depth < MAX_DEPTH {
                for text in &inner {
                    self.read(text, &directory, depth + 1, found);
                }
            }
            if self.is_assigned(&words) {
                continue;
            }
            let words = without_wrappers(&words);
            for words in self.filled_in(&words) {
                let words = without_wrappers(&words);
                let Some(program) = words.first() else { continue };
                let name = program.rsplit('/').next().unwrap_or(program);
                if super::runners::runs_others(name) {
                    found[from..].iter_mut().for_each(|simple| simple.is_argument = true);
                }
                if name == "cd" {
                    let target = words.get(1).map_or("", String::as_str);
                    directories.push(join(&directory, target));
                    continue;
                }
                match shell_text(name, &words).filter(|_| depth < MAX_DEPTH) {
                    Some(text) => self.read(&text, &directory, depth + 1, found),
                    None => found.extend(directories.iter().map(|directory| Simple {
                        directory: directory.clone(),
                        words: words.clone(),
                        is_argument: false,
                    })),
                }
            }
            // After `cd` everything is there; with several values, in each of them.
            if directories.len() > 1 && words.first().is_some_and(|word| word == "cd") {
                directories.remove(0);
            }
        }
    }

    /// `NAME=value`, `export NAME=value` and `for NAME in …` set variables and run nothing.
    fn is_assigned(&mut self, words: &[String]) -> bool {
        let mut words = words;
        while words.first().is_some_and(|word| is_keyword(word)) {
            words = &words[1..];
        }
        if let [first, name, _in, values @ ..] = words
            && first == "for"
        {
            let values = values.iter().flat_map(|value| self.filled_in(std::slice::from_ref(value)));
            let values: Vec<String> = values.flatten().take(MAX_VARIANTS).collect();
            self.set(name, values);
            return true;
        }
        if words
            .first()
            .is_some_and(|word| matches!(word.as_str(), "export" | "readonly" | "local" | "declare"))
        {
            words = &words[1..];
        }
        let is_it = !words.is_empty() && words.iter().all(|word| is_assignment(word));
        for word in words.iter().filter(|_| is_it) {
            let word =
                self.filled_in(std::slice::from_ref(word)).into_iter().next().unwrap_or_default().join(" ");
            if let Some((name, value)) = word.split_once('=') {
                self.set(name, vec![value.to_owned()]);
            }
        }
        is_it
    }

    fn set(&mut self, name: &str, values: Vec<String>) {
        let is_plain = |value: &String| !value.contains(['$', '`']);
        match !values.is_empty() && values.iter().all(is_plain) {
            true => self.variables.insert(name.to_owned(), values),
            false => self.variables.remove(name),
        };
    }

    /// A command with its variables filled in, once for each of their values.
    fn filled_in(&self, words: &[String]) -> Vec<Vec<String>> {
        let mut all = vec![words.to_vec()];
        for (name, values) in &self.variables {
            let forms = [format!("${{{name}}}"), format!("${name}")];
            if !words.iter().any(|word| forms.iter().any(|form| word.contains(form.as_str()))) {
                continue;
            }
            let each = values.iter().flat_map(|value| {
                all.iter()
                    .map(|words| words.iter().flat_map(|word| with_value(word, &forms, value)).collect())
            });
            all = each.take(MAX_VARIANTS).collect();
        }
        all
    }
}

/// A word with a variable's value in place of its name; several words where nothing else stands in it.
fn with_value(word: &str, forms: &[String; 2], value: &str) -> Vec<String> {
    let [braced, bare] = forms;
    if word == braced || word == bare {
        return value.split_whitespace().map(str::to_owned).collect();
    }
    let mut text = String::new();
    let mut rest = word;
    while let Some(at) = rest.find(bare.as_str()).into_iter().chain(rest.find(braced.as_str())).min() {
        let form = if rest[at..].starts_with(braced.as_str()) { braced } else { bare };
        let after = &rest[at + form.len()..];
        text.push_str(&rest[..at]);
        // `$S` is no part of `$SH`.
        let goes_on = form == bare && after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        text.push_str(if goes_on { form } else { value });
        rest = after;
    }
    text.push_str(rest);
    vec![text]
}

/// The text of `sh -c TEXT`, also as `bash -euxc` and `eval`.
fn shell_text(name: &str, words: &[String]) -> Option<String> {
    if name == "eval" {
        return Some(words[1..].join(" "));
    }
    if !matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "script" | "su" | "runuser") {
        return None;
    }
    let mut rest = words[1..].iter();
    while let Some(word) = rest.next() {
        if !word.starts_with(['-', '+']) && name != "su" && name != "runuser" {
            return None;
        }
        if word == "--command" || word.starts_with('-') && !word.starts_with("--") && word.ends_with('c') {
            return rest.next().cloned();
        }
        if let Some(text) = word.strip_prefix("--command=") {
            return Some(text.to_owned());
        }
        if word.ends_with('o') && !word.starts_with("--") {
            rest.next();
        }
    }
    None
}

/// Programs whose arguments are a program again, and how many further words each takes.
const WRAPPERS: [(&str, usize); 32] = [
    ("strace", 0),
    ("ltrace", 0),
    ("valgrind", 0),
    ("unbuffer", 0),
    ("unshare", 0),
    ("faketime", 1),
    ("taskset", 1),
    ("watch", 0),
    ("firejail", 0),
    ("env", 0),
    ("time", 0),
    ("exec", 0),
    ("command", 0),
    ("builtin", 0),
    ("nohup", 0),
    ("nice", 0),
    ("ionice", 0),
    ("timeout", 1),
    ("gtimeout", 1),
    ("sudo", 0),
    ("doas", 0),
    ("xvfb-run", 0),
    ("stdbuf", 0),
    ("setsid", 0),
    ("flock", 1),
    ("chronic", 0),
    ("caffeinate", 0),
    ("retry", 1),
    ("dotenv", 0),
    ("cross-env", 0),
    ("then", 0),
    ("do", 0),
];

/// Options of wrappers that take a value of their own.
const WITH_VALUE: [&str; 8] = ["-n", "-c", "-u", "-s", "-k", "--signal", "--kill-after", "-p"];

fn without_wrappers(words: &[String]) -> Vec<String> {
    let mut rest = words;
    loop {
        while rest.first().is_some_and(|word| is_assignment(word) || is_keyword(word)) {
            rest = &rest[1..];
        }
        let Some(first) = rest.first() else { return Vec::new() };
        let name = first.rsplit('/').next().unwrap_or(first);
        let Some((_, takes)) = WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name) else {
            return rest.to_vec();
        };
        let is_tracer = matches!(name, "strace" | "ltrace");
        rest = &rest[1..];
        while let Some(option) = rest.first().filter(|word| word.starts_with('-') && word.len() > 1) {
            if name == "env"
                && let Some(words) = split_string(rest)
            {
                return without_wrappers(&words);
            }
            let is_traced = is_tracer && matches!(option.as_str(), "-o" | "-e" | "-P" | "-E" | "-a");
            let takes_value =
                is_traced || WITH_VALUE.contains(&option.as_str()) && !(is_tracer && option == "-c");
            let taken = if takes_value { 2 } else { 1 };
            rest = rest.get(taken..).unwrap_or_default();
            if option == "--" {
                break;
            }
        }
        while rest.first().is_some_and(|word| is_assignment(word)) {
            rest = &rest[1..];
        }
        rest = rest.get(*takes..).unwrap_or_default();
    }
}

/// The words of `env -S "TEXT"`, from the option on.
fn split_string(options: &[String]) -> Option<Vec<String>> {
    let (option, rest) = options.split_first()?;
    let (text, rest) = match option.strip_prefix("--split-string") {
        Some("") => rest.split_first()?,
        Some(text) => return Some(words_and(text.trim_start_matches('='), rest)),
        None if option.starts_with("--") => return None,
        None => match option.split_once('S')? {
            (_, "") => rest.split_first()?,
            (_, text) => return Some(words_and(text, rest)),
        },
    };
    Some(words_and(text, rest))
}

fn words_and(text: &str, rest: &[String]) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).chain(rest.iter().cloned()).collect()
}

fn is_keyword(word: &str) -> bool {
    matches!(word, "!" | "if" | "while" | "until" | "{" | "else" | "elif" | "then" | "do")
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// One command's words, and the texts of substitutions inside it.
type Piece = (Vec<String>, Vec<String>);

/// Splits at `;`, `&&`, `||`, `|`, `&`, line ends and brackets, with regard to quotes.
fn split(line: &str) -> Vec<Piece> {
    let mut splitter = Splitter::default();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(next) => splitter.push(next),
            },
            '\'' => splitter.quoted(chars.by_ref().take_while(|c| *c != '\'').collect::<String>().as_str()),
            '"' => double_quoted(&mut chars, &mut splitter),
            '`' => splitter.inner.push(chars.by_ref().take_while(|c| *c != '`').collect()),
            '$' if chars.peek() == Some(&'(') => {
                chars.next();
                splitter.inner.push(balanced(&mut chars));
                splitter.push('$');
            }
            '#' if !splitter.in_word => {
                while chars.peek().is_some_and(|c| *c != '\n') {
                    chars.next();
                }
            }
            ' ' | '\t' | '\r' => splitter.end_word(),
            // What another command prints, in the place of a file.
            '<' | '>' if chars.peek() == Some(&'(') => {
                chars.next();
                splitter.inner.push(balanced(&mut chars));
                splitter.push('-');
            }
            '<' | '>' => {
                splitter.end_redirected_number();
                let mut is_input = c == '<';
                while chars.next_if(|c| matches!(c, '<' | '>' | '&' | '-' | '|')).is_some() {
                    is_input = false;
                }
                splitter.next_word = if is_input { Next::Input } else { Next::Output };
            }
            ';' | '|' | '&' | '\n' | '(' | ')' => splitter.end_command(),
            c => splitter.push(c),
        }
    }
    splitter.end_command();
    splitter.pieces
}

fn double_quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, splitter: &mut Splitter) {
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => text.extend(chars.next()),
            '`' => splitter.inner.push(chars.by_ref().take_while(|c| *c != '`').collect()),
            '$' if chars.peek() == Some(&'(') => {
                chars.next();
                splitter.inner.push(balanced(chars));
                text.push('$');
            }
            c => text.push(c),
        }
    }
    splitter.quoted(&text);
}

/// Up to the bracket that closes what was opened just before.
fn balanced(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let (mut text, mut depth) = (String::new(), 1);
    for c in chars.by_ref() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        text.push(c);
    }
    text
}

#[derive(Default)]
struct Splitter {
    pieces: Vec<Piece>,
    words: Vec<String>,
    inner: Vec<String>,
    word: String,
    in_word: bool,
    next_word: Next,
    /// The file that standard input is read from.
    input: Option<String>,
}

/// What the next word is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    #[default]
    Argument,
    Input,
    /// Where output goes, or what ends a text that follows.
    Output,
}

impl Splitter {
    fn push(&mut self, c: char) {
        self.word.push(c);
        self.in_word = true;
    }

    fn quoted(&mut self, text: &str) {
        self.word.push_str(text);
        self.in_word = true;
    }

    fn end_word(&mut self) {
        if !std::mem::take(&mut self.in_word) {
            return;
        }
        let word = std::mem::take(&mut self.word);
        match std::mem::take(&mut self.next_word) {
            Next::Argument => self.words.push(word),
            Next::Input => self.input = Some(word),
            Next::Output => {}
        }
    }

    /// `2>file`: the number belongs to the redirection.
    fn end_redirected_number(&mut self) {
        if self.in_word && self.word.bytes().all(|byte| byte.is_ascii_digit()) {
            self.word.clear();
            self.in_word = false;
        }
        self.end_word();
    }

    fn end_command(&mut self) {
        self.end_word();
        self.next_word = Next::Argument;
        if let Some(input) = self.input.take() {
            if reads_its_program(&self.words) {
                self.words.retain(|word| !matches!(word.as_str(), "-" | "/dev/stdin"));
                self.words.push(input);
            } else if self
                .words
                .first()
                .is_some_and(|word| matches!(word.as_str(), "xargs" | "parallel" | "done"))
            {
                // What they go through comes from a file, as if another command had printed it.
                self.pieces.push((vec!["cat".to_owned(), input], Vec::new()));
            }
        }
        if !self.words.is_empty() || !self.inner.is_empty() {
            self.pieces.push((std::mem::take(&mut self.words), std::mem::take(&mut self.inner)));
        }
    }
}

/// With nothing but options, such a program runs what it reads from standard input.
pub(super) fn reads_its_program(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_stdin = |word: &String| word.starts_with('-') || word == "/dev/stdin";
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "python" | "node" | "ruby" | "perl")
        && arguments.iter().all(is_stdin)
}

/// The values that a line sets `PATH` to.
pub(super) fn search_paths(line: &str) -> Vec<String> {
    let words = split(line).into_iter().flat_map(|(words, _)| words);
    words.filter_map(|word| word.strip_prefix("PATH=").map(str::to_owned)).collect()
}

/// A command with the directory it runs in written as `.`.
pub(super) fn with_work_directory(line: &str) -> String {
    ["${PWD}", "$(pwd)", "`pwd`"]
        .iter()
        .fold(line.to_owned(), |line, form| line.replace(form, "."))
        .replace("$PWD/", "./")
}

/// A script with its own directory written out where it asks for that, and with variables that are set to
/// such a place, or to plain text, filled in.
pub(super) fn with_known_places(script: &str, own_directory: &str) -> String {
    let mut text = script.to_owned();
    for form in OWN_DIRECTORY {
        text = text.replace(form, own_directory);
    }
    // The path itself, or going there and asking where that is.
    for (start, end) in [("$(cd ", "&& pwd)"), ("$(cd -- ", "&& pwd)"), ("$(realpath ", ")")] {
        while let Some((at, length, place)) = enclosed(&text, start, end) {
            text.replace_range(at..at + length, &place);
        }
    }
    let mut known: Vec<(String, String)> = Vec::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        for (name, value) in &known {
            line = line
                .replace(&format!("${{{name}}}"), value)
                .replace(&format!("${name}/"), &format!("{value}/"));
        }
        let plain = line.trim();
        let plain = ["export ", "readonly ", "local "]
            .iter()
            .find_map(|word| plain.strip_prefix(word))
            .unwrap_or(plain);
        if let Some((name, value)) = plain.split_once('=').filter(|_| is_assignment(plain)) {
            let value = value.trim_matches(['"', '\'']);
            known.retain(|(other, _)| other != name);
            if !value.contains(['$', '`', ' ', ';', '"', '\'']) {
                known.push((name.to_owned(), value.to_owned()));
            }
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// How shell scripts ask for the directory they are in.
const OWN_DIRECTORY: [&str; 12] = [
    "$(dirname \"$0\")",
    "$(dirname $0)",
    "$(dirname -- \"$0\")",
    "$(dirname \"${0}\")",
    "$(dirname \"${BASH_SOURCE[0]}\")",
    "$(dirname ${BASH_SOURCE[0]})",
    "$(dirname -- \"${BASH_SOURCE[0]}\")",
    "$(dirname \"$BASH_SOURCE\")",
    "`dirname \"$0\"`",
    "`dirname $0`",
    "${0%/*}",
    "${BASH_SOURCE%/*}",
];

/// Where `start`, a plain path and `end` stand, how long that is, and the path.
fn enclosed(text: &str, start: &str, end: &str) -> Option<(usize, usize, String)> {
    text.match_indices(start).find_map(|(at, _)| {
        let rest = &text[at + start.len()..];
        let (place, _) = rest.split_once(end)?;
        let length = start.len() + place.len() + end.len();
        let place = place.trim().trim_end_matches(">/dev/null").trim().trim_matches(['"', '\'']);
        let is_plain = !place.contains(['$', '`', '(', ';', '&', '\n', ' ']);
        is_plain.then(|| (at, length, place.to_owned()))
    })
}

/// A path as it is from the start, without `.` and with `..` taken back; one that leads out stays as
/// it is and means nothing in the tree.
pub(super) fn join(directory: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let root = if directory.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[(&str, &[&str])]) {
        let found = simple_commands(line);
        let found: Vec<(&str, Vec<&str>)> = found
            .iter()
            .map(|simple| (simple.directory.as_str(), simple.words.iter().map(String::as_str).collect()))
            .collect();
        let expected: Vec<(&str, Vec<&str>)> =
            expected.iter().map(|(directory, words)| (*directory, words.to_vec())).collect();
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn sequences_and_pipelines() {
        check("make test", &[("", &["make", "test"])]);
        check("a 'b c' && d | e; f", &[("", &["a", "b c"]), ("", &["d"]), ("", &["e"]), ("", &["f"])]);
        check("(cd app && ./verify.sh) || exit 1", &[("app", &["./verify.sh"]), ("app", &["exit", "1"])]);
        check(
            "python3 src/app.py 2>&1 > out.txt | grep -q new",
            &[("", &["python3", "src/app.py"]), ("", &["grep", "-q", "new"])],
        );
        check(
            "test \"$(node index.js)\" = 3",
            &[("", &["node", "index.js"]), ("", &["test", "$", "=", "3"])],
        );
        check("a # b; c\nd", &[("", &["a"]), ("", &["d"])]);
        check("if ! ./x; then exit 1; fi", &[("", &["./x"]), ("", &["exit", "1"]), ("", &["fi"])]);
    }

    #[test]
    fn a_scripts_own_directory_is_known() {
        for (script, expected) in [
            (". \"$(dirname \"$0\")/lib.sh\"", ". \"ci/lib.sh\""),
            (". ${0%/*}/lib.sh", ". ci/lib.sh"),
            (". \"$(cd \"$(dirname \"$0\")\" && pwd)/lib.sh\"", ". \"ci/lib.sh\""),
            (
                "d=$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" >/dev/null && pwd)\n. \"$d/lib.sh\"",
                "d=ci\n. \"ci/lib.sh\"",
            ),
            ("d=a\nd=$(mktemp)\n. ${d}/lib.sh", "d=a\nd=$(mktemp)\n. ${d}/lib.sh"),
        ] {
            assert_eq!(with_known_places(script, "ci"), expected);
        }
        assert_eq!(with_work_directory(". \"$PWD/lib.sh\" $PWDX"), ". \"./lib.sh\" $PWDX");
    }

    #[test]
    fn wrappers_are_looked_through() {
        for line in [
            "timeout 60 ./v.sh",
            "timeout -k 5 60 ./v.sh",
            "nice -n 5 ./v.sh",
            "env CI=1 ./v.sh",
            "CI=1 A=b ./v.sh",
            "sh -c './v.sh'",
            "bash -euo pipefail -c './v.sh'",
            "bash -lc \"exec ./v.sh\"",
            "time nohup ./v.sh",
        ] {
            check(line, &[("", &["./v.sh"])]);
        }
        check("sh -c 'cd a && ./b.sh' c", &[("a", &["./b.sh"])]);
        check("sh check.sh", &[("", &["sh", "check.sh"])]);
        check("sh < check.sh 2>&1", &[("", &["sh", "check.sh"])]);
        check("python3 <check.py >out", &[("", &["python3", "check.py"])]);
        check("bash -s < check.sh", &[("", &["bash", "-s", "check.sh"])]);
        check("sh /dev/stdin < check.sh", &[("", &["sh", "check.sh"])]);
        check("python3 - < check.py", &[("", &["python3", "check.py"])]);
        check("sort < list; sh << E", &[("", &["sort"]), ("", &["sh"])]);
    }

    #[test]
    fn paths_are_put_together() {
        for (directory, path, expected) in [
            ("", "./a", "a"),
            ("app", "../verify.sh", "verify.sh"),
            ("", "a/../verify.sh", "verify.sh"),
            ("a/b", "../../c", "c"),
            ("", "../outside", "../outside"),
            ("a", "/abs", "/abs"),
            ("/abs", "a", "/abs/a"),
        ] {
            assert_eq!(join(directory, path), expected);
        }
    }
}
