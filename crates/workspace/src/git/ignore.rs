//! What git should not see of `.wiggum/`: our own files, but not those that people commit there.

/// Our directory in a checkout.
pub const STATE_DIR: &str = ".wiggum";

/// What we write there ourselves: the mark that names the store, the lock of the backlog, and what
/// other programs read of loops.
pub const STATE_FILES: [&str; 3] = ["store", "backlog.lock", "loops"];

/// The lines of an ignore file. What comes after the first can be committed.
const RULES: [&str; 4] =
    ["/.wiggum/*", "!/.wiggum/plans/", "!/.wiggum/*-findings.json", "!/.wiggum/artefacts.json"];

/// An ignore file with our rules in it: in place of a line that ignores the whole directory, else at the
/// end. `None` if they are there already.
pub fn ignoring_state(text: &str) -> Option<String> {
    if text.lines().any(|line| line.trim_end() == RULES[0]) {
        return None;
    }
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let rules: String = RULES.iter().flat_map(|rule| [*rule, end]).collect();
    let mut out = String::with_capacity(text.len() + rules.len());
    let mut replaced = false;
    for line in text.split_inclusive('\n') {
        match ignores_all(line.trim_end()) {
            true if replaced => {}
            true => {
                out.push_str(&rules);
                replaced = true;
            }
            false => out.push_str(line),
        }
    }
    if !replaced {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push_str(end);
        }
        out.push_str(&rules);
    }
    Some(out)
}

/// Does this line ignore our whole directory?
fn ignores_all(line: &str) -> bool {
    let line = line.strip_prefix('/').or_else(|| line.strip_prefix("**/")).unwrap_or(line);
    [".wiggum", ".wiggum/", ".wiggum/*", ".wiggum/**"].contains(&line)
}

#[cfg(test)]
mod tests {
    use super::ignoring_state;

    const OURS: &str = "/.wiggum/*\n!/.wiggum/plans/\n!/.wiggum/*-findings.json\n!/.wiggum/artefacts.json\n";

    #[test]
    fn the_rest_of_the_file_keeps_its_bytes() {
        let check = |old: &str, expected: &str| {
            let expected = expected.replace("OURS", OURS);
            assert_eq!(ignoring_state(old).as_deref(), Some(expected.as_str()), "{old:?}");
            assert_eq!(ignoring_state(&expected), None);
        };
        check("", "OURS");
        check("target\n", "target\nOURS");
        check("target", "target\nOURS");
        check("#.wiggum/\n", "#.wiggum/\nOURS");
        check("src/.wiggum/\n", "src/.wiggum/\nOURS");
    }

    #[test]
    fn a_line_that_ignores_all_of_it_is_replaced() {
        for line in [".wiggum/", ".wiggum", "**/.wiggum", ".wiggum/*", "/.wiggum/", ".wiggum  "] {
            let old = format!("a\n{line}\nb\n");
            assert_eq!(ignoring_state(&old), Some(format!("a\n{OURS}b\n")), "{line}");
        }
        assert_eq!(ignoring_state(".wiggum/\nx\n.wiggum/\n"), Some(format!("{OURS}x\n")));
    }

    #[test]
    fn line_ends_stay_as_they_are() {
        let windows = OURS.replace('\n', "\r\n");
        assert_eq!(ignoring_state("a\r\nb\r\n"), Some(format!("a\r\nb\r\n{windows}")));
        assert_eq!(ignoring_state("a\r\n.wiggum/\r\nb"), Some(format!("a\r\n{windows}b")));
    }
}
