//! Modules of JavaScript's: what they give to others, what they take in, and which files are programs instead.

use super::loading::{compact, has_word};

/// A file of JavaScript's that is a program rather than a module: it says so, or has nothing to import, and no
/// module of the change imports it.
pub(super) fn is_only_run(path: &str, text: &str, plain: &str, others: &[(&str, &str)]) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    let is_program = text.starts_with("#!") || path.split('/').any(|folder| folder == "bin") || stem == "cli";
    let is_imported = others.iter().any(|(other, code)| {
        *other != path && exports_something(code) && code.lines().any(|line| imports(line, path))
    });
    (is_program || !exports_something(plain)) && !is_imported
}

/// Does a line import the module of this path, as far as its name tells?
fn imports(line: &str, path: &str) -> bool {
    let line = line.replace(['\'', '`'], "\"");
    let is_import = ["require(", "import", "from"].iter().any(|word| line.contains(word));
    let mut texts = line.split('"').skip(1).step_by(2);
    let whole = path.rsplit_once('.').map_or(path, |(whole, _)| whole);
    let whole = whole.strip_suffix("/index").unwrap_or(whole);
    let name = whole.rsplit('/').next().unwrap_or(whole);
    let means = |text: &str| {
        let last = text.trim_end_matches('/').rsplit('/').next().unwrap_or(text);
        text.starts_with('.') && last.split('.').next() == Some(name)
    };
    is_import && texts.any(means)
}

/// Is this module of JavaScript's made for being imported?
fn exports_something(plain: &str) -> bool {
    plain.lines().map(str::trim_start).any(|line| {
        let is_export = line.strip_prefix("export").is_some_and(|rest| rest.starts_with([' ', '{', '*']));
        is_export || line.contains("module.exports") || has_word(line, "exports.")
    })
}

/// Does a module take the exit of a process as a function of its own?
pub(super) fn takes_exit(code: &str) -> bool {
    let code = compact(code).replace(['\'', '`'], "\"");
    let sources = [
        "{exit}=process",
        "{exit}=require(\"process\")",
        "{exit}=require(\"node:process\")",
        "{exit}from\"process\"",
        "{exit}from\"node:process\"",
    ];
    sources.iter().any(|source| code.contains(source))
}

/// What a module lists as its own: `module.exports = { add }`, `export { add }`, `exports.add = add`.
pub(super) fn exported_names(plain: &str) -> String {
    let listed = ["module.exports = {", "module.exports={", "export {", "export{"];
    let lists = listed.iter().flat_map(|start| plain.split(start).skip(1));
    let mut names: String =
        lists.filter_map(|rest| rest.split('}').next()).flat_map(|list| [list, ","]).collect();
    let single = plain.lines().filter_map(|line| line.split_once("exports")?.1.split_once('='));
    names.extend(single.flat_map(|(_, value)| [",", value]));
    names
}
