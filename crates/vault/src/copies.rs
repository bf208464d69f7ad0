//! Copies that nobody meant to approve: of a program that syncs a folder and found two versions of a file,
//! or of a file manager. A copy is never carried out in place of its original.
//!
//! Pure: names in, names out. A name is a path in the folder of approved plans.

/// What a file's name says of where the file came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Own,
    /// A program that syncs says that it made it of this file.
    Conflict {
        of: String,
    },
    /// It is called as copies of this file are, which may be for another reason.
    Copy {
        of: String,
    },
}

/// How file managers call a copy, in some languages.
const COPY: [&str; 7] = ["copy", "kopie", "copie", "copia", "cópia", "kopia", "kopi"];
/// The longest of them in bytes.
const LONGEST_COPY: usize = 6;
/// What is between such a word and the name of the original where the word comes first.
const OF: [&str; 9] = ["of", "von", "van", "de", "di", "do", "av", "af", "pliku"];
/// Copies are counted with fewer digits than years have.
const MOST_DIGITS: usize = 2;

pub(crate) fn origin(name: &str) -> Origin {
    let (folder, stem) = parts(name);
    let named = |stem: &str| format!("{folder}{stem}.md");
    if let Some(original) = conflict(stem).filter(|original| !original.is_empty()) {
        return Origin::Conflict { of: named(original) };
    }
    match copied(stem).filter(|original| !original.is_empty()) {
        Some(original) => Origin::Copy { of: named(original) },
        None => Origin::Own,
    }
}

/// Is this the name of a copy of the other file? Asked where both say that they are the same plan, so any
/// addition to the name is one.
pub(crate) fn is_copy_of(name: &str, other: &str) -> bool {
    let ((_, stem), (_, original)) = (parts(name), parts(other));
    if is_addition_to(stem, original) {
        return true;
    }
    let mut named = stem;
    while let Some(copied) = without_copy_of(named) {
        if copied == original || is_addition_to(copied, original) {
            return true;
        }
        named = copied;
    }
    false
}

fn is_addition_to(stem: &str, original: &str) -> bool {
    let added = stem.strip_prefix(original).and_then(|added| added.chars().next());
    added.is_some_and(|next| !next.is_alphanumeric())
}

/// The folder with its slash, and the name without its ending.
fn parts(name: &str) -> (&str, &str) {
    let (folder, file) = name.split_at(name.rfind('/').map_or(0, |at| at + 1));
    (folder, file.rsplit_once('.').map_or(file, |(stem, _)| stem))
}

fn conflict(stem: &str) -> Option<&str> {
    if let Some((original, _)) = stem.split_once(".sync-conflict-") {
        return Some(original);
    }
    // `(Ann's conflicted copy 2026-11-16)`, `(SFConflict ann@x)`; in other languages `Konflikt`, `conflit`.
    if let Some((original, inside)) = in_brackets(stem)
        && inside.to_lowercase().contains("onfli")
    {
        return Some(original);
    }
    let lower = stem.to_lowercase();
    ["_conflict-", ".conflict"].iter().find_map(|mark| {
        let at = lower.rfind(mark)?;
        let next = lower[at + mark.len()..].trim_start_matches('-').chars().next();
        // `PLAN_merge_conflict-resolution` is a name like any other. Lower case may differ in length.
        next.is_none_or(|next| next.is_ascii_digit()).then(|| stem.get(..at))?
    })
}

fn copied(stem: &str) -> Option<&str> {
    let unnumbered = without_number(stem);
    let unnamed = without_copy(unnumbered.unwrap_or(stem)).or(unnumbered);
    let mut named = unnamed.unwrap_or(stem);
    while let Some(copied) = without_copy_of(named) {
        named = copied;
    }
    (named != stem).then_some(named)
}

/// `x 2`, `x (2)`.
fn without_number(stem: &str) -> Option<&str> {
    if let Some((original, inside)) = in_brackets(stem) {
        return is_number(inside).then_some(original);
    }
    let (original, number) = stem.rsplit_once(' ')?;
    is_number(number).then(|| original.trim_end())
}

/// `x - Copy`, `x copy`, `x (another copy)`.
fn without_copy(stem: &str) -> Option<&str> {
    let is_copy = |words: &str| words.split(' ').any(|word| COPY.contains(&word.to_lowercase().as_str()));
    if let Some((original, inside)) = in_brackets(stem) {
        return is_copy(inside).then_some(original);
    }
    let (original, word) = stem.rsplit_once([' ', '-', '_'])?;
    is_copy(word).then(|| original.trim_end_matches([' ', '-', '_', '–']))
}

