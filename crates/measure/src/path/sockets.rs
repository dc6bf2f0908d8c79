//! A path over sockets, for a diagnosis. The kernel's TCP or linerate's TCP sends to a `linerate
//! sink`, to an iperf3 server, or to a sink in this process.

use super::far_end::FarEnd;
use super::local_sink::LocalSink;
use super::near_end::{NearEnd, host_on};
use super::setup::{Plain, Setup};
use super::transfer::{Carried, carry_to_iperf3, carry_to_sink};
use super::{Application, DiagnosedPath};
use crate::bench_error::BenchError;
use crate::engines::tap;
use linerate_ends::socket::{Congestion, Network, check_own_congestion};
use linerate_ends::{Interrupt, OwnHost, Peer};
use linerate_evidence::{Change, RunEvidence};
use linerate_link::impair::Impairments;
use linerate_link::memory::{self, MemoryConfig};
use linerate_wire::IpCidr;
use std::io;
use std::time::Duration;

/// MTU in bytes of links inside this process.
const MTU: usize = 1_500;

/// A path between two sockets.
#[derive(Debug)]
pub struct SocketPath {
    /// The receiving end. Fields are dropped in the order of their declaration. The control
    /// connection in this field therefore ends before the host in `near`, which carries it.
    far: FarEnd,
    /// The sending end of the path.
    near: NearEnd,
    /// Name and port of the receiving end, as the user gave them.
    peer: Peer,
    application: Application,
    /// Results of the runs without intervention; `None` before the first such run.
    plain: Option<Plain>,
}

impl SocketPath {
    /// Connects the kernel's TCP to the sink or iperf3 server at `peer`. If no program listens at a
    /// sink's default port, iperf3's default port is tried.
    ///
    /// # Errors
    /// The peer cannot be reached, is neither a sink nor an iperf3 server, or the congestion
    /// control is unknown.
    pub fn to(peer: &Peer, application: &Application) -> Result<Self, BenchError> {
        let congestion = Congestion::of_this_machine().choose(application.congestion.as_deref())?;
        let far = FarEnd::find(peer)?;
        let application = Application { congestion, ..application.clone() };
        Ok(Self { far, near: NearEnd::kernel(), peer: peer.clone(), application, plain: None })
    }

    /// Connects linerate's host on an interface to the sink at `peer`.
    ///
    /// # Errors
    /// The interface cannot be opened, the peer is not a sink, or the congestion control is
    /// unknown.
    pub fn through(
        host: &OwnHost,
        impairments: Option<Impairments>,
        peer: &Peer,
        application: &Application,
    ) -> Result<Self, BenchError> {
        check_congestion(application)?;
        let near = NearEnd::on_interface(host, impairments)?;
        Self::between(near, peer.clone(), None, application)
    }

    /// Connects two linerate hosts by a memory link.
    ///
    /// # Errors
    /// The system provides no thread or descriptor, or the congestion control is unknown.
    pub fn in_memory(
        impairments: Option<Impairments>,
        application: &Application,
    ) -> Result<Self, BenchError> {
        check_congestion(application)?;
        let config = MemoryConfig { mtu: MTU, ..MemoryConfig::default() };
        let (left, right) = memory::pair(config).map_err(|error| {
            BenchError::io("making a link in memory", io::Error::other(error.to_string()))
        })?;
        let [ours, theirs] = tap::ends();
        let near = host_on(network_of(ours), left, impairments)?;
        let (sink, peer) = LocalSink::start(host_on(network_of(theirs), right, None)?, theirs)?;
        let description = "linerate's TCP at both ends of a link in memory".to_owned();
        Self::between(NearEnd::in_process(near, description), peer, Some(sink), application)
    }

