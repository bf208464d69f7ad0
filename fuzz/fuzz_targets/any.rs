//! The first byte says which parser gets the rest.
#![no_main]

#[path = "../../crates/sim/tests/fuzz/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((which, rest)) = bytes.split_first() {
        let (_, target) = targets::TARGETS[usize::from(*which) % targets::TARGETS.len()];
        target(rest);
    }
});
