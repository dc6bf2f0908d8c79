//! smoltcp as a contender: two interfaces whose devices exchange frames in memory. As on linerate's
//! memory link, a frame is written once and read from the same memory.

use crate::contender::{Contender, Run, Taken};
use crate::pattern::Pattern;
use crate::stopwatch::Stopwatch;
use crate::work::{BATCH, BUFFER, PIECE, SEGMENT, Work};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
use std::cell::RefCell;
use std::rc::Rc;

/// Size of the largest frame in bytes.
const FRAME: usize = 1_514;
const PORT: u16 = 9;
/// The port before the first port that the client uses. Each new connection has the next port.
const FIRST_PORT: u16 = 49_152;

/// smoltcp as a contender, with both ends in memory.
pub struct Smoltcp;

impl Contender for Smoltcp {
    fn name(&self) -> &'static str {
        "smoltcp"
    }

    fn version(&self) -> String {
        "0.14.0; as shipped: no timestamps, no congestion control".to_owned()
    }

    /// Returns whether smoltcp can perform this workload. `flows` is left out: smoltcp searches the
    /// list of all sockets for every frame, so with 10,000 sockets only this search would be
    /// measured.
    fn can(&self, work: Work) -> bool {
        !matches!(work, Work::Flows | Work::Path | Work::Shards) && work.is_inside()
    }

    fn run(&mut self, run: Run) -> Result<Taken, String> {
        let mut pair = Pair::new(run.work);
        match run.work {
            Work::Bulk | Work::BulkAcks | Work::BulkBatch => {
                pair.bulk(run, send_copied, receive_copied)
            }
            Work::BulkInPlace => pair.bulk(run, send_in_place, receive_in_place),
            Work::PingPong => pair.ping_pong(run.amount),
            Work::Connect => pair.connect(run.amount),
            _ => Err("it does no such work".to_owned()),
        }
    }
}

/// A ring of the frames that are in flight to one end. It holds as many frames as linerate's memory
/// link.
struct Lane {
    frames: Vec<[u8; FRAME]>,
    lengths: [usize; BATCH],
    /// Index of the oldest frame.
    first: usize,
    /// Number of frames in the ring.
    count: usize,
    /// Number of frames that have been put into the ring since its creation.
    carried: u64,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            frames: vec![[0; FRAME]; BATCH],
            lengths: [0; BATCH],
            first: 0,
            count: 0,
            carried: 0,
        }
    }
}

/// The device of one interface: one end of the link in memory.
struct Cable {
    from_other: Rc<RefCell<Lane>>,
    to_other: Rc<RefCell<Lane>>,
    /// Number of frames that the interface may still receive in this turn.
    budget: usize,
}

/// A frame that the interface receives: the oldest frame of the ring.
struct Arrived(Rc<RefCell<Lane>>);

/// A frame that the interface sends: the next free place of the ring.
struct Leaving(Rc<RefCell<Lane>>);

impl Device for Cable {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaving;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Leaving)> {
        let has_room = self.to_other.borrow().count < BATCH;
        if self.budget == 0 || self.from_other.borrow().count == 0 || !has_room {
            return None;
        }
        self.budget -= 1;
        Some((Arrived(Rc::clone(&self.from_other)), Leaving(Rc::clone(&self.to_other))))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaving> {
        (self.to_other.borrow().count < BATCH).then(|| Leaving(Rc::clone(&self.to_other)))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME;
        capabilities
    }
}

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        let lane = &mut *self.0.borrow_mut();
        let result = read(&lane.frames[lane.first][..lane.lengths[lane.first]]);
        lane.first = (lane.first + 1) % BATCH;
        lane.count -= 1;
        result
    }
}

impl TxToken for Leaving {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let lane = &mut *self.0.borrow_mut();
        let place = (lane.first + lane.count) % BATCH;
        let result = write(&mut lane.frames[place][..length]);
        lane.lengths[place] = length;
        lane.count += 1;
        lane.carried += 1;
        result
    }
}

