//! Attacks on a host that also serves honest neighbours, in virtual time. Each turn of the host
//! handles a limited number of frames. Tests compare the goodput of the honest neighbours during an
//! attack with their goodput without one.
//!
//! The right host of a [`Pair`] is attacked. Honest transfers run between it and the left host, in
//! both directions, over a path that is much slower than the host. The intruder has its own MAC
//! address, and is the default router of the attacked host. Its frames do not take the slow path,
//! but are put directly into the receive queue of the attacked host.

mod intruder;
mod peer;

pub use intruder::{Captured, Intruder};
pub use peer::Peer;

use crate::transfer::{established, listen};
use crate::{Fate, Line, Network, Pair, Setup, Side, Transfer, pattern};
use linerate_stack::{
    ConnectOptions, Error, Event, ListenHandle, ListenOptions, Route, StackConfig, TcpHandle,
};
use linerate_tcp::Event as TcpEvent;
use linerate_units::{Duration, Rate};
use linerate_wire::{EthernetFrame, Ipv4Packet, MacAddress, Segment, SeqNum};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;

/// Time between two turns of a host. In each turn, a host receives at most 64 frames and sends at
/// most 64.
pub const TURN: Duration = Duration::from_millis(1);

/// Maximum number of frames that the intruder sends in a turn: half of the frames that the host can
/// receive in a turn.
pub const FRAMES_A_TURN: usize = 32;

/// Address of the intruder.
pub(crate) const INTRUDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 66);
pub(crate) const INTRUDER_MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 66]);
const SERVICE: u16 = 10;

/// Number of bytes to send in each honest transfer. It is so large that no transfer completes
/// during a test.
const ENDLESS: usize = usize::MAX / 2;

/// The attacked host, its honest neighbour, and the intruder.
pub struct AttackTest {
    /// The two hosts: the left one is honest, the right one is attacked.
    pub pair: Pair,
    /// The attacker.
    pub intruder: Intruder,
    /// The most recent acknowledgement number on each honest connection, recorded from the segments
    /// of the attacked host.
    pub overheard: Overheard,
    honest: Vec<Transfer>,
    service: ListenHandle,
    guests: Vec<Guest>,
    /// Whether the applications of the attacked host read from the connections to its service. If a
    /// test sets it to false, the receive buffers of these connections fill.
    pub guests_read: bool,
}

/// A connection to the service of the attacked host. The application of the host writes the test
/// pattern without end, and stores all bytes that it reads.
#[derive(Debug)]
pub struct Guest {
    /// Handle of the connection.
    pub handle: TcpHandle,
    written: usize,
    /// Whether the application may write. This is so if the connection accepted all bytes of the
    /// most recent write, or has reported since then that it is writable.
    may_write: bool,
    /// The bytes that the application has read.
    pub received: Vec<u8>,
}

/// The most recent acknowledgement number that the attacked host has sent on each honest
/// connection. Tests use these numbers to simulate an attacker who observes the path.
#[derive(Clone, Debug, Default)]
pub struct Overheard {
    by_port: Rc<RefCell<BTreeMap<u16, SeqNum>>>,
}

impl Overheard {
    /// Returns the most recent acknowledgement number that the attacked host has sent to this port
    /// of its honest neighbour; `None` before the first acknowledgement.
    #[must_use]
    pub fn last_ack(&self, port: u16) -> Option<SeqNum> {
        self.by_port.borrow().get(&port).copied()
    }

    fn note(&self, packet: &[u8]) {
        let Ok(packet) = Ipv4Packet::parse(packet) else { return };
        if let Ok(segment) = Segment::parse(packet.payload) {
            self.by_port.borrow_mut().insert(segment.destination_port, segment.ack);
        }
    }
}

impl AttackTest {
    /// Creates the hosts, with two honest transfers in progress in each direction. `configure`
    /// changes the configuration of the attacked host.
    ///
    /// # Panics
    /// If a host refuses a request that it must grant.
    #[must_use]
    pub fn new(seed: u64, configure: impl Fn(&mut StackConfig)) -> Self {
        // At 100 Mbit/s, eight full-sized frames arrive between two turns. A turn can receive 64
        // frames, so the path and not the host limits the honest transfers.
        let line = Line { rate: Rate::from_bits_per_second(100_000_000), queue: 128 << 10 };
        let network = Network { line: Some(line), ..Network::clean(Duration::from_micros(500)) };
        let mut pair =
            Pair::new(&Setup { seed, network, pause: TURN, ..Setup::default() }, |side, config| {
                config.tcp.send_buffer = (64 << 10).into();
                config.tcp.receive_buffer = (64 << 10).into();
                if side == Side::Right {
                    config.routes.push(Route::default_via(INTRUDER.into()));
                    configure(config);
                }
            });
        let (inbox, overheard) = (Rc::new(RefCell::new(VecDeque::new())), Overheard::default());
        let (mailbox, listener) = (Rc::clone(&inbox), overheard.clone());
        pair.set_filter(move |_, side, frame| {
            let parsed = EthernetFrame::parse(frame).ok().filter(|_| side == Side::Right)?;
            if parsed.header.destination != INTRUDER_MAC {
                listener.note(parsed.payload);
                return None;
            }
            mailbox.borrow_mut().push_back(frame.to_vec());
            // The frame is for the intruder and has been put into its inbox, so it must not reach
            // the other host. Its fate is that of a lost frame, which also takes no capacity of the
            // path between the two hosts.
            Some(Fate::Lose)
        });
        let door = listen(&mut pair);
        let service = SocketAddrV4::new(Side::Right.address(), SERVICE);
        let Ok(service) = pair.stack(Side::Right).tcp_listen(service, &ListenOptions::default())
        else {
            panic!("the port is free")
        };
        let honest = (0..4).map(|index| {
            let (left, right) = established(&mut pair, door);
            let (left, right) = ((Side::Left, left), (Side::Right, right));
            if index % 2 == 0 {
                Transfer::new(left, right, ENDLESS)
            } else {
                Transfer::new(right, left, ENDLESS)
            }
        });
        let honest = honest.collect();
        let intruder = Intruder::new(seed, inbox);
        let guests = Vec::new();
        let mut test =
            Self { pair, intruder, overheard, honest, service, guests, guests_read: true };
        test.intruder.announce();
        test.run(TURN * 200, |_, _| {});
        test
    }

