//! The engine with linerate's TCP on an interface of this machine, which sends to a `linerate sink`
//! on another machine.
//!
//! The link is a packet socket, AF_XDP, a TAP or TUN device, or a serial line. The host has its own
//! thread. It exists during the whole sweep, because it also carries the control connection. The
//! source is a different thread, which uses the host's sockets.

use crate::bench::{Bench, RunRequest};
use crate::bench_error::BenchError;
use crate::engines::kernel_buffers;
use crate::engines::network_interface::{Interface, framing, line_rate, rate_in_words};
use crate::engines::own_tcp::{Rules, WrappedLink, Wrapping};
use crate::engines::remote_sink::RemoteSink;
use crate::engines::serial;
use crate::plan::Plan;
use linerate_ends::socket::{Network, Options, max_segment};
use linerate_ends::{Interrupt, OwnHost};
use linerate_evidence::{BenchFacts, Floor, Framing, RunOutcome};
use linerate_link::capture_file::CaptureWriter;
use linerate_link::{AnyLink, KernelInterface, LinkSpec};
use linerate_stack::{Link, Offloads};
use std::sync::mpsc::{self, Receiver};

/// The bench for linerate's TCP on an interface, with a sink on another machine.
#[derive(Debug)]
pub struct InterfaceBench {
    /// The sink; `None` after the end of the sweep.
    far: Option<RemoteSink>,
    facts: BenchFacts,
    path: Path,
    wrapping: Wrapping,
    /// Channel through which the host returns its link when the host ends.
    ended: Receiver<WrappedLink<AnyLink>>,
}

/// The path to the sink: an interface, and linerate's host on it.
#[derive(Debug)]
struct Path {
    /// Name of the interface, or path of the serial device.
    name: String,
    /// The interface of the kernel; `None` for a serial line.
    interface: Option<KernelInterface>,
    /// MTU of the interface in bytes when the sweep began.
    mtu: u16,
    /// The network of linerate's host, through which connections are opened.
    network: Network,
}

impl Path {
    /// Returns the cause of a run's failure: the error of the link if it failed, the change of its
    /// MTU if it was changed, otherwise `error`. The transfer itself cannot tell such a failure
    /// from a peer that does not answer.
    fn find_cause(&self, error: BenchError) -> BenchError {
        let interface = self.name.clone();
        if let Some(source) = self.network.lost_link() {
            return BenchError::LinkLost { interface, source };
        }
        let state = self.interface.as_ref().and_then(|interface| interface.state().ok());
        match state.map(|state| state.mtu.count()) {
            Some(now) if now != u64::from(self.mtu) => {
                BenchError::MtuChanged { interface, was: self.mtu.into(), now }
            }
            _ => error,
        }
    }
}

impl InterfaceBench {
    /// Creates the bench for `plan`. If `capture` is given, all frames of the sweep are written to
    /// the capture file.
    ///
    /// # Errors
    /// The interface is not available, its MTU differs from the plan, or no sink answers. Or
    /// linerate's TCP or the sink's TCP does not grant what the plan requires.
    ///
    /// # Panics
    /// If the plan is for another engine, and therefore has no interface or no peer.
    pub fn new(plan: &Plan, capture: Option<CaptureWriter>) -> Result<Self, BenchError> {
        let (Some(host), Some(peer)) = (&plan.host, &plan.peer) else {
            panic!("a plan for an interface has one, and a peer")
        };
        let rules = Rules::new(plan, plan.congestion.as_deref())?;
        let link = open(host, plan)?;
        let name = host.link.interface().to_owned();
        check_mtu(&link, &name, rules.mtu())?;
        let kernel_interface = link.interface().cloned();
        let (by, mac) = (link.description(), link.mac());
        let offloads = link.capabilities().offloads != Offloads::NONE;
        let mut wrapping = Wrapping::new(rules.impairments(), capture);
        let wrapped = wrapping.wrap(link, plan.seed);
        let (end, ended) = mpsc::channel();
        // When the host ends, it sends its link to the bench. If the bench was dropped before, the
        // send fails, and the link is dropped because it is no longer needed.
        let on_end = move |link| end.send(link).unwrap_or(());
        let network = Network::on(host.location(), mac, wrapped, rules.usual(), on_end)
            .map_err(|error| BenchError::io("beginning a host of linerate's own", error))?;
        let path = Path { name: name.clone(), interface: kernel_interface, mtu: plan.mtu, network };
        let mut far = RemoteSink::connect(path.network.clone(), peer, plan.mtu)
            .map_err(|error| path.find_cause(error))?;
        let interface = Interface { name: name.clone() };
        let mut settings = rules.settings();
        settings.append(&mut kernel_buffers::receiver_at(&mut far, plan, rules.payload())?);
        settings.insert("sink".to_owned(), far.describe());
        settings.insert("interface".to_owned(), rate_in_words(&name, Some(&interface)));
        settings.insert("link".to_owned(), by.to_owned());
        settings.insert("link.offloads".to_owned(), if offloads { "on" } else { "off" }.to_owned());
        let facts = BenchFacts {
            description: format!(
                "linerate's TCP at {}, through {by} on {name}, to a sink at {}",
                host.address,
                far.remote.address()
            ),
            segment_payload: rules.payload(),
            framing: framing_of(&host.link, &interface, &rules),
            line_rate: match host.link {
                LinkSpec::Serial(_, baud) => Some(serial::line_rate(baud)),
                _ => line_rate(&interface),
            },
            settings,
        };
        Ok(Self { far: Some(far), facts, path, wrapping, ended })
    }
}

