//! The program at the receiving end of a path: a linerate sink or an iperf3 server.

use super::local_sink::LocalSink;
use crate::bench_error::BenchError;
use linerate_ends::Peer;
use linerate_ends::control::{ControlError, Remote, SinkTcp};
use linerate_ends::iperf3::{self, Client, Iperf3Error, Test};
use linerate_ends::socket::{Network, Options};
use std::net::SocketAddr;
use std::time::Duration;

/// Number of bytes in a write, as announced to an iperf3 server.
pub(super) const WRITE_SIZE: usize = 128 << 10;

/// The program at the receiving end of a path.
#[derive(Debug)]
pub(super) enum FarEnd {
    /// A `linerate sink`, which also reports measurements of its end.
    Sink {
        /// The control connection. It is declared first, so that it is closed before the sink ends.
        remote: Box<Remote>,
        /// The sink itself, if it runs in this process.
        _local: Option<LocalSink>,
    },
    /// An iperf3 server, which reports only the number of bytes.
    Iperf3 {
        /// The address of the server, with the port at which it was found.
        server: Peer,
        address: SocketAddr,
        local: SocketAddr,
    },
}

impl FarEnd {
    /// Connects to the sink at `peer`, through `network`. Packets have the size that the link
    /// allows.
    ///
    /// # Errors
    /// The peer cannot be reached, or is not a sink.
    pub(super) fn sink(
        network: &Network,
        peer: &Peer,
        local: Option<LocalSink>,
    ) -> Result<Self, BenchError> {
        let remote = Remote::connect(network, peer, u16::MAX)
            .map_err(|error| BenchError::of_control(error, peer))?;
        Ok(Self::Sink { remote: Box::new(remote), _local: local })
    }

    /// Returns the address of the program, and our own address on the path to it.
    pub(super) const fn addresses(&self) -> [SocketAddr; 2] {
        match self {
            Self::Sink { remote, .. } => [remote.address(), remote.local_address()],
            Self::Iperf3 { address, local, .. } => [*address, *local],
        }
    }

    /// Returns the TCP implementation of a sink; `None` for iperf3.
    pub(super) const fn tcp(&self) -> Option<SinkTcp> {
        match self {
            Self::Sink { remote, .. } => Some(remote.description().tcp),
            Self::Iperf3 { .. } => None,
        }
    }

    /// Finds out which program listens at `peer`. A program that waits for more bytes of its own
    /// protocol does not answer a message of the other protocol. Therefore iperf3's protocol is
    /// tried first at iperf3's default port.
    ///
    /// # Errors
    /// The peer cannot be reached, or is neither a sink nor an iperf3 server.
    pub(super) fn find(peer: &Peer) -> Result<Self, BenchError> {
        if peer.port == iperf3::DEFAULT_PORT
            && let Ok(far) = iperf3_at(peer)
        {
            return Ok(far);
        }
        let error = match Remote::connect(&Network::Kernel, peer, u16::MAX) {
            Ok(remote) => return Ok(Self::Sink { remote: Box::new(remote), _local: None }),
            Err(error) => error,
        };
        let port = match &error {
            ControlError::Unreachable(_) if peer.port == Peer::DEFAULT_PORT => iperf3::DEFAULT_PORT,
            ControlError::NotLinerate { .. } => peer.port,
            _ => return Err(BenchError::of_control(error, peer)),
        };
        match iperf3_at(&Peer { port, ..peer.clone() }) {
            Ok(far) => Ok(far),
            Err(Iperf3Error::Unreachable(_) | Iperf3Error::NotIperf3) => {
                Err(BenchError::of_control(error, peer))
            }
            Err(error) => Err(BenchError::of_iperf3(&error, peer)),
        }
    }
}

/// Tests whether an iperf3 server listens at `peer`, by a test that transfers no data.
fn iperf3_at(peer: &Peer) -> Result<FarEnd, Iperf3Error> {
    let test = Test {
        streams: 1,
        is_reverse: false,
        write_size: WRITE_SIZE,
        time: Duration::from_secs(1),
    };
    let client = Client::start(&Network::Kernel, peer, &Options::default(), &test)?;
    let (address, local) = (client.address()?, client.local_address()?);
    client.end(&[0], Duration::ZERO)?;
    Ok(FarEnd::Iperf3 { server: peer.clone(), address, local })
}