    /// Connects linerate's host to the kernel's TCP by a TAP device. The device is created in the
    /// current network namespace, which should be a private one.
    ///
    /// # Errors
    /// No device can be created, or the congestion control is unknown.
    pub fn over_tap(
        impairments: Option<Impairments>,
        application: &Application,
    ) -> Result<Self, BenchError> {
        check_congestion(application)?;
        let device = tap::open_device(MTU, impairments.is_none())?;
        let [ours, kernel] = tap::ends();
        let near = host_on(network_of(ours), device, impairments)?;
        let (sink, peer) = LocalSink::start(Network::Kernel, kernel)?;
        let description = "linerate's TCP, across a TAP device to the kernel's".to_owned();
        Self::between(NearEnd::in_process(near, description), peer, Some(sink), application)
    }

    /// Connects the sending end to the sink at `peer`. `sink` is that sink, if it runs in this
    /// process.
    fn between(
        near: NearEnd,
        peer: Peer,
        sink: Option<LocalSink>,
        application: &Application,
    ) -> Result<Self, BenchError> {
        let far =
            FarEnd::sink(&near.network, &peer, sink).map_err(|error| near.find_cause(error))?;
        Ok(Self { far, near, peer, application: application.clone(), plain: None })
    }

    /// Returns the parameters of a run with the intervention `change`. Returns `None` if the path
    /// does not support the intervention, or if no run without intervention has been made yet.
    fn setup(&self, change: Option<Change>, time: Duration) -> Option<Setup> {
        let setup = Setup::plain(&self.application, time);
        match change {
            None => Some(setup),
            Some(change) => setup.with(change, self.plain?, &self.near, &self.far),
        }
    }

    /// Executes a run with the parameters `setup`, and returns its evidence.
    fn carry(
        &mut self,
        setup: &Setup,
        time: Duration,
        interrupt: &Interrupt,
    ) -> Result<RunEvidence, BenchError> {
        let near = &self.near;
        let carried = match &mut self.far {
            FarEnd::Sink { remote, .. } => {
                carry_to_sink(near, remote, &self.peer, setup, time, interrupt)
            }
            FarEnd::Iperf3 { server, .. } => carry_to_iperf3(server, setup, time, interrupt),
        };
        let carried = carried.map_err(|error| near.find_cause(error))?;
        let Carried { near: sender, far: receiver, bytes_per_second } = carried;
        let mut evidence =
            RunEvidence { bytes_per_second, sender, receiver, ..RunEvidence::default() };
        let [address, local] = self.far.addresses();
        near.add_rates(address.ip(), local.ip(), &mut evidence);
        Ok(evidence)
    }
}

impl DiagnosedPath for SocketPath {
    fn description(&self) -> String {
        let near = self.near.description();
        match &self.far {
            FarEnd::Sink { _local: Some(_), .. } => near.to_owned(),
            FarEnd::Sink { remote, .. } => {
                format!("{near} to {} ({})", self.peer, remote.description().program)
            }
            FarEnd::Iperf3 { server, .. } => format!(
                "{near} to {server} (iperf3: evidence of the far end is missing, so limits there \
                 cannot be named; `linerate sink` provides it)"
            ),
        }
    }

    fn run(
        &mut self,
        change: Option<Change>,
        time: linerate_units::Duration,
        interrupt: &Interrupt,
    ) -> Result<Option<RunEvidence>, BenchError> {
        let time = Duration::from(time);
        let Some(setup) = self.setup(change, time) else { return Ok(None) };
        let evidence = self.carry(&setup, time, interrupt)?;
        if interrupt.is_raised() {
            return Err(BenchError::Interrupted);
        }
        let Some(change) = change else {
            self.plain = Some(Plain::of(&evidence, self.plain));
            return Ok(Some(evidence));
        };
        let has_changed = self.plain.is_some_and(|plain| plain.has_changed(change, &evidence));
        Ok(has_changed.then_some(RunEvidence { change: Some(change), ..evidence }))
    }
}

/// Checks that linerate's TCP has the congestion control of the application.
fn check_congestion(application: &Application) -> Result<(), BenchError> {
    application.congestion.as_deref().map_or(Ok(()), |name| Ok(check_own_congestion(name)?))
}

/// Returns `address` with the prefix length of the links inside this process.
fn network_of(address: std::net::IpAddr) -> IpCidr {
    IpCidr::new(address, 24).unwrap_or_else(|| IpCidr::single(address))
}
