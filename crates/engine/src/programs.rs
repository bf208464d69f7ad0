//! Programs of the work tree that checks run and that git knows nothing of: `node_modules/.bin/jest`,
//! `.venv/bin/pytest`, whatever a `PATH` of the tree finds first.
//!
//! An attempt can put another program in their place and no diff shows it. So what lies there is remembered before
//! the agent and compared after it. Only the program itself is looked at, not what it takes in: the number of tests
//! tells more of that.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};
use wiggum_core::definition::{Definition, is_built};
use wiggum_core::event::{Flag, FlagKind};
use wiggum_core::ids::TaskId;
use wiggum_core::state::OpenIteration;
use wiggum_core::text::hex;
use wiggum_core::verdict::checks_for;
use wiggum_core::weaken::is_test_path;
use wiggum_workspace::beneath::{self, Links};
use wiggum_workspace::git::Entry;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::former::FilesNow;
use crate::tree::{flag, may_hold_tests};

/// Of a larger file the beginning and the length are compared: what starts a program is short.
const MOST_READ: u64 = 64 * 1024;

/// Files by which packages are chosen; where an attempt changes one, it installs.
const MANIFESTS: [&str; 14] = [
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "bun.lockb",
    "pyproject.toml",
    "poetry.lock",
    "uv.lock",
    "Pipfile.lock",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
];

const INSTALLED: &str = "a program that the check runs, installed by the attempt where git does not look";
const REPLACED: &str = "a program that the check runs, changed where git does not look";
const SHADOWED: &str = "found before the program that the check ran until now, where git does not look";

const STALE: &str = "the check ran what was built before this work";
const FORGED: &str = "made by the attempt, and a check asks git about such names";

/// What lies where the programs of checks are looked for.
#[derive(Default)]
pub(crate) struct Programs {
    /// The commands whose places these are.
    commands: Vec<String>,
    places: Vec<String>,
    asks_git: bool,
    artefacts: Vec<String>,
    /// What lay there before the agent.
    before: BTreeMap<String, String>,
    /// Where an attempt put something that was refused: what lay there before that one counts.
    refused: BTreeSet<String>,
}

