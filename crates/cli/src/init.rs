//! Sets a directory up for wiggum: a commented `wiggum.toml`, a `PROMPT.md`, and what
//! `.gitignore` should have.
//!
//! Nothing that exists is lost: files are kept as they are, or with `force` replaced after a copy
//! was saved beside them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use wiggum_backlog::Backlog;
use wiggum_engine::state_dir::StateDir;
use wiggum_workspace::beneath;
use wiggum_workspace::git::ignoring_state;
use wiggum_workspace::paths::write_atomic;

use crate::config::generate::{Preset, commented_toml};
use crate::config::value::Value;
use crate::config::{self, Flags, Sources, WORKSPACE_FILE};
use crate::detect::{Detected, detect, verify_inside};

#[derive(Clone, Copy, Debug)]
pub(crate) struct InitOptions<'a> {
    /// Where the command was called: the directory that is set up, or one inside it.
    pub(crate) called_in: &'a Path,
    /// Replace files that exist, after saving a copy.
    pub(crate) force: bool,
    /// The text of `PROMPT.md`.
    pub(crate) prompt: &'a str,
    /// File names of backlogs, in the order in which they are tried.
    pub(crate) backlog_names: &'a [&'a str],
    /// The agents that are installed, the usual one first.
    pub(crate) agents: &'a [&'a str],
}

/// What was found and done. Its `Display` is what people read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct InitReport {
    /// Where the files are, if that is not where the command was called.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) detected: Detected,
    /// A backlog nearer to where the command was called, which a run from there takes.
    pub(crate) nearest: Option<PathBuf>,
    /// What is wrong with the backlog that a run from here takes, a line for each.
    pub(crate) problems: Vec<String>,
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
    /// Lines were added.
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
    let mut detected = detect(directory, options.backlog_names);
    if detected.verify.is_none() {
        detected.verify = verify_inside(directory, options.called_in);
    }
    let in_git = is_in_git(directory);
    let mut files = vec![
        put(directory, WORKSPACE_FILE, &commented_toml(&presets(&detected)), options.force)?,
        put(directory, PROMPT_FILE, options.prompt, options.force)?,
    ];
    if in_git {
        files.push(ignore_state(directory)?);
    }
    let nearest = nearest_backlog(directory, options);
    let taken = nearest.as_ref().or(detected.backlog.as_ref().map(|found| &found.value));
    let problems = taken.map(|name| problems_of(directory, name)).unwrap_or_default();
    let has_backlog = detected.backlog.is_some() || nearest.is_some();
    let agent = Agent::of(directory, options.agents);
    let missing: Vec<&str> = [(!has_backlog).then_some(NO_BACKLOG), agent.is_none().then_some(NO_AGENT)]
        .into_iter()
        .flatten()
        .collect();
    let missing = (!missing.is_empty()).then(|| missing.join("\n"));
    let new_backlog = (!has_backlog).then(|| new_backlog(options.backlog_names));
    let next = next_commands(directory, options.called_in, &files, in_git, new_backlog, agent);
    let directory = (options.called_in != directory).then(|| directory.to_owned());
    Ok(InitReport { directory, detected, nearest, problems, files, missing, next })
}

/// The backlog of the nearest directory between where the command was called and the one that is set up.
fn nearest_backlog(directory: &Path, options: InitOptions<'_>) -> Option<PathBuf> {
    let between = options.called_in.ancestors().take_while(|inside| *inside != directory);
    let below = options.called_in.starts_with(directory);
    let find = |inside: &Path| {
        options.backlog_names.iter().map(|name| inside.join(name)).find(|path| path.is_file())
    };
    let found = between.filter(|_| below).find_map(find)?;
    found.strip_prefix(directory).ok().map(Path::to_owned)
}

/// What a run would refuse the backlog for.
fn problems_of(directory: &Path, name: &Path) -> Vec<String> {
    let shown = name.display().to_string();
    let text = match beneath::text_of(&directory.join(name)) {
        Ok(text) => text,
        Err(error) => return vec![format!("{shown}: {error}")],
    };
    let read = Backlog::parse(&shown, text).and_then(|backlog| backlog.recognised());
    read.err().map(|problems| problems.0.iter().map(ToString::to_string).collect()).unwrap_or_default()
}

const PROMPT_FILE: &str = "PROMPT.md";
const IGNORE_FILE: &str = ".gitignore";

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
    let old = beneath::bytes_of(&path).map_err(|source| InitError::Read { path: path.clone(), source })?;
    if old == text.as_bytes() {
        return Ok(report(FileChange::Kept));
    }
    let backup = save_copy(directory, name, &old)?;
    fs::write(&path, text).map_err(|source| InitError::Write { path, source })?;
    Ok(report(FileChange::Replaced { backup }))
}