/// One end of a connection: an interface with one socket.
struct End {
    interface: Interface,
    device: Cable,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    /// Maximum number of frames that the interface receives in a turn.
    frames_a_turn: usize,
}

impl End {
    fn new(number: u8, device: Cable, frames_a_turn: usize) -> Self {
        let mut device = device;
        let mac = EthernetAddress([2, 0, 0, 0, 0, number]);
        let mut interface = Interface::new(Config::new(mac.into()), &mut device, Instant::now());
        interface.update_ip_addrs(|addresses| {
            let address = IpCidr::new(IpAddress::v4(192, 0, 2, number), 24);
            addresses.push(address).expect("room for one address");
        });
        let mut sockets = SocketSet::new(Vec::new());
        let buffer = || SocketBuffer::new(vec![0; BUFFER]);
        let handle = sockets.add(Socket::new(buffer(), buffer()));
        Self { interface, device, sockets, handle, frames_a_turn }
    }

    fn turn(&mut self, now: Instant) {
        self.device.budget = self.frames_a_turn;
        self.interface.poll(now, &mut self.device, &mut self.sockets);
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    fn has_frame(&self) -> bool {
        self.device.from_other.borrow().count > 0
    }
}

/// A function that writes data to a socket, and returns the number of bytes that the socket has
/// taken.
type Send = fn(&mut Socket<'static>, &[u8]) -> Result<usize, String>;
/// A function that reads data from a socket, by a copy or in place, and returns the number of
/// bytes.
type Receive = fn(&mut Socket<'static>, &mut [u8]) -> Result<usize, String>;

fn send_copied(socket: &mut Socket<'static>, piece: &[u8]) -> Result<usize, String> {
    socket.send_slice(piece).map_err(sentence)
}

fn receive_copied(socket: &mut Socket<'static>, into: &mut [u8]) -> Result<usize, String> {
    socket.recv_slice(into).map_err(sentence)
}

/// Writes data by borrowing the socket's buffer. Nothing is written into it, so its old contents
/// are sent. Producing data in place costs the application the same on every stack, so this cost is
/// left out.
fn send_in_place(socket: &mut Socket<'static>, piece: &[u8]) -> Result<usize, String> {
    let in_place = |buffer: &mut [u8]| {
        let count = buffer.len().min(piece.len());
        (count, count)
    };
    socket.send(in_place).map_err(sentence)
}

fn receive_in_place(socket: &mut Socket<'static>, into: &mut [u8]) -> Result<usize, String> {
    let take = |buffer: &mut [u8]| {
        let count = buffer.len().min(into.len());
        (count, count)
    };
    socket.recv(take).map_err(sentence)
}

/// The two ends of a connection, and the client's port.
struct Pair {
    left: End,
    right: End,
    port: u16,
}

impl Pair {
    fn new(work: Work) -> Self {
        let (to_left, to_right) = (Rc::<RefCell<Lane>>::default(), Rc::<RefCell<Lane>>::default());
        let cable = |from_other: &Rc<_>, to_other: &Rc<_>| Cable {
            from_other: Rc::clone(from_other),
            to_other: Rc::clone(to_other),
            budget: 0,
        };
        let left = End::new(1, cable(&to_left, &to_right), BATCH);
        // The workload `BulkAcks` needs an acknowledgement for every two segments. smoltcp
        // acknowledges at most once per turn, so the receiver takes only two frames per turn.
        let frames = if work == Work::BulkAcks { 2 } else { work.frames_before_answer() };
        let right = End::new(2, cable(&to_right, &to_left), frames);
        Self { left, right, port: FIRST_PORT }
    }

    fn open(&mut self) -> Result<(), String> {
        self.right.socket().listen(PORT).map_err(sentence)?;
        self.port = if self.port == u16::MAX { FIRST_PORT } else { self.port + 1 };
        let (left, port) = (&mut self.left, self.port);
        let socket = left.sockets.get_mut::<Socket<'_>>(left.handle);
        let remote = (IpAddress::v4(192, 0, 2, 2), PORT);
        socket.connect(left.interface.context(), remote, port).map_err(sentence)?;
        while !(self.left.socket().may_send() && self.right.socket().may_send()) {
            self.left.turn(Instant::now());
            self.right.turn(Instant::now());
        }
        Ok(())
    }

    fn bulk(&mut self, run: Run, send: Send, receive: Receive) -> Result<Taken, String> {
        self.open()?;
        let (pattern, mut received) = (Pattern::new(), vec![0; PIECE]);
        let verify = run.verify && run.work != Work::BulkInPlace;
        let total = run.amount * SEGMENT;
        let (mut written, mut read) = (0, 0);
        let before = self.frames();
        let stopwatch = Stopwatch::start();
        while read < total {
            let now = Instant::now();
            while written < total {
                match send(self.left.socket(), pattern.at(written, total - written))? {
                    0 => break,
                    count => written += count as u64,
                }
            }
            if written == total {
                // Nagle's algorithm would hold back the final partial segment until a delayed
                // acknowledgement arrives. Closing the socket sends that segment at once.
                self.left.socket().close();
            }
            self.left.turn(now);
            loop {
                self.right.turn(now);
                while self.right.socket().can_recv() {
                    let count = receive(self.right.socket(), &mut received)?;
                    if verify {
                        pattern.verify(read, &received[..count])?;
                    }
                    read += count as u64;
                }
                if !self.right.has_frame() {
                    break;
                }
            }
        }
        Ok(self.taken(stopwatch, run.amount, before))
    }

    fn ping_pong(&mut self, amount: u64) -> Result<Taken, String> {
        self.open()?;
        for end in [&mut self.left, &mut self.right] {
            end.socket().set_nagle_enabled(false);
        }
        let before = self.frames();
        let stopwatch = Stopwatch::start();
        for _ in 0..amount {
            pass_byte(&mut self.left, &mut self.right)?;
            pass_byte(&mut self.right, &mut self.left)?;
        }
        Ok(self.taken(stopwatch, amount, before))
    }

    fn connect(&mut self, amount: u64) -> Result<Taken, String> {
        let before = self.frames();
        let stopwatch = Stopwatch::start();
        for _ in 0..amount {
            self.open()?;
            self.right.socket().close();
            self.right.turn(Instant::now());
            self.left.turn(Instant::now());
            self.left.socket().close();
            while self.left.socket().state() != State::Closed
                || self.right.socket().state() != State::TimeWait
            {
                self.left.turn(Instant::now());
                self.right.turn(Instant::now());
            }
            // The socket is in TIME-WAIT, in which it cannot be used again for ten seconds. It is
            // therefore aborted. An abort in TIME-WAIT sends no segment.
            self.right.socket().abort();
        }
        Ok(self.taken(stopwatch, amount, before))
    }

    /// Returns the number of frames that each end has sent.
    fn frames(&self) -> [u64; 2] {
        [&self.left, &self.right].map(|end| end.device.to_other.borrow().carried)
    }

    fn taken(&self, stopwatch: Stopwatch, amount: u64, before: [u64; 2]) -> Taken {
        let processor = stopwatch.elapsed();
        let after = self.frames();
        Taken::new(processor, amount, [after[0] - before[0], after[1] - before[1]])
    }
}

/// Transfers one byte from the application at one end to the application at the other end.
fn pass_byte(from: &mut End, to: &mut End) -> Result<(), String> {
    let now = Instant::now();
    let mut byte = [0];
    from.socket().send_slice(b"?").map_err(sentence)?;
    loop {
        from.turn(now);
        to.turn(now);
        if to.socket().can_recv() {
            to.socket().recv_slice(&mut byte).map_err(sentence)?;
            return Ok(());
        }
    }
}

fn sentence(error: impl std::fmt::Display) -> String {
    error.to_string()
}
