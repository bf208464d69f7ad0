//! The stub by hand: `cargo run -p wiggum-testkit --example stub_model -- SCENARIO.json`.
//!
//! Prints its address and then every request, until its standard input ends.
#![expect(clippy::print_stdout, reason = "people read it")]

use std::error::Error;
use std::time::Duration;

use wiggum_testkit::{Scenario, StubModel};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: stub_model SCENARIO.json")?;
    let scenario: Scenario = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let stub = StubModel::start(scenario)?;
    println!("{}", stub.base_url());
    std::thread::spawn(|| {
        drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        std::process::exit(0);
    });
    for shown in 0.. {
        while !stub.wait_until(Duration::from_secs(3600), |seen| seen.len() > shown) {}
        let seen = &stub.requests()[shown];
        println!("{} {}", seen.method, seen.path);
        if let Some(asked) = &seen.asked {
            println!("    {:?}, last said: {:.200}", asked.choice, asked.request.last());
        }
    }
    Ok(())
}
