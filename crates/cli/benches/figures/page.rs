//! The page: how soon it is there, how soon an event is seen, what many open pages cost the loop, and what
//! the program has grown by.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wiggum_testkit::browser::Browser;

use crate::place::{BACKLOG, Ended, PROMISE, Place, WIGGUM, ticks};
use crate::table::Table;
use crate::{Outcome, journal, median};

const EVENTS: usize = 100_000;
const PAGES: usize = 200;
/// How long a loop is looked at; an iteration takes about a second.
const WINDOW: Duration = Duration::from_secs(15);
const TASKS: usize = 40;
const MIB: f64 = 1024.0 * 1024.0;

/// A long journal, opened in a browser that has never seen the page.
pub(crate) fn paint(table: &mut Table) -> Outcome<()> {
    let Some(browser) = Browser::find_or_skip("the page is not measured in a browser") else { return Ok(()) };
    let place = Place::with_backlog(3)?;
    let (store, loop_id) = journal::store(&place.checkout(), EVENTS)?;
    drop(store);
    let (_server, link) = serve(&place)?;
    let told = measured(
        &browser,
        &place,
        &json!({ "what": "paint", "url": link.url, "loop": loop_id.to_string() }),
    )?;
    table.limited("first paint of a loop with 100 000 events", number(&told["paint"]), "ms", 1000.0);
    table.limited("… with what the loop is about", number(&told["content"]), "ms", 1000.0);
    Ok(())
}

/// From the moment an event carries to the frame that shows it.
pub(crate) fn screen(table: &mut Table) -> Outcome<()> {
    let Some(browser) = Browser::find_or_skip("the page is not measured in a browser") else { return Ok(()) };
    let place = Place::with_backlog(TASKS)?;
    let _run = start(&place, 0.3, &[])?;
    let (_server, link) = serve(&place)?;
    let told = measured(&browser, &place, &json!({ "what": "screen", "url": link.url, "events": 120 }))?;
    let mut late: Vec<f64> = told["late"].as_array().ok_or("no times")?.iter().map(number).collect();
    late.sort_by(f64::total_cmp);
    table.limited("from an event to the screen, median", median(late.clone()), "ms", 100.0);
    table.told("… 19 of 20 within", late[late.len() * 19 / 20], "ms");
    Ok(())
}

/// The loop's own time on the processor, without pages and with many: served by another process, and by the
/// very process that runs the loop.
pub(crate) fn pages(table: &mut Table) -> Outcome<()> {
    let place = Place::with_backlog(TASKS)?;
    let alone = share_of(&start(&place, 1.0, &[])?)?;
    let place = Place::with_backlog(TASKS)?;
    let run = start(&place, 1.0, &[])?;
    let (server, link) = serve(&place)?;
    let open = Pages::open(&link)?;
    let before = ticks(&server)?;
    let begun = Instant::now();
    let beside = share_of(&run)?;
    let served = (ticks(&server)? - before) / begun.elapsed().as_secs_f64();
    let heard = open.heard()?;
    table.limited("200 open pages cost the loop, `wiggum serve` beside it", beside - alone, "%", 5.0);
    table.told("… the loop alone", alone, "%");
    table.told("… the loop with them", beside, "%");
    table.told("… the server", served, "%");
    table.told("… heard by each page meanwhile", heard / 1024.0, "KiB");

    let place = Place::with_backlog(TASKS)?;
    let mut unseen = start(&place, 1.0, &["--web"])?;
    drop(link_of(&mut unseen)?);
    let unseen = share_of(&unseen)?;
    let place = Place::with_backlog(TASKS)?;
    let mut run = start(&place, 1.0, &["--web"])?;
    let link = link_of(&mut run)?;
    let open = Pages::open(&link)?;
    let seen = share_of(&run)?;
    open.heard()?;
    table.limited("200 open pages cost the loop, `wiggum run --web`", seen - unseen, "%", 5.0);
    table.told("… the same process without pages", unseen, "%");
    table.told("… the same process with them", seen, "%");
    Ok(())
}

/// What of the program is the page: its files, and the code whose symbols name its crate. Code that the page
/// shares with others (HTTP, JSON, the desk) would be there without it. A release build has to be made with
/// its symbols for this: `CARGO_PROFILE_RELEASE_STRIP=none`.
pub(crate) fn weight(table: &mut Table) -> Outcome<()> {
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/assets");
    let mut files = 0;
    for entry in std::fs::read_dir(assets)? {
        files += entry?.metadata()?.len();
    }
    let place = Place::new()?;
    let symbols = place.command("nm").args(["--print-size", "--demangle", WIGGUM]).output()?;
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let size = |line: &str| {
        let mut words = line.split(' ');
        let (at, size) = (words.next()?, u64::from_str_radix(words.next()?, 16).ok()?);
        line.contains("wiggum_web").then(|| (at.to_owned(), size))
    };
    // Several names may stand for one place.
    let code: std::collections::BTreeMap<String, u64> = symbols.lines().filter_map(size).collect();
    let code = code.values().sum::<u64>();
    if code == 0 {
        table.told(
            "the page in the program: its files (no symbols to tell its code)",
            files as f64 / MIB,
            "MiB",
        );
        return Ok(());
    }
    table.limited("the page in the program", (files + code) as f64 / MIB, "MiB", 2.0);
    table.told("… its files", files as f64 / MIB, "MiB");
    Ok(())
}