/// Saves `.wiggum/wiggum.toml.bak`, or `.bak2` and so on: an older copy is not lost either. Git ignores them there, so
/// that the next run finds no uncommitted changes.
fn save_copy(directory: &Path, name: &str, text: &[u8]) -> Result<PathBuf, InitError> {
    let place = directory.join(StateDir::NAME);
    fs::create_dir_all(&place).map_err(|source| InitError::Write { path: place, source })?;
    let mut number = 1;
    loop {
        let suffix = if number == 1 { String::new() } else { number.to_string() };
        let backup = Path::new(StateDir::NAME).join(format!("{name}.bak{suffix}"));
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
    let (old, change) = match beneath::bytes_of(&path) {
        Ok(old) => (old, FileChange::Extended),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), FileChange::Written),
        Err(source) => return Err(InitError::Read { path, source }),
    };
    let Ok(old) = String::from_utf8(old) else { return Ok(report(FileChange::Kept)) };
    let Some(text) = ignoring_state(&old) else { return Ok(report(FileChange::Kept)) };
    write_atomic(&path, text.as_bytes()).map_err(|source| InitError::Write { path, source })?;
    Ok(report(change))
}

/// A work tree has a `.git`: a directory, or a file in a linked work tree or submodule.
fn is_in_git(directory: &Path) -> bool {
    let absolute = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    absolute.ancestors().any(|ancestor| ancestor.join(".git").exists())
}

const NO_BACKLOG: &str =
    "no backlog was found: a file with a line `- [ ] what is to be done` for each task is one";
const NO_AGENT: &str =
    "no agent was found: install one that `wiggum agents` lists, or run a command of your own as the agent";

/// Who would work.
enum Agent<'a> {
    Configured,
    Installed(&'a str),
}

impl<'a> Agent<'a> {
    fn of(directory: &Path, installed: &[&'a str]) -> Option<Self> {
        if has_agent(directory) {
            return Some(Self::Configured);
        }
        installed.first().map(|name| Self::Installed(name))
    }
}

/// The name of a backlog for somebody who has none.
fn new_backlog<'a>(names: &[&'a str]) -> &'a str {
    let simple = names.iter().find(|name| **name == "TODO.md").or(names.first());
    simple.copied().unwrap_or("TODO.md")
}

fn next_commands(
    directory: &Path,
    called_in: &Path,
    files: &[FileReport],
    in_git: bool,
    new_backlog: Option<&str>,
    agent: Option<Agent<'_>>,
) -> Vec<String> {
    let changed = files.iter().filter(|file| file.change != FileChange::Kept);
    let up = way_up(directory, called_in);
    let mut changed: Vec<_> = changed.map(|file| format!("{up}{}", file.path)).collect();
    let mut commands = Vec::new();
    if let Some(backlog) = new_backlog {
        commands.push(format!("echo '- [ ] what is to be done' > {backlog}"));
        changed.push(backlog.to_owned());
    }
    // A run wants a clean tree, which a changed `.gitignore` is not.
    if in_git && !changed.is_empty() {
        let files = changed.join(" ");
        commands.push(format!("git add {files} && git commit -m \"Set up wiggum\" -- {files}"));
    }
    commands.push(match agent {
        Some(Agent::Configured) => "wiggum run".to_owned(),
        Some(Agent::Installed(name)) => format!("wiggum run --agent {name}"),
        None => "wiggum run --agent-command 'your-agent'".to_owned(),
    });
    commands
}

/// What leads from a directory to the one above it that is set up.
fn way_up(directory: &Path, from: &Path) -> String {
    from.strip_prefix(directory).map_or(String::new(), |below| "../".repeat(below.components().count()))
}

/// Does the file that is there now, perhaps an older one that was kept, name an agent?
fn has_agent(directory: &Path) -> bool {
    let sources =
        Sources { workspace: directory, user_file: None, env: &BTreeMap::new(), flags: &Flags::default() };
    config::resolve(&sources)
        .map(|config| config.agent)
        .is_ok_and(|agent| agent.name.is_some() || agent.command.is_some() || agent.scenario.is_some())
}

