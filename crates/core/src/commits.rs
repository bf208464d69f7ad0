//! Whose are the commits that came onto the branch while an agent worked?
//!
//! What an agent commits is part of its task's commit. What a person commits in another terminal at the
//! same time is theirs and stays. They are told apart by git's own log of where HEAD went: agents have
//! [`ACTION`] in their environment, which git writes there. Nothing in the commit itself changes.
//!
//! An agent can take the variable out of its environment. It gains little by that: commits that change
//! what judges its work count as the agent's whoever seems to have made them, and all others are shown.

/// The variable with which git begins what it writes into the log.
pub const VARIABLE: &str = "GIT_REFLOG_ACTION";
/// Its value for agents.
pub const ACTION: &str = "wiggum-agent";
/// With this begins what is noted of our own moves.
const OURS: &str = "wiggum: ";

/// The newest commit to which somebody else moved HEAD, given the moves (commit and note) since the
/// iteration began, oldest first.
pub fn newest_of_others<'a>(moves: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    let others = moves.into_iter().filter(|(_, note)| !note.starts_with(ACTION) && !note.starts_with(OURS));
    others.map(|(commit, _)| commit).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(moves: &[(&str, &str)], expected: Option<&str>) {
        assert_eq!(newest_of_others(moves.iter().copied()), expected, "{moves:?}");
    }

    #[test]
    fn the_agents_moves_and_ours_are_told_from_a_persons() {
        check(&[], None);
        check(&[("a", "wiggum-agent: own work")], None);
        check(&[("a", "wiggum: squash")], None);
        check(&[("p", "commit: a person's")], Some("p"));
        check(&[("a", "wiggum-agent: one"), ("p", "commit: two"), ("b", "wiggum-agent: three")], Some("p"));
        check(&[("p", "pull: Fast-forward"), ("q", "commit (amend): again")], Some("q"));
    }
}
