//! Sends a reply, and spoils it as its turn says.

use std::collections::BTreeMap;
use std::io;

use serde_json::Value;

use crate::http::Connection;
use crate::reply::{Frame, Reply, error_body, error_frame};
use crate::request::Dialect;
use crate::scenario::{Cut, Fault, Hang, Turn};
use crate::stub::Shared;

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It waits for the next request.
    Next,
    Close,
    Reset,
}

pub(crate) struct Player<'a> {
    pub(crate) connection: &'a mut Connection,
    pub(crate) shared: &'a Shared,
    pub(crate) dialect: Dialect,
    pub(crate) turn: &'a Turn,
    pub(crate) number: usize,
}

/// Sends an answer that needs no stream.
pub(crate) fn whole(
    connection: &mut Connection,
    status: u16,
    headers: &BTreeMap<String, String>,
    body: &Value,
) -> io::Result<Ending> {
    let body = body.to_string();
    connection.head(status, headers, body.len())?;
    connection.bytes(body.as_bytes())?;
    Ok(Ending::Next)
}

impl Player<'_> {
    pub(crate) fn play(mut self, reply: &Reply, streamed: bool) -> io::Result<Ending> {
        self.shared.rest(self.turn.delay)?;
        match &self.turn.fault {
            Some(Fault::Cut(Cut::Before)) => return Ok(Ending::Reset),
            Some(Fault::Http(error)) => {
                let body = error_body(self.dialect, error);
                return whole(self.connection, error.status, &error.headers, &body);
            }
            Some(Fault::Hang(Hang { seconds, midway: false, ping: None })) => self.shared.rest(*seconds)?,
            _ => {}
        }
        if streamed { self.stream(reply) } else { self.at_once(reply) }
    }

    fn stream(&mut self, reply: &Reply) -> io::Result<Ending> {
        self.connection.stream_head(&self.headers())?;
        if self.cut_at(Cut::Head) {
            return Ok(Ending::Reset);
        }
        self.send(&reply.opening)?;
        if let Some(Fault::Hang(hang @ Hang { midway: false, ping: Some(_), .. })) = self.turn.fault {
            self.hang(hang, &reply.ping)?;
        }
        if let Some(Fault::Stream(error)) = &self.turn.fault {
            self.send(&[error_frame(self.dialect, error, self.number)])?;
            return self.complete();
        }
        // The longer half first, so that an answer of one piece has said something by then.
        let (first, second) = reply.body.split_at(reply.body.len().div_ceil(2));
        self.send(first)?;
        if self.cut_at(Cut::Middle) {
            return Ok(Ending::Close);
        }
        if let Some(Fault::Hang(hang @ Hang { midway: true, .. })) = self.turn.fault {
            self.hang(hang, &reply.ping)?;
        }
        self.send(second)?;
        if !self.cut_at(Cut::End) {
            self.send(&reply.closing)?;
        }
        self.complete()
    }

    fn at_once(&mut self, reply: &Reply) -> io::Result<Ending> {
        let body = reply.whole.to_string();
        self.connection.head(200, &self.headers(), body.len())?;
        if self.cut_at(Cut::Head) {
            return Ok(Ending::Reset);
        }
        let (first, second) = body.as_bytes().split_at(body.len() / 2);
        self.connection.bytes(first)?;
        match self.turn.fault {
            Some(Fault::Cut(Cut::Middle | Cut::End)) => return Ok(Ending::Close),
            Some(Fault::Hang(Hang { seconds, midway: true, .. })) => self.shared.rest(seconds)?,
            _ => {}
        }
        self.connection.bytes(second)?;
        Ok(Ending::Next)
    }

    fn headers(&self) -> BTreeMap<String, String> {
        let mut headers = self.turn.headers.clone();
        for name in ["request-id", "x-request-id"] {
            headers.entry(name.to_owned()).or_insert_with(|| format!("req_stub{:06}", self.number));
        }
        headers
    }

    fn cut_at(&self, at: Cut) -> bool {
        matches!(self.turn.fault, Some(Fault::Cut(cut)) if cut == at)
    }

    fn send(&mut self, frames: &[Frame]) -> io::Result<()> {
        for frame in frames {
            self.connection.chunk(&frame.bytes())?;
            self.shared.rest(self.turn.chunk_delay)?;
        }
        Ok(())
    }

    fn complete(&mut self) -> io::Result<Ending> {
        self.connection.last_chunk()?;
        Ok(Ending::Next)
    }

    /// Lets time pass, with signs of life if there are to be some.
    fn hang(&mut self, hang: Hang, ping: &Frame) -> io::Result<()> {
        let Some(interval) = hang.ping.filter(|interval| *interval > 0.0) else {
            return self.shared.rest(hang.seconds);
        };
        let mut left = hang.seconds;
        while left > 0.0 {
            self.shared.rest(interval.min(left))?;
            self.connection.chunk(&ping.bytes())?;
            left -= interval;
        }
        Ok(())
    }
}
