//! What an attempt does to the work tree: taken as one tree, looked at, landed or kept aside.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobSet, GlobSetBuilder};
use sha2::{Digest, Sha256};
use wiggum_core::event::{Event, Flag, FlagKind, MAX_LISTED_PATHS};
use wiggum_core::ids::{Attempt, Iteration, TaskId};
use wiggum_core::state::{OpenIteration, Stage, Workspace};
use wiggum_core::task::FileStatus;
use wiggum_core::verdict::checks_for;
use wiggum_core::weaken::{TestFile, is_test_path, weakened};
use wiggum_workspace::crash;
use wiggum_workspace::git::{
    Change, CommitOutcome, Entry, Git, GitError, Guardian, Head, PutBack, Source, Status,
};
use wiggum_workspace::paths::write_atomic;

use crate::backlog_file::BacklogError;
use crate::check_files::{CheckFile, check_files};
use crate::engine::{Engine, Settings};
use crate::error::{EngineError, chain};
use crate::state_dir::StateDir;

/// How often a hook may change the tree of one attempt before that counts as a refusal.
const MAX_ALTERATIONS: u32 = 3;
/// How many changed files are looked at for weakened tests.
const MAX_EXAMINED: usize = 200;

/// Paths with a role of their own.
#[derive(Debug)]
pub(crate) struct Watched {
    protected: GlobSet,
    /// Paths that never belong to an attempt's work.
    pub(crate) excluded: Vec<String>,
    pub(crate) backlog_tracked: bool,
    own: Vec<OwnFile>,
}

/// A file of the user's set-up of the loop, as it was before the agent ran.
#[derive(Debug)]
struct OwnFile {
    name: String,
    path: PathBuf,
    is_prompt: bool,
    before: Option<Vec<u8>>,
}

impl Watched {
    pub(crate) fn new(settings: &Settings) -> Result<Self, EngineError> {
        let mut globs = GlobSetBuilder::new();
        for pattern in &settings.policy.protect.paths {
            let glob = Glob::new(pattern)
                .map_err(|source| EngineError::Glob { pattern: pattern.clone(), source })?;
            globs.add(glob);
        }
        let protected =
            globs.build().map_err(|source| EngineError::Glob { pattern: String::new(), source })?;
        let configuration = settings.workspace.join("wiggum.toml");
        let own = settings.prompt.iter().map(|path| (path, true)).chain([(&configuration, false)]);
        let own = own.map(|(path, is_prompt)| OwnFile {
            name: relative(&settings.workspace, path),
            path: path.clone(),
            is_prompt,
            before: None,
        });
        Ok(Self { protected, excluded: Vec::new(), backlog_tracked: false, own: own.collect() })
    }

    /// Remembers the user's files as they are before the agent runs.
    pub(crate) fn note_own_files(&mut self) {
        for own in &mut self.own {
            own.before = fs::read(&own.path).ok();
        }
    }

    /// Puts those of them back that no commit could bring back, or that the next attempt needs.
    fn put_back_own_files(&self) -> Result<Vec<Flag>, EngineError> {
        let mut flags = Vec::new();
        for own in &self.own {
            let Some(before) = &own.before else { continue };
            let now = fs::read(&own.path).ok();
            let gone = now.is_none() && own.is_prompt;
            if now.as_ref() == Some(before) || !(gone || self.excluded.contains(&own.name)) {
                continue;
            }
            write_atomic(&own.path, before)
                .map_err(|source| EngineError::Write { path: own.path.clone(), source })?;
            flags.push(flag(FlagKind::ProtectedPath, &own.name, "put back"));
        }
        Ok(flags)
    }

    /// A prompt that is tracked may be part of a task's work, but not unseen.
    fn prompt_flag(&self) -> Option<Flag> {
        let own = self.own.iter().find(|own| own.is_prompt)?;
        (fs::read(&own.path).ok() != own.before)
            .then(|| flag(FlagKind::ProtectedPath, &own.name, "the prompt"))
    }

    fn excluded(&self) -> Vec<&str> {
        self.excluded.iter().map(String::as_str).collect()
    }
}

