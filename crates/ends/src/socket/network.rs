//! Whose sockets: the kernel's, or those of a host of linerate's own on an interface.

use super::open::{self, Options};
use super::stream::Stream;
use crate::own_host::OwnHost;
use crate::peer::Peer;
use linerate_link::{OpenError, Readiness};
use linerate_sockets::{BufferSize, ConnectOptions, End, MacAddress, Net, StackConfig};
use linerate_stack::{Link, LinkError, Route};
use linerate_tcp::{Config, LARGEST_BUFFER};
use linerate_wire::Ipv4Cidr;
use rustix::rand::{GetRandomFlags, getrandom};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;
use thiserror::Error;

/// How long what was written may take to leave when a host ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// Who opens connections and listens for them.
#[derive(Clone, Debug)]
pub enum Network {
    /// The kernel of this machine.
    Kernel,
    /// A host of linerate's own.
    Own(OwnNetwork),
}

/// A host of linerate's own, and the thread that turns it.
#[derive(Clone, Debug)]
pub struct OwnNetwork {
    net: Net,
    address: Ipv4Addr,
    /// What connections keep to unless they are asked for otherwise.
    config: Box<Config>,
}

/// Why there is no host on an interface.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// The interface cannot be had.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The system gives no thread, descriptor or random number.
    #[error("a host of linerate's own cannot begin ({0}): see `linerate doctor`")]
    Begin(#[source] io::Error),
}

impl Network {
    /// Brings `host` onto its interface, with offloads where its link has them.
    ///
    /// # Errors
    /// [`NetworkError`]: what is missing, and how to get it.
    pub fn begin(host: &OwnHost) -> Result<Self, NetworkError> {
        let link = host.open(true)?;
        let mac = link.mac();
        Self::on(host, mac, link, &Config::default(), drop).map_err(NetworkError::Begin)
    }

    /// The same on a link that is there, with rules for its connections; `epilogue` gets the link
    /// at the end.
    ///
    /// # Errors
    /// The error of the system, if it grants no thread, descriptor or random number.
    pub fn on<L: Link + Readiness + Send + 'static>(
        host: &OwnHost,
        mac: Option<[u8; 6]>,
        link: L,
        config: &Config,
        epilogue: impl FnMut(L) + Send + 'static,
    ) -> io::Result<Self> {
        let net = start(host, mac, link, config, epilogue)?;
        Ok(Self::Own(OwnNetwork {
            net,
            address: host.address.address(),
            config: Box::new(*config),
        }))
    }

    /// How much of a send buffer is granted, in bytes as they are asked for.
    pub(crate) fn would_grant_send(&self, bytes: u64) -> io::Result<u64> {
        match self {
            Self::Kernel => open::would_grant_send(bytes),
            Self::Own(_) => Ok(granted(bytes) as u64),
        }
    }

    /// Ends a host of linerate's own, when what was written has left or soon after.
    pub fn end(&self) {
        if let Self::Own(own) = self {
            // A peer that takes nothing more has been waited for.
            let _ = own.net.finish(FAREWELL);
        }
    }

    /// Returns why the link of a host of linerate's own carries nothing any more; `None` if it
    /// does, or ended otherwise.
    pub fn lost_link(&self) -> Option<LinkError> {
        match self {
            Self::Own(own) => match own.net.end() {
                Some(End::Link(error)) => Some(error),
                _ => None,
            },
            Self::Kernel => None,
        }
    }

    /// A connection to `address`, if the peer takes it within `patience`.
    ///
    /// # Errors
    /// The error of the system.
    pub fn connect(
        &self,
        address: SocketAddr,
        options: &Options,
        patience: Duration,
    ) -> io::Result<Stream> {
        match self {
            Self::Kernel => Ok(Stream::Kernel(open::connect(address, options, patience)?)),
            Self::Own(own) => {
                let config = Config { give_up_syn_after: patience.into(), ..own.config(options)? };
                let options = ConnectOptions { config: Some(config), ..ConnectOptions::default() };
                Ok(Stream::Own(own.net.connect_with(address, &options)?))
            }
        }
    }

    /// A connection to the first address of `peer` that takes one; the options may depend on it.
    pub(crate) fn dial(
        &self,
        peer: &Peer,
        options: impl Fn(SocketAddr) -> Options,
        patience: Duration,
    ) -> io::Result<Stream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (peer.host.as_str(), peer.port).to_socket_addrs()? {
            match self.connect(address, &options(address), patience) {
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

    pub(crate) const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The usual rules with what `options` ask for. The largest segment is the interface's affair.
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
        Ok(config)
    }
}

/// A buffer of so many bytes, or the largest that there is.
fn buffer(bytes: u64) -> BufferSize {
    granted(bytes).into()
}

/// What a host of linerate's own grants of a buffer: all of it, as far as a window reaches.
pub(crate) fn granted(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX).min(LARGEST_BUFFER)
}

fn start<L: Link + Readiness + Send + 'static>(
    host: &OwnHost,
    mac: Option<[u8; 6]>,
    link: L,
    config: &Config,
    epilogue: impl FnMut(L) + Send + 'static,
) -> io::Result<Net> {
    let mac = MacAddress::new(mac.map_or_else(any_station, Ok)?);
    let mut stack = StackConfig { tcp: *config, ..StackConfig::new(mac, host.address) };
    stack.routes.extend(host.gateway.map(|gateway| Route::via(Ipv4Cidr::ALL, gateway)));
    Net::builder(link, stack).when_ended(epilogue).start()
}

/// A locally administered one, for one host; five random bytes tell it from others on the same
/// network.
fn any_station() -> io::Result<[u8; 6]> {
    let mut mac = [0x02; 6];
    // So few bytes are never given in part.
    getrandom(&mut mac[1..], GetRandomFlags::empty())?;
    Ok(mac)
}
