//! Patterns of file names as shells know them: `*`, `?`, `[…]`, and `**` for any number of folders.

/// Is this a pattern rather than a name?
pub(super) fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?']) || word.contains('[') && word.contains(']')
}

/// Does a path match a pattern? Without `**`, `*` stays within one folder.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let path: Vec<&str> = path.split('/').collect();
    folders_match(&pattern, &path)
}

fn folders_match(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => {
            folders_match(rest, path)
                || path.split_first().is_some_and(|(_, below)| folders_match(pattern, below))
        }
        (Some((part, rest)), Some((name, below))) => {
            let part: Vec<char> = part.chars().collect();
            let name: Vec<char> = name.chars().collect();
            name_matches(&part, &name) && folders_match(rest, below)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn name_matches(pattern: &[char], name: &[char]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some(('*', rest)), _) => {
            name_matches(rest, name)
                || name.split_first().is_some_and(|(_, name)| name_matches(pattern, name))
        }
        (Some(('?', rest)), Some((_, name))) => name_matches(rest, name),
        (Some(('[', rest)), Some((c, name))) => {
            let Some(end) = rest.iter().skip(1).position(|c| *c == ']').map(|at| at + 1) else {
                return false;
            };
            let (set, after) = (&rest[..end], &rest[end + 1..]);
            let (negated, set) = match set.split_first() {
                Some(('!' | '^', set)) => (true, set),
                _ => (false, set),
            };
            is_in_set(set, *c) != negated && name_matches(after, name)
        }
        (Some((one, rest)), Some((other, name))) => one == other && name_matches(rest, name),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn is_in_set(set: &[char], c: char) -> bool {
    let is_in_range = set.windows(3).any(|range| range[1] == '-' && range[0] <= c && c <= range[2]);
    is_in_range || set.contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, path) in [
            ("scripts/*.sh", "scripts/a.sh"),
            ("./scripts/*.sh", "scripts/a.sh"),
            ("*/check", "a/check"),
            ("libs/*/", "libs/a"),
            ("**/*.py", "a/b/c.py"),
            ("tests/**/*.txt", "tests/a.txt"),
            ("case[0-9].in", "case1.in"),
            ("case[!a].in", "case1.in"),
            ("?.sh", "a.sh"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("scripts/*.sh", "scripts/a/b.sh"),
            ("*.sh", "a.py"),
            ("a/*", "a"),
            ("case[0-9].in", "casex.in"),
            ("[", "a"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
        assert!(is_pattern("a*") && is_pattern("a[bc]") && !is_pattern("a.sh") && !is_pattern("["));
    }
}