    /// Runs the hosts for the time `span`. In each turn, `attack` gets the segments that the
    /// intruder has captured, and may send frames. Frames beyond [`FRAMES_A_TURN`] are dropped.
    /// Returns the number of bytes that the honest transfers have delivered in this time.
    ///
    /// # Panics
    /// If an honest byte is wrong, or an honest connection ends.
    pub fn run(
        &mut self,
        span: Duration,
        mut attack: impl FnMut(&mut Intruder, &[Captured]),
    ) -> usize {
        let before = self.moved();
        for _ in 0..span.as_nanos() / TURN.as_nanos() {
            let (honest, service, guests) = (&mut self.honest, self.service, &mut self.guests);
            let reads = self.guests_read;
            self.pair.run_until(TURN, |pair| {
                honest.iter_mut().for_each(|transfer| _ = transfer.advance(pair));
                let accepted = std::iter::from_fn(|| pair.stack(Side::Right).tcp_accept(service));
                guests.extend(accepted.map(|(handle, _)| Guest {
                    handle,
                    written: 0,
                    may_write: true,
                    received: Vec::new(),
                }));
                guests.iter_mut().for_each(|guest| guest.serve(pair, reads));
                while let Some(event) = pair.stack(Side::Right).poll_event() {
                    let is_writable =
                        |guest: &&mut Guest| event == Event::Tcp(guest.handle, TcpEvent::Writable);
                    guests.iter_mut().filter(is_writable).for_each(|guest| guest.may_write = true);
                }
                while pair.stack(Side::Left).poll_event().is_some() {}
                false
            });
            let captured = self.intruder.take_captured();
            attack(&mut self.intruder, &captured);
            let now = self.pair.now;
            for frame in self.intruder.frames().take(FRAMES_A_TURN) {
                self.pair.host(Side::Right).link_mut().put(now, frame);
            }
        }
        self.moved() - before
    }

    /// Opens a connection from the intruder to the service by a regular handshake. The SYN of the
    /// intruder announces an MSS of 1,000 bytes, SACK, and the window scale `shift`, and has the
    /// largest possible window field. The acknowledgement of the SYN-ACK has the window field
    /// `window`.
    ///
    /// # Panics
    /// If the handshake does not complete.
    pub fn connect_intruder(&mut self, shift: u8, window: u16) -> Peer {
        let before = self.guests.len();
        let port = 20_000 + u16::try_from(before).unwrap_or(0);
        let mut peer = Peer::new(SocketAddrV4::new(INTRUDER, port), self.service_address());
        self.run(TURN * 4, |intruder, captured| peer.open(intruder, captured, shift, window));
        assert_eq!(self.guests.len(), before + 1, "the handshake of the intruder did not complete");
        peer
    }

    /// Begins to open a connection from the honest neighbour to the service. The handshake takes
    /// place when the hosts run.
    ///
    /// # Panics
    /// If the request is refused.
    pub fn connect_honest(&mut self) {
        let (now, service) = (self.pair.now, self.service_address());
        let asked =
            self.pair.stack(Side::Left).tcp_connect(now, service, &ConnectOptions::default());
        assert!(asked.is_ok(), "the connection is refused: {asked:?}");
    }

    /// Returns, for each honest transfer, the handle of its connection at the host `side`.
    #[must_use]
    pub fn honest(&self, side: Side) -> Vec<TcpHandle> {
        self.honest.iter().map(|transfer| transfer.end(side)).collect()
    }

    /// Returns the address and port of the service.
    #[must_use]
    pub const fn service_address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Side::Right.address(), SERVICE)
    }

    /// Returns the connections to the service, including the intruder's connections.
    #[must_use]
    pub fn guests(&self) -> &[Guest] {
        &self.guests
    }

    fn moved(&self) -> usize {
        self.honest.iter().map(Transfer::read).sum()
    }
}

impl Guest {
    fn serve(&mut self, pair: &mut Pair, reads: bool) {
        let (now, stack) = (pair.now, pair.stack(Side::Right));
        let room = stack.tcp(self.handle).map_or(0, |end| end.writable_bytes());
        if self.may_write && room > 0 {
            let chunk: Vec<_> = (self.written..self.written + room).map(pattern).collect();
            let taken = stack.tcp_write(now, self.handle, &chunk).unwrap_or(0);
            self.written += taken;
            self.may_write = taken == room;
        }
        if reads {
            self.read(pair);
        }
    }

    fn read(&mut self, pair: &mut Pair) {
        let mut into = [0; 4_096];
        loop {
            let now = pair.now;
            match pair.stack(Side::Right).tcp_read(now, self.handle, &mut into) {
                Ok(0) | Err(Error::WouldBlock | Error::Tcp(_)) => break,
                Ok(count) => self.received.extend_from_slice(&into[..count]),
                Err(error) => panic!("a guest's connection is gone: {error}"),
            }
        }
    }
}

impl fmt::Debug for AttackTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttackTest")
            .field("pair", &self.pair)
            .field("guests", &self.guests)
            .finish_non_exhaustive()
    }
}
