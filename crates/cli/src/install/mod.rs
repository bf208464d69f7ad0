//! Connects an agent to this program: hooks in its settings, slash commands beside them.
//!
//! Everything is looked at before anything is written, and hooks come last: a command without its
//! hook says so, a hook without its command would be a riddle. Taking out goes the other way round.

mod settings;
mod texts;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use wiggum_workspace::paths::write_atomic;
use wiggum_workspace::process::CommandLine;

use crate::session::checks;
use crate::session::slash::COMMANDS;
use settings::{Hook, SettingsError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Claude,
    Codex,
}

#[derive(Debug, Error)]
pub(crate) enum InstallError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} cannot be edited", path.display())]
    Settings { path: PathBuf, source: SettingsError },
    #[error("{} is not ours and in the way", path.display())]
    NotOurs { path: PathBuf },
}

/// Where an agent's settings and commands lie.
#[derive(Debug)]
pub(crate) struct Target {
    settings: PathBuf,
    commands: Vec<(PathBuf, String)>,
    /// Removed with us when nothing else is in them, the innermost first.
    directories: Vec<PathBuf>,
}

impl Target {
    /// `config` is the agent's own directory: `.claude` or `.codex` in a project or at home.
    pub(crate) fn new(host: Host, config: &Path, skills: &Path) -> Self {
        match host {
            Host::Claude => {
                let directory = config.join("commands");
                let commands = COMMANDS.iter().map(|command| {
                    (directory.join(format!("{}.md", command.name)), texts::claude_command(command))
                });
                Self {
                    settings: config.join("settings.json"),
                    commands: commands.collect(),
                    directories: vec![directory, config.to_owned()],
                }
            }
            Host::Codex => {
                let directories = COMMANDS.iter().map(|command| skills.join(command.name));
                let outer = [Some(skills), skills.parent(), Some(config)];
                let commands = COMMANDS
                    .iter()
                    .map(|command| (skills.join(command.name).join("SKILL.md"), texts::codex_skill(command)));
                Self {
                    settings: config.join("hooks.json"),
                    commands: commands.collect(),
                    directories: directories.chain(outer.into_iter().flatten().map(Path::to_owned)).collect(),
                }
            }
        }
    }

    /// Connects; what was changed, nothing if it was connected already.
    pub(crate) fn install(&self, program: &str) -> Result<Vec<PathBuf>, InstallError> {
        let before = read(&self.settings)?;
        let after = settings::with_hooks(before.as_deref().unwrap_or_default(), &hooks(program))
            .map_err(|source| self.not_editable(source))?;
        let mut changes = Vec::new();
        for (path, text) in &self.commands {
            match read(path)? {
                Some(present) if present == *text => {}
                Some(present) if !present.contains(texts::MARK) => {
                    return Err(InstallError::NotOurs { path: path.clone() });
                }
                Some(_) | None => changes.push((path, text)),
            }
        }
        if before.as_ref() != Some(&after) {
            self.keep_if_needed(before.as_deref(), &after)?;
            changes.push((&self.settings, &after));
        }
        for (path, text) in &changes {
            write(path, text)?;
        }
        Ok(changes.into_iter().map(|(path, _)| path.clone()).collect())
    }

    /// Disconnects; what was changed or removed.
    pub(crate) fn uninstall(&self) -> Result<Vec<PathBuf>, InstallError> {
        let mut changed = Vec::new();
        if let Some(before) = read(&self.settings)? {
            changed.extend(self.take_out(&before)?);
        }
        for (path, _) in &self.commands {
            if read(path)?.is_some_and(|text| text.contains(texts::MARK)) {
                remove(path)?;
                changed.push(path.clone());
            }
        }
        for directory in &self.directories {
            // Whoever has something else in it keeps it.
            drop(fs::remove_dir(directory));
        }
        Ok(changed)
    }

    fn take_out(&self, present: &str) -> Result<Option<PathBuf>, InstallError> {
        let without = settings::without_hooks(present).map_err(|source| self.not_editable(source))?;
        if without == present {
            return Ok(None);
        }
        // Empty brackets that were there before us look like ours: then what was kept is put back.
        match read(&self.kept())?.filter(|kept| equal(kept, &without)) {
            Some(kept) => write(&self.settings, &kept)?,
            None if settings::is_empty(&without) => remove(&self.settings)?,
            None => write(&self.settings, &without)?,
        }
        drop(fs::remove_file(self.kept()));
        Ok(Some(self.settings.clone()))
    }

    /// Keeps a copy of settings that could not be restored from the edited ones alone.
    fn keep_if_needed(&self, before: Option<&str>, after: &str) -> Result<(), InstallError> {
        let Some(before) = before else { return Ok(()) };
        let restored = settings::without_hooks(after).map_err(|source| self.not_editable(source))?;
        let had_ours = !settings::present(before).is_empty();
        if had_ours || (restored == before && !settings::is_empty(before)) {
            return Ok(());
        }
        write(&self.kept(), before)
    }

    fn kept(&self) -> PathBuf {
        self.settings.with_extension("json.before-wiggum")
    }

    fn not_editable(&self, source: SettingsError) -> InstallError {
        InstallError::Settings { path: self.settings.clone(), source }
    }
}

/// The same to an agent, whatever its brackets and blanks.
fn equal(left: &str, right: &str) -> bool {
    let value = |text: &str| {
        let text = Some(text.trim_start_matches('\u{feff}').trim()).filter(|text| !text.is_empty());
        let mut value: serde_json::Value = serde_json::from_str(text.unwrap_or("{}")).ok()?;
        prune(&mut value);
        Some(value)
    };
    value(left).is_some_and(|left| value(right) == Some(left))
}

/// Without empty events and without an empty `hooks`.
fn prune(value: &mut serde_json::Value) {
    let Some(root) = value.as_object_mut() else { return };
    if let Some(hooks) = root.get_mut("hooks").and_then(serde_json::Value::as_object_mut) {
        hooks.retain(|_, list| list.as_array().is_none_or(|list| !list.is_empty()));
        if hooks.is_empty() {
            root.remove("hooks");
        }
    }
}

/// An agent ends a hook that takes longer; ours answers before.
const MARGIN: u32 = 60;

/// Nobody waits longer at the end; Codex complains about more.
const LAST_MOMENT: u32 = 3;

fn hooks(program: &str) -> Vec<Hook> {
    let hook = |event, name: &str, timeout| Hook {
        event,
        command: CommandLine::new(program, ["hook", name]).to_string(),
        timeout,
    };
    let checks = u32::try_from(checks::BUDGET.as_secs()).unwrap_or(u32::MAX);
    vec![
        hook("UserPromptSubmit", "user-prompt-submit", MARGIN),
        hook("Stop", "stop", checks.saturating_add(MARGIN)),
        hook("SessionEnd", "session-end", LAST_MOMENT),
    ]
}

fn read(path: &Path) -> Result<Option<String>, InstallError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(source) => Err(InstallError::Read { path: path.to_owned(), source }),
    }
}

fn write(path: &Path, text: &str) -> Result<(), InstallError> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| write_atomic(path, text.as_bytes()))
        .map_err(|source| InstallError::Write { path: path.to_owned(), source })
}

fn remove(path: &Path) -> Result<(), InstallError> {
    fs::remove_file(path).map_err(|source| InstallError::Write { path: path.to_owned(), source })
}