/// Returns the framing of full segments on `link`, the host's link on `interface`.
fn framing_of(link: &LinkSpec, interface: &Interface, rules: &Rules) -> Framing {
    let more = rules.additional_header_bytes();
    match link {
        LinkSpec::Serial(..) => serial::framing(more, rules.has_compressed_headers()),
        LinkSpec::Tun(_) => rules.framing(),
        _ => framing(Some(interface), more),
    }
}

/// Opens the link of the host. A serial line is opened with the MTU of the plan. An interface has
/// an MTU of its own, which is not changed.
fn open(host: &OwnHost, plan: &Plan) -> Result<AnyLink, BenchError> {
    let is_serial = matches!(host.link, LinkSpec::Serial(..));
    let host = OwnHost { mtu: is_serial.then_some(plan.mtu), ..host.clone() };
    Ok(host.open(plan.offloads.unwrap_or(false))?)
}

/// Returns an error unless the MTU of the link equals the MTU of the plan. Packets larger than the
/// MTU of the link could not be sent.
fn check_mtu(link: &AnyLink, name: &str, mtu: usize) -> Result<(), BenchError> {
    let has = link.capabilities().mtu;
    if has == mtu {
        return Ok(());
    }
    let remedy = format!("{name} has {has}; give --mtu {has}, or `ip link set {name} mtu {mtu}`");
    Err(BenchError::Mtu { mtu: u32::try_from(mtu).unwrap_or(u32::MAX), remedy })
}

impl Bench for InterfaceBench {
    fn facts(&self) -> BenchFacts {
        self.facts.clone()
    }

    fn floor(&mut self, _: &RunRequest, _: &Interrupt) -> Result<Option<Floor>, BenchError> {
        // A floor is not possible, because the path between machines cannot carry data without a
        // protocol.
        Ok(None)
    }

    fn run(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<RunOutcome, BenchError> {
        let gone = || BenchError::ConnectionLost { bytes: 0, what: "the night is over".to_owned() };
        let far = self.far.as_mut().ok_or_else(gone)?;
        let options = Options {
            send_buffer: Some(request.send_buffer.bytes),
            // This MSS limits the segments that linerate sends. The request to the sink contains it
            // too, and a sink with the kernel's TCP announces it.
            max_segment: Some(max_segment(far.remote.address(), self.path.mtu)),
            congestion: request.congestion.clone(),
            ..Options::default()
        };
        far.run(&options, request, interrupt).map_err(|error| self.path.find_cause(error))
    }

    fn end(&mut self) -> Result<(), BenchError> {
        // The sink's control connection is closed before the network ends, because the end of the
        // network resets all open connections.
        self.far = None;
        self.path.network.end();
        match self.ended.recv() {
            Ok(link) => self.wrapping.unwrap_link(link).map(drop),
            // An earlier call of this function has already received the link and unwrapped it.
            Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BenchKind, Draft};

    #[test]
    fn the_framing_has_the_headers_of_the_hosts_ip_version() {
        let absent = Interface { name: "no such interface".to_owned() };
        let headers = |link: &str, address: &str| {
            let link: LinkSpec = link.parse().unwrap();
            let plan = Plan::new(Draft {
                host: Some(OwnHost::new(link.clone(), address.parse().unwrap())),
                peer: Some("sink".parse().unwrap()),
                ..Draft::of_1988(BenchKind::Interface)
            });
            let rules = Rules::new(&plan.unwrap(), None).unwrap();
            framing_of(&link, &absent, &rules).headers
        };
        for link in ["packet:eth1", "xdp:eth1", "tap:lr0", "tun:lr0"] {
            assert_eq!(headers(link, "192.0.2.9/24"), 20 + 20 + 12, "{link}");
            assert_eq!(headers(link, "2001:db8::9/64"), 40 + 20 + 12, "{link}");
        }
        // RFC 1144 compresses headers of IPv4 only, to three bytes.
        let line = "serial:/dev/ttyS0@9600";
        assert_eq!((headers(line, "192.0.2.9/24"), headers(line, "2001:db8::9/64")), (3, 40 + 20));
    }
}