impl Engine<'_> {
    /// Before anything else: what is tracked, and what belongs to the loop rather than to a task.
    pub(crate) fn look_at_repository(&mut self) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        git.exclude_state_dir()?;
        self.watched.backlog_tracked = git.is_tracked(&self.settings.backlog_name)?;
        self.watched.excluded = vec![self.settings.backlog_name.clone()];
        let changed = git.status()?.paths();
        for name in own_files(&self.settings) {
            // What the user changed there is not for a task to commit or to reset.
            if changed.contains(&name) || !git.is_tracked(&name)? {
                self.watched.excluded.push(name);
            }
        }
        if ignores_only_us(git)? {
            self.watched.excluded.push(".gitignore".to_owned());
        }
        // What an agent did before a crash is compared with what was there before that agent.
        self.guardian = Guardian::open(git, &self.dir.guard_dir(self.journal.id))?;
        Ok(())
    }

    /// Remembers git's hooks and configuration, so that an agent cannot change them.
    pub(crate) fn guard_repository(&mut self) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        self.guardian = Some(Guardian::take(git, &self.dir.guard_dir(self.journal.id))?);
        Ok(())
    }

    /// A run starts, or goes on, from a clean tree: what the user has not committed is theirs, not the
    /// task's. Where an attempt's work lies in the tree, recovery has seen to it.
    pub(crate) fn require_clean_tree(&mut self) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        let state = &self.journal.state;
        let holds_work =
            state.open.is_some() || state.unkept.is_some() || state.workspace != Workspace::Clean;
        if state.user_changes.is_some() || holds_work {
            return Ok(());
        }
        git.exclude_state_dir()?;
        let status = git.status()?;
        let mut own: Vec<String> = own_files(&self.settings);
        own.push(self.settings.backlog_name.clone());
        if ignores_only_us(git)? {
            own.push(".gitignore".to_owned());
        }
        let dirty: Vec<String> = status.paths().into_iter().filter(|path| !own.contains(path)).collect();
        if dirty.is_empty() {
            return Ok(());
        }
        if !self.settings.allow_dirty {
            return Err(EngineError::Dirty { paths: dirty });
        }
        // Numbered, since what could not be put back the last time must not be overwritten.
        let reference = format!("refs/wiggum/{}/user-changes/{}", self.short_id(), self.journal.state.seq);
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        if let Some(commit) = git.set_aside(&reference, &own)? {
            self.record(Event::UserChangesSetAside { reference, commit });
            self.flush()?;
        }
        Ok(())
    }

    pub(crate) fn put_back_user_changes(&mut self, commit: &str) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        let clean = match git.put_back(commit, &self.watched.excluded()) {
            Ok(PutBack::Clean) => true,
            // Not clean: we were killed while they were put back, or somebody works here already.
            Ok(PutBack::Conflict) | Err(GitError::NotClean { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        self.record(Event::UserChangesPutBack { commit: commit.to_owned(), clean });
        Ok(())
    }

    /// The kept work of an earlier attempt, moved onto the commit the workspace stands on now.
    pub(crate) fn carry_over(
        &mut self,
        task: &TaskId,
        carried: Option<&str>,
        base: Option<&str>,
    ) -> Result<Option<String>, EngineError> {
        let (Some(git), Some(kept)) = (&self.git, carried) else { return Ok(None) };
        // Before the first commit there is nothing to move it onto.
        let Some(base) = base else { return Ok(Some(kept.to_owned())) };
        let moved = git.move_work(kept, base)?;
        if moved.is_none() {
            let message = format!(
                "the work of the last attempt ({}) conflicts with what was committed since; starting clean",
                short(kept)
            );
            self.record(Event::Noticed { task: Some(task.clone()), message });
        }
        Ok(moved)
    }

    pub(crate) fn bring_work_in_place(&mut self, carried: Option<&str>) -> Result<(), EngineError> {
        if let (Some(git), Some(commit)) = (&self.git, carried)
            && self.in_place.as_deref() != Some(commit)
        {
            git.restore_work(commit, &self.watched.excluded())?;
        }
        self.in_place = None;
        Ok(())
    }

    pub(crate) fn take_tree(&mut self, iteration: Iteration, attempt: Attempt) -> Result<(), EngineError> {
        let mut flags = self.watched.put_back_own_files()?;
        if let Some(git) = &self.git {
            flags.extend(self.put_back_hooks()?);
            self.clear_locks(git)?;
            flags.extend(self.put_head_back(git, iteration)?);
            git.stage_all(&self.watched.excluded())?;
            crash::point("staged");
            git.save_index(&self.taken_index())?;
        }
        self.record(Event::TreeTaken { iteration, attempt, flags });
        Ok(())
    }

    /// Hooks and configuration are as they were before agent and checks ran.
    fn put_back_hooks(&self) -> Result<Vec<Flag>, EngineError> {
        let Some(guardian) = &self.guardian else { return Ok(Vec::new()) };
        let changed = guardian.compare_and_put_back()?;
        Ok(changed.iter().map(|name| flag(FlagKind::HooksTouched, name, "put back")).collect())
    }

    /// What the agent started is gone: a lock that is left belongs to a git that was killed.
    fn clear_locks(&self, git: &Git) -> Result<(), EngineError> {
        let branch = self.journal.state.open.as_ref().and_then(|open| open.branch.as_deref());
        if git.is_locked(branch) {
            git.clear_dead_lock()?;
        }
        Ok(())
    }

    /// Commits the agent made itself become part of the task's own; a branch it switched to is left;
    /// commits it threw away are there again.
    fn put_head_back(&self, git: &Git, iteration: Iteration) -> Result<Vec<Flag>, EngineError> {
        let Some(open) = &self.journal.state.open else { return Ok(Vec::new()) };
        let head = git.head()?;
        let mut flags = Vec::new();
        if let (Some(at), Some(base)) = (&head.commit, &open.base)
            && at != base
            && git.is_ancestor(at, base)?
        {
            return self.redo_history(git, open, base, iteration);
        }
        if head.branch != open.branch {
            let name = head.branch.as_deref().unwrap_or("a detached HEAD");
            flags.push(flag(FlagKind::BranchSwitched, name, "the agent switched to it; put back"));
        }
        if head.commit != open.base {
            let name = head.commit.as_deref().map_or_else(String::new, short);
            flags.push(flag(FlagKind::AgentCommitted, &name, "becomes part of the task's commit"));
        }
        if !flags.is_empty() {
            git.squash_onto(open.base.as_deref(), open.branch.as_deref())?;
        }
        Ok(flags)
    }

    /// The agent went back in history: its tree lacks what others did since. Its own work is moved
    /// onto the newest commit, where that is possible; else what it has is shown as what it did.
    fn redo_history(
        &self,
        git: &Git,
        open: &OpenIteration,
        base: &str,
        iteration: Iteration,
    ) -> Result<Vec<Flag>, EngineError> {
        let excluded = self.watched.excluded();
        git.stage_all(&excluded)?;
        let reference = format!("refs/wiggum/{}/rewound/{iteration}", self.short_id());
        let kept = git.keep_work(&reference, "Work on an older commit")?;
        let moved = git.move_work(&kept, base)?;
        git.squash_onto(open.base.as_deref(), open.branch.as_deref())?;
        let detail = match &moved {
            Some(moved) => {
                git.restore_work(moved, &excluded)?;
                "was thrown away by the agent; put back"
            }
            None => "was thrown away by the agent, and its work does not fit on it",
        };
        Ok(vec![flag(FlagKind::BranchSwitched, &short(base), detail)])
    }

    pub(crate) fn inspect(&mut self, iteration: Iteration, attempt: Attempt) -> Result<(), EngineError> {
        crash::point("before inspect");
        let Some(open) = self.journal.state.open.clone() else { return Ok(()) };
        let mut flags: Vec<Flag> = self.watched.prompt_flag().into_iter().collect();
        let (changed, digest) = match &self.git {
            None => (Vec::new(), stamp_of_tree(&self.settings.workspace, &self.settings.backlog)),
            Some(git) => {
                flags.extend(self.put_back_hooks()?);
                let status = self.own_status(git)?;
                flags.extend(self.put_back_leftovers(git, &status, iteration)?);
                flags.extend(self.flag_changes(git, &open, &status.staged)?);
                let changed: Vec<String> = status.staged.iter().map(|entry| entry.path.clone()).collect();
                (changed, digest_of(&status.staged))
            }
        };
        let changed_total = match &self.git {
            Some(_) => u32::try_from(changed.len()).unwrap_or(u32::MAX),
            None => u32::from(
                Some(&digest) != self.journal.state.task(&open.task).and_then(|e| e.last_digest.as_ref()),
            ),
        };
        self.record(Event::WorkInspected {
            iteration,
            attempt,
            changed: changed.into_iter().take(MAX_LISTED_PATHS).collect(),
            changed_total,
            digest,
            flags,
        });
        Ok(())
    }

    /// The state of the tree, with nothing staged that is not the attempt's to commit: an agent may
    /// have staged the user's files, or have thrown away the index with the backlog in it.
    fn own_status(&self, git: &Git) -> Result<Status, EngineError> {
        let mut status = git.status()?;
        let state = format!("{}/", StateDir::NAME);
        let is_foreign = |path: &str| {
            path.starts_with(&state) || self.watched.excluded.iter().any(|excluded| excluded == path)
        };
        let paths = status.staged.iter().map(|entry| entry.path.as_str());
        let mut foreign: Vec<&str> = paths.filter(|path| is_foreign(path)).collect();
        if foreign.iter().any(|path| path.starts_with(&state)) {
            // As one path: there may be more files in it than fit into a command.
            foreign.retain(|path| !path.starts_with(&state));
            foreign.push(StateDir::NAME);
        }
        if !foreign.is_empty() {
            git.put_back_index(&self.taken_index())?;
            git.unstage(&foreign)?;
            git.save_index(&self.taken_index())?;
            status.staged.retain(|entry| !is_foreign(&entry.path));
        }
        Ok(status)
    }

    /// What the checks made of the tree is not the attempt's work: it is kept aside and put back.
    fn put_back_leftovers(
        &self,
        git: &Git,
        status: &Status,
        iteration: Iteration,
    ) -> Result<Vec<Flag>, EngineError> {
        let left: Vec<String> = status
            .unstaged
            .iter()
            .map(|entry| entry.path.clone())
            .chain(status.untracked.iter().cloned())
            .filter(|path| !self.watched.excluded.contains(path))
            .collect();
        if left.is_empty() {
            return Ok(Vec::new());
        }
        let excluded = self.watched.excluded();
        git.stage_all(&excluded)?;
        let reference = format!("refs/wiggum/{}/leftovers/{iteration}", self.short_id());
        git.keep_work(&reference, "What the checks left behind")?;
        self.return_to_taken_tree()?;
        let detail = format!("changed by a check and put back; kept under {reference}");
        Ok(left.iter().take(20).map(|path| flag(FlagKind::CheckLeftovers, path, &detail)).collect())
    }

    /// Makes index and work tree what they were when the tree was taken.
    pub(crate) fn return_to_taken_tree(&self) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        git.put_back_index(&self.taken_index())?;
        let reference = format!("refs/wiggum/{}/taken", self.short_id());
        let taken = git.keep_work(&reference, "The tree under check")?;
        git.restore_work(&taken, &self.watched.excluded())?;
        git.save_index(&self.taken_index())?;
        Ok(())
    }

    fn flag_changes(
        &self,
        git: &Git,
        open: &OpenIteration,
        staged: &[Entry],
    ) -> Result<Vec<Flag>, EngineError> {
        let named = self.files_named_by_checks(open);
        let mut flags = Vec::new();
        for entry in staged {
            let existed = entry.change != Change::Added;
            let part = named.get(entry.path.as_str()).filter(|_| existed && !is_test_path(&entry.path));
            if part == Some(&CheckFile::Run) {
                flags.push(flag(FlagKind::CheckTouched, &entry.path, ""));
            } else if part == Some(&CheckFile::Named) {
                flags.push(flag(FlagKind::ProtectedPath, &entry.path, "a check names it"));
            } else if self.watched.protected.is_match(&entry.path) && (existed || !is_test_path(&entry.path))
            {
                flags.push(flag(FlagKind::ProtectedPath, &entry.path, change_name(entry.change)));
            }
        }
        flags.extend(self.weakened_tests(git, staged)?);
        Ok(flags)
    }

    fn files_named_by_checks(&self, open: &OpenIteration) -> HashMap<String, CheckFile> {
        let Some(entry) = self.journal.state.task(&open.task) else { return HashMap::new() };
        let checks = checks_for(&self.journal.state.policy, &entry.spec);
        checks.iter().flat_map(|check| check_files(&check.command)).collect()
    }

    fn weakened_tests(&self, git: &Git, staged: &[Entry]) -> Result<Vec<Flag>, EngineError> {
        let candidates: Vec<&Entry> =
            staged.iter().filter(|entry| may_hold_tests(&entry.path)).take(MAX_EXAMINED).collect();
        // Nothing that existed was touched: nothing can be weaker than before.
        if candidates.iter().all(|entry| entry.change == Change::Added) {
            return Ok(Vec::new());
        }
        let blobs: Vec<Option<&str>> = candidates
            .iter()
            .flat_map(|entry| [entry.blob_before.as_deref(), entry.blob_after.as_deref()])
            .collect();
        let texts = git.read_blobs(&blobs)?;
        let files: Vec<TestFile<'_>> = candidates
            .iter()
            .zip(texts.chunks(2))
            .map(|(entry, texts)| TestFile {
                path: &entry.path,
                before: texts[0].as_deref(),
                after: texts[1].as_deref(),
            })
            .collect();
        Ok(weakened(&files))
    }

    /// Writes the completion to the backlog and commits it together with the tree that was checked.
    pub(crate) fn land(&mut self, iteration: Iteration, attempt: Attempt) -> Result<(), EngineError> {
        self.flush()?;
        crash::point("before landing");
        let Some(open) = self.journal.state.open.clone() else { return Ok(()) };
        let Stage::Landing { verified } = open.stage else { return Ok(()) };
        if let Some(git) = &self.git
            && !stands_on(&git.head()?, &open)
        {
            let output =
                self.journal.keep("the branch moved while the attempt was checked; do it on top of that");
            self.record(Event::CommitRefused { iteration, attempt, output });
            return Ok(());
        }
        match self.backlog.edit(|backlog| backlog.set_status(open.task.as_str(), FileStatus::Done)) {
            Ok(()) => self.record(Event::StatusWritten { task: open.task.clone(), status: FileStatus::Done }),
            Err(error @ (BacklogError::Read { .. } | BacklogError::Problems(_))) => {
                self.record(Event::BacklogBroken { message: chain(&error) });
                return Ok(());
            }
            // The task is gone from the file: what was done still counts.
            Err(BacklogError::Edit(_)) => {}
            Err(error) => return Err(error.into()),
        }
        crash::point("backlog written");
        let Some(git) = &self.git else {
            self.complete(&open, None, verified);
            return Ok(());
        };
        git.put_back_index(&self.taken_index())?;
        let include: Vec<&str> =
            if self.watched.backlog_tracked { vec![self.settings.backlog_name.as_str()] } else { Vec::new() };
        let outcome = git.commit(&self.commit_message(&open), &include)?;
        crash::point("committed");
        match outcome {
            CommitOutcome::Committed(commit) => self.accept_commit(&open, commit, verified),
            CommitOutcome::Refused(output) => {
                let output = self.journal.keep(&output);
                self.record(Event::CommitRefused { iteration, attempt, output });
                Ok(())
            }
        }
    }

    /// A commit is the task's if its tree is the one that was checked; what a hook made of it has to
    /// be checked first.
    pub(crate) fn accept_commit(
        &mut self,
        open: &OpenIteration,
        commit: String,
        verified: bool,
    ) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        let (iteration, attempt) = (open.iteration, open.attempt);
        let altered = git.hooks_present()?
            && git.differs_from_index(&self.taken_index(), &[self.settings.backlog_name.as_str()])?;
        if !altered {
            self.complete(open, Some(commit), verified);
            return Ok(());
        }
        git.squash_onto(open.base.as_deref(), open.branch.as_deref())?;
        git.stage_all(&self.watched.excluded())?;
        git.save_index(&self.taken_index())?;
        if open.altered >= MAX_ALTERATIONS {
            let output = self.journal.keep("a git hook changes the files with every commit");
            self.record(Event::CommitRefused { iteration, attempt, output });
        } else {
            self.record(Event::TreeAltered { iteration, attempt });
        }
        Ok(())
    }

    fn complete(&mut self, open: &OpenIteration, commit: Option<String>, verified: bool) {
        self.record(Event::TaskCompleted {
            iteration: open.iteration,
            task: open.task.clone(),
            attempt: open.attempt,
            commit,
            verified,
        });
    }

    fn commit_message(&self, open: &OpenIteration) -> String {
        let title = self.journal.state.task(&open.task).map_or("", |entry| entry.spec.title.as_str());
        let title: String = title.lines().next().unwrap_or_default().chars().take(72).collect();
        let mut message = if title.is_empty() || title == open.task.as_str() {
            format!("{}\n\n", open.task)
        } else {
            format!("{}: {title}\n\n", open.task)
        };
        message.push_str(&format!("Wiggum-Task: {}\n", open.task));
        message.push_str(&format!("Wiggum-Loop: {}\n", self.journal.id));
        message.push_str(&format!("{ITERATION_TRAILER}: {}\n", self.iteration_key(open.iteration)));
        message.push_str(&format!("Wiggum-Attempt: {}\n", open.attempt));
        if open.evidence.is_empty() {
            message.push_str("Wiggum-Evidence: none (unverified)\n");
        }
        for evidence in &open.evidence {
            let command = evidence.command.replace('\n', " ");
            message.push_str(&format!("Wiggum-Evidence: `{command}` {}", evidence.exit));
            if !evidence.output.sha256.is_empty() {
                message.push_str(&format!(", output {}", &evidence.output.sha256[..12]));
            }
            message.push('\n');
        }
        message
    }

    /// Names an iteration for all time: the loop and the number.
    pub(crate) fn iteration_key(&self, iteration: Iteration) -> String {
        format!("{}/{iteration}", self.journal.id)
    }

    pub(crate) fn keep_work(&mut self, task: &TaskId, iteration: Iteration) -> Result<(), EngineError> {
        crash::point("before keeping work");
        let Some(git) = &self.git else { return Ok(()) };
        git.put_back_index(&self.taken_index())?;
        let reference = format!("refs/wiggum/{}/{}/{iteration}", self.short_id(), ref_name(task));
        let commit =
            git.keep_work(&reference, &format!("Unfinished work on {task}, iteration {iteration}"))?;
        crash::point("work kept");
        self.in_place = Some(commit.clone());
        self.record(Event::WorkKept { iteration, task: task.clone(), reference, commit });
        Ok(())
    }

    /// What an interrupted attempt had done so far goes under a ref; the tree goes back to where the
    /// attempt started. Nothing here may fail the interruption itself.
    pub(crate) fn keep_interrupted_work(&mut self) -> Option<String> {
        let open = self.journal.state.open.clone()?;
        match self.undo_attempt(&open) {
            Ok(kept) => kept,
            Err(error) => {
                let message = format!("the interrupted work could not be tidied away: {}", chain(&error));
                self.record(Event::Noticed { task: Some(open.task.clone()), message });
                None
            }
        }
    }

    fn undo_attempt(&mut self, open: &OpenIteration) -> Result<Option<String>, EngineError> {
        let Some(git) = &self.git else { return Ok(None) };
        self.put_back_hooks()?;
        self.clear_locks(git)?;
        self.put_head_back(git, open.iteration)?;
        self.watched.put_back_own_files()?;
        let excluded = self.watched.excluded();
        git.stage_all(&excluded)?;
        let changed = !git.status()?.staged.is_empty();
        let mut kept = None;
        if changed {
            let reference = format!(
                "refs/wiggum/{}/{}/interrupted-{}",
                self.short_id(),
                ref_name(&open.task),
                open.iteration
            );
            let message = format!("Interrupted work on {}, iteration {}", open.task, open.iteration);
            kept = Some(git.keep_work(&reference, &message)?);
        }
        match &open.carried {
            Some(carried) => git.restore_work(carried, &excluded)?,
            None => git.reset_hard(open.base.as_deref(), &excluded)?,
        }
        self.in_place.clone_from(&open.carried);
        Ok(kept)
    }

    pub(crate) fn reset_workspace(&mut self) -> Result<(), EngineError> {
        self.flush()?;
        crash::point("before reset");
        let Some(git) = &self.git else { return Ok(()) };
        let head = git.head()?.commit;
        git.reset_hard(head.as_deref(), &self.watched.excluded())?;
        crash::point("after reset");
        self.in_place = None;
        self.record(Event::WorkspaceReset { commit: head.unwrap_or_default() });
        Ok(())
    }

    pub(crate) fn write_status(&mut self, task: &TaskId, status: FileStatus) -> Result<(), EngineError> {
        self.flush()?;
        crash::point("before status");
        match self.backlog.edit(|backlog| backlog.set_status(task.as_str(), status)) {
            Ok(()) | Err(BacklogError::Edit(_)) => {
                self.record(Event::StatusWritten { task: task.clone(), status });
            }
            Err(error @ (BacklogError::Read { .. } | BacklogError::Problems(_))) => {
                self.record(Event::BacklogBroken { message: chain(&error) });
            }
            Err(error) => return Err(error.into()),
        }
        crash::point("status written");
        Ok(())
    }

    pub(crate) fn taken_index(&self) -> std::path::PathBuf {
        self.dir.taken_index(self.journal.id)
    }

    pub(crate) fn short_id(&self) -> String {
        // The end of a UUIDv7 is its random part.
        let id = self.journal.id.to_string();
        id[id.len() - 12..].to_owned()
    }
}

