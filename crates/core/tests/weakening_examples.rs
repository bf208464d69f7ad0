//! Examples in the comments of Rust are tests, and what weakens one is seen.

use wiggum_core::weaken::{TestFile, weakened};

const LIB: &str = "//! Sums.\n//!\n//! ```\n//! assert_eq!(c::add(1, 1), 2);\n//! ```\n\n/// Subtracts.\n///\n/// ```\n/// assert_eq!(c::sub(3, 2), 1);\n/// assert_eq!(c::sub(0, 0), 0);\n/// ```\n#[must_use]\npub fn sub(a: i32, b: i32) -> i32 {\n    a - b\n}\n\npub struct Sum;\n\nimpl Sum {\n    /// ```no_run\n    /// let sum = c::Sum::new();\n    /// ```\n    ///\n    /// ```text\n    /// assert_eq!(1, 1)\n    /// ```\n    pub fn new() -> Self {\n        Self\n    }\n}\n\npub struct Product;\n\nimpl Product {\n    /// ```\n    /// assert!(c::Product::new().is_one());\n    /// ```\n    pub const fn new() -> Self {\n        Self\n    }\n}\n";

fn said(files: &[TestFile<'_>]) -> String {
    weakened(files).into_iter().map(|flag| flag.detail).collect::<Vec<_>>().join("; ")
}

fn edit(from: &str, to: &str) -> String {
    let after = LIB.replace(from, to);
    assert_ne!(after, LIB, "{from}");
    after
}

fn edited(from: &str, to: &str) -> String {
    said(&[TestFile { path: "src/lib.rs", before: Some(LIB), after: Some(&edit(from, to)) }])
}

#[test]
fn weaker_examples_are_seen() {
    for (from, to, expected) in [
        ("assert_eq!(c::sub(3, 2), 1)", "let _ = c::sub(3, 2)", "fewer assertions: example of sub"),
        ("assert_eq!(c::add(1, 1), 2)", "c::add(1, 1)", "fewer assertions: example of module lib"),
        ("Subtracts.\n///\n/// ```", "Subtracts.\n///\n/// ```no_run", "no_run on example of sub"),
        ("Subtracts.\n///\n/// ```", "Subtracts.\n///\n/// ```rust,ignore", "ignore on example of sub"),
        (
            "Subtracts.\n///\n/// ```",
            "Subtracts.\n///\n/// ```should_panic",
            "should_panic on example of sub",
        ),
        ("Subtracts.\n///\n/// ```", "Subtracts.\n///\n/// ```text", "removed example of sub"),
        (
            "/// assert_eq!(c::sub(3",
            "/// # if false {\n/// # }\n/// assert_eq!(c::sub(3",
            "never holds on example of sub",
        ),
        ("c::sub(3, 2), 1", "1, 1", "cannot fail"),
        ("/// assert!(c::Product", "/// // assert!(c::Product", "fewer assertions: example of Product::new"),
        ("//! assert_eq!(c::add(1, 1), 2);\n", "", "fewer assertions: example of module lib"),
    ] {
        let found = edited(from, to);
        assert!(found.contains(expected), "{to}: {found}");
    }
}

#[test]
fn honest_changes_of_examples_are_none() {
    for (from, to) in [
        (
            "/// assert_eq!(c::sub(3, 2), 1);",
            "/// assert_eq!(c::sub(3, 2), 1);\n/// assert_eq!(c::sub(4, 2), 2);",
        ),
        (
            "/// assert_eq!(c::sub(3, 2), 1);",
            "/// ```\n///\n/// Or:\n///\n/// ```\n/// assert_eq!(c::sub(3, 2), 1);",
        ),
        ("/// let sum", "/// use c::Sum;\n/// let sum"),
        ("assert_eq!(1, 1)", "nothing"),
        ("#[must_use]\n", "#[must_use]\n#[inline]\n"),
        ("pub struct Sum;", "/// ```no_run\n/// c::serve();\n/// ```\npub fn serve() {}\n\npub struct Sum;"),
        ("    a - b\n", "    std::process::exit(0);\n"),
    ] {
        assert_eq!(edited(from, to), "", "{to}");
    }
}

#[test]
fn examples_go_with_what_they_explain() {
    let (start, end) = (LIB.find("/// Subtracts").unwrap(), LIB.find("pub struct Sum").unwrap());
    let function = &LIB[start..end];
    let without = edit(function, "");
    let lib = |after| TestFile { path: "src/lib.rs", before: Some(LIB), after: Some(after) };
    assert_eq!(said(&[lib(&without)]), "", "gone with its example");
    let product = &LIB[LIB.find("pub struct Product").unwrap()..];
    let without_type = edit(product, "");
    assert_eq!(said(&[lib(&without_type)]), "", "another type has a method of that name");
    let moved = |text| TestFile { path: "src/sub.rs", before: None, after: Some(text) };
    assert_eq!(said(&[lib(&without), moved(function)]), "", "moved with its example");
    let weaker = function.replace("assert_eq!(c::sub(3, 2), 1)", "c::sub(3, 2)");
    assert!(said(&[lib(&without), moved(&weaker)]).contains("fewer assertions: example of sub"));
    let bare = &function[function.find("#[must_use]").unwrap()..];
    assert!(said(&[lib(&without), moved(bare)]).contains("removed example of sub"));
    // A program has no examples that anybody runs.
    let program = |path| TestFile { path, before: Some(LIB), after: Some(bare) };
    assert_eq!(said(&[program("src/main.rs"), program("src/bin/c.rs")]), "");
}

#[test]
fn tests_that_move_with_their_function_are_compiled() {
    let tests = "#[cfg(test)]\nmod tests { use super::*;\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n}\n";
    let function = "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\n";
    let before = format!("{function}{tests}");
    let files = |lib: &'static str| {
        [
            TestFile { path: "src/lib.rs", before: Some(&before), after: Some(lib) },
            TestFile { path: "src/add.rs", before: None, after: Some(&before) },
        ]
        .map(|file| TestFile { path: file.path, before: file.before, after: file.after })
    };
    assert_eq!(said(&files("mod add;\npub use add::add;\n")), "");
    let declared = "#[cfg(test)]\nmod tests;\n";
    let lost = [TestFile { path: "src/lib.rs", before: Some(declared), after: Some("\n") }];
    assert!(said(&lost).contains("no longer compiled: tests"));
}
