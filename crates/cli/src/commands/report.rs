//! `wiggum report`: the account of a loop, from its journal.

use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;
use wiggum_engine::report::Report;
use wiggum_workspace::paths::write_whole;

use crate::args::ReportArgs;
use crate::commands::{loops, print_json};
use crate::failure::Failure;
use crate::term::{self, harmless};

pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let loops = loops::require()?;
    let record = loops.select(args.of.which.as_deref())?;
    let report = Report::read(&loops.store, record.id, Timestamp::now())?;
    if args.of.output.json {
        return print_json(&report);
    }
    if let Some(file) = &args.html {
        write(file, &report.html())?;
    }
    if let Some(file) = &args.markdown {
        write(file, &report.markdown())?;
    }
    if args.html.is_some() || args.markdown.is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(term::print(&harmless(&report.markdown())))
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    write_whole(file, text.as_bytes())
        .map_err(|error| Failure::usage(format!("cannot write {}: {error}", file.display())))
}
