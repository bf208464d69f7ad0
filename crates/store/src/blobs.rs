//! Long texts (prompts, messages, outputs), kept once under their hash.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};
use wiggum_core::text::hex;

use rusqlite::{Connection, OptionalExtension};
use sha2::{Digest, Sha256};
use zstd::bulk::Compressor;

use crate::error::{Explain, StoreError};
use crate::store::Store;

/// A text to be kept beside the events that refer to it.
#[derive(Clone, Copy, Debug)]
pub struct Blob<'a> {
    /// Hash of the text, in lower-case hexadecimal.
    pub sha256: &'a str,
    pub text: &'a str,
}

/// Below this, compression gains less than the page it would save.
const COMPRESS_ABOVE: usize = 512;

/// Below the usual levels: an append waits for it, and texts of a few thousand characters lose little by it.
const LEVEL: i32 = -1;

impl Store {
    pub fn blob(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        let stored = find(&self.connection, sha256).explain("read a stored text", &self.path)?;
        let Some(stored) = stored else { return Ok(None) };
        match stored.text().filter(|text| hash(text) == sha256) {
            Some(text) => Ok(Some(text)),
            None => Err(StoreError::DamagedBlob { sha256: sha256.to_owned(), path: self.path.clone() }),
        }
    }
}

/// Keeps the texts the store does not have yet.
pub(crate) fn keep(connection: &Connection, blobs: &[Blob<'_>]) -> rusqlite::Result<()> {
    for blob in blobs {
        debug_assert_eq!(blob.sha256, hash(blob.text), "a blob is kept under its own hash");
        let known =
            connection.prepare_cached("SELECT 1 FROM blobs WHERE sha256 = ?1")?.exists([blob.sha256])?;
        if !known {
            insert(connection, blob)?;
        }
    }
    Ok(())
}

pub(crate) fn hash(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// A row as it is in the table.
pub(crate) struct StoredBlob {
    bytes: u32,
    coding: String,
    data: Vec<u8>,
}

impl StoredBlob {
    /// `None` if it is not what was stored.
    pub(crate) fn text(self) -> Option<String> {
        let plain = match self.coding.as_str() {
            "plain" => self.data,
            "zstd" => zstd::bulk::decompress(&self.data, self.bytes as usize).ok()?,
            _ => return None,
        };
        String::from_utf8(plain).ok()
    }
}

pub(crate) fn find(connection: &Connection, sha256: &str) -> rusqlite::Result<Option<StoredBlob>> {
    connection
        .prepare_cached("SELECT bytes, coding, data FROM blobs WHERE sha256 = ?1")?
        .query_row([sha256], |row| {
            Ok(StoredBlob { bytes: row.get(0)?, coding: row.get(1)?, data: row.get(2)? })
        })
        .optional()
}

fn insert(connection: &Connection, blob: &Blob<'_>) -> rusqlite::Result<()> {
    let text = blob.text.as_bytes();
    let (coding, data) = encode(text);
    connection
        .prepare_cached("INSERT INTO blobs (sha256, bytes, coding, data) VALUES (?1, ?2, ?3, ?4)")?
        .execute((blob.sha256, text.len() as i64, coding, data))?;
    Ok(())
}

/// Making one costs more than compressing a prompt, and it is too large for each loop to have its own.
static COMPRESSOR: Mutex<Option<Compressor<'static>>> = Mutex::new(None);

pub(crate) fn compress(text: &[u8]) -> Option<Vec<u8>> {
    let mut compressor = COMPRESSOR.lock().unwrap_or_else(PoisonError::into_inner);
    if compressor.is_none() {
        *compressor = Compressor::new(LEVEL).ok();
    }
    compressor.as_mut()?.compress(text).ok()
}

fn encode(text: &[u8]) -> (&'static str, Cow<'_, [u8]>) {
    if text.len() > COMPRESS_ABOVE
        && let Some(compressed) = compress(text)
        && compressed.len() < text.len()
    {
        return ("zstd", Cow::Owned(compressed));
    }
    ("plain", Cow::Borrowed(text))
}
