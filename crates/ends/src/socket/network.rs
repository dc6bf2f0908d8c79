//! The TCP implementation that opens sockets: that of the kernel, or that of a linerate host on an
//! interface.

use super::host_threads::HostThreads;
use super::open::{self, Options};
use super::stream::Stream;
use crate::own_host::{Location, OwnHost};
use crate::peer::Peer;
use linerate_link::{OpenError, Readiness, random_bytes};
use linerate_sockets::{BufferSize, ConnectOptions, End, MacAddress, Net, StackConfig};
use linerate_stack::{Link, LinkError, Route};
use linerate_tcp::{Config, LARGEST_BUFFER};
use linerate_units::Rate;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use thiserror::Error;

/// Maximum time that a linerate host waits, before it ends, until closed sockets have sent their
/// remaining data.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A TCP implementation that opens sockets.
#[derive(Clone, Debug)]
pub enum Network {
    /// The TCP of this machine's kernel.
    Kernel,
    /// The TCP of a linerate host on an interface.
    Own(OwnNetwork),
}

/// A running linerate host, with the name of the threads that drive it.
#[derive(Clone, Debug)]
pub struct OwnNetwork {
    net: Net,
    threads: HostThreads,
    /// The address of the host.
    address: IpAddr,
    /// The default configuration of connections. The options of a socket replace some of its
    /// values.
    config: Box<Config>,
}

/// The reason why a linerate host cannot start.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// The interface cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The system provides no thread, descriptor or random number.
    #[error("linerate's host cannot start ({0}): see `linerate doctor`")]
    Begin(#[source] io::Error),
}

impl Network {
    /// Starts `host` on its interface, with offloads if its link supports them.
    ///
    /// # Errors
    /// [`NetworkError`], which names the missing permission or device and the remedy.
    pub fn begin(host: &OwnHost) -> Result<Self, NetworkError> {
        let link = host.open(true)?;
        let mac = link.mac();
        Self::on(host.location(), mac, link, &Config::default(), drop).map_err(NetworkError::Begin)
    }