/// The trailer by which a commit is found again after a crash.
pub(crate) const ITERATION_TRAILER: &str = "Wiggum-Iteration";

fn flag(kind: FlagKind, what: &str, detail: &str) -> Flag {
    Flag { kind, what: what.to_owned(), detail: detail.to_owned() }
}

/// Files that belong to the user's set-up of the loop; untracked, they are no dirt.
fn own_files(settings: &Settings) -> Vec<String> {
    let prompt = settings.prompt.as_ref().map(|path| relative(&settings.workspace, path));
    ["wiggum.toml".to_owned(), "PROMPT.md".to_owned()].into_iter().chain(prompt).collect()
}

/// Is the ignore file's only change the line that `wiggum init` adds?
fn ignores_only_us(git: &Git) -> Result<bool, EngineError> {
    let Ok(now) = fs::read_to_string(git.root().join(".gitignore")) else { return Ok(false) };
    if !now.ends_with(".wiggum/\n") {
        return Ok(false);
    }
    let before = git.show_file(Source::Commit("HEAD"), ".gitignore")?.unwrap_or_default();
    let before = String::from_utf8_lossy(&before);
    let line_before_ours = now.strip_suffix(".wiggum/\n").unwrap_or_default();
    Ok(before != now && (line_before_ours == before || line_before_ours == format!("{before}\n")))
}

