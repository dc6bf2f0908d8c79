//! linerate on its own TAP link, as shipped.

use super::ends::sentence;
use super::{Device, OnTap, take_up};
use crate::linerate::rules;
use crate::work::BATCH;
use linerate_link::{MonotonicClock, Readiness, Tap, TapConfig};
use linerate_stack::{Budget, ConnectOptions, Error, Host, Stack, StackConfig, TcpHandle};
use linerate_units::Clock;
use linerate_wire::MacAddress;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::BorrowedFd;

pub struct Linerate {
    host: Host<Tap>,
    kernel: Ipv4Addr,
    connection: Option<TcpHandle>,
}

impl Linerate {
    fn connection(&self) -> Result<TcpHandle, String> {
        self.connection.ok_or_else(|| "there is no connection".to_owned())
    }
}

impl OnTap for Linerate {
    fn version() -> String {
        "this tree; as shipped: timestamps, selective acknowledgements, CUBIC".to_owned()
    }

    fn new(device: Device) -> Result<Self, String> {
        let offloads = device == Device::Offloads;
        let tap = Tap::open(&TapConfig { offloads, ..TapConfig::default() }).map_err(sentence)?;
        take_up(tap.interface(), device)?;
        let [kernel, own] = device.addresses();
        let mac = MacAddress::new([2, 0, 0, 0, 0, 2]);
        let mut config = StackConfig::new(mac, format!("{own}/24").parse().map_err(sentence)?);
        config.tcp = rules();
        let budget = Budget { receive: BATCH, transmit: BATCH, ..Budget::default() };
        let host = Host::new(Stack::new(config, [2; 32]), tap).with_budget(budget);
        Ok(Self { host, kernel, connection: None })
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

    fn write(&mut self, piece: &[u8]) -> Result<usize, String> {
        let handle = self.connection()?;
        self.host.stack_mut().tcp_write(MonotonicClock.now(), handle, piece).map_err(sentence)
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, String> {
        let handle = self.connection()?;
        match self.host.stack_mut().tcp_read(MonotonicClock.now(), handle, into) {
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
            // It may have ended by itself.
            let _ = self.host.stack_mut().tcp_abort(MonotonicClock.now(), handle);
        }
    }

    fn frames(&self) -> [u64; 2] {
        let counted = self.host.stack().counters();
        [counted.transmit.packets, counted.receive.packets]
    }
}
