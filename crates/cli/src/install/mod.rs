//! Connects an agent to this program: hooks, and the slash commands they see first.
//!
//! Claude Code gets a plugin, a directory of files that are ours alone; Codex has hooks in a file that
//! others write too, and skills. Everything is looked at before anything is written, and hooks come
//! last: a command without its hook says so, a hook without its command would be a riddle. Taking out
//! goes the other way round.

mod settings;
mod texts;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;
use wiggum_workspace::beneath;
use wiggum_workspace::paths::write_atomic;

use crate::session::checks;
use crate::session::slash::{COMMANDS, PLUGIN};
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

/// What is put where for one agent.
#[derive(Debug)]
pub(crate) struct Target {
    /// Files that are ours alone, with what is to be in them, in the order of writing.
    files: Vec<(PathBuf, String)>,
    /// A directory in which nobody else may have anything.
    own: Option<PathBuf>,
    /// The agent's settings, of which our hooks are a part; none of them where the plugin has them.
    settings: PathBuf,
    hooks: Vec<Hook>,
    /// Removed with us when nothing else is in them, the innermost first.
    directories: Vec<PathBuf>,
}

/// What is to be done to the agent's settings.
enum SettingsEdit {
    None,
    TakeOut(String),
    Write { before: Option<String>, after: String },
}

impl Target {
    /// `config` is the agent's own directory: `.claude` or `.codex` in a project or at home. `program` is
    /// how hooks call us.
    pub(crate) fn new(host: Host, config: &Path, skills: &Path, program: &str) -> Self {
        match host {
            Host::Claude => Self::plugin(config, program),
            Host::Codex => Self::hooks_and_skills(config, skills, program),
        }
    }

    /// A plugin below `skills/`, which Claude Code loads by itself. Its commands have the plugin's name
    /// before them (`/wiggum:ralph-loop`), so they lie beside it under their own names too.
    fn plugin(config: &Path, program: &str) -> Self {
        let plugin = config.join("skills").join(PLUGIN);
        let (named, short) = (plugin.join("commands"), config.join("commands"));
        let commands = [&named, &short].into_iter().flat_map(|place| {
            COMMANDS
                .iter()
                .map(|command| (place.join(format!("{}.md", command.name)), texts::claude_command(command)))
        });
        let parts = [
            (plugin.join(".claude-plugin/plugin.json"), texts::claude_manifest()),
            (plugin.join("hooks/hooks.json"), texts::claude_hooks(&hooks_json(&claude_hooks(program)))),
        ];
        let files = commands.chain(parts).collect();
        Self {
            files,
            own: Some(plugin.clone()),
            settings: config.join("settings.json"),
            hooks: Vec::new(),
            directories: vec![
                plugin.join(".claude-plugin"),
                plugin.join("hooks"),
                named,
                plugin,
                config.join("skills"),
                short,
                config.to_owned(),
            ],
        }
    }

    fn hooks_and_skills(config: &Path, skills: &Path, program: &str) -> Self {
        let directories = COMMANDS.iter().map(|command| skills.join(command.name));
        let outer = [Some(skills), skills.parent(), Some(config)];
        let files = COMMANDS
            .iter()
            .map(|command| (skills.join(command.name).join("SKILL.md"), texts::codex_skill(command)));
        Self {
            files: files.collect(),
            own: None,
            settings: config.join("hooks.json"),
            hooks: hooks(program),
            directories: directories.chain(outer.into_iter().flatten().map(Path::to_owned)).collect(),
        }
    }

    /// Connects; what was changed, nothing if it was connected already.
    pub(crate) fn install(&self) -> Result<Vec<PathBuf>, InstallError> {
        self.nobody_elses()?;
        let edit = self.settings_edit()?;
        let mut changed = Vec::new();
        for (path, text) in &self.files {
            match read(path)? {
                Some(present) if present == *text => {}
                Some(present) if !present.contains(texts::MARK) => {
                    return Err(InstallError::NotOurs { path: path.clone() });
                }
                Some(_) | None => changed.push((path, text)),
            }
        }
        for (path, text) in &changed {
            write(path, text)?;
        }
        let mut changed: Vec<PathBuf> = changed.into_iter().map(|(path, _)| path.clone()).collect();
        changed.extend(self.apply(edit)?);
        Ok(changed)
    }

