//! Assertions that hold whatever the code under test does: constants, a thing compared with itself,
//! `or True`, an `expect` without a matcher.

use super::language::Language;

/// How many assertions of this statement cannot fail; at most as many as it makes.
pub(super) fn trivial_in(language: Language, statement: &str, assertions: usize) -> usize {
    if statement.len() > LONGEST {
        return 0;
    }
    let compact: String = statement.chars().filter(|c| !c.is_whitespace()).collect();
    let by_call: usize = CALLS.iter().map(|call| calls_of(&compact, call)).sum();
    let by_statement = match language {
        Language::Python => usize::from(python_statement(statement)),
        Language::JavaScript => usize::from(has_no_matcher(&compact)),
        Language::Rust
        | Language::Go
        | Language::Annotated
        | Language::Swift
        | Language::Ruby
        | Language::Php
        | Language::Elixir
        | Language::Cpp
        | Language::Dart
        | Language::Shell => 0,
    };
    (by_call + by_statement).min(assertions)
}

/// Longer statements are data; the bound keeps hostile input cheap.
const LONGEST: usize = 2000;

/// How a call decides, by the end of its name in lower case.
struct Call {
    name: &'static str,
    decides: Decides,
}

#[derive(Clone, Copy)]
enum Decides {
    /// The first argument is to be true.
    ByTruth,
    /// The first argument is to be false.
    ByFalsehood,
    /// The first two arguments are to be equal.
    ByEquality,
    /// As these, behind the `t` of Go.
    ByTruthBehindT,
    ByEqualityBehindT,
    /// `expect(…)` with its matcher.
    ByMatcher,
}

const CALLS: [Call; 27] = [
    Call { name: "assert!", decides: Decides::ByTruth },
    Call { name: "debug_assert!", decides: Decides::ByTruth },
    Call { name: "assert_eq!", decides: Decides::ByEquality },
    Call { name: "assert_ok!", decides: Decides::ByTruth },
    Call { name: "assert", decides: Decides::ByTruth },
    Call { name: "assert.ok", decides: Decides::ByTruth },
    Call { name: "assert.equal", decides: Decides::ByEquality },
    Call { name: "assert.strictequal", decides: Decides::ByEquality },
    Call { name: "assert.deepequal", decides: Decides::ByEquality },
    Call { name: "assert.deepstrictequal", decides: Decides::ByEquality },
    Call { name: "asserttrue", decides: Decides::ByTruth },
    Call { name: "assertfalse", decides: Decides::ByFalsehood },
    Call { name: "assertequal", decides: Decides::ByEquality },
    Call { name: "assertequals", decides: Decides::ByEquality },
    Call { name: "assertis", decides: Decides::ByEquality },
    Call { name: "assertsame", decides: Decides::ByEquality },
    Call { name: "assert.areequal", decides: Decides::ByEquality },
    Call { name: "assert.true", decides: Decides::ByTruth },
    Call { name: "assert.istrue", decides: Decides::ByTruth },
    Call { name: "expect_true", decides: Decides::ByTruth },
    Call { name: "expect_eq", decides: Decides::ByEquality },
    Call { name: "assert.true", decides: Decides::ByTruthBehindT },
    Call { name: "require.true", decides: Decides::ByTruthBehindT },
    Call { name: "assert.equal", decides: Decides::ByEqualityBehindT },
    Call { name: "require.equal", decides: Decides::ByEqualityBehindT },
    Call { name: "expect", decides: Decides::ByMatcher },
    Call { name: "xctasserttrue", decides: Decides::ByTruth },
];

