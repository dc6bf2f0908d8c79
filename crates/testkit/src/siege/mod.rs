//! A host that honest neighbours and an intruder want something from at once: what the honest ones get
//! while the intruder does what it likes, in virtual time and with a budget of work.
//!
//! The host under siege is the right one. Honest transfers go between it and the left one, in both
//! directions, over a line that is a good deal slower than the host. The intruder is a station of its
//! own, and the router to everywhere else. It puts its frames directly in front of the host, so nothing
//! that the intruder sends is held up or lost.

mod intruder;
mod peer;

pub use intruder::{Heard, Intruder};
pub use peer::Peer;

use crate::transfer::{established, listen};
use crate::{Fate, Line, Network, Pair, Setup, Side, Transfer, pattern};
use linerate_stack::{
    ConnectOptions, Error, Event, ListenHandle, ListenOptions, Route, StackConfig, TcpHandle,
};
use linerate_tcp::Event as TcpEvent;
use linerate_units::{Duration, Rate};
use linerate_wire::{EthernetFrame, Ipv4Cidr, Ipv4Packet, MacAddress, Segment, SeqNum};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;

/// From turn to turn of each host. A turn takes in 64 frames and sends 64.
pub const TURN: Duration = Duration::from_millis(1);

/// Frames that the intruder may send in a turn: half of what the host can take in.
pub const FRAMES_A_TURN: usize = 32;

/// Where the intruder is, and the port at which the host serves whoever comes.
pub(crate) const INTRUDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 66);
pub(crate) const INTRUDER_MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 66]);
const SERVICE: u16 = 10;

/// More than any siege lets through.
const ENDLESS: usize = usize::MAX / 2;

/// The host under siege, its honest neighbour, and the intruder.
pub struct Siege {
    /// The left host is honest, the right one under siege.
    pub pair: Pair,
    /// Who does what it likes.
    pub intruder: Intruder,
    /// What the host tells its honest neighbour.
    pub overheard: Overheard,
    honest: Vec<Transfer>,
    service: ListenHandle,
    guests: Vec<Guest>,
    /// Do the applications that serve guests read?
    pub guests_are_heard: bool,
}

/// A connection that an application of the host serves: it writes the pattern for ever, and keeps what
/// it reads.
#[derive(Debug)]
pub struct Guest {
    /// The connection.
    pub handle: TcpHandle,
    written: usize,
    /// There was room for all that it wrote last, or there is some again.
    may_write: bool,
    /// What the guest has said.
    pub said: Vec<u8>,
}

/// What somebody learns who sees the line of the honest: the last acknowledgement of each connection.
#[derive(Clone, Debug, Default)]
pub struct Overheard {
    by_port: Rc<RefCell<BTreeMap<u16, SeqNum>>>,
}

