//! Checks captures with tshark, an independent implementation of the protocols, if it is installed.

use std::path::Path;
use std::process::Command;

/// A display filter for frames that are malformed or have a wrong checksum.
const PROBLEMS: &str = "_ws.malformed || ip.checksum.status == \"Bad\" \
                        || udp.checksum.status == \"Bad\" || tcp.checksum.status == \"Bad\" \
                        || icmp.checksum.status == \"Bad\" || icmpv6.checksum.status == \"Bad\" \
                        || igmp.checksum.status == \"Bad\"";

/// A display filter for TCP segments with the checksum 0xffff where RFC 1624 §3 computes 0x0000.
///
/// Both are zero in one's complement arithmetic, and a receiver accepts both. Linux writes 0xffff
/// for every protocol when it completes a checksum in software (`skb_checksum_help`), because in
/// UDP 0x0000 means "no checksum". About one segment in 65,536 of the kernel has this checksum.
const NEGATIVE_ZERO: &str = "tcp.checksum.ffff";

/// Asserts three properties of a capture: no frame is malformed, no frame matches the display
/// filter `unwanted`, and each filter of `expected` matches at least one frame. Segments that match
/// `NEGATIVE_ZERO` do not count as having a wrong checksum. Does nothing if tshark is not
/// installed.
///
/// # Panics
/// If the capture violates one of these conditions, or tshark cannot read the capture.
pub fn assert_accepts(capture: &Path, unwanted: &str, expected: &[&str]) {
    let found = |filter: &str| {
        let mut tshark = Command::new("tshark");
        for protocol in ["ip", "udp", "tcp"] {
            tshark.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
        }
        let output = tshark.arg("-r").arg(capture).args(["-Y", filter]).output().ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Some(problems) = found(&format!("({PROBLEMS} || {unwanted}) && !{NEGATIVE_ZERO}")) else {
        return;
    };
    assert_eq!(problems, "", "tshark complains");
    for expected in expected {
        assert_ne!(found(expected).as_deref(), Some(""), "no frame of {expected}");
    }
}