/// How often the compact text calls this in a way that cannot fail.
fn calls_of(compact: &str, call: &Call) -> usize {
    let lower = compact.to_ascii_lowercase();
    let mut count = 0;
    let mut from = 0;
    while let Some(found) = lower[from..].find(call.name) {
        let at = from + found;
        let behind = at + call.name.len();
        from = behind;
        let whole = !lower[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let Some((inside, rest)) = bracketed(&compact[behind..]).filter(|_| whole) else { continue };
        let arguments = split_arguments(inside);
        // What is read once is not read again by a longer text.
        count += usize::from(cannot_fail(call.decides, &arguments, rest));
    }
    count
}

fn cannot_fail(decides: Decides, arguments: &[&str], rest: &str) -> bool {
    let is_t = arguments.first().is_some_and(|first| *first == "t");
    match (decides, arguments) {
        (Decides::ByTruth, [first, ..]) => is_always_true(first),
        (Decides::ByFalsehood, [first, ..]) => is_always_false(first),
        (Decides::ByEquality, [left, right, ..]) if !is_t => are_the_same(left, right),
        (Decides::ByTruthBehindT, [_, first, ..]) if is_t => is_always_true(first),
        (Decides::ByEqualityBehindT, [_, left, right, ..]) if is_t => are_the_same(left, right),
        (Decides::ByMatcher, [first, ..]) => matches_always(first, rest),
        (
            Decides::ByTruth
            | Decides::ByFalsehood
            | Decides::ByEquality
            | Decides::ByTruthBehindT
            | Decides::ByEqualityBehindT
            | Decides::ByMatcher,
            _,
        ) => false,
    }
}

/// `expect(x).toBe(x)`, `expect(true).toBeTruthy()`.
fn matches_always(subject: &str, rest: &str) -> bool {
    let Some(matcher) = rest.strip_prefix('.') else { return false };
    let lower = matcher.to_ascii_lowercase();
    let truth = ["tobetruthy()", "tobedefined()", "to.be.true", "to.be.ok", "to.exist", "tobetrue()"];
    if is_always_true(subject) && truth.iter().any(|text| lower.starts_with(text)) {
        return true;
    }
    let equality = [
        "tobe(",
        "toequal(",
        "tostrictequal(",
        "to.equal(",
        "to.eql(",
        "to.be.equal(",
        "toeq(",
        "to.deep.equal(",
    ];
    equality.iter().filter(|text| lower.starts_with(**text)).any(|text| {
        bracketed(&matcher[text.len() - 1..]).is_some_and(|(inside, _)| {
            are_the_same(subject, inside) || (is_always_true(subject) && inside == "true")
        })
    })
}

/// `expect(f())` alone asserts nothing. What goes on in the next line was joined before.
fn has_no_matcher(compact: &str) -> bool {
    let Some(rest) = compact.strip_prefix("expect(").and_then(|_| bracketed(&compact["expect".len()..]))
    else {
        return false;
    };
    rest.1.is_empty() || rest.1 == ";"
}

/// `assert x or True`, `assert (x, "message")`, `assert 1`.
fn python_statement(statement: &str) -> bool {
    let Some(condition) = statement.trim().strip_prefix("assert ") else { return false };
    let condition = split_arguments(condition).first().copied().unwrap_or_default().trim();
    let compact: String = condition.chars().filter(|c| !c.is_whitespace()).collect();
    let is_tuple = bracketed(&compact)
        .is_some_and(|(inside, rest)| rest.is_empty() && split_arguments(inside).len() > 1);
    if is_tuple {
        return true;
    }
    let either = condition.split(" or ").map(str::trim).any(|part| is_literal(part) && !is_falsy(part));
    let same = condition.split_once(" == ").or(condition.split_once(" is "));
    either
        || is_always_true(&compact)
        || same.is_some_and(|(left, right)| is_plain(left) && are_the_same(left.trim(), right.trim()))
}

/// Has a comparison just two sides?
fn is_plain(text: &str) -> bool {
    ![" and ", " or ", " not ", " if ", "=="].iter().any(|word| text.contains(word))
        && !text.starts_with("not ")
}

fn is_always_true(compact: &str) -> bool {
    if compact.strip_prefix('!').is_some_and(is_always_false)
        || compact.strip_prefix("not").is_some_and(|rest| matches!(rest, "False" | "0" | "None"))
    {
        return true;
    }
    // It is there or it is not.
    if let Some((left, right)) = compact.split_once("||") {
        let opposites = [(".is_ok()", ".is_err()"), (".is_some()", ".is_none()")];
        let either = opposites.iter().any(|(yes, no)| {
            let same = |left: Option<&str>, right: Option<&str>| left.is_some() && left == right;
            same(left.strip_suffix(yes), right.strip_suffix(no))
                || same(left.strip_suffix(no), right.strip_suffix(yes))
        });
        if either || right.strip_prefix('!') == Some(left) || left.strip_prefix('!') == Some(right) {
            return true;
        }
    }
    // `x or True`, without its spaces.
    let or_true = compact.ends_with("orTrue") || compact.starts_with("Trueor");
    if or_true || compact.split("||").any(|part| matches!(part, "true" | "True" | "1")) {
        return true;
    }
    if let Some((left, right)) = compact.split_once("===").or(compact.split_once("==")) {
        let single = !["==", "&&", "||", "!="].iter().any(|sign| left.contains(sign) || right.contains(sign));
        return single && are_the_same(left, right);
    }
    let length = compact.strip_suffix(">=0").is_some_and(|left| {
        left.ends_with(".len()")
            || left.ends_with(".length")
            || left.ends_with(".size()")
            || left.starts_with("len(")
    });
    length || (is_literal(compact) && !is_falsy(compact))
}

fn is_always_false(compact: &str) -> bool {
    matches!(compact, "false" | "False" | "0" | "None" | "null" | "undefined")
}

fn is_falsy(text: &str) -> bool {
    is_always_false(text) || matches!(text, "\"\"" | "''" | "[]" | "{}" | "()")
}

/// The same text, or two constants: neither depends on the code under test.
fn are_the_same(left: &str, right: &str) -> bool {
    let same = left == right && !left.is_empty();
    same || (is_literal(left) && is_literal(right))
}

/// Numbers, strings, truth values, and sums of them.
fn is_literal(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() {
        return false;
    }
    if matches!(text, "true" | "false" | "True" | "False" | "None" | "null" | "nil") {
        return true;
    }
    let quoted = ['"', '\''].iter().any(|quote| {
        text.len() >= 2
            && text.starts_with(*quote)
            && text.ends_with(*quote)
            && !text[1..text.len() - 1].contains(*quote)
    });
    let number = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '*' | '.' | '_' | ' '));
    quoted || number
}

