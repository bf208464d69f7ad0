//! The workspace as tools see it: nothing outside of it exists, and some of it must not be changed.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use wiggum_workspace::paths;

use super::ToolError;

/// Directories that belong to git and to the loop, wherever they are: a hook planted there would run
/// outside of every check.
const GUARDED: [&str; 2] = [".git", ".wiggum"];

#[derive(Debug)]
pub(crate) struct Place {
    root: PathBuf,
    /// Variables that commands do not get: the key is the agent's, not the model's.
    pub(super) withheld: Vec<OsString>,
}

impl Place {
    pub(crate) fn new(root: &Path, withheld: Vec<OsString>) -> io::Result<Self> {
        Ok(Self { root: root.canonicalize()?, withheld })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where something really is, if that is inside. What a model gives as absolute is taken relative
    /// to the workspace where it lies in it.
    pub(super) fn existing(&self, path: &str) -> Result<PathBuf, ToolError> {
        let relative = match Path::new(path).strip_prefix(&self.root) {
            Ok(inside) if inside.as_os_str().is_empty() => ".",
            Ok(inside) => inside.to_str().unwrap_or(path),
            Err(_) => path,
        };
        Ok(paths::real(&paths::inside(&self.root, relative)?)?)
    }

    /// The same for what is going to be changed.
    pub(super) fn writable(&self, path: &str) -> Result<PathBuf, ToolError> {
        let real = self.existing(path)?;
        let inside = real.strip_prefix(&self.root).unwrap_or(&real);
        let guarded = inside.components().any(|part| {
            // Some file systems do not tell `.GIT` from `.git`.
            let name = part.as_os_str().to_string_lossy().to_lowercase();
            GUARDED.contains(&name.as_str())
        });
        if guarded { Err(ToolError::Guarded { path: path.to_owned() }) } else { Ok(real) }
    }

    /// A path as the model knows it.
    pub(super) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// Whether a walk goes there.
    pub(super) fn is_hidden(name: &std::ffi::OsStr) -> bool {
        GUARDED.iter().any(|guarded| name == *guarded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A workspace with a secret beside it and links that try everything.
    fn place(base: &Path) -> Place {
        let root = base.join("root");
        fs::create_dir_all(root.join(".git/hooks")).unwrap();
        fs::create_dir_all(root.join("vendor/.git")).unwrap();
        fs::create_dir_all(root.join(".wiggum")).unwrap();
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(base.join("secret"), "s").unwrap();
        fs::write(root.join("src/a"), "a").unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink(".git/hooks", root.join("hooks")).unwrap();
        symlink(".wiggum/new", root.join("state")).unwrap();
        symlink("src", root.join("in")).unwrap();
        symlink("../not-yet", root.join("dangling")).unwrap();
        Place::new(&root, Vec::new()).unwrap()
    }

    #[test]
    fn nothing_outside_can_be_named() {
        let base = tempfile::tempdir().unwrap();
        let place = place(base.path());
        let outside = base.path().canonicalize().unwrap().join("secret");
        let beside = format!("{}-beside/x", place.root().display());
        let through = format!("{}/../secret", place.root().display());
        for path in [
            "..",
            "../secret",
            "src/../../secret",
            "/etc/passwd",
            "out",
            "up/secret",
            "dangling",
            "",
            &beside,
        ] {
            assert!(matches!(place.existing(path), Err(ToolError::Escape(_))), "{path}");
            assert!(matches!(place.writable(path), Err(ToolError::Escape(_))), "{path}");
        }
        assert!(place.existing(outside.to_str().unwrap()).is_err());
        assert!(place.existing(&through).is_err());
    }

    #[test]
    fn what_is_inside_is_found_by_any_of_its_names() {
        let base = tempfile::tempdir().unwrap();
        let place = place(base.path());
        let absolute = place.root().join("src/a");
        for path in ["src/a", "./src/a", "in/a", absolute.to_str().unwrap()] {
            assert_eq!(place.existing(path).unwrap(), absolute, "{path}");
            assert_eq!(place.writable(path).unwrap(), absolute, "{path}");
        }
        assert_eq!(place.existing(".").unwrap(), place.root());
        assert_eq!(place.existing(place.root().to_str().unwrap()).unwrap(), place.root());
        assert_eq!(place.shown(&absolute), "src/a");
    }

    #[test]
    fn git_and_the_loop_keep_what_is_theirs() {
        let base = tempfile::tempdir().unwrap();
        let place = place(base.path());
        for path in [
            ".git/hooks/pre-commit",
            ".git/config",
            ".git",
            "./.git/x",
            ".GIT/config",
            "hooks/pre-commit",
            "vendor/.git/config",
            ".wiggum/wiggum.db",
            "state",
        ] {
            assert!(matches!(place.writable(path), Err(ToolError::Guarded { .. })), "{path}");
            assert!(place.existing(path).is_ok(), "{path}");
        }
        for path in [".gitignore", ".github/workflows/x.yml", "src/.gitkeep", "a.git/x"] {
            assert!(place.writable(path).is_ok(), "{path}");
        }
    }
}
