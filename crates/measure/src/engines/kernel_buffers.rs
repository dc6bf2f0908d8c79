//! What the kernel grants of the plan's buffers, asked before the first run.
//!
//! The kernel doubles what is asked for, because it counts its own overhead against it; it silently
//! clips the wish to a limit of the machine, and silently raises a small one to a floor. The
//! clipping would make two cells of the plan the same cell, so it is refused; the floor is written
//! down.

use crate::bench_error::BenchError;
use crate::engines::remote_sink::Far;
use crate::plan::Plan;
use linerate_ends::control::SinkTcp;
use linerate_ends::socket;
use linerate_evidence::BufferList;
use rustix::net::{AddressFamily, SocketType};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

/// Which of the two buffers it is about, and what limits it.
#[derive(Clone, Copy, Debug)]
struct Which {
    name: &'static str,
    limit: &'static str,
    tcp: SinkTcp,
}

const SEND: Which = Which { name: "send", limit: "net.core.wmem_max", tcp: SinkTcp::Kernel };
const RECEIVE: Which = Which { name: "receive", limit: "net.core.rmem_max", tcp: SinkTcp::Kernel };

/// Settings worth a note.
type Notes = BTreeMap<String, String>;

/// The plan's send buffers, tried on a socket of this machine.
pub(crate) fn sender(plan: &Plan, payload: u32) -> Result<Notes, BenchError> {
    let socket = trial_socket()?;
    let grant = |bytes| {
        socket::grant_send(&socket, bytes)
            .map_err(|error| BenchError::io("asking for a buffer", error))
    };
    settle(SEND, "", &plan.send_buffers, payload, grant)
}

/// The plan's receive buffers, tried on a socket of this machine.
pub(crate) fn receiver(plan: &Plan, payload: u32) -> Result<Notes, BenchError> {
    let socket = trial_socket()?;
    let grant = |bytes| {
        socket::grant_receive(&socket, bytes)
            .map_err(|error| BenchError::io("asking for a buffer", error))
    };
    settle(RECEIVE, "", &plan.receive_buffers, payload, grant)
}

/// The plan's receive buffers, tried by the sink at the far end.
pub(crate) fn receiver_at(far: &mut Far, plan: &Plan, payload: u32) -> Result<Notes, BenchError> {
    let Far { remote, peer, .. } = far;
    let there = format!(" on {}", peer.host);
    let which = Which { tcp: remote.description().tcp, ..RECEIVE };
    let grant = |bytes| remote.grant(bytes).map_err(|error| BenchError::of_control(error, peer));
    settle(which, &there, &plan.receive_buffers, payload, grant)
}

/// Tries the largest and the smallest buffer of the list: the kernel's answer rises with the wish.
fn settle(
    which: Which,
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
            SinkTcp::Linerate => "a window reaches no farther; ask for less".to_owned(),
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
            "{granted} bytes as the kernel counts, twice what is asked for: {least} bytes are too few, and the \
             smallest {alike} of the plan's buffers are the same to it"
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

    /// A kernel with this limit and this floor.
    fn kernel(limit: u64, floor: u64) -> impl FnMut(u64) -> Result<u64, BenchError> {
        move |bytes| Ok((bytes.min(limit) * 2).max(floor))
    }

    fn settled(list: &str, limit: u64, floor: u64) -> Result<Notes, BenchError> {
        settle(SEND, " on sun", &list.parse().unwrap(), 1_448, kernel(limit, floor))
    }

    #[test]
    fn a_buffer_that_would_be_clipped_is_refused_with_the_remedy() {
        let error = settled("1..17", 20_000, 4_608).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a send buffer of 24616 bytes is not to be had, 20000 are granted: `sysctl -w \
             net.core.wmem_max=24616` on sun, or ask for less"
        );
        assert!(settled("1..17", 24_616, 4_608).is_ok());
        let error = settled("1GiB", 20_000, 4_608).unwrap_err().to_string();
        assert!(error.ends_with("no kernel grants more than 1073741823; ask for less"), "{error}");
    }

    #[test]
    fn the_floor_is_written_down() {
        let notes = settled("1..4", 1 << 20, 6_000).unwrap();
        let note = &notes["floor of send buffers on sun"];
        assert!(note.contains("smallest 2 of"), "{note}");
        assert!(settled("4..5", 1 << 20, 4_608).unwrap().is_empty());
    }

    #[test]
    fn this_machine_has_a_floor_and_a_ceiling() {
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