/// A path relative to the workspace where it lies inside, as git writes it.
pub(crate) fn relative(workspace: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(workspace).unwrap_or(path);
    inside.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn stands_on(head: &Head, open: &OpenIteration) -> bool {
    head.commit == open.base && head.branch == open.branch
}

fn may_hold_tests(path: &str) -> bool {
    const SOURCES: [&str; 16] = [
        "rs", "py", "js", "jsx", "ts", "tsx", "mjs", "go", "java", "kt", "rb", "php", "cs", "swift", "c",
        "cpp",
    ];
    is_test_path(path) || Path::new(path).extension().is_some_and(|e| SOURCES.iter().any(|s| e == *s))
}

fn change_name(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Modified => "modified",
        Change::Deleted => "deleted",
        Change::TypeChanged => "replaced",
        Change::Unmerged => "unmerged",
    }
}

fn digest_of(staged: &[Entry]) -> String {
    let mut hash = Sha256::new();
    for entry in staged {
        hash.update(format!(
            "\0{}\0{}\0{}",
            entry.path,
            entry.mode,
            entry.blob_after.as_deref().unwrap_or_default()
        ));
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Without git, what tells one state of a directory from another: names, sizes and times.
fn stamp_of_tree(root: &Path, backlog: &Path) -> String {
    const MAX_FILES: usize = 50_000;
    let mut hash = Sha256::new();
    let mut todo = vec![root.to_owned()];
    let mut seen = 0;
    while let Some(dir) = todo.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            seen += 1;
            let path = entry.path();
            let own = entry.file_name() == StateDir::NAME || path == backlog;
            if own || seen > MAX_FILES {
                continue;
            }
            let Ok(data) = entry.metadata() else { continue };
            if data.is_dir() {
                todo.push(path);
                continue;
            }
            let modified = data.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            hash.update(format!("{}\0{}\0{:?}\0", path.display(), data.len(), modified));
        }
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// A task's id as part of a ref's name.
fn ref_name(task: &TaskId) -> String {
    let plain: String = task
        .as_str()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
        .collect();
    let plain = plain.trim_matches('-').to_owned();
    if plain == task.as_str() {
        return plain;
    }
    // Two ids may look alike once cleaned; the hash keeps them apart.
    let hash: String =
        Sha256::digest(task.as_str().as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{hash}", plain.chars().take(60).collect::<String>()).trim_start_matches('-').to_owned()
}

fn short(commit: &str) -> String {
    commit.chars().take(10).collect()
}
