//! What the administrator may do beyond files: a confined program must not.
//!
//! Nobody builds or tests software with these, and each of them leads out of a sandbox: to the memory of other
//! processes, to devices by their number, to the kernel itself. Ownership of files, ports and users stay.

use std::io;

use rustix::thread::{
    CapabilitySet, capabilities, capability_is_in_bounding_set, remove_capability_from_bounding_set,
    set_capabilities,
};

const GIVEN_UP: [CapabilitySet; 20] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_PTRACE,
    // The kernel lets its holder read any process.
    CapabilitySet::PERFMON,
    CapabilitySet::BPF,
    CapabilitySet::CHECKPOINT_RESTORE,
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_BOOT,
    CapabilitySet::SYS_TIME,
    CapabilitySet::SYS_PACCT,
    // Raising a limit would remove the mark by which what is left of a program is found.
    CapabilitySet::SYS_RESOURCE,
    // A device that is made anew is the disk all the same.
    CapabilitySet::MKNOD,
    // Opens files by their number, past every directory.
    CapabilitySet::DAC_READ_SEARCH,
    CapabilitySet::LINUX_IMMUTABLE,
    CapabilitySet::MAC_ADMIN,
    CapabilitySet::MAC_OVERRIDE,
    CapabilitySet::NET_ADMIN,
    CapabilitySet::SYSLOG,
    CapabilitySet::AUDIT_CONTROL,
    CapabilitySet::SYS_TTY_CONFIG,
];

/// This thread, and what it becomes or starts, has none of them any more.
pub(super) fn give_up() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    if sets.permitted.is_empty() {
        return Ok(());
    }
    for power in GIVEN_UP {
        // An older kernel does not know all of them.
        if capability_is_in_bounding_set(power).unwrap_or(false) {
            remove_capability_from_bounding_set(power)?;
        }
        for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
            set.remove(power);
        }
    }
    Ok(set_capabilities(None, sets)?)
}