/// Where a page is, and with what one gets in.
struct Link {
    url: String,
    address: String,
    token: String,
}

impl Link {
    fn of(url: &str) -> Outcome<Self> {
        let rest = url.trim().strip_prefix("http://").ok_or("no link")?;
        let (address, token) = rest.split_once("/?token=").ok_or("no token")?;
        Ok(Self { url: url.trim().to_owned(), address: address.to_owned(), token: token.to_owned() })
    }
}

fn serve(place: &Place) -> Outcome<(Ended, Link)> {
    let mut command = place.command(WIGGUM);
    command.args(["serve", "--no-open", "--port", "0"]).stdout(Stdio::piped());
    let mut server = Ended(command.spawn()?);
    let out = server.0.stdout.take().ok_or("no output")?;
    Ok((server, said(out)?))
}

/// The link that a program prints. What it says afterwards is read and thrown away.
fn said(out: impl Read + Send + 'static) -> Outcome<Link> {
    let mut lines = BufReader::new(out).lines();
    let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains("http://")).ok_or("no link")?;
    std::thread::spawn(move || lines.for_each(drop));
    Link::of(&line[line.find("http://").unwrap_or(0)..])
}

/// A loop whose agent takes so many seconds.
fn start(place: &Place, seconds: f64, more: &[&str]) -> Outcome<Ended> {
    let agent = format!("sh -c \"sleep {seconds}; echo '{PROMISE}'\"");
    let mut command = place.command(WIGGUM);
    command.args([
        "run",
        BACKLOG,
        "--agent-command",
        &agent,
        "--verify",
        "/bin/true",
        "--headless",
        "--json",
    ]);
    command.args(["--sandbox", "none"]).args(more).stdout(Stdio::null()).stderr(Stdio::piped());
    let run = Ended(command.spawn()?);
    let begun = Instant::now();
    let has_begun =
        || place.checkout().find().is_ok_and(|dir| dir.is_some_and(|dir| dir.database().exists()));
    while !has_begun() {
        if begun.elapsed() > Duration::from_secs(30) {
            return Err("the loop does not begin".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(run)
}

fn link_of(run: &mut Ended) -> Outcome<Link> {
    said(run.0.stderr.take().ok_or("no output")?)
}

/// Percent of one core that a process uses, after it had time to begin.
fn share_of(process: &Ended) -> Outcome<f64> {
    std::thread::sleep(Duration::from_secs(3));
    let before = ticks(process)?;
    std::thread::sleep(WINDOW);
    Ok((ticks(process)? - before) / WINDOW.as_secs_f64())
}

/// What open pages keep: a stream of events each, which they read.
struct Pages {
    streams: Vec<TcpStream>,
    bytes: Arc<AtomicUsize>,
}

impl Pages {
    fn open(link: &Link) -> Outcome<Self> {
        let (mut streams, bytes) = (Vec::new(), Arc::<AtomicUsize>::default());
        for _ in 0..PAGES {
            let mut stream = TcpStream::connect(&link.address)?;
            let (address, token) = (&link.address, &link.token);
            let path = "/api/v1/loops/main/events/stream";
            write!(
                stream,
                "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"
            )?;
            streams.push(stream.try_clone()?);
            let bytes = Arc::clone(&bytes);
            std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
                let mut buffer = [0; 16 * 1024];
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    bytes.fetch_add(read, Ordering::Relaxed);
                }
            })?;
        }
        Ok(Self { streams, bytes })
    }

    /// What each of them was told, on average; pages that hear nothing cost nothing.
    fn heard(self) -> Outcome<f64> {
        let heard = self.bytes.load(Ordering::Relaxed) / self.streams.len();
        if heard < 10_000 { Err(format!("each page heard {heard} bytes").into()) } else { Ok(heard as f64) }
    }
}

/// Has a browser measure.
fn measured(browser: &Browser, place: &Place, what: &Value) -> Outcome<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/figures/page.mjs");
    let mut node = place.command("node");
    node.arg(script).arg(&browser.playwright).arg(what.to_string()).stderr(Stdio::inherit());
    let output = node.output()?;
    if !output.status.success() {
        return Err(format!("the browser: {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}
