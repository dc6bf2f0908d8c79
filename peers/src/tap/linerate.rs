//! linerate as shipped, on a link that has the kernel's TCP at its far end.

use super::ends::sentence;
use super::{Device, Hands, OnTap, take_up};
use crate::linerate::rules;
use crate::pattern::Pattern;
use crate::work::{BATCH, PIECE};
use linerate_link::namespace::Network;
use linerate_link::{MonotonicClock, Readiness, Tap, TapConfig};
use linerate_stack::{Budget, ConnectOptions, Error, Host, Link, Stack, StackConfig, TcpHandle};
use linerate_units::Clock;
use linerate_wire::MacAddress;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::BorrowedFd;

/// linerate's host on a link to the kernel, with one connection at a time.
pub struct Linerate<L> {
    host: Host<L>,
    hands: Hands,
    /// Network namespace of the device's far end; `None` if it is the namespace of this process.
    network: Option<Network>,
    /// Address of the kernel's end.
    kernel: Ipv4Addr,
    /// The open connection; `None` between two runs.
    connection: Option<TcpHandle>,
}

/// A link of linerate that has the kernel's TCP at its far end.
pub trait ToKernel: Link + Readiness + Sized {
    /// Opens the link. Returns the link, linerate's MAC address, and the network namespace of the
    /// far end. The namespace is `None` if it is that of this process.
    ///
    /// # Errors
    /// A message that says which step this machine does not permit.
    fn open(device: Device) -> Result<(Self, [u8; 6], Option<Network>), String>;
}

impl ToKernel for Tap {
    fn open(device: Device) -> Result<(Self, [u8; 6], Option<Network>), String> {
        let offloads = device == Device::Offloads;
        let tap = Self::open(&TapConfig { offloads, ..TapConfig::default() }).map_err(sentence)?;
        take_up(tap.interface(), device)?;
        Ok((tap, [2, 0, 0, 0, 0, 2], None))
    }
}

impl<L> Linerate<L> {
    fn connection(&self) -> Result<TcpHandle, String> {
        self.connection.ok_or_else(|| "there is no connection".to_owned())
    }
}

impl<L: ToKernel> OnTap for Linerate<L> {
    fn version() -> String {
        "this tree; as shipped: timestamps, selective acknowledgements, CUBIC".to_owned()
    }

    fn new(device: Device, hands: Hands) -> Result<Self, String> {
        let (link, mac, network) = L::open(device)?;
        let [kernel, own] = device.addresses();
        let mut config =
            StackConfig::new(MacAddress::new(mac), format!("{own}/24").parse().map_err(sentence)?);
        config.tcp = rules();
        let budget = Budget { receive: BATCH, transmit: BATCH, ..Budget::default() };
        let host = Host::new(Stack::new(config, [2; 32]), link).with_budget(budget);
        Ok(Self { host, hands, network, kernel, connection: None })
    }

    fn listen(&self, address: SocketAddrV4) -> Result<TcpListener, String> {
        match &self.network {
            None => TcpListener::bind(address),
            Some(network) => network.run(move || TcpListener::bind(address)),
        }
        .map_err(sentence)
    }

    fn link(&self) -> BorrowedFd<'_> {
        self.host.link().fd()
    }

    fn connect(&mut self, port: u16) -> Result<(), String> {
        let remote = SocketAddrV4::new(self.kernel, port);
        let options = ConnectOptions { config: Some(rules()), ..ConnectOptions::default() };
        let connected = self.host.stack_mut().tcp_connect(MonotonicClock.now(), remote, &options);
        self.connection = Some(connected.map_err(sentence)?);
        Ok(())
    }

    fn is_open(&mut self) -> bool {
        let connection = self.connection.and_then(|handle| self.host.stack().tcp(handle));
        connection.is_some_and(|connection| connection.state() == linerate_tcp::State::Established)
    }

    fn turn(&mut self) -> Result<(), String> {
        self.host.turn(MonotonicClock.now()).map_err(sentence)?;
        while self.host.stack_mut().poll_event().is_some() {}
        Ok(())
    }

    fn write(
        &mut self,
        pattern: &Pattern,
        place: u64,
        left: u64,
        verify: bool,
    ) -> Result<usize, String> {
        let (handle, now, piece) =
            (self.connection()?, MonotonicClock.now(), pattern.at(place, left));
        let stack = self.host.stack_mut();
        match self.hands {
            Hands::Copy => stack.tcp_write(now, handle, piece),
            Hands::InPlace => stack.tcp_write_with(now, handle, piece.len(), |room| {
                if verify {
                    room.copy_from_slice(&piece[..room.len()]);
                }
                room.len()
            }),
            Hands::Share => {
                stack.tcp_write_shared(now, handle, &mut pattern.shared_at(place, left))
            }
        }
        .map_err(sentence)
    }

    fn read(&mut self, into: &mut [u8], verify: bool) -> Result<usize, String> {
        let (handle, now) = (self.connection()?, MonotonicClock.now());
        let stack = self.host.stack_mut();
        let mut take = |bytes: &[u8]| {
            let count = bytes.len().min(into.len());
            if verify {
                into[..count].copy_from_slice(&bytes[..count]);
            }
            count
        };
        let taken = match self.hands {
            Hands::Copy => stack.tcp_read(now, handle, into),
            Hands::InPlace => stack.tcp_read_with(now, handle, take),
            Hands::Share => stack.tcp_read_shared(now, handle, PIECE).map(|bytes| take(&bytes)),
        };
        match taken {
            Ok(count) => Ok(count),
            Err(Error::WouldBlock) => Ok(0),
            Err(error) => Err(sentence(error)),
        }
    }

    fn close(&mut self) -> Result<(), String> {
        let handle = self.connection()?;
        self.host.stack_mut().tcp_shutdown_write(MonotonicClock.now(), handle).map_err(sentence)
    }

    fn drop_connection(&mut self) {
        if let Some(handle) = self.connection.take() {
            // A connection that has already closed cannot be aborted, so the error is ignored.
            let _ = self.host.stack_mut().tcp_abort(MonotonicClock.now(), handle);
        }
    }

    fn frames(&self) -> [u64; 2] {
        let counted = self.host.stack().counters();
        [counted.transmit.packets, counted.receive.packets]
    }
}
