//! `wiggum serve`: the live page, and the link to it.

use std::fs::{self, OpenOptions};
use std::io::{IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;

use serde::Serialize;
use wiggum_engine::checkout::Checkout;
use wiggum_web::{Access, Site};
use wiggum_workspace::process::{self, CommandLine};

use crate::args::PageArgs;
use crate::commands::requests::who;
use crate::commands::{loops, notify, print_json, refuse_inside_agent, surroundings, surroundings_of};
use crate::config::{self, Flags};
use crate::failure::Failure;
use crate::listen::{Wanted, new_token};
use crate::term;

/// Where the page is as a rule, so that a browser remembers it.
const PORT: u16 = 7787;

pub(crate) fn serve(args: &PageArgs) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let access = access(args)?;
    let here = surroundings_of(loops::workspace()?);
    let checkout = here.checkout()?;
    // A page needs no configuration: what is wrong with it is said by whoever runs a loop.
    let config = config::resolve(&here.sources(&Flags::default())).ok();
    let _telling = config.and_then(|config| notify::beside(&here, &config));
    let links = Links { told: access.clone(), read_only: args.read_only };
    let (open, json) = (!args.no_open && !args.output.json, args.output.json);
    let served = wiggum_web::serve(site(&checkout, args.here)?, access, |address| {
        let link = links.at(address);
        note_page(&checkout, address);
        if json {
            drop(print_json(&link));
        } else {
            term::print(&link.text());
        }
        if open && std::io::stdout().is_terminal() {
            open_browser(&checkout, &link.url);
        }
    });
    served.map_err(|error| Failure::other(format!("the page cannot be served: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// Serves the page beside a run, which goes on without it if need be. Tells the link.
pub(crate) fn beside(checkout: &Checkout) -> Result<String, Failure> {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), free_port(Ipv4Addr::LOCALHOST.into()));
    let wanted =
        Wanted { address, anywhere: false, token_file: None, read_only_token_file: None, hosts: &[] };
    let access = wanted.access()?;
    let links = Links { told: access.clone(), read_only: false };
    let (ready, told) = std::sync::mpsc::channel();
    let site = site(checkout, false)?;
    let place = checkout.clone();
    std::thread::spawn(move || {
        // Who waits below learns of a failure by hearing nothing.
        let _ended = wiggum_web::serve(site, access, |address| {
            note_page(&place, address);
            let _heard = ready.send(address);
        });
    });
    let address = told.recv().map_err(|_| {
        Failure::other("the page cannot be served").hint("run without --web, and `wiggum serve` beside it")
    })?;
    Ok(links.at(address).url)
}

/// For links in messages, which do without the token. Without it they have none.
fn note_page(checkout: &Checkout, address: SocketAddr) {
    let ip = if address.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { address.ip() };
    let address = SocketAddr::new(ip, address.port());
    if let Ok(dir) = checkout.open(None) {
        drop(wiggum_notify::page::served_at(&dir, &format!("http://{address}")));
    }
}

fn site(checkout: &Checkout, here: bool) -> Result<Site, Failure> {
    let registry = if here { None } else { surroundings()?.registry() };
    Ok(Site { checkout: checkout.clone(), registry, by: format!("{} (page)", who()) })
}

fn access(args: &PageArgs) -> Result<Access, Failure> {
    let ip = args.listen.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let port = args.port.unwrap_or_else(|| free_port(ip));
    let wanted = Wanted {
        address: SocketAddr::new(ip, port),
        anywhere: args.listen_anywhere,
        token_file: args.token_file.as_deref(),
        read_only_token_file: None,
        hosts: &args.hosts,
    };
    let mut access = wanted.access()?;
    let other = new_token()?;
    // The token people keep is the one that they hand on; nobody learns the other.
    access.read_only_token =
        Some(if args.read_only { std::mem::replace(&mut access.token, other) } else { other });
    Ok(access)
}

/// The usual port, or any other where somebody has it.
fn free_port(ip: IpAddr) -> u16 {
    TcpListener::bind((ip, PORT)).map_or(0, |_| PORT)
}

/// The links that are handed out.
struct Links {
    told: Access,
    read_only: bool,
}

#[derive(Serialize)]
struct Link {
    /// Open it in a browser.
    url: String,
    /// For somebody who may only look.
    read_only_url: Option<String>,
    address: String,
    /// For `Authorization: Bearer`.
    token: String,
}

impl Links {
    fn at(&self, address: SocketAddr) -> Link {
        let Access { token, read_only_token, .. } = &self.told;
        let look = read_only_token.clone().unwrap_or_default();
        let token = if self.read_only { look.clone() } else { token.clone() };
        let url = |token: &str| format!("http://{address}/?token={token}");
        let read_only_url = (!self.read_only).then(|| url(&look));
        Link { url: url(&token), read_only_url, address: address.to_string(), token }
    }
}

impl Link {
    fn text(&self) -> String {
        let mut text = format!("the page is at {}\n", self.url);
        if let Some(url) = &self.read_only_url {
            text.push_str(&format!("for somebody who may only look: {url}\n"));
        }
        text + "whoever has a link has the page; it ends with Ctrl-C\n"
    }
}

/// Where there is no browser, there is the link. Everybody on this machine sees how programs are called, so
/// the token is handed over in a file that only its owner reads.
fn open_browser(checkout: &Checkout, url: &str) {
    let Ok(dir) = checkout.open(None) else { return };
    let page = dir.path().join("open.html");
    let text = format!(
        "<!doctype html><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\"><a href=\"{url}\">The page</a>\n"
    );
    drop(fs::remove_file(&page));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&page);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let command = CommandLine::new(program, vec![page.display().to_string()]);
    if let (Ok(()), Ok(nowhere)) = (written, OpenOptions::new().write(true).open("/dev/null")) {
        drop(process::detach(&command, checkout.path(), &[], nowhere));
    }
}