    /// Starts a linerate host on a link that is already open. All connections have the
    /// configuration `config`, in which the options of a socket replace some values. When the host
    /// ends, `on_end` is called with the link. If `mac` is `None`, the host has a random MAC
    /// address.
    ///
    /// # Errors
    /// The error of the system if it provides no thread, descriptor or random number.
    pub fn on<L: Link + Readiness + Send + 'static>(
        location: Location,
        mac: Option<[u8; 6]>,
        link: L,
        config: &Config,
        on_end: impl FnMut(L) + Send + 'static,
    ) -> io::Result<Self> {
        let mut config = *config;
        if location.compresses_headers {
            // RFC 1144 does not compress the header of a segment whose timestamps have changed.
            // Timestamps are therefore switched off on a link that compresses headers.
            config.timestamps = false;
        }
        let threads = HostThreads::unique();
        let net = start(location, mac, link, &config, &threads, on_end)?;
        Ok(Self::Own(OwnNetwork {
            net,
            threads,
            address: location.address.address(),
            config: Box::new(config),
        }))
    }

    /// Returns the send buffer that would be granted for a request of `bytes` bytes, without the
    /// kernel's overhead.
    pub(crate) fn would_grant_send(&self, bytes: u64) -> io::Result<u64> {
        match self {
            Self::Kernel => open::would_grant_send(bytes),
            Self::Own(_) => Ok(granted(bytes) as u64),
        }
    }

    /// Ends a linerate host. Before that, waits until its closed sockets have sent all their data,
    /// but for at most `CLOSE_TIMEOUT`. Connections that are still open are reset. Does nothing if
    /// the network is the kernel's.
    pub fn end(&self) {
        if let Self::Own(own) = self {
            // The wait times out if a peer does not acknowledge the data. The result is ignored,
            // because the host ends in any case.
            let _ = own.net.finish(CLOSE_TIMEOUT);
        }
    }

    /// Returns the error of the link that made a linerate host end. Returns `None` if the host
    /// runs, or if it ended for another reason.
    pub fn lost_link(&self) -> Option<LinkError> {
        match self {
            Self::Own(own) => match own.net.end() {
                Some(End::Link(error)) => Some(error),
                _ => None,
            },
            Self::Kernel => None,
        }
    }

    /// Opens a connection to `address`, or fails after `timeout`.
    ///
    /// # Errors
    /// The error of the system.
    pub fn connect(
        &self,
        address: SocketAddr,
        options: &Options,
        timeout: Duration,
    ) -> io::Result<Stream> {
        match self {
            Self::Kernel => Ok(Stream::Kernel(open::connect(address, options, timeout)?)),
            Self::Own(own) => {
                let config = Config { give_up_syn_after: timeout.into(), ..own.config(options)? };
                let options = ConnectOptions { config: Some(config), ..ConnectOptions::default() };
                let stream = own.net.connect_with(address, &options)?;
                Ok(Stream::Own(stream, own.threads.clone()))
            }
        }
    }

    /// Opens a connection to `peer`. Tries its addresses in turn, each for at most `timeout`, until
    /// one accepts the connection. `options` returns the socket options for an address. If all
    /// addresses fail, returns the error of the address that was tried last.
    pub(crate) fn dial(
        &self,
        peer: &Peer,
        options: impl Fn(SocketAddr) -> Options,
        timeout: Duration,
    ) -> io::Result<Stream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let addresses = match self {
            Self::Kernel => peer.addresses()?,
            Self::Own(_) => peer.addresses_without_zone()?,
        };
        for address in addresses {
            match self.connect(address, &options(address), timeout) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl OwnNetwork {
    pub(crate) const fn net(&self) -> &Net {
        &self.net
    }

    pub(crate) fn threads(&self) -> HostThreads {
        self.threads.clone()
    }

    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the configuration of a connection with `options`.
    pub(crate) fn config(&self, options: &Options) -> io::Result<Config> {
        let mut config = *self.config;
        if let Some(bytes) = options.send_buffer {
            config.send_buffer = buffer(bytes);
        }
        if let Some(bytes) = options.receive_buffer {
            config.receive_buffer = buffer(bytes);
        }
        if let Some(name) = &options.congestion {
            config.congestion =
                name.parse().map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?;
        }
        config.no_delay = options.no_delay;
        config.largest_segment = options.max_segment.or(config.largest_segment);
        config.max_pacing_rate = options.max_pacing_rate.map(Rate::from_bytes_per_second);
        Ok(config)
    }
}

/// Returns a fixed buffer size of `bytes`, or of the largest size that linerate's TCP supports.
fn buffer(bytes: u64) -> BufferSize {
    granted(bytes).into()
}

/// Returns the buffer size in bytes that a linerate host grants for a request of `bytes`. It is the
/// requested size, but at most the largest size that linerate's TCP supports.
pub(crate) fn granted(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX).min(LARGEST_BUFFER)
}

/// Starts the threads of a linerate host at `location` on `link`.
fn start<L: Link + Readiness + Send + 'static>(
    location: Location,
    mac: Option<[u8; 6]>,
    link: L,
    config: &Config,
    threads: &HostThreads,
    on_end: impl FnMut(L) + Send + 'static,
) -> io::Result<Net> {
    let mac = MacAddress::new(mac.map_or_else(random_mac, Ok)?);
    let mut stack = StackConfig {
        tcp: *config,
        count_packets: location.compresses_headers,
        ..StackConfig::new(mac, location.address)
    };
    stack.routes.extend(location.gateway.map(Route::default_via));
    Net::builder(link, stack).name(threads.name()).when_ended(on_end).start()
}

/// Returns a locally administered MAC address with five random bytes, so two hosts of a network are
/// unlikely to get the same address.
fn random_mac() -> io::Result<[u8; 6]> {
    let mut mac = random_bytes()?;
    mac[0] = 0x02;
    Ok(mac)
}
