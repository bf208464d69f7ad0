//! Examples in the docstrings of Python: a check by the former definition runs those that existed over the
//! new module, beside the new ones.

/// Examples that stand together, without indentation.
fn examples(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut indent: Option<usize> = None;
    for line in text.lines() {
        let plain = line.trim_start();
        let depth = line.len() - plain.len();
        let begins = plain.starts_with(">>>");
        // What is expected ends with a blank line, or with the docstring.
        let is_over = plain.is_empty() || plain.starts_with("\"\"\"") || plain.starts_with("'''");
        match indent {
            Some(from) if !is_over && depth >= from => {
                if let Some(last) = found.last_mut().filter(|_| !begins) {
                    last.push_str(&line[from..]);
                    last.push('\n');
                } else {
                    found.push(format!("{}\n", &line[from..]));
                }
            }
            _ if begins => {
                indent = Some(depth);
                found.push(format!("{plain}\n"));
            }
            Some(_) | None => indent = None,
        }
    }
    found
}

/// Are examples gone or changed? New ones change nothing.
pub(super) fn differ(before: &str, after: &str) -> bool {
    let later = examples(after);
    examples(before).iter().any(|example| !later.contains(example))
}

/// The later module with the former examples added: `__test__` is where doctest looks for more.
pub(super) fn with_former(before: &str, after: &str) -> String {
    let examples = examples(before).concat().replace('\\', "\\\\").replace("\"\"\"", "\\\"\"\"");
    let gap = if after.ends_with('\n') { "" } else { "\n" };
    format!(
        "{after}{gap}\n__test__ = dict(globals().get(\"__test__\") or {{}}, former_examples=\"\"\"\n{examples}\"\"\")\n"
    )
}
