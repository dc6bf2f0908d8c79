//! The program at the receiving end of a path: a linerate sink or an iperf3 server.

use super::local_sink::LocalSink;
use crate::bench_error::BenchError;
use linerate_ends::Peer;
use linerate_ends::control::{ControlError, Remote, SinkTcp};
use linerate_ends::iperf3::{self, Client, Iperf3Error, Test};
use linerate_ends::socket::{Network, Options};
use std::net::SocketAddr;
use std::time::Duration;

/// Size of each `write` call in bytes. The client of an iperf3 test announces this size to the
/// server.
pub(super) const WRITE_SIZE: usize = 128 << 10;

/// The program at the receiving end of a path.
#[derive(Debug)]
pub(super) enum FarEnd {
    /// A `linerate sink`, which also reports measurements of the receiving end.
    Sink {
        /// The control connection to the sink. Fields are dropped in the order of their
        /// declaration, so this connection is closed before a sink in this process ends.
        remote: Box<Remote>,
        /// The sink, if it runs in this process.
        _local: Option<LocalSink>,
    },
    /// An iperf3 server, which reports only the number of bytes.
    Iperf3 {
        /// Name and port of the server. If the user gave the default port of a sink, the server may
        /// have been found at the default port of iperf3.
        server: Peer,
        /// Address to which the test connection was opened.
        address: SocketAddr,
        /// Our own address on the test connection.
        local: SocketAddr,
    },
}

impl FarEnd {
    /// Connects to the sink at `peer` through `network`. `local` is the sink, if it runs in this
    /// process. The size of packets is limited only by the link.
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

    /// Returns the address of the receiving program, and our own address on the path to it.
    pub(super) const fn addresses(&self) -> [SocketAddr; 2] {
        match self {
            Self::Sink { remote, .. } => [remote.address(), remote.local_address()],
            Self::Iperf3 { address, local, .. } => [*address, *local],
        }
    }

    /// Returns the TCP implementation of a linerate sink; `None` for an iperf3 server.
    pub(super) const fn tcp(&self) -> Option<SinkTcp> {
        match self {
            Self::Sink { remote, .. } => Some(remote.description().tcp),
            Self::Iperf3 { .. } => None,
        }
    }

    /// Connects to the program at `peer`, and determines whether it is a linerate sink or an iperf3
    /// server. If no program listens at the default port of a sink, the default port of iperf3 is
    /// tried.
    ///
    /// A sink does not answer a message of iperf3's protocol, and an iperf3 server does not answer
    /// a message of linerate's protocol, because both wait for more bytes. Each wrong attempt
    /// therefore costs a timeout. To avoid it, iperf3's protocol is tried first at iperf3's default
    /// port.
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

/// Connects to the iperf3 server at `peer`, by a test that transfers no data.
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
