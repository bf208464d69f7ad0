//! Git's configuration as it was read before any agent ran, and what follows from it.

use std::fmt::Write as _;

use super::{Git, GitError, Hooks, text};

/// All settings that are in force, in the order in which git reads them: of several the last counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Configuration {
    settings: Vec<Setting>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    of_repository: bool,
    /// Section and name in lower case, what is between them as it was written.
    key: String,
    /// Nothing for a name that stands alone, which means "true".
    value: Option<String>,
}

impl Git {
    /// Asked once: the configuration may come from many files.
    pub(super) fn configuration(&self) -> Result<&Configuration, GitError> {
        if let Some(known) = self.configuration.get() {
            return Ok(known);
        }
        let output = self.output(&["config", "-z", "--list", "--show-scope"], Hooks::AsConfigured)?;
        let read = Configuration::parse(&text(&output.stdout));
        Ok(self.configuration.get_or_init(|| read))
    }

    /// Can a git that runs no hooks start other programs here? Filters, merge drivers and the like are named by
    /// the configuration, and whether one is used by files of the work tree.
    pub fn names_programs(&self) -> Result<bool, GitError> {
        Ok(self.configuration()?.names_programs())
    }
}

impl Configuration {
    /// `SCOPE NUL KEY [LF VALUE] NUL …`
    fn parse(listed: &str) -> Self {
        let mut fields = listed.split('\0');
        let mut settings = Vec::new();
        while let (Some(scope), Some(setting)) = (fields.next(), fields.next()) {
            let (key, value) = match setting.split_once('\n') {
                Some((key, value)) => (key, Some(value.to_owned())),
                None => (setting, None),
            };
            let of_repository = matches!(scope, "local" | "worktree");
            settings.push(Setting { of_repository, key: key.to_owned(), value });
        }
        Self { settings }
    }

    /// The value that counts.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let setting = self.settings.iter().rev().find(|setting| setting.key == key)?;
        Some(setting.value.as_deref().unwrap_or("true"))
    }

    pub(super) fn is_on(&self, key: &str) -> bool {
        let is_off = |value: &str| ["false", "no", "off", "0", ""].contains(&value.to_lowercase().as_str());
        self.get(key).is_some_and(|value| !is_off(value))
    }

    fn names_programs(&self) -> bool {
        self.settings.iter().any(|setting| {
            let name = setting.key.rsplit('.').next().unwrap_or_default();
            let is_program = match setting.key.split('.').next().unwrap_or_default() {
                "filter" => ["clean", "smudge", "process"].contains(&name),
                "merge" => name == "driver",
                _ => false,
            };
            // Installed once for all repositories of most users, and no file of a work tree.
            let of_lfs = |value: &str| value.starts_with("git-lfs ") || value.starts_with("git lfs ");
            is_program && !setting.value.as_deref().is_some_and(of_lfs)
        })
    }

    /// A configuration file for a repository that stands in for this one: what the repository itself says, but for
    /// what tells where its parts are, what runs by itself, and passwords.
    pub(super) fn for_another_repository(&self) -> String {
        let mut text = String::new();
        for setting in self.settings.iter().filter(|setting| setting.of_repository) {
            if !STAYS_BEHIND.contains(&setting.key.as_str()) && !setting.key.starts_with("include") {
                write_setting(&mut text, &setting.key, setting.value.as_deref());
            }
        }
        for (key, value) in ALWAYS {
            write_setting(&mut text, key, Some(value));
        }
        text
    }
}

/// Where parts of the repository are, and what is only true of it.
const STAYS_BEHIND: [&str; 11] = [
    "core.worktree",
    "core.bare",
    "core.fsmonitor",
    "core.repositoryformatversion",
    "core.sshcommand",
    "core.gitproxy",
    "core.alternaterefscommand",
    "extensions.worktreeconfig",
    "extensions.refstorage",
    "extensions.relativeworktrees",
    "gc.auto",
];

/// What only a person can sign is signed later; nothing goes on in the background.
const ALWAYS: [(&str, &str); 6] = [
    ("core.repositoryformatversion", "1"),
    ("core.bare", "false"),
    ("commit.gpgsign", "false"),
    ("tag.gpgsign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

fn write_setting(text: &mut String, key: &str, value: Option<&str>) {
    let Some((section, name)) = key.rsplit_once('.') else { return };
    match section.split_once('.') {
        Some((section, subsection)) => {
            let subsection = subsection.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(text, "[{section} \"{subsection}\"]");
        }
        None => {
            let _ = writeln!(text, "[{section}]");
        }
    }
    let _ = match value {
        Some(value) => writeln!(text, "\t{name} = \"{}\"", escaped(&without_password(value))),
        None => writeln!(text, "\t{name}"),
    };
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t")
}

/// `https://name:password@host/` is written without its password.
fn without_password(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}{}", &rest[user.len()..])
        }
        Some(_) | None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::Configuration;

    const LISTED: &str = "global\0user.name\nAnn\0global\0filter.lfs.process\ngit-lfs filter-process\0\
        local\0core.bare\nfalse\0local\0core.autocrlf\nInput\0local\0remote.origin.url\nhttps://a:b@host/x.git\0\
        local\0branch.a\"b.merge\nrefs/heads/a\0local\0commit.gpgsign\0worktree\0core.sparsecheckout\ntrue\0\
        local\0core.fsmonitor\n./evil\0";

    #[test]
    fn the_last_value_of_a_key_counts_and_a_bare_key_is_on() {
        let read = Configuration::parse(LISTED);
        assert_eq!(read.get("user.name"), Some("Ann"));
        assert!(read.is_on("commit.gpgsign") && !read.is_on("core.bare") && !read.is_on("not.there"));
        let twice = Configuration::parse("global\0a.b\n1\0local\0a.b\n2\0");
        assert_eq!(twice.get("a.b"), Some("2"));
    }

    #[test]
    fn filters_and_drivers_are_programs_and_large_files_are_not() {
        let names = |listed: &str| Configuration::parse(listed).names_programs();
        assert!(!names(LISTED));
        assert!(!names("local\0filter.x.required\ntrue\0local\0merge.conflictstyle\nzdiff3\0"));
        assert!(names("local\0filter.x.clean\n./clean.sh\0"));
        assert!(names("local\0filter.x.smudge\ncat\0"));
        assert!(names("global\0merge.ours.driver\ntrue\0"));
        assert!(names("local\0filter.lfs.clean\n./git-lfs clean\0"));
    }

    #[test]
    fn another_repository_gets_the_rules_and_no_passwords() {
        let text = Configuration::parse(LISTED).for_another_repository();
        assert!(text.contains("[core]\n\tautocrlf = \"Input\"\n"), "{text}");
        assert!(text.contains("[core]\n\tsparsecheckout = \"true\"\n"));
        assert!(text.contains("[branch \"a\\\"b\"]\n\tmerge = \"refs/heads/a\"\n"));
        assert!(text.contains("url = \"https://a@host/x.git\""));
        assert!(!text.contains("evil") && !text.contains("Ann") && !text.contains("b@host"));
        assert!(text.find("gpgsign = \"false\"") > text.find("[commit]\n\tgpgsign\n"));
    }
}