impl fmt::Display for InitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Detected { backlog, language, verify } = &self.detected;
        if let Some(directory) = &self.directory {
            writeln!(f, "in        {} (the root of the repository)", directory.display())?;
        }
        if let Some(nearest) = &self.nearest {
            writeln!(f, "backlog   {} (the nearest: taken when you run from here)", nearest.display())?;
        }
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
        if !self.problems.is_empty() {
            writeln!(f, "\nThe backlog cannot be worked on yet:")?;
            self.problems.iter().try_for_each(|problem| writeln!(f, "  {problem}"))?;
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
                write!(f, "kept      {path} (ignores the files of wiggum already)")
            }
            FileChange::Kept => write!(f, "kept      {path} (it was there; --force replaces it)"),
            FileChange::Replaced { backup } => write!(f, "replaced  {path} (saved as {})", backup.display()),
            FileChange::Extended => write!(f, "extended  {path} (files of wiggum ignored)"),
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
            self.init_from(self.path(), force)
        }

        fn init_from(&self, called_in: &Path, force: bool) -> InitReport {
            self.init_with(called_in, force, &["claude"])
        }

        fn init_with(&self, called_in: &Path, force: bool, agents: &[&str]) -> InitReport {
            let backlog_names = &["PRD.json", "tasks.json", "TODO.md"];
            init(self.path(), InitOptions { called_in, force, prompt: PROMPT, backlog_names, agents })
                .unwrap()
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
        let place = Place::new(&[(".git/HEAD", ""), ("Cargo.toml", ""), ("PRD.json", "[]")]);
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
        assert_eq!(place.read(".gitignore"), ignoring_state("").unwrap());
        assert_eq!(place.read("PROMPT.md"), PROMPT);
        let config = place.config();
        assert_eq!(config.policy.checks.verify, ["cargo test"]);
        assert_eq!(config.backlog, Some(place.path().join("PRD.json")));
        let set: Vec<_> =
            config.explain().into_iter().filter(|row| row.source != config::ConfigSource::Default).collect();
        assert_eq!(set.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["backlog", "checks.verify"]);
    }

    #[test]
    fn from_a_folder_inside_it_says_where_it_writes() {
        let place = Place::new(&[(".git/HEAD", ""), ("PRD.json", "[]"), ("packages/a/tasks.json", "[]")]);
        let called_in = place.path().join("packages/a");
        let report = place.init_from(&called_in, false).to_string();
        let root = place.path().display();
        assert!(
            report.starts_with(&format!(
                "in        {root} (the root of the repository)\n\
             backlog   packages/a/tasks.json (the nearest: taken when you run from here)\n\
             backlog   PRD.json\n"
            )),
            "{report}"
        );
        let files = "../../wiggum.toml ../../PROMPT.md ../../.gitignore";
        let command = format!("git add {files} && git commit -m \"Set up wiggum\" -- {files}\n");
        assert!(report.contains(&command), "{report}");
        assert!(place.path().join("wiggum.toml").exists() && !called_in.join("wiggum.toml").exists());
        assert_eq!(
            place.config().backlog,
            Some(place.path().join("PRD.json")),
            "not the nearest: that is for here"
        );
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

no backlog was found: a file with a line `- [ ] what is to be done` for each task is one

Next:
  echo '- [ ] what is to be done' > TODO.md
  wiggum run --agent claude
"
        );
        assert!(!place.path().join(".gitignore").exists());
        assert_eq!(place.config(), config::Config::default());
    }

    #[test]
    fn a_broken_backlog_is_told() {
        let broken = r#"[{"id": 1, "status": "pending"}]"#;
        let place = Place::new(&[("tasks.json", broken)]);
        let report = place.init(false);
        let problem = "tasks.json:1: `1`: missing field; expected `description` or `title`";
        assert_eq!(report.problems, [problem]);
        assert!(report.to_string().contains(problem), "{report}");
        assert!(place.read("wiggum.toml").contains("tasks.json"), "its files are written all the same");
        assert_eq!(Place::new(&[("TODO.md", "Nothing but words.\n")]).init(false).problems.len(), 1);
        // An empty list and a good one are fine.
        for text in ["", "# TODO\n", "- [ ] one\n"] {
            assert_eq!(Place::new(&[("TODO.md", text)]).init(false).problems, [""; 0], "{text}");
        }
    }

    #[test]
    fn what_exists_is_kept() {
        let own = "[agent]\ncommand = \"mine\"\n";
        let place = Place::new(&[("wiggum.toml", own), ("PROMPT.md", "mine"), ("PRD.json", "[]")]);
        let report = place.init(false);
        assert_eq!(report.files.iter().map(|file| &file.change).collect::<Vec<_>>(), [&FileChange::Kept; 2]);
        assert_eq!((place.read("wiggum.toml"), place.read("PROMPT.md")), (own.to_owned(), "mine".to_owned()));
        assert_eq!(report.next, ["wiggum run"], "the agent is known");
        let place = Place::new(&[("wiggum.toml", "[agent]\nname = \"codex\"\n"), ("PRD.json", "[]")]);
        assert_eq!(place.init(false).next.last().unwrap(), "wiggum run");
    }

    #[test]
    fn the_next_command_names_an_agent_that_is_there() {
        let place = Place::new(&[("PRD.json", "[]")]);
        let next = |agents: &[&str]| place.init_with(place.path(), false, agents);
        let report = next(&["codex", "gemini"]);
        assert_eq!((report.next, report.missing), (vec!["wiggum run --agent codex".to_owned()], None));
        let report = next(&[]);
        assert_eq!(report.next, ["wiggum run --agent-command 'your-agent'"]);
        assert!(report.missing.unwrap().starts_with("no agent was found: install one"));
    }

    #[test]
    fn whoever_has_no_backlog_is_told_how_to_begin_one() {
        let place = Place::new(&[(".git/HEAD", ""), ("packages/a/README.md", "")]);
        let report = place.init_from(&place.path().join("packages/a"), false);
        let files = "../../wiggum.toml ../../PROMPT.md ../../.gitignore TODO.md";
        let commit = format!("git add {files} && git commit -m \"Set up wiggum\" -- {files}");
        let begin = "echo '- [ ] what is to be done' > TODO.md";
        assert_eq!(report.next, [begin, &commit, "wiggum run --agent claude"]);
        assert!(report.missing.unwrap().starts_with("no backlog was found: "));
    }

    #[test]
    fn the_check_of_the_folder_counts_where_the_root_has_none() {
        let package = r#"{"scripts": {"test": "vitest run"}}"#;
        let files = [(".git/HEAD", ""), ("packages/a/package.json", package), ("PRD.json", "[]")];
        let place = Place::new(&files);
        let report = place.init_from(&place.path().join("packages/a"), false).to_string();
        assert!(report.contains("verify    cd packages/a && npm test (found a test script"), "{report}");
        assert_eq!(place.config().policy.checks.verify, ["cd packages/a && npm test"]);
    }

    #[test]
    fn force_saves_what_it_replaces() {
        let place = Place::new(&[("PROMPT.md", "mine"), (".wiggum/PROMPT.md.bak", "older")]);
        let report = place.init(true);
        assert_eq!(report.files[1].to_string(), "replaced  PROMPT.md (saved as .wiggum/PROMPT.md.bak2)");
        assert_eq!(place.read("PROMPT.md"), PROMPT);
        assert_eq!(place.read(".wiggum/PROMPT.md.bak"), "older");
        assert_eq!(place.read(".wiggum/PROMPT.md.bak2"), "mine");
        let again = place.init(true);
        assert_eq!(again.files[1].change, FileChange::Kept, "the same text needs no copy");
        assert!(!place.path().join(".wiggum/PROMPT.md.bak3").exists());
    }

    #[test]
    fn doing_it_twice_changes_nothing() {
        let place = Place::new(&[(".git/HEAD", ""), ("wiggum.toml", ""), ("PRD.json", "[]")]);
        place.init(false);
        let report = place.init(false);
        assert!(report.files.iter().all(|file| file.change == FileChange::Kept), "{report}");
        assert_eq!(report.next.len(), 1);
        assert_eq!(place.read(".gitignore"), ignoring_state("").unwrap());
    }

    #[test]
    fn a_folder_of_a_work_tree_is_in_git_too() {
        let place = Place::new(&[(".git", "gitdir: elsewhere"), ("sub/tasks.json", "[]")]);
        let sub = place.path().join("sub");
        let options =
            InitOptions { called_in: &sub, force: false, prompt: PROMPT, backlog_names: &[], agents: &[] };
        init(&sub, options).unwrap();
        assert_eq!(place.read("sub/.gitignore"), ignoring_state("").unwrap());
    }

    #[test]
    fn troubles_name_the_path() {
        let place = Place::new(&[("wiggum.toml/x", ""), ("file", "")]);
        let options = InitOptions {
            called_in: place.path(),
            force: true,
            prompt: PROMPT,
            backlog_names: &[],
            agents: &[],
        };
        let error = init(place.path(), options).unwrap_err().to_string();
        assert_eq!(error, format!("cannot read {}", place.path().join("wiggum.toml").display()));
        let error = init(&place.path().join("file"), options).unwrap_err().to_string();
        assert!(error.ends_with("file is not a directory"), "{error}");
    }
}