/// `Copy of x`, `Copy (2) of x`.
fn without_copy_of(stem: &str) -> Option<&str> {
    let (word, rest) = stem.split_once(' ')?;
    if word.len() > LONGEST_COPY || !COPY.contains(&word.to_lowercase().as_str()) {
        return None;
    }
    let (next, after) = rest.split_once(' ')?;
    let number = next.strip_prefix('(').and_then(|next| next.strip_suffix(')')).unwrap_or(next);
    let (next, original) = if is_number(number) { after.split_once(' ')? } else { (next, after) };
    let original = original.trim_start();
    (OF.contains(&next.to_lowercase().as_str()) && !original.is_empty()).then_some(original)
}

fn in_brackets(stem: &str) -> Option<(&str, &str)> {
    let (original, inside) = stem.trim_end().strip_suffix(')')?.rsplit_once('(')?;
    Some((original.trim_end(), inside))
}

fn is_number(text: &str) -> bool {
    (1..=MOST_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_of_programs_that_sync() {
        for name in [
            "PLAN_x (Ann's conflicted copy 2026-11-16).md",
            "PLAN_x (conflicted copy 2026-11-16 120000).md",
            "PLAN_x (Ann's in Konflikt stehende Kopie 2026-11-16).md",
            "PLAN_x (Copie en conflit de Ann 2026-11-16).md",
            "PLAN_x (SFConflict ann@example 2026-11-16-12-00-00).md",
            "PLAN_x.sync-conflict-20261116-120000-ABCDEFG.md",
            "PLAN_x_conflict-20261116-120000.md",
            "PLAN_x.Conflict.md",
        ] {
            assert_eq!(origin(name), Origin::Conflict { of: "PLAN_x.md".to_owned() }, "{name}");
            let inside = format!("Clients/{name}");
            assert_eq!(origin(&inside), Origin::Conflict { of: "Clients/PLAN_x.md".to_owned() }, "{name}");
        }
    }

    #[test]
    fn copies_of_file_managers() {
        for name in [
            "PLAN_x 2.md",
            "PLAN_x (1).md",
            "PLAN_x(1).md",
            "PLAN_x - Copy.md",
            "PLAN_x - Copy (2).md",
            "PLAN_x copy.md",
            "PLAN_x copy 2.md",
            "PLAN_x (copy).md",
            "PLAN_x (another copy).md",
            "PLAN_x - Kopie.md",
            "PLAN_x-copy.md",
            "Copy of PLAN_x.md",
            "Copy (2) of PLAN_x.md",
            "Copy of PLAN_x (1).md",
            "Copy of Copy of PLAN_x.md",
            "Kopie von PLAN_x.md",
            "Copie de PLAN_x.md",
        ] {
            assert_eq!(origin(name), Origin::Copy { of: "PLAN_x.md".to_owned() }, "{name}");
        }
    }

    #[test]
    fn names_that_are_their_own() {
        for name in [
            "PLAN_x.md",
            "PLAN_x_2.md",
            "PLAN_2026.md",
            "Review 2026.md",
            "PLAN_merge_conflict-resolution.md",
            "PLAN_conflict.md",
            "PLAN (draft).md",
            "photocopy.md",
            "copy.md",
            "Copy of.md",
            "Copy editing of PLAN_x.md",
            "Copies of PLAN_x.md",
            "2.md",
            "(1).md",
            "Clients 2/PLAN_x.md",
        ] {
            assert_eq!(origin(name), Origin::Own, "{name}");
        }
    }

    #[test]
    fn what_is_added_to_the_name_of_the_same_plan_tells_the_copy() {
        assert!(is_copy_of("PLAN_x-DESKTOP-4711.md", "PLAN_x.md"));
        assert!(is_copy_of("PLAN_x 2.md", "PLAN_x.md"));
        assert!(!is_copy_of("PLAN_x.md", "PLAN_x 2.md"));
        assert!(!is_copy_of("PLAN_x.md", "PLAN_x.md"));
        assert!(!is_copy_of("PLAN_xy.md", "PLAN_x.md"));
        assert!(is_copy_of("new/PLAN_x (1).md", "PLAN_x.md"));
        assert!(is_copy_of("Copy of PLAN_x.md", "PLAN_x.md"));
        assert!(is_copy_of("Kopie von PLAN_x 2.md", "PLAN_x.md"));
        assert!(is_copy_of("Copy of Copy of PLAN_x.md", "Copy of PLAN_x.md"));
        assert!(!is_copy_of("Copy of PLAN_y.md", "PLAN_x.md"));
        assert!(!is_copy_of("PLAN_x.md", "Copy of PLAN_x.md"));
    }
}
