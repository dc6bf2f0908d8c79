//! Checks, before the first run, that the kernel grants the buffers of the plan.
//!
//! The kernel doubles the requested size, because it counts its own overhead as used buffer space.
//! It silently limits large sizes to a setting of the machine, and raises small sizes to a minimum.
//! A size above the limit is an error, because several cells of the plan would have equal buffers.
//! A size below the minimum is only recorded in the facts of the sweep.

use crate::bench_error::BenchError;
use crate::engines::remote_sink::RemoteSink;
use crate::plan::Plan;
use linerate_ends::control::SinkTcp;
use linerate_ends::socket;
use linerate_evidence::BufferList;
use rustix::net::{AddressFamily, SocketType};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

/// One of the two socket buffers of a connection.
#[derive(Clone, Copy, Debug)]
struct BufferSide {
    /// The kind of the buffer: `send` or `receive`.
    name: &'static str,
    /// Name of the kernel setting that limits the buffer.
    limit: &'static str,
    /// The TCP implementation that grants the buffer.
    tcp: SinkTcp,
}

const SEND: BufferSide =
    BufferSide { name: "send", limit: "net.core.wmem_max", tcp: SinkTcp::Kernel };
const RECEIVE: BufferSide =
    BufferSide { name: "receive", limit: "net.core.rmem_max", tcp: SinkTcp::Kernel };

/// Notes on granted buffers, by name, which are recorded among the facts of the sweep.
type Notes = BTreeMap<String, String>;

/// Checks the send buffers of the plan with a socket of this machine. A plan may state sizes in
/// packets, each with `payload` bytes of data. Returns notes for the facts of the sweep.
pub(crate) fn sender(plan: &Plan, payload: u32) -> Result<Notes, BenchError> {
    let socket = trial_socket()?;
    let grant = |bytes| {
        socket::grant_send(&socket, bytes)
            .map_err(|error| BenchError::io("asking for a buffer", error))
    };
    check_grants(SEND, "", &plan.send_buffers, payload, grant)
}

/// Checks the receive buffers of the plan with a socket of this machine. A plan may state sizes in
/// packets, each with `payload` bytes of data. Returns notes for the facts of the sweep.
pub(crate) fn receiver(plan: &Plan, payload: u32) -> Result<Notes, BenchError> {
    let socket = trial_socket()?;
    let grant = |bytes| {
        socket::grant_receive(&socket, bytes)
            .map_err(|error| BenchError::io("asking for a buffer", error))
    };
    check_grants(RECEIVE, "", &plan.receive_buffers, payload, grant)
}

/// Checks the receive buffers of the plan with the sink on another machine. A plan may state sizes
/// in packets, each with `payload` bytes of data. Returns notes for the facts of the sweep.
pub(crate) fn receiver_at(
    far: &mut RemoteSink,
    plan: &Plan,
    payload: u32,
) -> Result<Notes, BenchError> {
    let RemoteSink { remote, peer, .. } = far;
    let there = format!(" on {}", peer.host);
    let which = BufferSide { tcp: remote.description().tcp, ..RECEIVE };
    let grant = |bytes| remote.grant(bytes).map_err(|error| BenchError::of_control(error, peer));
    check_grants(which, &there, &plan.receive_buffers, payload, grant)
}

/// Checks the buffer sizes in `list`. `grant` returns the size that is granted if a size is
/// requested. `there` completes a message for the user: it is ` on HOST` for another machine, and
/// empty for this machine. Only the smallest and the largest size are requested. This suffices,
/// because a larger request is never granted less.
fn check_grants(
    which: BufferSide,
    there: &str,
    list: &BufferList,
    payload: u32,
    mut grant: impl FnMut(u64) -> Result<u64, BenchError>,
) -> Result<Notes, BenchError> {
    let sizes = || list.sizes().iter().map(|size| size.bytes(payload));
    let (least, most) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
    let times = which.tcp.granted_per_asked();
    let granted = grant(most)? / times;
    if granted < most {
        let remedy = match which.tcp {
            SinkTcp::Kernel => socket::remedy_for_buffer(most, which.limit, there),
            SinkTcp::Linerate => "no window is larger; ask for less".to_owned(),
        };
        return Err(BenchError::BufferTooLarge {
            which: which.name,
            requested: most,
            granted,
            remedy,
        });
    }
    let granted = grant(least)?;
    let mut notes = Notes::new();
    if granted > least.saturating_mul(times) {
        let name = format!("floor of {} buffers{there}", which.name);
        let alike = sizes().filter(|size| size.saturating_mul(times) <= granted).count();
        let note = format!(
            "{granted} bytes as the kernel counts, twice what is asked for: {least} bytes are too \
             few, and the smallest {alike} of the plan's buffers are the same to it"
        );
        notes.insert(name, note);
    }
    Ok(notes)
}

fn trial_socket() -> Result<OwnedFd, BenchError> {
    rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)
        .map_err(|error| BenchError::io("opening a socket", io::Error::from(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a function that grants buffers like a kernel with the maximum `limit` and the
    /// minimum `floor`.
    fn kernel(limit: u64, floor: u64) -> impl FnMut(u64) -> Result<u64, BenchError> {
        move |bytes| Ok((bytes.min(limit) * 2).max(floor))
    }

    fn checked(list: &str, limit: u64, floor: u64) -> Result<Notes, BenchError> {
        check_grants(SEND, " on sun", &list.parse().unwrap(), 1_448, kernel(limit, floor))
    }

    #[test]
    fn a_buffer_above_the_limit_is_refused_with_the_remedy() {
        let error = checked("1..17", 20_000, 4_608).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a send buffer of 24616 bytes is not available, 20000 are granted: `sysctl -w \
             net.core.wmem_max=24616` on sun, or ask for less"
        );
        assert!(checked("1..17", 24_616, 4_608).is_ok());
        let error = checked("1GiB", 20_000, 4_608).unwrap_err().to_string();
        assert!(error.ends_with("no kernel grants more than 1073741823; ask for less"), "{error}");
    }

    #[test]
    fn the_minimum_is_noted() {
        let notes = checked("1..4", 1 << 20, 6_000).unwrap();
        let note = &notes["floor of send buffers on sun"];
        assert!(note.contains("smallest 2 of"), "{note}");
        assert!(checked("4..5", 1 << 20, 4_608).unwrap().is_empty());
    }

    #[test]
    fn this_machine_has_a_minimum_and_a_maximum() {
        use crate::plan::{BenchKind, Draft};
        let mut draft = Draft::of_1988(BenchKind::Kernel);
        draft.send_buffers = "1B".parse().unwrap();
        draft.receive_buffers = "64GiB".parse().unwrap();
        let plan = Plan::new(draft).unwrap();
        assert_eq!(sender(&plan, 1_448).unwrap().len(), 1);
        let error = receiver(&plan, 1_448).unwrap_err();
        assert!(matches!(error, BenchError::BufferTooLarge { which: "receive", .. }), "{error}");
    }
}
