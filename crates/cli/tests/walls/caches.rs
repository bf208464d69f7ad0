//! Caches of packages: what an agent puts there is nothing that a program of the user's finds later.
//!
//! The control: under Landlock, which can show nothing else in their place, all of it arrives, and that is told.

use std::fs;
use std::path::Path;

use super::sandboxes;
use super::support::Sandbox;

/// Files that a package manager takes for its own, and runs or builds from later.
const PLANTED: [&str; 16] = [
    ".cargo/.package-cache",
    ".cargo/.global-cache",
    ".cargo/registry/src/index/serde-1.0.0/build.rs",
    ".cargo/registry/cache/index/serde-1.0.0.crate",
    ".cargo/git/checkouts/dep/build.rs",
    ".npm/_cacache/index-v5/package",
    ".npm/_npx/tool/node_modules/.bin/tool",
    ".cache/pip/http/wheel",
    ".cache/uv/archive/site.py",
    ".cache/pre-commit/repo/hook",
    ".cache/go-build/aa/object",
    ".cache/node/corepack/pnpm.cjs",
    "go/pkg/mod/dep/dep.go",
    ".m2/repository/plugin/plugin.jar",
    ".gradle/caches/init.gradle",
    ".nuget/packages/tool/build/tool.targets",
];

/// What the user has in all of them.
const THEIRS: &str = "theirs\n";

fn furnished() -> Sandbox {
    let sandbox = Sandbox::walled(&["A", "B"]);
    for name in PLANTED {
        let path = sandbox.base().join("home").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, THEIRS).unwrap();
    }
    sandbox
}

/// Overwrites each of these files and puts one beside it.
fn script() -> String {
    let plant =
        |name: &&str| format!("echo planted > ~/{name}; echo planted > \"$(dirname ~/{name})/planted\"\n");
    PLANTED.iter().map(plant).collect()
}

/// What of it the user finds.
fn arrived(sandbox: &Sandbox) -> Vec<&'static str> {
    let home = sandbox.base().join("home");
    let is_other = |path: &Path| fs::read_to_string(path).unwrap() != THEIRS;
    let found = |name: &&&str| {
        let path = home.join(name);
        is_other(&path) || path.with_file_name("planted").exists()
    };
    PLANTED.iter().filter(found).copied().collect()
}

fn copies(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.base().join("home/.local/state/wiggum/packages")
}

#[test]
fn what_an_agent_or_its_tests_put_into_a_cache_stays_in_a_copy() {
    if !sandboxes().contains(&"bwrap") {
        return;
    }
    for by_check in [false, true] {
        let sandbox = furnished();
        sandbox.write("verify.sh", "sh product.sh\n");
        sandbox.write("product.sh", "true\n");
        sandbox.commit_all("check");
        fs::write(sandbox.base().join("plant.sh"), script()).unwrap();
        let agent = match by_check {
            true => "cp \"$SANDBOX/plant.sh\" product.sh; claim",
            false => "sh \"$SANDBOX/plant.sh\"; echo x > \"$WIGGUM_TASK_ID\"; claim",
        };
        let args = ["--sandbox", "bwrap", "--verify", "sh verify.sh", "--max-iterations", "2"];
        sandbox.run(agent, &args).says("agents and checks get copies of");
        assert_eq!(arrived(&sandbox), Vec::<&str>::new(), "by a check: {by_check}");
        // It did arrive in the copies.
        let copy = copies(&sandbox).join("cargo-registry/src/index/serde-1.0.0/planted");
        assert_eq!(fs::read_to_string(copy).unwrap(), "planted\n", "by a check: {by_check}");
    }
}

/// The control.
#[test]
fn under_landlock_it_arrives_and_that_is_told() {
    if !sandboxes().contains(&"landlock") {
        return;
    }
    let sandbox = furnished();
    let agent = format!("{}\necho x > \"$WIGGUM_TASK_ID\"; claim", script());
    let args = ["--sandbox", "landlock", "--verify", "true", "--max-iterations", "1"];
    sandbox.run(&agent, &args).says("share .git and the caches you build with");
    assert_eq!(arrived(&sandbox), PLANTED);
}

/// The honest twin: what the user has is there, and what an agent fetched is found again by its check, by the next
/// agent and in the next run.
#[test]
fn a_cache_is_filled_once_and_found_again() {
    for kind in sandboxes() {
        let sandbox = furnished();
        let seen = "grep -q theirs ~/.cargo/registry/cache/index/serde-1.0.0.crate || exit 1\n";
        let fetch = "if [ $WIGGUM_TASK_ID = A ]; then echo fetched > ~/.npm/_cacache/new; fi\n";
        let agent = format!(
            "{seen}{fetch}cat ~/.npm/_cacache/new >> \"$TMPDIR/found\"; echo x > \"$WIGGUM_TASK_ID\"; claim"
        );
        let check = "test -f ~/.npm/_cacache/new";
        let args = ["--sandbox", kind, "--verify", check, "--baseline", "off", "--max-iterations", "1"];
        sandbox.run(&agent, &args).exits(3);
        sandbox.run(&agent, &args).exits(0).never_says("get copies");
        assert_eq!(sandbox.note("tmp/found"), "fetched\nfetched\n", "{kind}");
    }
}

/// Links in a copy lead nowhere that an agent could not write anyway.
#[test]
fn no_link_leads_out_of_a_copy() {
    if !sandboxes().contains(&"bwrap") {
        return;
    }
    let sandbox = furnished();
    let home = sandbox.base().join("home");
    fs::write(home.join(".bashrc"), THEIRS).unwrap();
    std::os::unix::fs::symlink(home.join(".bashrc"), home.join(".npm/link")).unwrap();
    let agent = "echo x >> ~/.npm/link; ln -sf ~ ~/.npm/home; echo x >> ~/.npm/home/.bashrc
        rm -rf ~/.npm/_npx; ln -s ~ ~/.npm/_npx; echo x > \"$WIGGUM_TASK_ID\"; claim";
    sandbox.run(agent, &["--sandbox", "bwrap", "--verify", "true"]).exits(0);
    assert_eq!(sandbox.note("home/.bashrc"), THEIRS);
    assert!(!home.join(".npm/_npx").is_symlink());
}

/// An agent's own directory may lie in a cache, and what is too large to be copied is read.
#[test]
fn what_is_no_cache_of_packages_is_where_it_was() {
    if !sandboxes().contains(&"bwrap") {
        return;
    }
    let mut sandbox = furnished();
    let cache = sandbox.base().join("home/.cache");
    for dir in ["models", "mine"] {
        fs::create_dir(cache.join(dir)).unwrap();
    }
    fs::write(cache.join("models/small"), THEIRS).unwrap();
    // It takes no room.
    fs::File::create(cache.join("models/large")).unwrap().set_len(2 << 30).unwrap();
    sandbox.env("WIGGUM_AGENT_WRITABLE", "~/.cache/mine");
    let agent = "grep -q theirs ~/.cache/models/small && ! touch ~/.cache/models/new || exit 1
        echo kept > ~/.cache/mine/note; echo x > \"$WIGGUM_TASK_ID\"; claim";
    sandbox.run(agent, &["--sandbox", "bwrap", "--verify", "true"]).exits(0);
    assert_eq!(sandbox.note("home/.cache/mine/note"), "kept\n");
    let rules = sandbox.wiggum(&["doctor", "--sandbox"]).exits(0).stdout;
    for words in ["may write to copies of", "wiggum/packages/cargo-registry", ".cache/models", ".cache/mine"]
    {
        assert!(rules.contains(words), "{words}: {rules}");
    }
}