/// What stands in the bracket that the text begins with, and what follows it.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    if !text.starts_with('(') {
        return None;
    }
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => {
                depth -= 1;
                if depth == 0 {
                    return Some((&text[1..at], &text[at + 1..]));
                }
            }
            (None, _) => {}
        }
    }
    None
}

/// The arguments, split at the commas that stand in no bracket or string.
fn split_arguments(text: &str) -> Vec<&str> {
    let mut arguments = Vec::new();
    let mut start = 0;
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                arguments.push(&text[start..at]);
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    arguments.push(&text[start..]);
    arguments.retain(|argument| !argument.trim().is_empty());
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_fail_is_told_from_what_can() {
        let check = |language, statement: &str, expected: usize| {
            assert_eq!(trivial_in(language, statement, 9), expected, "{statement}");
        };
        for statement in [
            "assert!(true);",
            "assert!(x || true);",
            "assert_eq!(x, x);",
            "assert_eq!(f(1, 2), f(1, 2));",
            "assert_eq!(1 + 1, 2);",
            "assert!(v.len() >= 0);",
            "assert!(!false, \"x\");",
            "assert!(x == x);",
            "assert!(r.is_ok() || r.is_err());",
            "assert!(x || !x);",
            "assert_eq!(\"a\", \"b\");",
        ] {
            check(Language::Rust, statement, 1);
        }
        for statement in [
            "assert!(x);",
            "assert_eq!(x, y);",
            "assert_eq!(f(x), x);",
            "assert_ne!(x, x);",
            "assert!(x || y);",
            "assert_eq!(x, 1);",
            "assert!(v.len() >= 1);",
            "my_assert_eq!(x, x);",
            "assert!(a == b && b == a);",
            "assert_eq!(",
        ] {
            check(Language::Rust, statement, 0);
        }
        for statement in [
            "assert True",
            "assert x or True",
            "assert True or x",
            "assert (x == 1, 'wrong')",
            "assert 1",
            "assert x == x",
            "assert not False",
            "self.assertEqual(x, x)",
            "self.assertTrue(x or True)",
            "assert len(x) >= 0",
            "assert 'text'",
        ] {
            check(Language::Python, statement, 1);
        }
        for statement in [
            "assert x",
            "assert x == 1",
            "assert (x == 1)",
            "assert x or y",
            "assert x == 1, 'True'",
            "assert f(x) == x",
            "assert not x",
            "assert x == y or z",
            "self.assertEqual(x, 1)",
            "assert x == [x]",
            "assert a == b == b",
        ] {
            check(Language::Python, statement, 0);
        }
        for statement in [
            "expect(true).toBe(true);",
            "expect(x).toBe(x)",
            "expect(x);",
            "expect(f())",
            "expect(1).toEqual(1)",
            "assert.equal(x, x)",
            "assert.ok(true)",
            "expect(x || true).toBe(true)",
            "assert(true)",
            "expect(x).to.equal(x)",
            "expect(true).toBeTruthy()",
        ] {
            check(Language::JavaScript, statement, 1);
        }
        for statement in [
            "expect(x).toBe(1)",
            "expect(true).toBe(x)",
            "expect(x).not.toBe(x)",
            "assert.equal(x, 1)",
            "expect(f(x)).toBe(x)",
            "expect(() => f()).toThrow()",
            "assert(x)",
            "expect.assertions(1)",
            "expect(x).toBeTruthy()",
        ] {
            check(Language::JavaScript, statement, 0);
        }
        check(Language::Go, "assert.Equal(t, x, x)", 1);
        check(Language::Go, "require.True(t, true)", 1);
        check(Language::Go, "assert.Equal(t, 1, x)", 0);
        check(Language::Go, "assert.True(t, x)", 0);
    }
}