impl Engine<'_> {
    /// Remembers what the checks of a task run, before its agent can change it.
    pub(crate) fn note_programs(&mut self, task: &TaskId) {
        let state = &self.journal.state;
        let Some(entry) = state.task(task) else { return };
        let commands: Vec<String> =
            checks_for(&state.policy, &entry.spec).into_iter().map(|check| check.command).collect();
        let root = self.settings.workspace();
        let programs = &mut self.programs;
        if programs.commands != commands {
            let tree = FilesNow::new(root);
            let definition = Definition::of(commands.iter().map(String::as_str), &tree);
            programs.places = definition.places_of_programs();
            programs.asks_git = definition.asks_git();
            programs.artefacts = definition.artefacts().map(str::to_owned).collect();
            programs.commands = commands;
        }
        let now = programs.look(root);
        for place in &programs.places {
            if programs.refused.contains(place) {
                continue;
            }
            match now.get(place) {
                Some(seen) => drop(programs.before.insert(place.clone(), seen.clone())),
                None => drop(programs.before.remove(place)),
            }
        }
    }

    /// What the attempt put in the place of programs that its checks run, where no commit will tell of it.
    pub(crate) fn program_flags(&mut self, open: &OpenIteration, staged: &[Entry]) -> Vec<Flag> {
        if open.own || self.programs.places.is_empty() {
            return Vec::new();
        }
        let root = self.settings.workspace();
        let now = self.programs.look(root);
        let installs = staged
            .iter()
            .any(|entry| MANIFESTS.contains(&entry.path.rsplit('/').next().unwrap_or(&entry.path)));
        let could_run = self.could_run_before();
        let mut flags = Vec::new();
        for (place, seen) in &now {
            let before = self.programs.before.get(place);
            // What git has is judged by what it says.
            let target = fs::canonicalize(root.join(place)).ok();
            let target = target.as_deref().and_then(|path| path.strip_prefix(root).ok());
            let is_told = staged
                .iter()
                .any(|entry| entry.path == *place || target == Some(Path::new(entry.path.as_str())));
            if before == Some(seen) || is_told {
                self.programs.refused.remove(place);
                continue;
            }
            let (kind, detail) = match before {
                _ if installs => (FlagKind::CheckRedefined, INSTALLED),
                None if !could_run => (FlagKind::CheckRedefined, INSTALLED),
                None => (FlagKind::CheckTouched, SHADOWED),
                Some(_) => (FlagKind::CheckTouched, REPLACED),
            };
            if kind == FlagKind::CheckTouched {
                self.programs.refused.insert(place.clone());
            }
            flags.push(flag(kind, place, detail));
        }
        // What is as it was, or gone, holds nothing up any more.
        self.programs.refused.retain(|place| now.contains_key(place));
        flags
    }

    /// What the checks ran of a build that is older than the sources which the attempt changed.
    pub(crate) fn stale_flags(&self, staged: &[Entry]) -> Vec<Flag> {
        if self.programs.artefacts.is_empty() {
            return Vec::new();
        }
        let root = self.settings.workspace();
        let changed_at = |path: &str| fs::metadata(root.join(path)).and_then(|found| found.modified()).ok();
        let is_source = |path: &str| may_hold_tests(path) && !is_test_path(path) && !is_built(path);
        let sources = staged.iter().filter(|entry| is_source(&entry.path));
        let newest = sources.filter_map(|entry| Some((changed_at(&entry.path)?, entry.path.as_str()))).max();
        let Some((newest, source)) = newest else { return Vec::new() };
        let artefacts = self.programs.artefacts.iter();
        let stale = artefacts.filter(|path| changed_at(path).is_some_and(|made| made < newest));
        stale
            .map(|path| flag(FlagKind::CheckRedefined, path, &format!("older than {source}: {STALE}")))
            .collect()
    }

    /// Names in git that the attempt gave, where a check asks git: that may be what it asks about.
    pub(crate) fn forged_flags(&self) -> Result<Vec<Flag>, EngineError> {
        let Some(guardian) = self.guardian.as_ref().filter(|_| self.programs.asks_git) else {
            return Ok(Vec::new());
        };
        let came = guardian.came()?.into_iter();
        Ok(came.map(|name| flag(FlagKind::CheckRedefined, &name, FORGED)).collect())
    }

    /// A person or the policy took the attempt with what it put there.
    pub(crate) fn take_programs(&mut self) {
        self.programs.refused.clear();
    }

    /// Is it known of a check of the loop that it passed before, so that its programs were there?
    fn could_run_before(&self) -> bool {
        let state = &self.journal.state;
        let is_known =
            |command: &String| state.tests.contains_key(command) || state.baseline.has_passed(command);
        self.programs.commands.iter().any(is_known)
    }
}

impl Programs {
    fn look(&self, root: &Path) -> BTreeMap<String, String> {
        let seen = self.places.iter().filter_map(|place| Some((place.clone(), look_at(&root.join(place))?)));
        seen.collect()
    }
}

/// What tells one program from another: where a link leads, and how the file begins.
fn look_at(path: &Path) -> Option<String> {
    let kind = fs::symlink_metadata(path).ok()?;
    let mut hash = Sha256::new();
    if kind.is_symlink() {
        let target = fs::read_link(path).ok()?;
        hash.update(target.as_os_str().as_encoded_bytes());
    }
    let found = fs::metadata(path).ok();
    if let Some(found) = found.filter(fs::Metadata::is_file) {
        hash.update(found.len().to_be_bytes());
        let mut beginning = Vec::new();
        if beneath::open_plain(path, Links::Follow)
            .and_then(|file| file.take(MOST_READ).read_to_end(&mut beginning))
            .is_ok()
        {
            hash.update(&beginning);
        }
    } else if !kind.is_symlink() {
        return None;
    }
    Some(hex(&hash.finalize()[..16]))
}