impl Overheard {
    /// The next number that the host expects of the honest neighbour's port.
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

impl Siege {
    /// Honest transfers under way, two in each direction, and nothing else yet. `configure` changes
    /// the host under siege.
    ///
    /// # Panics
    /// If a host refuses what it must grant.
    #[must_use]
    pub fn new(seed: u64, configure: impl Fn(&mut StackConfig)) -> Self {
        // Eight full frames a turn: an eighth of what the host can take in.
        let line = Line { rate: Rate::from_bits_per_second(100_000_000), queue: 128 << 10 };
        let network = Network { line: Some(line), ..Network::clean(Duration::from_micros(500)) };
        let mut pair =
            Pair::new(&Setup { seed, network, pause: TURN, ..Setup::default() }, |side, config| {
                config.tcp.send_buffer = (64 << 10).into();
                config.tcp.receive_buffer = (64 << 10).into();
                if side == Side::Right {
                    let Some(everywhere) = Ipv4Cidr::new(Ipv4Addr::UNSPECIFIED, 0) else { return };
                    config.routes.push(Route::via(everywhere, INTRUDER));
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
            // The honest line carries nothing of it.
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
        let mut siege =
            Self { pair, intruder, overheard, honest, service, guests, guests_are_heard: true };
        siege.intruder.introduce();
        siege.run(TURN * 200, |_, _| {});
        siege
    }

    /// Lets `span` go by. In each turn `attack` is shown what the intruder has heard, and may send up to
    /// [`FRAMES_A_TURN`] frames; more are thrown away. Returns how many bytes the honest transfers have
    /// moved.
    ///
    /// # Panics
    /// If an honest byte is wrong, or an honest connection ends.
    pub fn run(
        &mut self,
        span: Duration,
        mut attack: impl FnMut(&mut Intruder, &[Heard]),
    ) -> usize {
        let before = self.moved();
        for _ in 0..span.as_nanos() / TURN.as_nanos() {
            let (honest, service, guests) = (&mut self.honest, self.service, &mut self.guests);
            let heard = self.guests_are_heard;
            self.pair.run_until(TURN, |pair| {
                honest.iter_mut().for_each(|transfer| _ = transfer.advance(pair));
                let accepted = std::iter::from_fn(|| pair.stack(Side::Right).tcp_accept(service));
                guests.extend(accepted.map(|(handle, _)| Guest {
                    handle,
                    written: 0,
                    may_write: true,
                    said: Vec::new(),
                }));
                guests.iter_mut().for_each(|guest| guest.serve(pair, heard));
                while let Some(event) = pair.stack(Side::Right).poll_event() {
                    let told =
                        |guest: &&mut Guest| event == Event::Tcp(guest.handle, TcpEvent::Writable);
                    guests.iter_mut().filter(told).for_each(|guest| guest.may_write = true);
                }
                while pair.stack(Side::Left).poll_event().is_some() {}
                false
            });
            let heard = self.intruder.listen();
            attack(&mut self.intruder, &heard);
            let now = self.pair.now;
            for frame in self.intruder.frames().take(FRAMES_A_TURN) {
                self.pair.host(Side::Right).link_mut().put(now, frame);
            }
        }
        self.moved() - before
    }

    /// The intruder opens a connection to the service as everybody does, with segments of 1,000 bytes,
    /// selective acknowledgements, windows in units of `1 << shift`; after that of the SYN, which is as large
    /// as can be, the first is `window`.
    ///
    /// # Panics
    /// If it is not let in.
    pub fn let_in(&mut self, shift: u8, window: u16) -> Peer {
        let before = self.guests.len();
        let port = 20_000 + u16::try_from(before).unwrap_or(0);
        let mut peer = Peer::new(SocketAddrV4::new(INTRUDER, port), self.service_address());
        self.run(TURN * 4, |intruder, heard| peer.open(intruder, heard, shift, window));
        assert_eq!(self.guests.len(), before + 1, "the intruder was not let in");
        peer
    }

    /// The honest neighbour opens a connection to the service, too.
    ///
    /// # Panics
    /// If it cannot even try.
    pub fn knock(&mut self) {
        let (now, service) = (self.pair.now, self.service_address());
        let asked =
            self.pair.stack(Side::Left).tcp_connect(now, service, &ConnectOptions::default());
        assert!(asked.is_ok(), "there is no way to the service");
    }

    /// The honest connections, by their ends at a host.
    #[must_use]
    pub fn honest(&self, side: Side) -> Vec<TcpHandle> {
        self.honest.iter().map(|transfer| transfer.end(side)).collect()
    }

    /// Where the host serves whoever comes.
    #[must_use]
    pub const fn service_address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Side::Right.address(), SERVICE)
    }

    /// The guests that were let in.
    #[must_use]
    pub fn guests(&self) -> &[Guest] {
        &self.guests
    }

    fn moved(&self) -> usize {
        self.honest.iter().map(Transfer::read).sum()
    }
}

impl Guest {
    fn serve(&mut self, pair: &mut Pair, hears: bool) {
        let (now, stack) = (pair.now, pair.stack(Side::Right));
        let room = stack.tcp(self.handle).map_or(0, |end| end.writable_bytes());
        if self.may_write && room > 0 {
            let chunk: Vec<_> = (self.written..self.written + room).map(pattern).collect();
            let taken = stack.tcp_write(now, self.handle, &chunk).unwrap_or(0);
            self.written += taken;
            self.may_write = taken == room;
        }
        if hears {
            self.hear(pair);
        }
    }

    fn hear(&mut self, pair: &mut Pair) {
        let mut into = [0; 4_096];
        loop {
            let now = pair.now;
            match pair.stack(Side::Right).tcp_read(now, self.handle, &mut into) {
                Ok(0) | Err(Error::WouldBlock | Error::Tcp(_)) => break,
                Ok(count) => self.said.extend_from_slice(&into[..count]),
                Err(error) => panic!("a guest's connection is gone: {error}"),
            }
        }
    }
}

impl fmt::Debug for Siege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Siege")
            .field("pair", &self.pair)
            .field("guests", &self.guests)
            .finish_non_exhaustive()
    }
}
