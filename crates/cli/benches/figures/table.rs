//! What was measured beside what was promised.

use std::fmt;

#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

struct Row {
    what: String,
    value: f64,
    unit: &'static str,
    /// At most; `None` for what is only told.
    limit: Option<f64>,
}

impl Table {
    pub(crate) fn limited(&mut self, what: impl Into<String>, value: f64, unit: &'static str, limit: f64) {
        self.rows.push(Row { what: what.into(), value, unit, limit: Some(limit) });
    }

    pub(crate) fn told(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        self.rows.push(Row { what: what.into(), value, unit, limit: None });
    }
}

/// A table in Markdown, as it stands in docs/performance.md.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {:66} | {:>12} | {:>12} | {:6} |", "Figure", "Measured", "At most", "")?;
        writeln!(f, "|{:-<68}|{:->13}:|{:->13}:|{:-<8}|", "", "", "", "")?;
        for Row { what, value, unit, limit } in &self.rows {
            let show = |value: f64| format!("{} {unit}", short(value));
            let (limit, verdict) = match limit {
                None => (String::new(), ""),
                Some(limit) if value <= limit => (show(*limit), "met"),
                Some(limit) => (show(*limit), "MISSED"),
            };
            writeln!(f, "| {what:66} | {:>12} | {limit:>12} | {verdict:6} |", show(*value))?;
        }
        Ok(())
    }
}

fn short(value: f64) -> String {
    if value == value.trunc() { format!("{value:.0}") } else { format!("{value:.2}") }
}
