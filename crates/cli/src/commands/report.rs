//! `wiggum report`: the account of a loop, from its journal.

use std::path::Path;
use std::process::ExitCode;

use wiggum_workspace::paths::write_whole;

use crate::args::ReportArgs;
use crate::commands::{loops, print_json};
use crate::failure::Failure;
use crate::term::{self, harmless};

pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let loops = loops::require()?;
    let record = loops.select(args.of.which.as_deref())?;
    if let Some(file) = &args.html {
        let page =
            wiggum_web::file(&loops, &record).map_err(|refusal| Failure::other(refusal.to_string()))?;
        write(file, &page)?;
    }
    let report = loops.report(&record)?;
    if args.of.output.json {
        return print_json(&report);
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
