//! The program at the receiving end of a diagnosed path.

use super::local_sink::LocalSink;
use crate::bench_error::BenchError;
use linerate_ends::Peer;
use linerate_ends::control::{ControlError, Remote, SinkTcp};
use linerate_ends::iperf3::{self, Client, Iperf3Error, Test};
use linerate_ends::socket::{Network, Options};
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes of a write that an iperf3 server is told.
pub(super) const WRITE_SIZE: usize = 128 << 10;

/// The program at the other end.
#[derive(Debug)]
pub(super) enum FarEnd {
    /// A `linerate sink`, which observes its end.
    Sink {
        /// The control connection. It is closed before the sink ends.
        remote: Box<Remote>,
        /// The sink, if it is in this process.
        _local: Option<LocalSink>,
    },
    /// An iperf3 server, which only counts bytes.
    Iperf3 {
        /// The server, with the port at which it was found.
        server: Peer,
        address: SocketAddr,
        local: SocketAddr,
    },
}

impl FarEnd {
    /// Connects to the sink at `peer` through `network`. Its packets have the size of the link.
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

    /// Returns the address of the program, and ours on the path to it.
    pub(super) const fn addresses(&self) -> [SocketAddr; 2] {
        match self {
            Self::Sink { remote, .. } => [remote.address(), remote.local_address()],
            Self::Iperf3 { address, local, .. } => [*address, *local],
        }
    }

    /// Returns the TCP of a sink.
    pub(super) const fn tcp(&self) -> Option<SinkTcp> {
        match self {
            Self::Sink { remote, .. } => Some(remote.description().tcp),
            Self::Iperf3 { .. } => None,
        }
    }

    /// Finds out which program listens at `peer`. A program that waits for more bytes of the other
    /// protocol answers neither, so the default port of iperf3 is asked in its protocol first.
    ///
    /// # Errors
    /// The peer cannot be reached or is neither of both.
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

/// Checks with a test without data that an iperf3 server listens at `peer`.
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
