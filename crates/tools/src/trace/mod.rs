//! `linerate trace`: finds the routers on the way to a host, by probes with increasing TTL or hop
//! limit.

mod probe;
mod report;

pub use report::{Answer, Hop, Note, TraceReport};

use crate::turns::{ToolError, turn_until};
use linerate_ends::Interrupt;
use linerate_link::{MonotonicClock, Readiness, Waiter};
use linerate_stack::{Error, Host, Link, RawHandle, RawOptions, UdpHandle, UdpOptions};
use linerate_units::{Clock, Duration};
use linerate_wire::Protocol;
use probe::{Reply, read_reply};
use std::net::IpAddr;

/// The kind of packets that are sent as probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// UDP datagrams to ports at which probably nothing listens.
    Udp,
    /// ICMP echo requests.
    Icmp,
}

/// The parameters of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParameters {
    /// The destination, up to which routers are shown.
    pub destination: IpAddr,
    /// The kind of packets that are sent as probes.
    pub method: Method,
    /// TTL or hop limit of the first probes.
    pub first_hop: u8,
    /// Maximum TTL or hop limit.
    pub max_hops: u8,
    /// Number of probes with each TTL or hop limit.
    pub probes: u8,
    /// Maximum time to wait for the answers to all probes of one hop, from when they are sent.
    pub timeout: Duration,
    /// Number of data bytes in each probe.
    pub size: usize,
    /// UDP port to which the first probe is sent. Each later probe is sent to the next port.
    pub port: u16,
    /// ICMP identifier, which distinguishes these requests from those of other programs.
    pub identifier: u16,
}

/// The sockets that a trace uses.
#[derive(Clone, Copy, Debug)]
struct Sockets {
    /// The raw socket that receives ICMP messages, and that sends the probes if they are echo
    /// requests.
    icmp: RawHandle,
    /// The UDP socket that sends the probes, with its local port; `None` if the probes are echo
    /// requests.
    udp: Option<(UdpHandle, u16)>,
}

/// Sends probes, hop after hop. Calls `tell` with each hop once it is complete: all of its probes
/// are answered, or the timeout has passed. Returns all hops.
///
/// # Errors
/// [`ToolError`]: probes cannot be sent to the destination, or the link failed.
pub fn trace<L: Link + Readiness>(
    host: &mut Host<L>,
    parameters: &TraceParameters,
    interrupt: &Interrupt,
    mut tell: impl FnMut(&Hop),
) -> Result<TraceReport, ToolError> {
    let mut waiter = Waiter::new()?;
    let sockets = open(host, parameters)?;
    let mut report = TraceReport::default();
    for number in parameters.first_hop..=parameters.max_hops {
        if interrupt.is_raised() {
            break;
        }
        let hop = probe_hop(host, &mut waiter, parameters, sockets, number, interrupt)?;
        tell(&hop);
        let is_last = hop.ends_trace();
        report.reached |= hop.is_destination;
        report.hops.push(hop);
        if is_last {
            break;
        }
    }
    host.stack_mut().raw_close(sockets.icmp)?;
    if let Some((udp, _)) = sockets.udp {
        host.stack_mut().udp_close(udp)?;
    }
    Ok(report)
}

fn open<L: Link>(host: &mut Host<L>, parameters: &TraceParameters) -> Result<Sockets, ToolError> {
    let is_ipv6 = parameters.destination.is_ipv6();
    let protocol = if is_ipv6 { Protocol::ICMPV6 } else { Protocol::ICMP };
    let stack = host.stack_mut();
    let icmp = stack.raw_open(is_ipv6, protocol, &RawOptions::default())?;
    let udp = match parameters.method {
        Method::Icmp => None,
        Method::Udp => {
            let any: IpAddr = if is_ipv6 { [0; 16].into() } else { [0; 4].into() };
            let socket = stack.udp_bind((any, 0), &UdpOptions::default())?;
            Some((socket, stack.udp_local_addr(socket)?.port()))
        }
    };
    Ok(Sockets { icmp, udp })
}

/// Sends the probes of one hop, and waits for their answers.
fn probe_hop<L: Link + Readiness>(
    host: &mut Host<L>,
    waiter: &mut Waiter,
    parameters: &TraceParameters,
    sockets: Sockets,
    number: u8,
    interrupt: &Interrupt,
) -> Result<Hop, ToolError> {
    let count = usize::from(parameters.probes);
    let mut hop = Hop { number, answers: vec![None; count], is_destination: false };
    let first = u16::from(number - parameters.first_hop) * u16::from(parameters.probes);
    let sent = MonotonicClock.now();
    for probe in 0..u16::from(parameters.probes) {
        send_probe(host, parameters, sockets, number, first + probe)?;
    }
    turn_until(host, waiter, sent + parameters.timeout, interrupt, |host, begun| {
        let ended = MonotonicClock.now();
        while let Some(reply) = receive(host, parameters, sockets) {
            let index = usize::from(reply.probe.wrapping_sub(first));
            // A reply is skipped if it answers a probe of an earlier hop, or a probe that already
            // has an answer.
            let Some(place @ None) = hop.answers.get_mut(index) else { continue };
            // A reply that arrived before this turn (`begun`) has the link's timestamp. One that
            // arrived during the turn has no exact time, so the end of the turn is used.
            let arrived = if reply.arrived < begun { reply.arrived } else { ended };
            let answer =
                Answer { from: reply.from, round_trip: arrived.since(sent), note: reply.note };
            *place = Some(answer);
            hop.is_destination |= reply.is_destination;
        }
        hop.answers.iter().all(Option::is_some).then_some(())
    })
    .map(|_| hop)
}

/// Sends a probe. If the host has no room for it, the probe counts as sent, and thus as lost,
/// because a full link would lose it, too.
fn send_probe<L: Link>(
    host: &mut Host<L>,
    parameters: &TraceParameters,
    sockets: Sockets,
    hops: u8,
    probe: u16,
) -> Result<(), ToolError> {
    let (now, to) = (MonotonicClock.now(), parameters.destination);
    let stack = host.stack_mut();
    let outcome = match sockets.udp {
        Some((socket, _)) => {
            stack.udp_set_hops(socket, hops)?;
            let port = parameters.port.wrapping_add(probe).max(1);
            stack.udp_send_to(now, socket, (to, port), &vec![0x40; parameters.size])
        }
        None => {
            let message = probe::echo_request(parameters, probe);
            stack.raw_set_hops(sockets.icmp, hops)?;
            stack.raw_send_to(now, sockets.icmp, to, &message)
        }
    };
    match outcome {
        Ok(()) | Err(Error::WouldBlock) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the next received message that is a reply to a probe; `None` if none has arrived.
fn receive<L: Link>(
    host: &mut Host<L>,
    parameters: &TraceParameters,
    sockets: Sockets,
) -> Option<Reply> {
    let mut bytes = [0; 2_048];
    let source_port = sockets.udp.map(|(_, port)| port);
    loop {
        let (length, packet) = host.stack_mut().raw_receive(sockets.icmp, &mut bytes).ok()?;
        if let Some(reply) = read_reply(parameters, source_port, &packet, &bytes[..length]) {
            return Some(reply);
        }
    }
}

#[cfg(test)]
mod tests;
