//! Reading and changing files.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use wiggum_workspace::beneath;
use wiggum_workspace::paths::write_atomic;

use super::{Place, RESULT_LIMIT, ToolError};

/// Larger files are data, not something that is edited by exact replacement.
const EDIT_LIMIT: u64 = 16 * 1024 * 1024;

#[derive(Debug, Deserialize)]
pub(super) struct Read {
    path: String,
    from: Option<usize>,
    to: Option<usize>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Edit {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Write {
    path: String,
    content: String,
}

/// The text as it is, without line numbers, so that it can be copied into an edit. What is not all of
/// it says which part it is.
pub(super) fn read(place: &Place, Read { path, from, to }: &Read) -> Result<String, ToolError> {
    let text = text_of(&place.existing(path)?, path)?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let first = from.unwrap_or(1).max(1);
    if first > lines.len().max(1) {
        return Err(ToolError::NoSuchLines { path: path.clone(), lines: lines.len(), from: first });
    }
    let wanted =
        &lines[(first - 1).min(lines.len())..to.unwrap_or(lines.len()).clamp(first - 1, lines.len())];
    let mut part = String::new();
    let mut last = first - 1;
    for line in wanted {
        if part.len() + line.len() > RESULT_LIMIT {
            break;
        }
        part.push_str(line);
        last += 1;
    }
    if first == 1 && last == lines.len() {
        return Ok(part);
    }
    // A single line that is too long is shown by its beginning.
    if part.is_empty()
        && let Some(line) = wanted.first()
    {
        let head = &line[..line.floor_char_boundary(RESULT_LIMIT)];
        return Ok(format!("[the beginning of line {first}, which has {} bytes]\n{head}", line.len()));
    }
    Ok(format!("[lines {first} to {last} of {}]\n{part}", lines.len()))
}

pub(super) fn edit(place: &Place, Edit { path, old, new, all }: &Edit) -> Result<String, ToolError> {
    if old.is_empty() {
        return Err(ToolError::NothingToReplace);
    }
    let real = place.writable(path)?;
    let text = text_of(&real, path)?;
    let count = text.matches(old.as_str()).count();
    match count {
        0 => return Err(ToolError::NotFound { path: path.clone() }),
        2.. if !all => return Err(ToolError::NotUnique { path: path.clone(), count }),
        _ => {}
    }
    save(&real, path, &text.replace(old.as_str(), new))?;
    Ok(format!("replaced {count} of {count} in {path}"))
}

pub(super) fn write(place: &Place, Write { path, content }: &Write) -> Result<String, ToolError> {
    let real = place.writable(path)?;
    if real.exists() && !real.is_file() {
        return Err(ToolError::NotAFile { path: path.clone() });
    }
    if let Some(directory) = real.parent() {
        fs::create_dir_all(directory).map_err(|source| ToolError::Io { path: path.clone(), source })?;
    }
    save(&real, path, content)?;
    Ok(format!("wrote {} bytes to {path}", content.len()))
}

fn save(real: &Path, path: &str, text: &str) -> Result<(), ToolError> {
    write_atomic(real, text.as_bytes()).map_err(|source| ToolError::Io { path: path.to_owned(), source })
}

/// A pipe or a device would hold us up for ever, so only files are opened.
fn text_of(real: &Path, path: &str) -> Result<String, ToolError> {
    let named = || path.to_owned();
    let failed = |source| ToolError::Io { path: named(), source };
    let metadata = fs::metadata(real).map_err(failed)?;
    if !metadata.is_file() {
        return Err(ToolError::NotAFile { path: named() });
    }
    if metadata.len() > EDIT_LIMIT {
        return Err(ToolError::TooBig { path: named(), bytes: metadata.len() });
    }
    let text = String::from_utf8(beneath::bytes_of(real).map_err(failed)?);
    text.ok().filter(|text| !text.contains('\0')).ok_or_else(|| ToolError::NotText { path: named() })
}

#[cfg(test)]
mod tests {
    use super::super::call;
    use super::*;
    use serde_json::{Value, json};

    struct Desk {
        directory: tempfile::TempDir,
        place: Place,
    }

    impl Desk {
        fn with(path: &str, content: impl AsRef<[u8]>) -> Self {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join(path), content).unwrap();
            let place = Place::new(directory.path(), Vec::new()).unwrap();
            Self { directory, place }
        }

        fn call(&self, tool: &str, arguments: Value) -> Result<String, String> {
            call(&self.place, tool, &arguments.to_string()).map_err(|error| error.to_string())
        }

        fn content(&self, path: &str) -> String {
            fs::read_to_string(self.directory.path().join(path)).unwrap()
        }
    }

    #[test]
    fn files_are_read_whole_or_by_lines() {
        let desk = Desk::with("a", "one\ntwo\r\nthree");
        let read = |arguments| desk.call("read", arguments).unwrap();
        assert_eq!(read(json!({"path": "a"})), "one\ntwo\r\nthree");
        assert_eq!(read(json!({"path": "a", "from": 2})), "[lines 2 to 3 of 3]\ntwo\r\nthree");
        assert_eq!(read(json!({"path": "a", "from": 2, "to": 2})), "[lines 2 to 2 of 3]\ntwo\r\n");
        assert_eq!(read(json!({"path": "a", "to": 99})), "one\ntwo\r\nthree");
        assert_eq!(read(json!({"path": "a", "from": 0, "to": 1})), "[lines 1 to 1 of 3]\none\n");
        let beyond = desk.call("read", json!({"path": "a", "from": 9})).unwrap_err();
        assert_eq!(beyond, "`a` has 3 lines, none from 9 on");
        assert_eq!(Desk::with("e", "").call("read", json!({"path": "e"})), Ok(String::new()));
    }

    #[test]
    fn long_files_are_read_in_parts_that_say_where_they_end() {
        let line = "x".repeat(1000) + "\n";
        let desk = Desk::with("a", line.repeat(100));
        let first = desk.call("read", json!({"path": "a"})).unwrap();
        assert!(first.starts_with("[lines 1 to 32 of 100]\n") && first.len() < RESULT_LIMIT + 100);
        let desk = Desk::with("a", "y".repeat(3 * RESULT_LIMIT));
        let only = desk.call("read", json!({"path": "a"})).unwrap();
        assert!(only.starts_with("[the beginning of line 1") && only.len() < RESULT_LIMIT + 100);
    }

    #[test]
    fn what_is_no_text_is_not_read() {
        let read = |content: &[u8]| Desk::with("a", content).call("read", json!({"path": "a"})).unwrap_err();
        assert_eq!(read(b"\xff\xfe"), "`a` is not text");
        assert_eq!(read(b"a\0b"), "`a` is not text");
        let desk = Desk::with("a", "");
        assert_eq!(desk.call("read", json!({"path": "."})).unwrap_err(), "`.` is not a file");
        assert!(desk.call("read", json!({"path": "b"})).unwrap_err().starts_with("`b`: No such file"));
    }

    #[test]
    fn an_edit_needs_exactly_one_place() {
        let desk = Desk::with("a", "x = 1\ny = 1\n");
        let edit = |old: &str, more: Value| {
            let mut arguments = json!({"path": "a", "old": old, "new": "2"});
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            desk.call("edit", arguments)
        };
        assert!(edit("z", json!({})).unwrap_err().contains("is not in `a`"));
        assert!(edit("1", json!({})).unwrap_err().contains("is 2 times in `a`"));
        assert!(edit("", json!({})).unwrap_err().contains("is empty"));
        assert_eq!(desk.content("a"), "x = 1\ny = 1\n");
        edit("y = 1", json!({})).unwrap();
        assert_eq!(desk.content("a"), "x = 1\n2\n");
        let desk = Desk::with("a", "1 1");
        desk.call("edit", json!({"path": "a", "old": "1", "new": "11", "all": true})).unwrap();
        assert_eq!(desk.content("a"), "11 11");
    }

    #[test]
    fn an_edit_keeps_the_files_mode_and_line_ends() {
        use std::os::unix::fs::PermissionsExt;
        let desk = Desk::with("a", "one\r\ntwo\r\n");
        let path = desk.directory.path().join("a");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        desk.call("edit", json!({"path": "a", "old": "two", "new": "2"})).unwrap();
        assert_eq!(desk.content("a"), "one\r\n2\r\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn files_are_written_with_their_directories() {
        let desk = Desk::with("a", "old");
        desk.call("write", json!({"path": "a", "content": "new"})).unwrap();
        desk.call("write", json!({"path": "b/c/d", "content": "deep"})).unwrap();
        assert_eq!((desk.content("a").as_str(), desk.content("b/c/d").as_str()), ("new", "deep"));
        assert!(desk.call("write", json!({"path": "b", "content": ""})).unwrap_err().contains("not a file"));
        assert!(desk.call("write", json!({"path": "a/b", "content": ""})).is_err());
        assert!(desk.call("write", json!({"path": ".git/hooks/x", "content": ""})).is_err());
        assert!(!desk.directory.path().join(".git").exists());
    }
}
