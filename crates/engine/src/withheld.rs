//! Variables of our own environment that a program we start does not get: secrets of somebody else.

use std::ffi::OsString;

use wiggum_core::redact::{is_proxy_name, is_secret_variable};

use crate::engine::Settings;

/// How many settings of git's the environment has; without one of them git refuses to work.
const GIT_SETTINGS: (&str, &str) = ("GIT_CONFIG_COUNT", "GIT_CONFIG_VALUE_");

/// The names of those that are kept from whoever may have no others than these. A `*` at the end of a pattern stands
/// for any rest.
pub fn withheld(passed: &[&str]) -> Vec<String> {
    let ours = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())));
    let kept = ours.filter(|(name, value)| is_secret_variable(name, value) && !may_have(name, passed));
    let mut names: Vec<String> = kept.map(|(name, _)| name).collect();
    let (count, setting) = GIT_SETTINGS;
    if names.iter().any(|name| name.starts_with(setting)) {
        names.push(count.to_owned());
    }
    names.sort();
    names
}

/// Without its proxy, an agent cannot reach its model.
pub(crate) fn may_have(name: &str, passed: &[&str]) -> bool {
    is_proxy_name(name)
        || passed.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *pattern,
        })
}

impl Settings {
    /// What neither checks get nor the hooks of a commit: both run what an agent may have written.
    pub(crate) fn withheld_from_checks(&self) -> Vec<String> {
        let passed: Vec<&str> = self.sandbox.checks.pass_env.iter().map(String::as_str).collect();
        withheld(&passed)
    }

    pub(crate) fn not_for_checks(&self) -> Vec<OsString> {
        self.withheld_from_checks().into_iter().map(Into::into).collect()
    }
}
