//! Where the page is served at the moment, for links in messages: its address without the token, in a file beside
//! the journal that counts for as long as the process lives that wrote it.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};
use wiggum_engine::state_dir::StateDir;
use wiggum_workspace::paths::write_whole;
use wiggum_workspace::process::{self, Identity};

const FILE: &str = "page.json";
/// More is none of ours.
const MOST: u64 = 4096;

#[derive(Serialize, Deserialize)]
struct Served {
    url: String,
    pid: u32,
    started: String,
    boot: String,
    host: String,
}

/// Notes that this process serves the page there.
pub fn served_at(dir: &StateDir, url: &str) -> io::Result<()> {
    let Identity { pid, started, boot, host } = process::identity();
    let served = Served { url: url.to_owned(), pid, started, boot, host };
    dir.create()?;
    write_whole(&dir.path().join(FILE), serde_json::to_string(&served)?.as_bytes())
}

/// Where it is served, if it is.
pub fn find(dir: &StateDir) -> Option<String> {
    let file = dir.path().join(FILE);
    if fs::symlink_metadata(&file).ok().filter(|found| found.is_file())?.len() > MOST {
        return None;
    }
    let Served { url, pid, started, boot, host } =
        serde_json::from_str(&fs::read_to_string(file).ok()?).ok()?;
    let is_one = url.starts_with("http://") || url.starts_with("https://");
    (is_one && process::is_alive(&Identity { pid, started, boot, host })).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiggum_engine::checkout::{Checkout, StateRoot};

    #[test]
    fn a_page_is_there_for_as_long_as_its_server_lives() {
        let place = tempfile::tempdir().unwrap();
        let checkout = Checkout::new(place.path().join("repo"), &StateRoot::new(place.path().join("state")));
        fs::create_dir(place.path().join("repo")).unwrap();
        let dir = checkout.open(None).unwrap();
        assert_eq!(find(&dir), None);
        served_at(&dir, "http://127.0.0.1:7787").unwrap();
        assert_eq!(find(&dir).as_deref(), Some("http://127.0.0.1:7787"));
        let file = dir.path().join(FILE);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace(&process::identity().started, "1")).unwrap();
        assert_eq!(find(&dir), None);
    }
}
