//! Sets a directory up for wiggum: a commented `wiggum.toml`, a `PROMPT.md`, and a line in
//! `.gitignore`.
//!
//! Nothing that exists is lost: files are kept as they are, or with `force` replaced after a copy
//! was saved beside them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::generate::{Preset, commented_toml};
use crate::config::value::Value;
use crate::config::{self, Flags, Sources, WORKSPACE_FILE};
use crate::detect::{Detected, detect};

#[derive(Clone, Copy, Debug)]
pub(crate) struct InitOptions<'a> {
    /// Replace files that exist, after saving a copy.
    pub(crate) force: bool,
    /// The text of `PROMPT.md`.
    pub(crate) prompt: &'a str,
    /// File names of backlogs, in the order in which they are tried.
    pub(crate) backlog_names: &'a [&'a str],
}

/// What was found and done. Its `Display` is what people read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct InitReport {
    pub(crate) detected: Detected,
    pub(crate) files: Vec<FileReport>,
    /// What to do before the first run, in words.
    pub(crate) missing: Option<String>,
    /// The commands to type next, in this order.
    pub(crate) next: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FileReport {
    /// Relative to the directory.
    pub(crate) path: &'static str,
    #[serde(flatten)]
    pub(crate) change: FileChange,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub(crate) enum FileChange {
    Written,
    /// It was there, and still is as it was.
    Kept,
    Replaced {
        backup: PathBuf,
    },
    /// Lines were added at its end.
    Extended,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum InitError {
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Looks at the directory and writes what is missing.
pub(crate) fn init(directory: &Path, options: InitOptions<'_>) -> Result<InitReport, InitError> {
    if !directory.is_dir() {
        return Err(InitError::NotADirectory(directory.to_owned()));
    }
    let detected = detect(directory, options.backlog_names);
    let in_git = is_in_git(directory);
    let mut files = vec![
        put(directory, WORKSPACE_FILE, &commented_toml(&presets(&detected)), options.force)?,
        put(directory, PROMPT_FILE, options.prompt, options.force)?,
    ];
    if in_git {
        files.push(ignore_state(directory)?);
    }
    let missing = detected.backlog.is_none().then(|| no_backlog(options.backlog_names));
    let next = next_commands(directory, &files, in_git);
    Ok(InitReport { detected, files, missing, next })
}

const PROMPT_FILE: &str = "PROMPT.md";
const IGNORE_FILE: &str = ".gitignore";
const IGNORE_LINE: &str = ".wiggum/\n";

/// What the generated file sets: only what was found, and says so.
fn presets(detected: &Detected) -> Vec<Preset> {
    let backlog = detected.backlog.as_ref().map(|found| Preset {
        key: "backlog",
        value: Value::Text(found.value.display().to_string()),
        because: found.because.clone(),
    });
    let verify = detected.verify.as_ref().map(|found| Preset {
        key: "checks.verify",
        value: Value::List(vec![found.value.clone()]),
        because: found.because.clone(),
    });
    backlog.into_iter().chain(verify).collect()
}

fn put(directory: &Path, name: &'static str, text: &str, force: bool) -> Result<FileReport, InitError> {
    let path = directory.join(name);
    let report = |change| FileReport { path: name, change };
    match write_new(&path, text.as_bytes()) {
        Ok(()) => return Ok(report(FileChange::Written)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(InitError::Write { path, source }),
    }
    if !force {
        return Ok(report(FileChange::Kept));
    }
    let old = fs::read(&path).map_err(|source| InitError::Read { path: path.clone(), source })?;
    if old == text.as_bytes() {
        return Ok(report(FileChange::Kept));
    }
    let backup = save_copy(directory, name, &old)?;
    fs::write(&path, text).map_err(|source| InitError::Write { path, source })?;
    Ok(report(FileChange::Replaced { backup }))
}

/// Saves `wiggum.toml.bak`, or `.bak2` and so on: an older copy is not lost either.
fn save_copy(directory: &Path, name: &str, text: &[u8]) -> Result<PathBuf, InitError> {
    let mut number = 1;
    loop {
        let suffix = if number == 1 { String::new() } else { number.to_string() };
        let backup = PathBuf::from(format!("{name}.bak{suffix}"));
        let path = directory.join(&backup);
        match write_new(&path, text) {
            Ok(()) => return Ok(backup),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(source) => return Err(InitError::Write { path, source }),
        }
    }
}

/// Fails if there is anything of that name, also something that appeared just now.
fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

fn ignore_state(directory: &Path) -> Result<FileReport, InitError> {
    let path = directory.join(IGNORE_FILE);
    let report = |change| FileReport { path: IGNORE_FILE, change };
    let (old, change) = match fs::read(&path) {
        Ok(old) => (old, FileChange::Extended),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), FileChange::Written),
        Err(source) => return Err(InitError::Read { path, source }),
    };
    let Some(addition) = ignore_addition(&old) else { return Ok(report(FileChange::Kept)) };
    let appended = OpenOptions::new().append(true).create(true).open(&path);
    let appended = appended.and_then(|mut file| file.write_all(addition.as_bytes()));
    appended.map_err(|source| InitError::Write { path, source })?;
    Ok(report(change))
}

/// What to add to a `.gitignore` so that our state is ignored; nothing if it already is.
fn ignore_addition(old: &[u8]) -> Option<String> {
    let lines = old.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    // The last line that is about our state decides, as it does for git.
    let last = lines.rev().find_map(|line| {
        let (line, ignores) = line.strip_prefix(b"!").map_or((line, true), |line| (line, false));
        let line = line.strip_prefix(b"/").or_else(|| line.strip_prefix(b"**/")).unwrap_or(line);
        let ours: [&[u8]; 4] = [b".wiggum", b".wiggum/", b".wiggum/*", b".wiggum/**"];
        ours.contains(&line).then_some(ignores)
    });
    if last == Some(true) {
        return None;
    }
    let separator = match old {
        [] | [.., b'\n'] => "",
        _ if old.windows(2).any(|pair| pair == b"\r\n") => "\r\n",
        _ => "\n",
    };
    Some(format!("{separator}{IGNORE_LINE}"))
}

/// A work tree has a `.git`: a directory, or a file in a linked work tree or submodule.
fn is_in_git(directory: &Path) -> bool {
    let absolute = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    absolute.ancestors().any(|ancestor| ancestor.join(".git").exists())
}

fn no_backlog(names: &[&str]) -> String {
    match names {
        [] => "no backlog was found".to_owned(),
        names => format!("no backlog was found: write your tasks into one ({})", names.join(", ")),
    }
}

fn next_commands(directory: &Path, files: &[FileReport], in_git: bool) -> Vec<String> {
    let changed = files.iter().filter(|file| file.change != FileChange::Kept);
    let changed: Vec<_> = changed.map(|file| file.path).collect();
    let mut commands = Vec::new();
    // A run wants a clean tree, which a changed `.gitignore` is not.
    if in_git && !changed.is_empty() {
        let files = changed.join(" ");
        commands.push(format!("git add {files} && git commit -m \"Set up wiggum\" -- {files}"));
    }
    commands.push(match has_agent(directory) {
        true => "wiggum run".to_owned(),
        false => "wiggum run --agent claude".to_owned(),
    });
    commands
}

/// Does the file that is there now, perhaps an older one that was kept, name an agent?
fn has_agent(directory: &Path) -> bool {
    let sources =
        Sources { workspace: directory, user_file: None, env: &BTreeMap::new(), flags: &Flags::default() };
    config::resolve(&sources)
        .is_ok_and(|config| config.agent.command.is_some() || config.agent.scenario.is_some())
}

impl fmt::Display for InitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Detected { backlog, language, verify } = &self.detected;
        if let Some(found) = backlog {
            writeln!(f, "backlog   {}", found.value.display())?;
        }
        if let Some(found) = language {
            writeln!(f, "language  {} ({})", found.value, found.because)?;
        }
        match verify {
            Some(found) => writeln!(f, "verify    {} ({})", found.value, found.because)?,
            None => {
                writeln!(f, "verify    nothing found: set `verify` in {WORKSPACE_FILE} to have work checked")?
            }
        }
        writeln!(f)?;
        for file in &self.files {
            writeln!(f, "{file}")?;
        }
        if let Some(missing) = &self.missing {
            writeln!(f, "\n{missing}")?;
        }
        writeln!(f, "\nNext:")?;
        self.next.iter().try_for_each(|command| writeln!(f, "  {command}"))
    }
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path;
        match &self.change {
            FileChange::Written => write!(f, "wrote     {path}"),
            FileChange::Kept if path == IGNORE_FILE => {
                write!(f, "kept      {path} (ignores .wiggum/ already)")
            }
            FileChange::Kept => write!(f, "kept      {path} (it was there; --force replaces it)"),
            FileChange::Replaced { backup } => write!(f, "replaced  {path} (saved as {})", backup.display()),
            FileChange::Extended => write!(f, "extended  {path} (.wiggum/ added)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "Do the task.\n";

    struct Place(tempfile::TempDir);

    impl Place {
        fn new(files: &[(&str, &str)]) -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            for (name, text) in files {
                let path = place.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            place
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.path().join(name)).unwrap()
        }

        fn init(&self, force: bool) -> InitReport {
            let options = InitOptions { force, prompt: PROMPT, backlog_names: &["PRD.json", "tasks.json"] };
            init(self.path(), options).unwrap()
        }

        fn config(&self) -> config::Config {
            let env = BTreeMap::new();
            let flags = Flags::default();
            config::resolve(&Sources { workspace: self.path(), user_file: None, env: &env, flags: &flags })
                .unwrap()
        }
    }

    #[test]
    fn a_fresh_project() {
        let place = Place::new(&[(".git/HEAD", ""), ("Cargo.toml", ""), ("PRD.json", "{}")]);
        let report = place.init(false);
        assert_eq!(
            report.to_string(),
            "\
backlog   PRD.json
language  Rust (found Cargo.toml)
verify    cargo test (found Cargo.toml)

wrote     wiggum.toml
wrote     PROMPT.md
wrote     .gitignore

Next:
  git add wiggum.toml PROMPT.md .gitignore && git commit -m \"Set up wiggum\" -- wiggum.toml PROMPT.md .gitignore
  wiggum run --agent claude
"
        );
        assert_eq!(place.read(".gitignore"), ".wiggum/\n");
        assert_eq!(place.read("PROMPT.md"), PROMPT);
        let config = place.config();
        assert_eq!(config.policy.checks.verify, ["cargo test"]);
        assert_eq!(config.backlog, Some(place.path().join("PRD.json")));
        let set: Vec<_> =
            config.explain().into_iter().filter(|row| row.source != config::ConfigSource::Default).collect();
        assert_eq!(set.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["backlog", "checks.verify"]);
    }

    #[test]
    fn an_empty_directory() {
        let place = Place::new(&[]);
        assert_eq!(
            place.init(false).to_string(),
            "\
verify    nothing found: set `verify` in wiggum.toml to have work checked

wrote     wiggum.toml
wrote     PROMPT.md

no backlog was found: write your tasks into one (PRD.json, tasks.json)

Next:
  wiggum run --agent claude
"
        );
        assert!(!place.path().join(".gitignore").exists());
        assert_eq!(place.config(), config::Config::default());
    }

    #[test]
    fn what_exists_is_kept() {
        let own = "[agent]\ncommand = \"mine\"\n";
        let place = Place::new(&[("wiggum.toml", own), ("PROMPT.md", "mine"), ("PRD.json", "{}")]);
        let report = place.init(false);
        assert_eq!(report.files.iter().map(|file| &file.change).collect::<Vec<_>>(), [&FileChange::Kept; 2]);
        assert_eq!((place.read("wiggum.toml"), place.read("PROMPT.md")), (own.to_owned(), "mine".to_owned()));
        assert_eq!(report.next, ["wiggum run"], "the agent is known");
    }

    #[test]
    fn force_saves_what_it_replaces() {
        let place = Place::new(&[("PROMPT.md", "mine"), ("PROMPT.md.bak", "older")]);
        let report = place.init(true);
        assert_eq!(report.files[1].to_string(), "replaced  PROMPT.md (saved as PROMPT.md.bak2)");
        assert_eq!(place.read("PROMPT.md"), PROMPT);
        assert_eq!(place.read("PROMPT.md.bak"), "older");
        assert_eq!(place.read("PROMPT.md.bak2"), "mine");
        let again = place.init(true);
        assert_eq!(again.files[1].change, FileChange::Kept, "the same text needs no copy");
        assert!(!place.path().join("PROMPT.md.bak3").exists());
    }

    #[test]
    fn doing_it_twice_changes_nothing() {
        let place = Place::new(&[(".git/HEAD", ""), ("wiggum.toml", "")]);
        place.init(false);
        let report = place.init(false);
        assert!(report.files.iter().all(|file| file.change == FileChange::Kept), "{report}");
        assert_eq!(report.next.len(), 1);
        assert_eq!(place.read(".gitignore"), ".wiggum/\n");
    }

    #[test]
    fn gitignore_keeps_its_bytes() {
        let check = |old: &str, expected: &str| {
            let new = format!("{old}{}", ignore_addition(old.as_bytes()).unwrap_or_default());
            assert_eq!(new, expected, "{old:?}");
        };
        check("", ".wiggum/\n");
        check("target\n", "target\n.wiggum/\n");
        check("target", "target\n.wiggum/\n");
        check("a\r\nb\r\n", "a\r\nb\r\n.wiggum/\n");
        check("a\r\nb", "a\r\nb\r\n.wiggum/\n");
        check("#.wiggum/\n", "#.wiggum/\n.wiggum/\n");
        check("src/.wiggum/\n", "src/.wiggum/\n.wiggum/\n");
        check(".wiggum/\n!.wiggum/\n", ".wiggum/\n!.wiggum/\n.wiggum/\n");
        for same in [
            ".wiggum/\n",
            ".wiggum",
            "/.wiggum/\r\nx\r\n",
            "x\n.wiggum/*\n",
            "**/.wiggum\n",
            "!.wiggum\n.wiggum  \n",
        ] {
            check(same, same);
        }
    }

    #[test]
    fn a_folder_of_a_work_tree_is_in_git_too() {
        let place = Place::new(&[(".git", "gitdir: elsewhere"), ("sub/tasks.json", "[]")]);
        let options = InitOptions { force: false, prompt: PROMPT, backlog_names: &[] };
        init(&place.path().join("sub"), options).unwrap();
        assert_eq!(place.read("sub/.gitignore"), ".wiggum/\n");
    }

    #[test]
    fn troubles_name_the_path() {
        let place = Place::new(&[("wiggum.toml/x", ""), ("file", "")]);
        let options = InitOptions { force: true, prompt: PROMPT, backlog_names: &[] };
        let error = init(place.path(), options).unwrap_err().to_string();
        assert_eq!(error, format!("cannot read {}", place.path().join("wiggum.toml").display()));
        let error = init(&place.path().join("file"), options).unwrap_err().to_string();
        assert!(error.ends_with("file is not a directory"), "{error}");
    }
}
