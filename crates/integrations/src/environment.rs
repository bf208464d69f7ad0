//! What of our environment the program of a server gets.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// What programs need to be found, to know whose they are, to speak the right language and to trust the right
/// certificates. Everything else may be somebody's secret and has to be configured for the server.
const PASSED: [&str; 24] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_TIME",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// The whole environment of a server's program: the base, what is configured, and the marker.
pub(crate) fn environment(
    configured: &BTreeMap<String, String>,
    marker: Option<&(String, String)>,
) -> Vec<(OsString, OsString)> {
    let is_configured = |name: &str| configured.contains_key(name);
    let base = PASSED.iter().filter(|name| !is_configured(name));
    let base = base.filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let configured = configured.iter().map(|(name, value)| (name.into(), value.into()));
    let marker = marker.map(|(name, value)| (name.into(), value.into()));
    base.chain(configured).chain(marker).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_what_it_needs_what_is_configured_and_the_marker_alone() {
        let configured =
            BTreeMap::from([("API_KEY".to_owned(), "k".to_owned()), ("LANG".to_owned(), "C".to_owned())]);
        let marker = ("WIGGUM_LOOP".to_owned(), "1".to_owned());
        let environment = environment(&configured, Some(&marker));
        let value = |name: &str| {
            let found: Vec<_> = environment.iter().filter(|(known, _)| known == name).collect();
            assert!(found.len() < 2, "{name} is there twice");
            found.first().map(|(_, value)| value.to_string_lossy().into_owned())
        };
        assert!(value("PATH").is_some());
        assert_eq!(value("API_KEY").as_deref(), Some("k"));
        assert_eq!(value("LANG").as_deref(), Some("C"));
        assert_eq!(value("WIGGUM_LOOP").as_deref(), Some("1"));
        // Cargo sets it for tests.
        assert_eq!(value("CARGO_MANIFEST_DIR"), None);
    }
}
