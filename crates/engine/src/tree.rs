//! What an attempt does to the work tree: taken as one tree, looked at, landed or kept aside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};
use wiggum_backlog::PlanValue;
use wiggum_core::commits::newest_of_others;
use wiggum_core::event::{Event, Flag, FlagKind, MAX_LISTED_PATHS};
use wiggum_core::ids::{Attempt, Iteration, TaskId};
use wiggum_core::mutant::{Mutant, planted};
use wiggum_core::obeyed::{holds_obeyed, is_note, is_obeyed};
use wiggum_core::state::{OpenIteration, Stage, Workspace};
use wiggum_core::tally::fewer;
use wiggum_core::task::{FileStatus, Work};
use wiggum_core::text::hex;
use wiggum_core::weaken::{TestFile, governs_tests, is_test_path, weakened};
use wiggum_workspace::beneath;
use wiggum_workspace::crash;
use wiggum_workspace::git::{
    Change, Entry, Git, GitError, Guardian, Head, Known, Odd, PutBack, Source, Status, ignoring_state,
};

use crate::attempts::tell_failures;
use crate::backlog_file::BacklogError;
use crate::engine::{Engine, Settings};
use crate::error::{EngineError, chain};
use crate::former::{LINK_MODE, Redefinition, read_text};
use crate::state_dir::StateDir;
use crate::watched::{Watched, relative};

/// How many changed files are looked at for weakened tests.
const MAX_EXAMINED: usize = 200;