    fn settings_edit(&self) -> Result<SettingsEdit, InstallError> {
        let before = read(&self.settings)?;
        if self.hooks.is_empty() {
            // Earlier versions had their hooks in there, and everything would be done twice.
            let former = before.filter(|before| settings::has_hooks(before));
            return Ok(former.map_or(SettingsEdit::None, SettingsEdit::TakeOut));
        }
        let after = settings::with_hooks(before.as_deref().unwrap_or_default(), &self.hooks)
            .map_err(|source| self.not_editable(source))?;
        let same = before.as_ref() == Some(&after);
        Ok(if same { SettingsEdit::None } else { SettingsEdit::Write { before, after } })
    }

    fn apply(&self, edit: SettingsEdit) -> Result<Option<PathBuf>, InstallError> {
        match edit {
            SettingsEdit::None => Ok(None),
            SettingsEdit::TakeOut(before) => self.take_out(&before),
            SettingsEdit::Write { before, after } => {
                self.keep_if_needed(before.as_deref(), &after)?;
                write(&self.settings, &after)?;
                Ok(Some(self.settings.clone()))
            }
        }
    }

    /// Disconnects; what was changed or removed.
    pub(crate) fn uninstall(&self) -> Result<Vec<PathBuf>, InstallError> {
        let mut changed = Vec::new();
        let ours = |text: &String| !self.hooks.is_empty() || settings::has_hooks(text);
        if let Some(before) = read(&self.settings)?.filter(ours) {
            changed.extend(self.take_out(&before)?);
        }
        for (path, _) in self.files.iter().rev() {
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

    /// Is anything of ours there, of this version or an earlier one?
    pub(crate) fn is_present(&self) -> bool {
        let ours = |path: &Path| read(path).ok().flatten().is_some_and(|text| text.contains(texts::MARK));
        let hooked = read(&self.settings).ok().flatten().is_some_and(|text| settings::has_hooks(&text));
        hooked || self.files.iter().any(|(path, _)| ours(path))
    }

    /// A skill of the user's that happens to have our name would become a part of the plugin.
    fn nobody_elses(&self) -> Result<(), InstallError> {
        let Some(own) = &self.own else { return Ok(()) };
        let ours = self.files.iter().any(|(path, _)| path.starts_with(own) && path.exists());
        let empty = fs::read_dir(own).map_or(true, |mut entries| entries.next().is_none());
        if ours || empty { Ok(()) } else { Err(InstallError::NotOurs { path: own.clone() }) }
    }

    fn without_hooks(&self, text: &str) -> Result<String, InstallError> {
        settings::without_hooks(text).map_err(|source| self.not_editable(source))
    }

    fn take_out(&self, present: &str) -> Result<Option<PathBuf>, InstallError> {
        let without = self.without_hooks(present)?;
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
        let restored = self.without_hooks(after)?;
        if settings::has_hooks(before) || (restored == before && !settings::is_empty(before)) {
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

fn hook(program: &str, event: &'static str, name: &str, timeout: u32) -> Hook {
    Hook { event, command: settings::command(program, name), timeout }
}

fn hooks(program: &str) -> Vec<Hook> {
    let checks = u32::try_from(checks::BUDGET.as_secs()).unwrap_or(u32::MAX);
    vec![
        hook(program, "UserPromptSubmit", "user-prompt-submit", MARGIN),
        hook(program, "Stop", "stop", checks.saturating_add(MARGIN)),
        hook(program, "SessionEnd", "session-end", LAST_MOMENT),
    ]
}

/// Claude Code also tells when a turn ended in a failure; Codex has no such hook.
fn claude_hooks(program: &str) -> Vec<Hook> {
    let mut hooks = hooks(program);
    hooks.push(hook(program, "StopFailure", "stop-failure", MARGIN));
    hooks
}

fn hooks_json(hooks: &[Hook]) -> Value {
    let entry = |hook: &Hook| {
        let call = json!({ "type": "command", "command": hook.command, "timeout": hook.timeout });
        (hook.event.to_owned(), json!([{ "hooks": [call] }]))
    };
    Value::Object(hooks.iter().map(entry).collect())
}

fn read(path: &Path) -> Result<Option<String>, InstallError> {
    match beneath::text_of(path) {
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
