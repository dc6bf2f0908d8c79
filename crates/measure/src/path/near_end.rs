//! The TCP at the sending end of a path: the kernel's TCP, or linerate's TCP on a link.

use crate::bench_error::BenchError;
use crate::engines::network_interface::{Interface, additional_header_bytes, framing, line_rate};
use crate::engines::own_tcp::Wrapping;
use linerate_ends::OwnHost;
use linerate_ends::socket::Network;
use linerate_evidence::RunEvidence;
use linerate_link::impair::Impairments;
use linerate_stack::Link;
use linerate_tcp::Config;
use std::net::IpAddr;

/// Seed of the random impairments.
const SEED: u64 = 1_988;
/// Number of bytes of the timestamp option, which every segment is assumed to have.
const TIMESTAMPS: u32 = 12;

/// The TCP at the sending end of a path.
#[derive(Debug)]
pub(super) struct NearEnd {
    /// The network through which connections are opened.
    pub(super) network: Network,
    description: String,
    /// The interface of linerate's host; `None` if the kernel's TCP sends, and for links inside
    /// this process.
    interface: Option<Interface>,
}

impl NearEnd {
    /// Returns the sending end that uses the kernel's TCP.
    pub(super) fn kernel() -> Self {
        let description = "the kernel's TCP".to_owned();
        Self { network: Network::Kernel, description, interface: None }
    }

    /// Starts linerate's host on an interface. Offloads are used if the link supports them, but not
    /// if frames are to be impaired.
    ///
    /// # Errors
    /// The interface cannot be opened, or the system provides no thread.
    pub(super) fn on_interface(
        host: &OwnHost,
        impairments: Option<Impairments>,
    ) -> Result<Self, BenchError> {
        let link = host.open(impairments.is_none())?;
        let (mac, name, by) = (link.mac(), host.link.interface().to_owned(), link.description());
        let description = format!("linerate's TCP at {}, through {by} on {name}", host.address);
        let wrapped = Wrapping::new(impairments, None).wrap(link, SEED);
        let network = Network::on(host.location(), mac, wrapped, &Config::default(), drop)
            .map_err(|error| BenchError::io("starting linerate's host", error))?;
        Ok(Self { network, description, interface: Some(Interface { name }) })
    }

    /// Returns the sending end that uses linerate's host in `network`, on a link inside this
    /// process.
    pub(super) const fn in_process(network: Network, description: String) -> Self {
        Self { network, description, interface: None }
    }

    /// Returns a description of the sending TCP for the report.
    pub(super) fn description(&self) -> &str {
        &self.description
    }

    /// Does the sender use the kernel's TCP?
    pub(super) const fn is_kernel(&self) -> bool {
        matches!(self.network, Network::Kernel)
    }

    /// Returns the ratio of a send buffer's size, as `getsockopt` reports it, to the requested
    /// size. The kernel doubles the requested size.
    pub(super) const fn granted_per_asked(&self) -> u64 {
        if self.is_kernel() { 2 } else { 1 }
    }

    /// Adds two rates to the evidence. One is the bit rate of the link towards the receiver at
    /// `address`. The other is the rate at which the run's bits, including headers, passed over the
    /// wire. `local` is our own address on this path.
    pub(super) fn add_rates(&self, address: IpAddr, local: IpAddr, evidence: &mut RunEvidence) {
        let interface = match &self.interface {
            Some(interface) => Some(interface.clone()),
            None if !self.is_kernel() || local == address => None,
            None => Interface::towards(address),
        };
        let more = additional_header_bytes(TIMESTAMPS, address.is_ipv6());
        let framing = framing(interface.as_ref(), more);
        let payload = evidence.sender.connection.segment_bytes;
        let payload = payload.and_then(|bytes| u32::try_from(bytes).ok());
        evidence.wire_bits_per_second = payload
            .map(|payload| evidence.bytes_per_second * framing.bits_per_byte(payload.max(1)));
        evidence.link_bits_per_second = interface.as_ref().and_then(line_rate).map(|rate| {
            #[allow(clippy::cast_precision_loss, reason = "a rate, shown with few digits")]
            let bits = rate.bits_per_second as f64;
            bits
        });
    }

    /// Returns the error of the link if linerate's host lost its link, otherwise `error`. The
    /// transfer itself cannot tell a failed link from a peer that does not answer.
    pub(super) fn find_cause(&self, error: BenchError) -> BenchError {
        match (&self.interface, self.network.lost_link()) {
            (Some(Interface { name }), Some(source)) => {
                BenchError::LinkLost { interface: name.clone(), source }
            }
            _ => error,
        }
    }
}

/// Starts linerate's host at `address` on a link inside this process.
///
/// # Errors
/// The system provides no thread, descriptor or random number.
pub(super) fn host_on<L: Link + linerate_link::Readiness + Send + 'static>(
    address: linerate_wire::IpCidr,
    link: L,
    impairments: Option<Impairments>,
) -> Result<Network, BenchError> {
    let wrapped = Wrapping::new(impairments, None).wrap(link, SEED);
    let location = linerate_ends::Location { address, gateway: None, compresses_headers: false };
    Network::on(location, None, wrapped, &Config::default(), drop)
        .map_err(|error| BenchError::io("starting linerate's host", error))
}