impl Engine<'_> {
    /// Before anything else: what is tracked, and what belongs to the loop rather than to a task.
    pub(crate) fn look_at_repository(&mut self) -> Result<(), EngineError> {
        let guard = self.dir.guard_dir(self.journal.id);
        self.watched.recall_own_files(&guard);
        let Some(git) = &self.git else { return Ok(()) };
        if !self.journal.state.open.is_empty()
            && self.own.is_none()
            && let Some(guardian) = Guardian::open(git, &guard)?
        {
            guardian.clear_the_way(&guard)?;
        }
        // One that an attempt left is removed when its tree is taken.
        if self.journal.state.open.is_empty()
            && let Some(name) = git.special_file()
        {
            return Err(EngineError::NoPlainFile { name });
        }
        git.exclude_state_dir()?;
        self.watched.backlog_tracked = self.is_tracked(git, &self.settings.backlog_name)?;
        self.watched.excluded = vec![self.settings.backlog_name.clone()];
        let status = git.status()?;
        let changed = status.paths();
        let is_new_backlog =
            |entry: &Entry| entry.change == Change::Added && entry.path == self.settings.backlog_name;
        self.watched.backlog_added = status.staged.iter().any(is_new_backlog);
        // After a crash they may be the agent's.
        if self.journal.state.open.is_empty() {
            self.watched.uncommitted_inside = status.uncommitted_inside;
        }
        for name in own_files(&self.settings) {
            // What the user changed there is not for a task to commit or to reset.
            let by_user = match (self.journal.state.open.here(), self.watched.recalled(&name)) {
                (Some(open), Some(before)) => in_base(git, open, &name)?.as_ref() != Some(before),
                (Some(_), None) => false,
                (None, _) => changed.contains(&name),
            };
            // One that an agent makes is its work.
            let was_there = match self.journal.state.open.here() {
                Some(_) => self.watched.recalled(&name).is_some(),
                None => self.settings.workspace().join(&name).exists(),
            };
            if by_user || (was_there && !self.is_tracked(git, &name)?) {
                self.watched.excluded.push(name);
            }
        }
        if ignores_only_us(git)? {
            self.watched.excluded.push(".gitignore".to_owned());
        }
        // What an agent did before a crash is compared with what was there before that agent.
        if self.own.is_none() {
            self.guardian = Guardian::open(git, &self.dir.guard_dir(self.journal.id))?;
        }
        Ok(())
    }

    /// Is this file the repository's? After a crash its agent may have added it, so what the attempt
    /// started from counts.
    fn is_tracked(&self, git: &Git, name: &str) -> Result<bool, EngineError> {
        match self.journal.state.open.here() {
            Some(open) => Ok(in_base(git, open, name)?.is_some()),
            None => Ok(git.is_tracked(name)?),
        }
    }

    /// Remembers git's hooks and configuration, so that an agent cannot change them.
    pub(crate) fn guard_repository(&mut self) -> Result<(), EngineError> {
        self.forget_tip()?;
        if self.begin_own_repository()? {
            return Ok(());
        }
        let Some(git) = &self.git else { return Ok(()) };
        self.guardian = Some(Guardian::take(git, &self.dir.guard_dir(self.journal.id))?);
        git.copy_index(&self.former_index())?;
        Ok(())
    }

    /// The index as it was before the agent ran.
    fn former_index(&self) -> PathBuf {
        self.dir.guard_dir(self.journal.id).join("index")
    }

    fn put_back_own_files(&self) -> Result<(), EngineError> {
        let copies = self.dir.guard_dir(self.journal.id);
        self.watched.put_back_own_files(self.git.as_ref(), self.settings.workspace(), &copies)
    }

    pub(crate) fn note_own_files(&mut self) -> Result<(), EngineError> {
        let copies = self.dir.guard_dir(self.journal.id);
        self.watched
            .note_own_files(&copies)
            .map_err(|source| EngineError::Write { path: copies.clone(), source })
    }

    /// Once it is durable that no attempt lies in the workspace, what is there is in force again.
    pub(crate) fn forget_attempt(&mut self) -> Result<(), EngineError> {
        let state = &self.journal.state;
        let lies_there = !state.open.is_empty() || (state.git && state.workspace != Workspace::Clean);
        if lies_there || !self.attempt_lies_there {
            self.attempt_lies_there |= lies_there;
            return Ok(());
        }
        let copies = self.dir.guard_dir(self.journal.id);
        Watched::forget_attempt(&copies).map_err(|source| EngineError::Write { path: copies, source })?;
        self.attempt_lies_there = false;
        Ok(())
    }

    /// A run starts, or goes on, from a clean tree: what the user has not committed is theirs, not the
    /// task's. Where an attempt's work lies in the tree, recovery has seen to it.
    pub(crate) fn require_clean_tree(&mut self) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        let state = &self.journal.state;
        let holds_work =
            !state.open.is_empty() || state.unkept.is_some() || state.workspace != Workspace::Clean;
        if holds_work {
            return Ok(());
        }
        // A stash holds no merge: setting its changes aside would make an ordinary commit of it.
        if let Some(operation) = git.unfinished_operation() {
            return Err(EngineError::UnfinishedOperation { operation });
        }
        if git.head()?.branch.is_none() {
            return Err(EngineError::DetachedHead);
        }
        if let Some(commit) = state.user_changes.clone() {
            return self.finish_setting_aside(&commit);
        }
        git.exclude_state_dir()?;
        let status = git.status()?;
        let own = self.own_paths(git)?;
        let dirty: Vec<String> = status.paths().into_iter().filter(|path| !own.contains(path)).collect();
        if dirty.is_empty() {
            return Ok(());
        }
        if self.journal.state.baseline.under_way.is_some() {
            return self.put_baseline_aside(&dirty);
        }
        if !self.settings.allow_dirty {
            return Err(EngineError::Dirty { paths: dirty });
        }
        // Numbered, since what could not be put back the last time must not be overwritten.
        let reference = format!("refs/wiggum/{}/user-changes/{}", self.short_id(), self.journal.state.seq);
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let Some(commit) = git.keep_changes(&reference, &own)? else { return Ok(()) };
        let head = git.head()?.commit;
        self.record(Event::UserChangesSetAside { reference, commit });
        self.flush()?;
        if let Some(git) = &self.git {
            git.reset_hard(head.as_deref(), &own)?;
        }
        crash::point("user changes set aside");
        Ok(())
    }

    /// Found before an agent is paid for work that could not be committed.
    pub(crate) fn require_signature(&self) -> Result<(), EngineError> {
        let is_left = |status: FileStatus| match status {
            FileStatus::Done | FileStatus::Skipped => false,
            FileStatus::Open | FileStatus::Failed => true,
        };
        let Some(git) = self.git.as_ref().filter(|_| {
            self.backlog
                .backlog()
                .is_none_or(|backlog| backlog.tasks().iter().any(|task| is_left(task.status)))
        }) else {
            return Ok(());
        };
        match git.signing_problem()? {
            Some(message) => Err(EngineError::CannotSign { message }),
            None => Ok(()),
        }
    }

    /// We were killed while a check ran on the untouched tree: what lies there is the check's, or came meanwhile.
    fn put_baseline_aside(&mut self, dirty: &[String]) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        let excluded = self.watched.excluded();
        git.stage_all(&excluded)?;
        self.keep_found(&dirty.join(", "))?;
        let Some(git) = &self.git else { return Ok(()) };
        Ok(git.reset_hard(git.head()?.commit.as_deref(), &self.watched.excluded())?)
    }

    /// We were killed between setting the user's changes aside and the clean tree, or while they were
    /// put back. What lies there now is part of them, unless somebody went on working: kept as well.
    fn finish_setting_aside(&mut self, commit: &str) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        let reference = format!("refs/wiggum/{}/found/{}", self.short_id(), self.journal.state.seq);
        let own = self.own_paths(git)?;
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let found = match git.keep_changes(&reference, &own) {
            // They did not fit, and we were killed before that was undone.
            Err(GitError::Unmerged { .. }) => {
                git.stage_all(&own)?;
                git.keep_changes(&reference, &own)?
            }
            found => found?,
        };
        let Some(found) = found else { return Ok(()) };
        let same = git.same_changes(&found, commit)?;
        git.reset_hard(git.head()?.commit.as_deref(), &own)?;
        if same {
            git.delete_reference(&reference)?;
        } else {
            let message = format!("changes found in the work tree are kept under {reference}");
            self.record(Event::Noticed { task: None, message });
        }
        Ok(())
    }

    /// Files whose changes are no dirt: they belong to the loop, or to its set-up.
    pub(crate) fn own_paths(&self, git: &Git) -> Result<Vec<String>, EngineError> {
        let mut own = own_files(&self.settings);
        own.push(self.settings.backlog_name.clone());
        if ignores_only_us(git)? {
            own.push(".gitignore".to_owned());
        }
        Ok(own)
    }

    pub(crate) fn put_back_user_changes(&mut self, commit: &str) -> Result<(), EngineError> {
        self.flush()?;
        self.choose_index()?;
        let Some(git) = &self.git else { return Ok(()) };
        let problem = match git.put_back(commit, &self.watched.excluded()) {
            Ok(PutBack::Clean) => None,
            Ok(PutBack::Conflict(said)) => Some(said),
            // We were killed while they were put back, or somebody works here already.
            Err(error @ GitError::NotClean { .. }) => Some(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        crash::point("user changes put back");
        let clean = problem.is_none();
        if let Some(problem) = problem {
            let message = format!("uncommitted changes cannot be put back: {problem}");
            self.record(Event::Noticed { task: None, message });
        }
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
        self.put_back_own_files()?;
        let known = self.journal.state.open.here().filter(|open| open.altered == 0);
        let is_first = known.is_some();
        let mut flags = match known.map(|open| open.flags.clone()) {
            Some(known) => {
                let mut flags = self.note_found_commits()?;
                flags.retain(|flag| !known.contains(flag));
                flags
            }
            // What a commit of ours became is ours.
            None => Vec::new(),
        };
        if let Some(git) = &self.git {
            let untouched = std::mem::take(&mut self.hooks_untouched);
            if let Some(guardian) = self.guardian.as_mut().filter(|_| !untouched) {
                guardian.compare_and_put_back(&self.dir.guard_dir(self.journal.id))?;
                crash::point("hooks put back");
            }
            self.clear_locks(git)?;
            flags.extend(self.put_head_back(git, iteration)?);
            if is_first && self.own.is_none() && self.former_index().exists() {
                // Entries that an agent marked as unchanged would hide what it did to the files.
                git.put_back_index(&self.former_index())?;
            }
            if let Some(own) = &self.own {
                own.hand_over_submodules(git)?;
            }
            flags.extend(git.stage_all(&self.watched.excluded())?.iter().map(odd_flag));
            crash::point("staged");
            git.save_index(&self.taken_index())?;
        }
        self.record(Event::TreeTaken { iteration, attempt, flags });
        Ok(())
    }

    /// Nothing that an agent put in the place of git's own files keeps git waiting.
    pub(crate) fn clear_the_way(&self) -> Result<Vec<Flag>, EngineError> {
        let Some(guardian) = &self.guardian else { return Ok(Vec::new()) };
        let found = guardian.clear_the_way(&self.dir.guard_dir(self.journal.id))?;
        Ok(found.iter().map(|name| flag(FlagKind::HooksTouched, name, "put back")).collect())
    }

    /// Hooks and configuration are as they were before agent and checks ran.
    fn put_back_hooks(&mut self) -> Result<Vec<Flag>, EngineError> {
        let Some(guardian) = &mut self.guardian else { return Ok(Vec::new()) };
        let changed = guardian.compare_and_put_back(&self.dir.guard_dir(self.journal.id))?;
        Ok(changed.iter().map(|name| flag(FlagKind::HooksTouched, name, "put back")).collect())
    }

    /// What the agent started is gone: a lock that is left belongs to a git that was killed.
    fn clear_locks(&self, git: &Git) -> Result<(), EngineError> {
        let branch = self.journal.state.open.here().and_then(|open| open.branch.as_deref());
        if git.is_locked(branch) {
            git.clear_dead_lock()?;
        }
        Ok(())
    }

    /// Commits of somebody else that came while the agent worked become the base of the attempt. Where
    /// they change what judges it, nobody can be sure that they are not the agent's, unless they came when
    /// nothing of ours ran any more: they become part of its work, and are kept under a ref as well.
    pub(crate) fn note_found_commits(&mut self) -> Result<Vec<Flag>, EngineError> {
        let (Some(git), Some(open)) = (&self.git, self.journal.state.open.here()) else {
            return Ok(Vec::new());
        };
        let (iteration, attempt) = (open.iteration, open.attempt);
        let head = git.head()?;
        let moved = head.branch == open.branch && head.commit != open.base;
        let Some(tip) = head.commit.filter(|_| moved) else { return Ok(Vec::new()) };
        let commit = if self.own.is_some() {
            Some(tip.clone())
        } else {
            let moves = git.moves_since(open.base.as_deref())?;
            let moves = moves.iter().map(|step| (step.to.as_str(), step.message.as_str()));
            newest_of_others(moves).map(str::to_owned)
        };
        let Some(commit) = commit else { return Ok(Vec::new()) };
        let follows = match open.base.as_deref() {
            Some(base) => base != commit && git.is_ancestor(base, &commit)?,
            None => true,
        };
        if !follows || !git.is_ancestor(&commit, &tip)? {
            // An amended commit, say: it cannot become the base, but is not lost either.
            git.set_reference(&format!("refs/wiggum/{}/squashed/{iteration}", self.short_id()), &commit)?;
            return Ok(Vec::new());
        }
        let changes = match self.in_doubt_up_to(git, open, &commit)? {
            Some(doubtful) => git.changes_between(open.base.as_deref(), &doubtful)?,
            None => Vec::new(),
        };
        let judging = self.judging_paths(git, open, &changes)?;
        if judging.is_empty() {
            let subjects = git.subjects_between(open.base.as_deref(), &commit)?;
            self.record(Event::CommitsFound { iteration, attempt, commit, subjects });
            return Ok(Vec::new());
        }
        let reference = format!("refs/wiggum/{}/squashed/{iteration}", self.short_id());
        git.set_reference(&reference, &commit)?;
        let detail = format!(
            "changes what judges the work ({}), so it counts as the agent's; kept under {reference}",
            judging.join(", ")
        );
        Ok(vec![flag(FlagKind::AgentCommitted, &short(&commit), &detail)])
    }

    /// The newest of the commits up to this one that an agent could have made.
    fn in_doubt_up_to(
        &self,
        git: &Git,
        open: &OpenIteration,
        commit: &str,
    ) -> Result<Option<String>, EngineError> {
        if self.own.is_some() {
            return Ok(None);
        }
        match self.noted_tip() {
            Some(tip) if Some(&tip) == open.base.as_ref() => Ok(None),
            Some(tip) if git.has_commit(&tip)? && git.is_ancestor(&tip, commit)? => Ok(Some(tip)),
            Some(_) | None => Ok(Some(commit.to_owned())),
        }
    }

    /// Which of these changes would be looked at closely if the agent had made them?
    fn judging_paths(
        &self,
        git: &Git,
        open: &OpenIteration,
        changes: &[Entry],
    ) -> Result<Vec<String>, EngineError> {
        let redefined = self.redefinition(Some(git), open, changes)?.former.changes.into_iter();
        let mut paths: Vec<String> =
            redefined.filter(|change| !change.product).map(|change| change.path).collect();
        paths.extend(self.flag_changes(git, changes)?.into_iter().map(|flag| flag.what));
        paths.sort_unstable();
        paths.dedup();
        Ok(paths)
    }

    /// What the agent did to git itself and to the user's set-up. Noted with its end, before any of it
    /// is put back: afterwards nobody could tell. `began_at` is the commit that the agent found.
    pub(crate) fn touched(&mut self, began_at: Option<&str>) -> Result<Vec<Flag>, EngineError> {
        let mut flags = self.watched.touched_own_files(self.git.as_ref())?;
        let (Some(git), Some(open)) = (&self.git, self.journal.state.open.here()) else { return Ok(flags) };
        if self.own.is_some() {
            flags.extend(self.done_in_private(git, open, began_at)?);
            return Ok(flags);
        }
        let directory = self.dir.guard_dir(self.journal.id);
        let hooks = self.guardian.as_mut().map_or(Ok(Vec::new()), |guardian| guardian.compare(&directory))?;
        self.hooks_untouched = self.guardian.is_some() && hooks.is_empty();
        flags.extend(hooks.iter().map(|name| flag(FlagKind::HooksTouched, name, "put back")));
        let head = git.head()?;
        if let Some(base) = went_back(git, &head, open)? {
            flags.push(flag(
                FlagKind::BranchSwitched,
                &short(base),
                "was thrown away by the agent; put back",
            ));
            return Ok(flags);
        }
        if head.branch != open.branch {
            let name = head.branch.as_deref().unwrap_or("a detached HEAD");
            flags.push(flag(FlagKind::BranchSwitched, name, "the agent switched to it; put back"));
        }
        if head.commit != open.base {
            let name = head.commit.as_deref().map_or_else(String::new, short);
            flags.push(flag(FlagKind::AgentCommitted, &name, "becomes part of the task's commit"));
        }
        Ok(flags)
    }

    /// Commits made since the attempt started, by the agent or by us, become changes of the index
    /// again; a branch the agent switched to is left; commits it threw away are there again.
    fn put_head_back(&self, git: &Git, iteration: Iteration) -> Result<Vec<Flag>, EngineError> {
        let Some(open) = self.journal.state.open.here() else { return Ok(Vec::new()) };
        if self.own.is_some() {
            return match (self.went_back_to(git, open)?, &open.base) {
                (Some(at), Some(base)) => self.redo_history(git, open, Some(&at), base, iteration),
                (Some(_) | None, _) => Ok(Vec::new()),
            };
        }
        let head = git.head()?;
        if let Some(base) = went_back(git, &head, open)? {
            return self.redo_history(git, open, None, base, iteration);
        }
        if head.branch != open.branch || head.commit != open.base {
            git.squash_onto(open.base.as_deref(), open.branch.as_deref())?;
        }
        Ok(Vec::new())
    }

    /// The agent went back in history: its tree lacks what others did since. Its own work is moved
    /// onto the newest commit, where that is possible; else what it has is shown as what it did. `at` is
    /// where it went in a repository of its own; else that is where HEAD is.
    fn redo_history(
        &self,
        git: &Git,
        open: &OpenIteration,
        at: Option<&str>,
        base: &str,
        iteration: Iteration,
    ) -> Result<Vec<Flag>, EngineError> {
        let excluded = self.watched.excluded();
        git.stage_all(&excluded)?;
        let reference = format!("refs/wiggum/{}/rewound/{iteration}", self.short_id());
        let message = "Work on an older commit";
        let kept = match at {
            Some(at) => git.keep_tree_on(&reference, at, message)?,
            None => git.keep_work(&reference, message)?,
        };
        let moved = git.move_work(&kept, base)?;
        // The files first: found on the older commit again after a crash, they would be moved again;
        // found on the newer one, they would look like work that undoes what others did.
        let mut flags = Vec::new();
        match &moved {
            Some(moved) => git.restore_work(moved, &excluded)?,
            None => flags.push(flag(
                FlagKind::BranchSwitched,
                &short(base),
                "the agent's work does not fit on what it threw away",
            )),
        }
        if at.is_none() {
            git.squash_onto(open.base.as_deref(), open.branch.as_deref())?;
        }
        Ok(flags)
    }

    pub(crate) fn inspect(&mut self, iteration: Iteration, attempt: Attempt) -> Result<(), EngineError> {
        crash::point("before inspect");
        if self.moved_while_checked()? {
            return Ok(());
        }
        let Some(open) = self.journal.state.open.here().cloned() else { return Ok(()) };
        let mut flags = Vec::new();
        if !open.own {
            flags.extend(self.guard_backlog_in_checks(&open.task)?);
        }
        let mut redefinition = Redefinition::default();
        flags.extend(self.put_back_hooks()?);
        let mut staged = Vec::new();
        let (changed, digest) = match &self.git {
            // The engine knows what it did itself.
            None if open.own => (self.own_changes(&open), String::new()),
            None => {
                let digest = stamp_of_tree(self.settings.workspace(), &self.settings.no_work(), STAMPED);
                staged = self.changed_without_git();
                flags.extend(self.weakened_without_git(&staged));
                redefinition = self.redefinition(None, &open, &staged)?;
                flags.extend(redefinition.flags());
                (Vec::new(), digest)
            }
            Some(git) => {
                // A check may leave pipes as well.
                flags.extend(git.remove_pipes()?.iter().map(odd_flag));
                flags.extend(self.clear_the_way()?);
                // A check may have put its own files into the index.
                git.put_back_index(&self.taken_index())?;
                let mut known = std::mem::take(&mut self.known);
                let status = self.own_status(git, &mut known);
                self.known = known;
                let status = status?;
                flags.extend(self.submodule_flags(&status));
                flags.extend(self.put_back_leftovers(git, &status, iteration)?);
                flags.extend(self.flag_changes(git, &status.staged)?);
                flags.extend(self.obeyed_flags(&status.staged));
                flags.extend(ignore_flags(&status.staged));
                flags.extend(links_that_lead_out(self.settings.workspace(), &status.staged));
                redefinition = self.redefinition(Some(git), &open, &status.staged)?;
                flags.extend(redefinition.flags());
                let changed: Vec<String> = status.staged.iter().map(|entry| entry.path.clone()).collect();
                let digest = digest_of(&status.staged);
                staged = status.staged;
                (changed, digest)
            }
        };
        flags.extend(self.program_flags(&open, &staged));
        flags.extend(self.forged_flags()?);
        flags.extend(self.stale_flags(&staged));
        // A check by another definition is judged together with what the former one ran.
        if !redefinition.former.is_redefined() {
            flags.extend(fewer(&self.journal.state, &open));
        }
        let changed_total = match &self.git {
            Some(_) => u32::try_from(changed.len()).unwrap_or(u32::MAX),
            None if open.own => u32::try_from(changed.len()).unwrap_or(u32::MAX),
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
            redefined: redefinition.former.changes.clone(),
            former_checks: redefinition.checks.clone(),
            written_checks: redefinition.written_checks.clone(),
        });
        self.redefinition = redefinition;
        Ok(())
    }

    fn own_changes(&self, open: &OpenIteration) -> Vec<String> {
        match self.journal.state.task(&open.task).map(|entry| &entry.spec.work) {
            Some(Work::File { path, .. }) if open.error.is_none() => vec![path.clone()],
            _ => Vec::new(),
        }
    }

    /// The state of the tree, with nothing staged that is not the attempt's to commit: an agent may
    /// have staged the user's files, or have thrown away the index with the backlog in it.
    fn own_status(&self, git: &Git, known: &mut Known) -> Result<Status, EngineError> {
        let mut status = git.status_known(known, &self.watched.excluded)?;
        let own;
        let is_foreign = |path: &str| {
            StateDir::is_own(path) || self.watched.excluded.iter().any(|excluded| excluded == path)
        };
        let paths = status.staged.iter().map(|entry| entry.path.as_str());
        let mut foreign: Vec<&str> = paths.filter(|path| is_foreign(path)).collect();
        if foreign.iter().any(|path| StateDir::is_own(path)) {
            // As directories: there may be more files in them than fit into a command.
            let names = StateDir::OWN.map(|name| format!("{}/{name}", StateDir::NAME));
            let staged = |name: &String| foreign.iter().any(|path| path.starts_with(name.as_str()));
            own = names.into_iter().filter(staged).collect::<Vec<_>>();
            foreign.retain(|path| !StateDir::is_own(path));
            foreign.extend(own.iter().map(String::as_str));
        }
        if !foreign.is_empty() {
            git.put_back_index(&self.taken_index())?;
            git.unstage(&foreign)?;
            git.save_index(&self.taken_index())?;
            status.staged.retain(|entry| !is_foreign(&entry.path));
        }
        Ok(status)
    }

    /// What nobody had left inside a submodule before the run: the commit will not have it.
    fn submodule_flags(&self, status: &Status) -> Vec<Flag> {
        let new = |path: &&String| !self.watched.uncommitted_inside.contains(path);
        let detail = "files inside this submodule are not committed there, so the task's commit does not have them; they are left as they are";
        let inside = status.uncommitted_inside.iter().filter(new);
        inside.map(|path| flag(FlagKind::SubmoduleUncommitted, path, detail)).collect()
    }

    /// What the checks made of the tree is not the attempt's work: it is kept aside and put back.
    fn put_back_leftovers(
        &self,
        git: &Git,
        status: &Status,
        iteration: Iteration,
    ) -> Result<Vec<Flag>, EngineError> {
        let left = self.changed_since_taken(status);
        if left.is_empty() {
            return Ok(Vec::new());
        }
        let weakened = self.weakened_by_checks(git, status)?;
        let excluded = self.watched.excluded();
        git.stage_all(&excluded)?;
        let reference = format!("refs/wiggum/{}/leftovers/{iteration}", self.short_id());
        git.keep_work(&reference, "What the checks left behind")?;
        self.return_to_taken_tree()?;
        let detail = format!("changed by a check and put back; kept under {reference}; {IGNORE_BUILDS}");
        let left = by_directory(&left);
        let left = left.iter().take(20).map(|path| flag(FlagKind::CheckLeftovers, path, &detail));
        Ok(weakened.into_iter().chain(left).collect())
    }

    /// Tests that something made weaker while the checks ran, such as a script of the build: then not those of the
    /// commit have passed.
    fn weakened_by_checks(&self, git: &Git, status: &Status) -> Result<Vec<Flag>, EngineError> {
        let changed: Vec<&Entry> =
            status.unstaged.iter().filter(|entry| may_hold_tests(&entry.path)).take(MAX_EXAMINED).collect();
        let blobs: Vec<Option<&str>> = changed.iter().map(|entry| entry.blob_before.as_deref()).collect();
        let before = if blobs.is_empty() { Vec::new() } else { git.read_blobs(&blobs)? };
        let root = self.settings.workspace();
        let now: Vec<Option<String>> =
            changed.iter().map(|entry| read_text(&root.join(&entry.path))).collect();
        let files: Vec<TestFile<'_>> = changed
            .iter()
            .zip(before.iter().zip(&now))
            .map(|(entry, (before, now))| TestFile {
                path: &entry.path,
                before: before.as_deref(),
                after: now.as_deref(),
            })
            .collect();
        let told = |found: Flag| Flag { detail: format!("{}, while a check ran", found.detail), ..found };
        Ok(weakened(&files).into_iter().map(told).collect())
    }

    /// Did somebody commit while the attempt was checked? Then it is moved onto that, and checked again.
    fn moved_while_checked(&mut self) -> Result<bool, EngineError> {
        let (Some(git), Some(open)) = (&self.git, self.journal.state.open.here()) else { return Ok(false) };
        let (head, base) = (git.head()?, open.base.clone());
        if head.branch != open.branch || head.commit == base {
            return Ok(false);
        }
        self.return_to_attempt()?;
        Ok(self.journal.state.open.here().is_none_or(|open| open.base != base))
    }

    /// Paths in which the work tree differs from the index, which is the tree that was taken.
    pub(crate) fn changed_since_taken(&self, status: &Status) -> Vec<String> {
        let unstaged = status.unstaged.iter().map(|entry| &entry.path);
        let changed = unstaged.chain(&status.untracked);
        changed.filter(|path| !self.watched.excluded.contains(path)).cloned().collect()
    }

    /// Makes index and work tree what they were when the tree was taken.
    pub(crate) fn return_to_taken_tree(&self) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        git.put_back_index(&self.taken_index())?;
        let taken = git.keep_work(&self.taken_reference(), "The tree under check")?;
        git.restore_work(&taken, &self.watched.excluded())?;
        git.save_index(&self.taken_index())?;
        Ok(())
    }

    /// The attempt under check goes out of the work tree; the saved index and a ref keep it until its
    /// checks run again. What an interrupted check had left behind is kept as well.
    pub(crate) fn put_attempt_aside(&mut self) -> Result<(), EngineError> {
        let Some(open) = self.journal.state.open.here().cloned() else { return Ok(()) };
        match open.stage {
            Stage::Judging | Stage::Landing { .. } => {}
            Stage::Agent => return Ok(()),
        }
        self.put_former_away()?;
        if !open.tree_taken {
            self.take_tree(open.iteration, open.attempt)?;
            self.flush()?;
        }
        let Some(git) = &self.git else { return Ok(()) };
        git.put_back_index(&self.taken_index())?;
        let excluded = self.watched.excluded();
        if !self.changed_since_taken(&git.status()?).is_empty() {
            git.stage_all(&excluded)?;
            let reference = format!("refs/wiggum/{}/leftovers/{}", self.short_id(), open.iteration);
            git.keep_work(&reference, "What the checks left behind")?;
            git.put_back_index(&self.taken_index())?;
        }
        git.keep_work(&self.taken_reference(), "The tree under check")?;
        git.reset_hard(self.tree_before(git)?.as_deref(), &excluded)?;
        self.refresh_users_index()
    }

    /// The commit whose tree lies there without the attempt. Where the repository is not the agent's, nobody but
    /// the user can have moved its branch.
    fn tree_before(&self, git: &Git) -> Result<Option<String>, EngineError> {
        match self.journal.state.open.here() {
            Some(open) if self.own.is_none() => Ok(open.base.clone()),
            Some(_) | None => Ok(git.head()?.commit),
        }
    }

    fn taken_reference(&self) -> String {
        format!("refs/wiggum/{}/taken", self.short_id())
    }

    /// Somebody committed while the attempt waited for its checks: it is moved onto that. False if it
    /// does not fit there.
    pub(crate) fn move_taken_tree(&mut self, from: Option<&str>) -> Result<bool, EngineError> {
        let base = self.journal.state.open.here().and_then(|open| open.base.clone());
        let (Some(git), Some(from), Some(base)) = (&self.git, from, base) else { return Ok(false) };
        git.put_back_index(&self.taken_index())?;
        let kept = git.keep_tree_on(&self.taken_reference(), from, "The tree under check")?;
        let Some(moved) = git.move_work(&kept, &base)? else { return Ok(false) };
        git.restore_work(&moved, &self.watched.excluded())?;
        git.save_index(&self.taken_index())?;
        Ok(true)
    }

    /// What is obeyed later is for a person to accept, by what it says.
    fn obeyed_flags(&self, staged: &[Entry]) -> Vec<Flag> {
        let prompt = self.settings.prompt.as_ref().map(|path| relative(self.settings.workspace(), path));
        let flag_of = |entry: &Entry| {
            let is_folder = entry.mode == LINK_MODE && holds_obeyed(&entry.path);
            let is_prompt = prompt.as_ref() == Some(&entry.path);
            let kind = if is_obeyed(&entry.path) || is_folder || is_prompt {
                FlagKind::ConfigTouched
            } else if is_note(&entry.path) {
                FlagKind::NotesChanged
            } else {
                return None;
            };
            let change = change_name(entry.change);
            let content = entry.blob_after.as_deref().map(|blob| format!("{change}, {}", short(blob)));
            Some(flag(kind, &entry.path, &content.unwrap_or_else(|| change.to_owned())))
        };
        staged.iter().filter_map(flag_of).collect()
    }

    fn flag_changes(&self, git: &Git, staged: &[Entry]) -> Result<Vec<Flag>, EngineError> {
        let mut flags = Vec::new();
        for entry in staged {
            let existed = entry.change != Change::Added;
            let watched = existed || !is_test_path(&entry.path);
            if watched && self.watched.protected.is_match(&entry.path) {
                flags.push(flag(FlagKind::ProtectedPath, &entry.path, change_name(entry.change)));
            }
        }
        flags.extend(self.weakened_tests(git, staged)?);
        Ok(flags)
    }

    /// Tests that are weaker than the copies of them.
    fn weakened_without_git(&self, changed: &[Entry]) -> Vec<Flag> {
        let Some(copies) = &self.copies else { return Vec::new() };
        let candidates = changed.iter().filter(|entry| may_hold_tests(&entry.path)).take(MAX_EXAMINED);
        let now = |path: &str| read_text(&self.settings.workspace().join(path));
        let texts: Vec<(&str, Option<&str>, Option<String>)> = candidates
            .map(|entry| (entry.path.as_str(), copies.text(&entry.path), now(&entry.path)))
            // Of product there is no copy to compare with.
            .filter(|(path, before, _)| before.is_some() || is_test_path(path))
            .collect();
        let files: Vec<TestFile<'_>> = texts
            .iter()
            .map(|(path, before, after)| TestFile { path, before: *before, after: after.as_deref() })
            .collect();
        weakened(&files)
    }

    fn weakened_tests(&self, git: &Git, staged: &[Entry]) -> Result<Vec<Flag>, EngineError> {
        let mut candidates: Vec<&Entry> = staged.iter().filter(|entry| may_hold_tests(&entry.path)).collect();
        // Where not all can be examined, those that surely hold tests come first.
        candidates.sort_by_key(|entry| !may_govern_tests(&entry.path) && !is_test_path(&entry.path));
        candidates.truncate(MAX_EXAMINED);
        // A new test that rules over no others makes nothing weaker; new product can, while it is loaded.
        let harmless = |entry: &Entry| {
            entry.change == Change::Added && is_test_path(&entry.path) && !may_govern_tests(&entry.path)
        };
        if candidates.iter().all(|entry| harmless(entry)) {
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

    pub(crate) fn keep_work(&mut self, task: &TaskId, iteration: Iteration) -> Result<(), EngineError> {
        crash::point("before keeping work");
        self.choose_index()?;
        let Some(git) = &self.git else { return Ok(()) };
        // The checks' leftovers are gone; what a hook that refused the commit has mended is welcome.
        git.stage_all(&self.watched.excluded())?;
        let reference = format!("refs/wiggum/{}/{}/{iteration}", self.short_id(), ref_name(task));
        let message = format!("Unfinished work on {task}, iteration {iteration}");
        let commit = match self.moved_from.take() {
            // On top of HEAD it would undo what somebody committed meanwhile.
            Some(base) => git.keep_tree_on(&reference, &base, &message)?,
            None => git.keep_work(&reference, &message)?,
        };
        crash::point("work kept");
        self.in_place = Some(commit.clone());
        let kept = Event::WorkKept { iteration, task: task.clone(), reference, commit };
        if planted(Mutant::KeepsTwice) {
            self.record(kept.clone());
        }
        self.record(kept);
        Ok(())
    }

    /// What an interrupted attempt had done so far goes under a ref; the tree goes back to where the
    /// attempt started.
    pub(crate) fn undo_attempt(&mut self, open: &OpenIteration) -> Result<Option<String>, EngineError> {
        self.put_back_hooks()?;
        let Some(git) = &self.git else { return Ok(None) };
        crash::point("hooks put back");
        self.clear_locks(git)?;
        self.put_head_back(git, open.iteration)?;
        self.put_back_own_files()?;
        let excluded = self.watched.excluded();
        git.stage_all(&excluded)?;
        let start = open.carried.as_deref().or(open.base.as_deref());
        let changed = match start {
            Some(start) => git.index_tree()? != git.tree_of(start)?,
            None => !git.status()?.staged.is_empty(),
        };
        let (mut kept, mut found) = (None, None);
        if changed {
            // With the epoch: the same iteration may be interrupted again, this one by its own recovery.
            let reference = format!(
                "refs/wiggum/{}/{}/interrupted-{}-{}",
                self.short_id(),
                ref_name(&open.task),
                open.iteration,
                self.journal.epoch()
            );
            let message = format!("Interrupted work on {}, iteration {}", open.task, open.iteration);
            let work = git.keep_work(&reference, &message)?;
            // Among it may be what a person has written since.
            let paths = git.changes_between(start, &work)?.into_iter().map(|entry| entry.path).collect();
            found = Some(format!("what was in the work tree is kept under {reference}: {}", listed(paths)));
            kept = Some(work);
        }
        match &open.carried {
            Some(carried) => git.restore_work(carried, &excluded)?,
            None => git.reset_hard(self.tree_before(git)?.as_deref(), &excluded)?,
        }
        self.in_place.clone_from(&open.carried);
        if open.carried.is_none() {
            self.refresh_users_index()?;
        }
        if let Some(message) = found {
            self.record(Event::Noticed { task: Some(open.task.clone()), message });
        }
        Ok(kept)
    }

    pub(crate) fn reset_workspace(&mut self) -> Result<(), EngineError> {
        self.flush()?;
        self.choose_index()?;
        crash::point("before reset");
        let Some(git) = &self.git else { return Ok(()) };
        let head = git.head()?.commit;
        git.reset_hard(head.as_deref(), &self.watched.excluded())?;
        self.refresh_users_index()?;
        crash::point("after reset");
        self.in_place = None;
        self.record(Event::WorkspaceReset { commit: head.unwrap_or_default() });
        Ok(())
    }

    pub(crate) fn write_status(&mut self, task: &TaskId, status: FileStatus) -> Result<(), EngineError> {
        self.flush()?;
        crash::point("before status");
        let state = &self.journal.state;
        let edited = self.backlog.edit(|backlog| {
            backlog.set_plan(PlanValue::IterationsUsed(state.used));
            tell_failures(state, backlog, task)?;
            backlog.set_status(task.as_str(), status)
        });
        match edited {
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

/// The first of these files, and how many more there are.
fn listed(mut paths: Vec<String>) -> String {
    const SHOWN: usize = 6;
    let more = paths.len().saturating_sub(SHOWN);
    paths.truncate(SHOWN);
    let end = if more > 0 { format!(" and {more} more") } else { String::new() };
    paths.join(", ") + &end
}

/// A file as it is in the commit an attempt started from.
fn in_base(git: &Git, open: &OpenIteration, name: &str) -> Result<Option<Vec<u8>>, EngineError> {
    match &open.base {
        Some(base) => Ok(git.show_file(Source::Commit(base), name)?),
        None => Ok(None),
    }
}

/// The attempt's base, if the agent went back to a commit before it.
fn went_back<'a>(git: &Git, head: &Head, open: &'a OpenIteration) -> Result<Option<&'a str>, EngineError> {
    match (&head.commit, &open.base) {
        (Some(at), Some(base)) if at != base && git.is_ancestor(at, base)? => Ok(Some(base)),
        (Some(_) | None, _) => Ok(None),
    }
}

/// Links that no clone can follow. What every system has is there for clones too.
fn links_that_lead_out(root: &Path, staged: &[Entry]) -> Vec<Flag> {
    const OF_SYSTEM: [&str; 6] = ["/usr", "/bin", "/lib", "/etc", "/opt", "/dev"];
    let links = staged.iter().filter(|entry| entry.mode == LINK_MODE && entry.change != Change::Deleted);
    let found = links.filter_map(|entry| {
        let target = fs::read_link(root.join(&entry.path)).ok()?;
        let of_system = OF_SYSTEM.iter().any(|place| target.starts_with(place));
        let depth = entry.path.matches('/').count();
        let leads_out = target.is_absolute() && !of_system || climbs(&target) > depth;
        leads_out.then(|| flag(FlagKind::LeadsOut, &entry.path, &format!("to {}", target.display())))
    });
    found.collect()
}

/// How far above its directory a relative path leads at most.
fn climbs(path: &Path) -> usize {
    let (mut at, mut highest) = (0_isize, 0_isize);
    for part in path.components() {
        match part {
            Component::ParentDir => at -= 1,
            Component::Normal(_) => at += 1,
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
        highest = highest.min(at);
    }
    highest.unsigned_abs()
}

/// Rules by which git ignores files, which may hide what no clone will have.
fn ignore_flags(staged: &[Entry]) -> impl Iterator<Item = Flag> {
    let rules = staged.iter().filter(|entry| entry.path.rsplit('/').next() == Some(".gitignore"));
    rules.map(|entry| flag(FlagKind::IgnoreRules, &entry.path, change_name(entry.change)))
}

/// What could not be committed as the attempt left it.
pub(crate) fn odd_flag(odd: &Odd) -> Flag {
    match odd {
        Odd::Repository { path, kept } => {
            let detail = format!("its files are part of the work; its history is kept in {}", kept.display());
            flag(FlagKind::NestedRepository, path, &detail)
        }
        Odd::Special { path } => flag(FlagKind::SpecialFile, path, "removed"),
    }
}

pub(crate) fn flag(kind: FlagKind, what: &str, detail: &str) -> Flag {
    Flag { kind, what: what.to_owned(), detail: detail.to_owned() }
}

/// Files that belong to the user's set-up of the loop, and those that we print to; untracked, they are
/// no dirt.
fn own_files(settings: &Settings) -> Vec<String> {
    let prompt = settings.prompt.as_ref().map(|path| relative(settings.workspace(), path));
    let usual = ["wiggum.toml".to_owned(), "PROMPT.md".to_owned()];
    usual.into_iter().chain(prompt).chain(settings.outputs.iter().cloned()).collect()
}

/// Is the ignore file's only change what `wiggum init` adds?
fn ignores_only_us(git: &Git) -> Result<bool, EngineError> {
    let Ok(now) = beneath::text_of(&git.root().join(".gitignore")) else { return Ok(false) };
    if !now.contains(StateDir::NAME) {
        return Ok(false);
    }
    let before = git.show_file(Source::Commit("HEAD"), ".gitignore")?.unwrap_or_default();
    Ok(ignoring_state(&String::from_utf8_lossy(&before)) == Some(now))
}

pub(crate) fn stands_on(head: &Head, open: &OpenIteration) -> bool {
    head.commit == open.base && head.branch == open.branch
}

pub(crate) fn may_hold_tests(path: &str) -> bool {
    const SOURCES: [&str; 23] = [
        "rs", "py", "js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "go", "java", "kt", "rb", "php",
        "cs", "swift", "c", "cpp", "cc", "cxx", "h", "hpp",
    ];
    is_test_path(path) || Path::new(path).extension().is_some_and(|e| SOURCES.iter().any(|s| e == *s))
}

/// Hooks and set-up files reach tests of other files, and a test file may end the run of all others; in Rust
/// each is a program of its own.
fn may_govern_tests(path: &str) -> bool {
    governs_tests(path) || (is_test_path(path) && !path.ends_with(".rs"))
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
    hex(&hash.finalize()[..16])
}

/// What to do about files that checks leave behind.
pub(crate) const IGNORE_BUILDS: &str = "name what builds make in .gitignore";

/// Paths for people to read: of a directory with many, only the directory.
pub(crate) fn by_directory(paths: &[String]) -> Vec<String> {
    let mut found: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for path in paths {
        let top = path.find('/').map_or(path.as_str(), |at| &path[..=at]);
        found.entry(top).or_default().push(path);
    }
    let told = |(top, paths): (&str, Vec<&String>)| match paths.as_slice() {
        [only] => (*only).clone(),
        all => format!("{top} ({} files)", all.len()),
    };
    found.into_iter().map(told).collect()
}

/// How many files tell what an attempt changed where there is no git.
pub(crate) const STAMPED: usize = 50_000;

/// What tells one state of a directory from another, without git: names, sizes and times of so many files.
pub(crate) fn stamp_of_tree(root: &Path, apart: &[PathBuf], most: usize) -> String {
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
            let name = entry.file_name();
            let own = name == StateDir::NAME || name == ".git" || apart.contains(&path);
            if own || seen > most {
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
    hex(&hash.finalize()[..16])
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
    let hash: String = hex(&Sha256::digest(task.as_str().as_bytes())[..4]);
    format!("{}-{hash}", plain.chars().take(60).collect::<String>()).trim_start_matches('-').to_owned()
}

pub(crate) fn short(commit: &str) -> String {
    commit.chars().take(10).collect()
}
