//! What cargo knows about our crates and everything below them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::steps::cargo;

#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
}

#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    /// Where it comes from; our own come from nowhere.
    pub(crate) source: Option<String>,
    /// Ids of what it is built from or runs with; tests apart.
    pub(crate) dependencies: BTreeSet<String>,
}

impl Metadata {
    /// Asks cargo. It knows the licences of packages for all platforms, so on a fresh machine it
    /// downloads those that no build here needs.
    pub(crate) fn read() -> Result<Self, String> {
        let output = cargo(["metadata", "--locked", "--format-version", "1"])
            .output()
            .map_err(|error| format!("cargo metadata cannot be started: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let value: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
        Ok(Self::from(&value))
    }

    /// Everything a package needs on any platform, itself apart.
    pub(crate) fn below(&self, name: &str) -> BTreeSet<&str> {
        let by_id: BTreeMap<&str, &Package> =
            self.packages.iter().map(|package| (package.id.as_str(), package)).collect();
        let mut todo: Vec<&Package> = self.packages.iter().filter(|package| package.name == name).collect();
        let mut seen = BTreeSet::new();
        while let Some(package) = todo.pop() {
            for id in &package.dependencies {
                if seen.insert(id.as_str()) {
                    todo.extend(by_id.get(id.as_str()));
                }
            }
        }
        seen
    }

    /// The names of what a package names itself, in order.
    #[cfg(test)]
    pub(crate) fn direct(&self, name: &str) -> BTreeSet<&str> {
        let package = self.packages.iter().find(|package| package.name == name);
        let ids = package.map(|package| &package.dependencies);
        self.packages
            .iter()
            .filter(|package| ids.is_some_and(|ids| ids.contains(&package.id)))
            .map(|package| package.name.as_str())
            .collect()
    }
}

impl From<&Value> for Metadata {
    fn from(value: &Value) -> Self {
        let mut dependencies: BTreeMap<&str, BTreeSet<String>> = list(&value["resolve"]["nodes"])
            .iter()
            .map(|node| (node["id"].as_str().unwrap_or_default(), needed_by(node)))
            .collect();
        let packages = list(&value["packages"]).iter().map(|package| {
            let text = |key: &str| package[key].as_str().map(str::to_owned);
            let id = text("id").unwrap_or_default();
            Package {
                dependencies: dependencies.remove(id.as_str()).unwrap_or_default(),
                id,
                name: text("name").unwrap_or_default(),
                version: text("version").unwrap_or_default(),
                licence: text("license"),
                source: text("source"),
            }
        });
        Self { packages: packages.collect() }
    }
}

fn needed_by(node: &Value) -> BTreeSet<String> {
    let is_for_tests =
        |dependency: &Value| list(&dependency["dep_kinds"]).iter().all(|kind| kind["kind"] == "dev");
    list(&node["deps"])
        .iter()
        .filter(|dependency| !is_for_tests(dependency))
        .filter_map(|dependency| dependency["pkg"].as_str().map(str::to_owned))
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
