//! linerate's TCP on an interface of the kernel's, to a `linerate sink` on another machine: by a
//! packet socket, at the driver, or behind a TAP device. The host has a thread of its own and
//! serves the whole night, also the control connection; the source is a program that uses its
//! sockets.

use crate::bench::{Bench, RunRequest};
use crate::bench_error::BenchError;
use crate::engines::kernel_buffers;
use crate::engines::network_interface::{Interface, framing, line_rate, rate_in_words};
use crate::engines::own_tcp::{Rules, WrappedLink, Wrapping};
use crate::engines::remote_sink::Far;
use crate::plan::Plan;
use linerate_ends::Interrupt;
use linerate_ends::socket::{Network, Options, max_segment};
use linerate_evidence::{BenchFacts, Floor, RunOutcome};
use linerate_link::capture_file::CaptureWriter;
use linerate_link::{AnyLink, KernelInterface};
use linerate_stack::{Link, Offloads};
use std::sync::mpsc::{self, Receiver};

/// linerate's TCP on an interface, to a sink behind it.
#[derive(Debug)]
pub struct InterfaceBench {
    /// Until the end of the night.
    far: Option<Far>,
    facts: BenchFacts,
    way: Way,
    dressing: Wrapping,
    /// The link, when its host has ended.
    ended: Receiver<WrappedLink<AnyLink>>,
}

/// The way to the sink: an interface, and the host on it.
#[derive(Debug)]
struct Way {
    interface: KernelInterface,
    /// The MTU with which it was opened.
    mtu: u16,
    network: Network,
}

impl Way {
    /// What is behind `error`: what befalls our end of the way looks like a peer that does not
    /// answer.
    fn blame(&self, error: BenchError) -> BenchError {
        let interface = self.interface.name().to_owned();
        if let Some(source) = self.network.lost_link() {
            return BenchError::LinkLost { interface, source };
        }
        match self.interface.state().map(|state| state.mtu.count()) {
            Ok(now) if now != u64::from(self.mtu) => {
                BenchError::MtuChanged { interface, was: self.mtu.into(), now }
            }
            _ => error,
        }
    }
}

impl InterfaceBench {
    /// The bench for `plan`, with the frames of the whole night written to `capture` if there is
    /// one.
    ///
    /// # Errors
    /// If the interface cannot be had, has another MTU than the plan, leads to no sink, or one of
    /// the TCPs does not grant what the plan asks for.
    ///
    /// # Panics
    /// If the plan is for another bench, and so has no interface or no peer.
    pub fn new(plan: &Plan, capture: Option<CaptureWriter>) -> Result<Self, BenchError> {
        let (Some(host), Some(peer)) = (&plan.host, &plan.peer) else {
            panic!("a plan for an interface has one, and a peer")
        };
        let rules = Rules::new(plan, plan.congestion.as_deref())?;
        let link = host.open(plan.offloads.unwrap_or(false))?;
        check_mtu(&link, rules.mtu())?;
        let kernel_interface = link.interface().clone();
        let (name, by, mac) = (kernel_interface.name().to_owned(), link.description(), link.mac());
        let offloads = link.capabilities().offloads != Offloads::NONE;
        let mut dressing = Wrapping::new(rules.impairments(), capture);
        let dressed = dressing.put_on(link, plan.seed);
        let (end, ended) = mpsc::channel();
        // Who no longer listens has no use for the link.
        let epilogue = move |link| end.send(link).unwrap_or(());
        let network = Network::on(host, mac, dressed, rules.usual(), epilogue)
            .map_err(|error| BenchError::io("beginning a host of linerate's own", error))?;
        let way = Way { interface: kernel_interface, mtu: plan.mtu, network };
        let mut far =
            Far::connect(way.network.clone(), peer, plan.mtu).map_err(|error| way.blame(error))?;
        let interface = Interface { name: name.clone() };
        let mut settings = rules.settings();
        settings.append(&mut kernel_buffers::receiver_at(&mut far, plan, rules.payload())?);
        settings.insert("sink".to_owned(), far.describe());
        settings.insert("interface".to_owned(), rate_in_words(&name, Some(&interface)));
        settings.insert("link".to_owned(), by.to_owned());
        settings.insert("link.offloads".to_owned(), if offloads { "on" } else { "off" }.to_owned());
        let facts = BenchFacts {
            description: format!(
                "linerate's TCP at {}, by {by} on {name}, to a sink at {}",
                host.address,
                far.remote.address()
            ),
            segment_payload: rules.payload(),
            framing: framing(Some(&interface), rules.options()),
            line_rate: line_rate(&interface),
            settings,
        };
        Ok(Self { far: Some(far), facts, way, dressing, ended })
    }
}

/// What a packet of the plan is, the interface decides.
fn check_mtu(link: &AnyLink, mtu: usize) -> Result<(), BenchError> {
    let has = link.capabilities().mtu;
    if has == mtu {
        return Ok(());
    }
    let name = link.interface().name();
    let remedy = format!("{name} has {has}; give --mtu {has}, or `ip link set {name} mtu {mtu}`");
    Err(BenchError::Mtu { mtu: u32::try_from(mtu).unwrap_or(u32::MAX), remedy })
}

impl Bench for InterfaceBench {
    fn facts(&self) -> BenchFacts {
        self.facts.clone()
    }

    fn floor(&mut self, _: &RunRequest, _: &Interrupt) -> Result<Option<Floor>, BenchError> {
        // Nothing but a protocol brings bytes across a network.
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
            // For the sink's kernel, which announces it.
            max_segment: Some(max_segment(far.remote.address(), self.way.mtu)),
            congestion: request.congestion.clone(),
            ..Options::default()
        };
        far.run(&options, request, interrupt).map_err(|error| self.way.blame(error))
    }

    fn end(&mut self) -> Result<(), BenchError> {
        // Its control connection is closed and not reset.
        self.far = None;
        self.way.network.end();
        match self.ended.recv() {
            Ok(link) => self.dressing.take_off(link).map(drop),
            // It has been taken off already.
            Err(_) => Ok(()),
        }
    }
}
