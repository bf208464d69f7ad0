//! Reading a recording, as far as it goes.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::{Entry, Header, Line, RecordingError, VERSION};

/// The lines after the header. They end where the recording does: with [`Entry::End`], unless it was
/// cut.
pub struct Reader {
    pub header: Header,
    lines: BufReader<zstd::Decoder<'static, BufReader<File>>>,
}

pub fn read(path: &Path) -> Result<Reader, RecordingError> {
    let failed = |source| RecordingError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let foreign = || RecordingError::Foreign { path: path.to_owned() };
    let mut lines = BufReader::new(zstd::Decoder::new(file).map_err(|_| foreign())?);
    let first = next_line(&mut lines).ok_or_else(foreign)?;
    let version = serde_json::from_slice::<Version>(&first).map_err(|_| foreign())?.version;
    if version > VERSION {
        return Err(RecordingError::Newer { path: path.to_owned(), found: version });
    }
    match serde_json::from_slice(&first) {
        Ok(Line { entry: Entry::Header(header), .. }) => Ok(Reader { header, lines }),
        Ok(_) | Err(_) => Err(foreign()),
    }
}

/// All that later versions keep of a header.
#[derive(serde::Deserialize)]
struct Version {
    version: u32,
}

impl Iterator for Reader {
    type Item = Line;

    /// What cannot be read is where it was cut.
    fn next(&mut self) -> Option<Line> {
        serde_json::from_slice(&next_line(&mut self.lines)?).ok()
    }
}

fn next_line(lines: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    match lines.read_until(b'\n', &mut text) {
        Ok(1..) => Some(text),
        Ok(0) | Err(_) => None,
    }
}
