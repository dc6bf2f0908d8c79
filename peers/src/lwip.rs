//! lwIP as a contender, from the library of the distribution. A C program drives it and is compiled
//! on demand.

use crate::build::{Build, program};
use crate::child::Child;
use crate::contender::{Candidate, Missing};
use crate::work::Work;
use std::process::Command;

const NAME: &str = "lwip";
const REMEDY: &str = "install a C compiler, pkg-config and the library's headers \
                      (Debian: gcc pkg-config liblwip-dev)";

/// Returns lwIP as a contender, if its library and a C compiler are installed.
pub fn candidate() -> Candidate {
    start()
        .map(|child| Box::new(child) as _)
        .map_err(|reason| Missing { name: NAME, reason: format!("{reason}; {REMEDY}") })
}

fn start() -> Result<Child, String> {
    let flags = program("pkg-config", &["--cflags", "--libs", "lwip"])?;
    let Build { folder, output } = Build::of(NAME)?;
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O2", "-o"])
        .arg(&output)
        .arg(folder.join("main.c"))
        .args(flags.split_whitespace());
    crate::build::finish(&mut compiler)?;
    const WORKS: &[Work] =
        &[Work::Bulk, Work::BulkAcks, Work::BulkBatch, Work::PingPong, Work::Connect];
    Child::start(NAME, Command::new(output), WORKS, 2)
}
