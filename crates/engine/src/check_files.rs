//! Which files of the work tree a check's command runs or names.
//!
//! Whoever edits the script that judges them has no verdict. A file that is only looked at
//! (`test -f out.txt`) is the very thing an agent is meant to write.

/// What a check does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckFile {
    /// It is the program, or the script an interpreter is given.
    Run,
    Named,
}

/// Programs whose first plain argument is a program itself.
const INTERPRETERS: [&str; 16] = [
    "sh", "bash", "dash", "zsh", "python", "python3", "node", "deno", "bun", "ruby", "perl", "php", "lua",
    "tclsh", "source", ".",
];

/// The words of a command that could be files, each with its part.
pub(crate) fn check_files(command: &str) -> Vec<(String, CheckFile)> {
    let mut files = Vec::new();
    for simple in command.split([';', '|', '&', '\n', '(', ')', '`']) {
        let words: Vec<&str> = simple
            .split(|c: char| c.is_whitespace() || c == '<' || c == '>')
            .map(|word| word.trim_matches(['\'', '"']))
            .filter(|word| !word.is_empty())
            .skip_while(|word| is_assignment(word) || matches!(*word, "env" | "time" | "exec" | "command"))
            .collect();
        let Some(program) = words.first() else { continue };
        let name = program.rsplit('/').next().unwrap_or(program);
        let script = INTERPRETERS.contains(&name).then(|| script_position(&words)).flatten();
        for (position, word) in words.iter().enumerate() {
            let part =
                if position == 0 || Some(position) == script { CheckFile::Run } else { CheckFile::Named };
            files.push((word.strip_prefix("./").unwrap_or(word).to_owned(), part));
        }
    }
    // A file both run and named is run.
    files.sort_by_key(|(_, part)| *part == CheckFile::Run);
    files
}

/// The first argument that is no flag; none if the program itself is an argument (`-c`, `-m`, `-e`).
fn script_position(words: &[&str]) -> Option<usize> {
    for (position, word) in words.iter().enumerate().skip(1) {
        match *word {
            "-c" | "-m" | "-e" | "--eval" => return None,
            flag if flag.starts_with('-') => {}
            "run" | "test" => {}
            _ => return Some(position),
        }
    }
    None
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_run_and_data_is_only_named() {
        let check = |command: &str, file: &str, expected: Option<CheckFile>| {
            let files = check_files(command);
            let found = files.iter().rev().find(|(name, _)| name == file).map(|(_, part)| *part);
            assert_eq!(found, expected, "{command}: {file}");
        };
        use CheckFile::{Named, Run};
        check("sh check.sh", "check.sh", Some(Run));
        check("./check.sh fast", "check.sh", Some(Run));
        check("bash -eu scripts/verify.sh all", "scripts/verify.sh", Some(Run));
        check("CI=1 python3 tools/verify.py --all", "tools/verify.py", Some(Run));
        check("cd app && node check.js", "check.js", Some(Run));
        check("sh -c 'exit 0' check.sh", "check.sh", Some(Named));
        check("python3 -m pytest tests/test_a.py", "tests/test_a.py", Some(Named));
        check("test -f out.txt", "out.txt", Some(Named));
        check("grep -q hello greeting.txt", "greeting.txt", Some(Named));
        check("cargo test", "Cargo.toml", None);
        check("test -f check.sh && sh check.sh", "check.sh", Some(Run));
    }
}
