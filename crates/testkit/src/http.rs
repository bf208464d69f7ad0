//! As much of HTTP/1.1 as agents speak, with full control over when and how a connection breaks.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// More than any agent sends; whoever sends more is no agent.
const LONGEST_BODY: u64 = 64 << 20;
const LONGEST_LINE: u64 = 1 << 20;

pub(crate) struct Message {
    pub(crate) method: String,
    /// With the query.
    pub(crate) target: String,
    /// Names in small letters.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
    stream: TcpStream,
    /// A HEAD request is answered without a body.
    head_only: bool,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { reader: BufReader::new(stream.try_clone()?), stream, head_only: false })
    }

    /// The next request, or `None` when the other side has no more.
    pub(crate) fn receive(&mut self) -> io::Result<Option<Message>> {
        let line = self.line()?;
        if line.is_empty() {
            return Ok(None);
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(malformed("request line"));
        };
        let headers = self.headers()?;
        if headers.get("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = self.body(&headers)?;
        self.head_only = method == "HEAD";
        Ok(Some(Message { method, target, headers, body }))
    }

    fn headers(&mut self) -> io::Result<BTreeMap<String, String>> {
        let mut headers = BTreeMap::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(headers);
            }
            let (name, value) = line.split_once(':').ok_or_else(|| malformed("header"))?;
            headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }

    fn body(&mut self, headers: &BTreeMap<String, String>) -> io::Result<Vec<u8>> {
        let chunked = headers.get("transfer-encoding").is_some_and(|value| value.contains("chunked"));
        if chunked {
            return self.chunks();
        }
        let length = headers.get("content-length").map_or(Ok(0), |value| value.parse::<u64>());
        self.exactly(length.map_err(|_| malformed("content-length"))?)
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let length = u64::from_str_radix(digits, 16).map_err(|_| malformed("chunk"))?;
            body.extend(self.exactly(length)?);
            self.line()?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    fn exactly(&mut self, length: u64) -> io::Result<Vec<u8>> {
        if length > LONGEST_BODY {
            return Err(malformed("length of a body"));
        }
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(length).read_to_end(&mut bytes)?;
        if read as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        (&mut self.reader).take(LONGEST_LINE).read_line(&mut line)?;
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// The head of an answer whose length is known.
    pub(crate) fn head(
        &mut self,
        status: u16,
        headers: &BTreeMap<String, String>,
        length: usize,
    ) -> io::Result<()> {
        let end = format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        self.start(status, headers, &end)
    }

    /// The head of an answer that comes in chunks.
    pub(crate) fn stream_head(&mut self, headers: &BTreeMap<String, String>) -> io::Result<()> {
        let end = "content-type: text/event-stream\r\ncache-control: no-cache\r\n\
                   transfer-encoding: chunked\r\n\r\n";
        self.start(200, headers, end)
    }

    fn start(&mut self, status: u16, headers: &BTreeMap<String, String>, end: &str) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        self.stream.write_all((head + end).as_bytes())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.head_only { Ok(()) } else { self.stream.write_all(bytes) }
    }

    pub(crate) fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
        framed.extend_from_slice(bytes);
        framed.extend_from_slice(b"\r\n");
        self.bytes(&framed)
    }

    pub(crate) fn last_chunk(&mut self) -> io::Result<()> {
        self.bytes(b"0\r\n\r\n")
    }

    /// Ends the connection in order, whatever was promised.
    pub(crate) fn close(self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Both)
    }

    /// Ends it with a reset, as a broken network does.
    pub(crate) fn reset(self) -> io::Result<()> {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO))?;
        Ok(())
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed {what}"))
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Stub",
    }
}
