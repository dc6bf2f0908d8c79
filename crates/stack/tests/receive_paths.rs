//! Differential test of the receive path. The first of two servers uses the flow cache, coalescing
//! and the lookup prefetch, and the second parses every frame. Both receive the same frames and
//! must behave equally. The frames include damaged ones, GRO runs that are split anywhere, and ACK
//! batches, and the frames that the link announces may differ from those that arrive next.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{
    Budget, Capabilities, ConnectOptions, FrameSink, Limits, Link, LinkError, ListenHandle,
    ListenOptions, Medium, PlainFrame, RxChecksum, RxFrame, Stack, StackConfig, TcpHandle, TxFrame,
};
use linerate_tcp::{Config, EcnRule};
use linerate_testkit::Access;
use linerate_units::{Duration, Instant};
use linerate_wire::{
    Ecn, Ipv4Header, MacAddress, Protocol, Segment, Sum, TcpHeader, Timestamps, checksum,
};
use proptest::prelude::*;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU16;

const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const PORT: u16 = 80;
/// The port on which each server listens for loopback connections: those that the server itself
/// opens.
const OWN_PORT: u16 = 81;
const IP: usize = 14;
const TCP: usize = IP + 20;

fn config(address: Ipv4Addr, frame_prediction: bool) -> StackConfig {
    let mac = MacAddress::new([2, 0, 0, 0, 0, address.octets()[3]]);
    let config = StackConfig::new(mac, format!("{address}/24").parse().unwrap());
    StackConfig { frame_prediction, ..config }
}

/// A client and two servers. Both servers receive the same frames, and must behave equally. Only
/// the first server has the flow cache.
struct Scene {
    now: Instant,
    client: Stack,
    servers: [Stack; 2],
    listener: ListenHandle,
    opened: Vec<TcpHandle>,
    accepted: Vec<TcpHandle>,
}

impl Scene {
    fn new() -> Self {
        Self::with_limits(256 << 10, Limits::default().buffer_bytes)
    }

    /// Creates a client and two servers. `receive_buffer` is the size of each connection's receive
    /// buffer. `buffer_bytes` limits the memory of all buffers of a server, in bytes.
    fn with_limits(receive_buffer: usize, buffer_bytes: usize) -> Self {
        Self::by(
            &Config { receive_buffer: receive_buffer.into(), ..Config::modern() },
            buffer_bytes,
        )
    }

    /// Creates a client and two servers with the TCP configuration `tcp`. `buffer_bytes` limits the
    /// memory of all buffers of a server, in bytes.
    fn by(tcp: &Config, buffer_bytes: usize) -> Self {
        let mut servers = [true, false].map(|predicts| {
            let mut config = config(SERVER, predicts);
            config.tcp = *tcp;
            config.limits.buffer_bytes = buffer_bytes;
            Stack::new(config, [2; 32])
        });
        let listen = |server: &mut Stack| {
            server.tcp_listen(SocketAddrV4::new(SERVER, PORT), &ListenOptions::default()).unwrap()
        };
        let [listener, other] = servers.each_mut().map(listen);
        assert_eq!(listener, other);
        let now = Instant::from_nanos(1_000_000);
        Self {
            now,
            client: Stack::new(StackConfig { tcp: *tcp, ..config(CLIENT, true) }, [1; 32]),
            servers,
            listener,
            opened: Vec::new(),
            accepted: Vec::new(),
        }
    }

    /// Opens connection `number` from the client to both servers. The number determines the ports,
    /// so an earlier connection with this number is reset first.
    fn open(&mut self, number: usize) {
        self.open_over(number, Damage::Nothing, 0, 0);
    }

    /// Opens connection `number`, as `open` does. Before each frame of the client, the servers
    /// receive a copy of the frame with the damage `damage`.
    fn open_over(&mut self, number: usize, damage: Damage, at: usize, value: u8) {
        let local = SocketAddrV4::new(CLIENT, 40_000 + u16::try_from(number).unwrap());
        if let Some(&handle) = self.opened.get(number) {
            self.client.tcp_abort(self.now, handle).unwrap();
            self.carry(Damage::Nothing, 0, 0);
        }
        let options = ConnectOptions { local: Some(local.into()), ..ConnectOptions::default() };
        let handle =
            self.client.tcp_connect(self.now, SocketAddrV4::new(SERVER, PORT), &options).unwrap();
        if number < self.opened.len() {
            self.opened[number] = handle;
        } else {
            self.opened.push(handle);
        }
        (0..4).for_each(|_| self.carry(damage, at, value));
    }

    /// On each server, opens a loopback connection. Returns the handle that `tcp_connect` has
    /// returned, which is equal on both servers.
    fn open_to_itself(&mut self) -> TcpHandle {
        let (now, address) = (self.now, SocketAddrV4::new(SERVER, OWN_PORT));
        let [one, other] = self.servers.each_mut().map(|server| {
            server.tcp_listen(address, &ListenOptions::default()).unwrap();
            server.tcp_connect(now, address, &ConnectOptions::default()).unwrap()
        });
        assert_eq!(one, other);
        let mut idle = Batch { frames: Vec::new(), shown: Shown::All };
        (0..4).for_each(|_| self.turn(&mut idle, 1));
        one
    }

    /// Carries all frames in both directions until none is left. Before each frame of the client,
    /// the servers receive a copy of the frame with the damage `damage`.
    fn carry(&mut self, damage: Damage, at: usize, value: u8) {
        let mut frame = [0; 1_518];
        while let Some(sent) = self.client.poll_transmit(self.now, &mut frame) {
            let whole = frame[..sent.length].to_vec();
            if let Some((damaged, checksum, segment)) = damage.apply(&whole, at, value) {
                self.arrive(&damaged, checksum, segment);
            }
            self.arrive(&whole, RxChecksum::Unverified, None);
        }
        self.answer();
        self.accept();
    }

    fn arrive(&mut self, bytes: &[u8], checksum: RxChecksum, segment: Option<NonZeroU16>) {
        for server in &mut self.servers {
            server.handle_frame(
                self.now,
                RxFrame { checksum, segment, ..RxFrame::plain(bytes, self.now) },
            );
        }
        self.compare();
    }

    /// Carries all frames of the client to the servers in one batch. Before a server receives the
    /// frames, it can peek only at those that `shown` selects.
    fn carry_at_once(&mut self, shown: Shown) {
        let mut frames = Vec::new();
        self.fetch(&mut frames);
        self.turn(&mut Batch { frames, shown }, usize::MAX);
        self.answer();
        self.accept();
    }

    /// Moves all frames that the client has to send into `frames`.
    fn fetch(&mut self, frames: &mut Vec<Frame>) {
        let mut frame = [0; 1_518];
        while let Some(sent) = self.client.poll_transmit(self.now, &mut frame) {
            frames.push(Frame::new(&frame[..sent.length], self.now));
        }
    }

    /// Runs a turn of each server. In this turn, the server receives at most `receive` frames of
    /// the batch, and sends none.
    fn turn(&mut self, batch: &mut Batch, receive: usize) {
        for server in &mut self.servers {
            server.turn(batch, Budget { receive, ..Budget::default() }, self.now).unwrap();
        }
        let count = batch.frames.len().min(receive);
        batch.frames.drain(..count);
        self.compare();
    }

    /// Delivers the frames of the servers to the client, until there are none. Both servers must
    /// send equal frames, of which the client receives only one copy.
    fn answer(&mut self) {
        while self.answer_once() {}
    }

    /// Delivers the frames of the servers to the client, until there are none. After every two
    /// frames, moves the frames that the client then sends, its acknowledgements, into `frames`.
    fn answer_and_fetch(&mut self, frames: &mut Vec<Frame>) {
        while self.answer_once() {
            self.answer_once();
            self.fetch(frames);
        }
    }

    fn answer_once(&mut self) -> bool {
        let now = self.now;
        let [one, other] = self.servers.each_mut().map(|server| {
            let mut frame = [0; 1_518];
            let sent = server.poll_transmit(now, &mut frame);
            sent.map(|sent| frame[..sent.length].to_vec())
        });
        assert_eq!(one, other);
        let Some(frame) = one else { return false };
        let checksum = RxChecksum::Unverified;
        let frame = RxFrame { checksum, ..RxFrame::plain(&frame, now) };
        self.client.handle_frame(now, frame);
        true
    }

    fn accept(&mut self) {
        let listener = self.listener;
        loop {
            let [one, other] = self.servers.each_mut().map(|server| server.tcp_accept(listener));
            assert_eq!(one, other);
            let Some((handle, _)) = one else { break };
            self.accepted.push(handle);
        }
    }

    /// Reads all data of all connections of the servers by copying it.
    fn read(&mut self) {
        self.read_in(Access::Copied);
    }

    /// Reads all data of all connections of the servers by the access mode `access`. Calls are
    /// repeated, since a single call may return only a part of the data.
    fn read_in(&mut self, access: Access) {
        let now = self.now;
        for &handle in &self.accepted {
            let [one, other] = self.servers.each_mut().map(|server| {
                let (mut bytes, mut count) = (vec![0; 4_096], 0);
                let last = loop {
                    match access.read_socket(server, now, handle, &mut bytes[count..]) {
                        Ok(0) => break Ok(()),
                        Ok(more) => count += more,
                        Err(error) => break Err(error),
                    }
                };
                bytes.truncate(count);
                (bytes, last)
            });
            assert_eq!(one, other);
        }
    }

    /// Writes to a connection of both servers by the access mode `access`, until all data is
    /// written or the send buffer is full. Calls are repeated, since a single call may accept only
    /// a part of the data.
    fn write_in(&mut self, access: Access, handle: TcpHandle, data: &[u8]) {
        let now = self.now;
        let [one, other] = self.servers.each_mut().map(|server| {
            let mut count = 0;
            let last = loop {
                match access.write_socket(server, now, handle, &data[count..]) {
                    Ok(0) => break Ok(()),
                    Ok(more) => count += more,
                    Err(error) => break Err(error),
                }
            };
            (count, last)
        });
        assert_eq!(one, other);
    }

    fn compare(&mut self) {
        let [one, other] = &mut self.servers;
        one.check();
        other.check();
        assert_eq!(one.counters(), other.counters());
        assert_eq!(one.poll_timeout(), other.poll_timeout());
        for &handle in &self.accepted {
            match (one.tcp(handle), other.tcp(handle)) {
                (Some(one), Some(other)) => one.assert_behaves_like(&mut other.into_owned()),
                (one, other) => assert_eq!(one, other),
            }
        }
        loop {
            let event = one.poll_event();
            assert_eq!(event, other.poll_event());
            if event.is_none() {
                break;
            }
        }
    }
}

/// A frame, with the metadata that the link provides.
#[derive(Clone)]
struct Frame {
    bytes: Vec<u8>,
    arrived: Instant,
    checksum: RxChecksum,
    segment: Option<NonZeroU16>,
}

impl Frame {
    fn new(bytes: &[u8], arrived: Instant) -> Self {
        Self { bytes: bytes.to_vec(), arrived, checksum: RxChecksum::Unverified, segment: None }
    }

    fn is_plain(&self) -> bool {
        self.checksum == RxChecksum::Unverified && self.segment.is_none()
    }

    fn as_rx_frame(&self) -> RxFrame<'_> {
        let &Self { arrived, checksum, segment, .. } = self;
        RxFrame { checksum, segment, ..RxFrame::plain(&self.bytes, arrived) }
    }
}

/// A link that has several received frames at the same time. It sends nothing.
struct Batch {
    frames: Vec<Frame>,
    shown: Shown,
}

/// The frames of a batch that the link shows to the host before the host receives them, and their
/// order.
#[derive(Clone, Copy, Debug)]
enum Shown {
    All,
    Reversed,
    Twice,
    /// Only the frames from this index on.
    Later(usize),
    /// Only the frames before this index.
    First(usize),
}

impl Link for Batch {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        let count = self.frames.len().min(budget);
        self.frames[..count].iter().for_each(|frame| on_frame(frame.as_rx_frame()));
        Ok(count)
    }

    /// Delivers consecutive frames without offload metadata to the host as one batch, and all other
    /// frames one by one.
    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        let count = self.frames.len().min(budget);
        for run in self.frames[..count].chunk_by(|one, next| one.is_plain() && next.is_plain()) {
            if run[0].is_plain() {
                sink.take_plain(
                    run.iter().map(|Frame { bytes, arrived, .. }| PlainFrame {
                        bytes,
                        arrived: *arrived,
                    }),
                );
            } else {
                sink.take(run[0].as_rx_frame());
            }
        }
        Ok(count)
    }

    fn peek(&mut self, budget: usize, look: impl FnMut(&[u8])) {
        let frames = self.frames.iter().map(|frame| &frame.bytes[..]).take(budget);
        match self.shown {
            Shown::All => frames.for_each(look),
            Shown::Reversed => frames.rev().for_each(look),
            Shown::Twice => frames.flat_map(|frame| [frame, frame]).for_each(look),
            Shown::Later(first) => frames.skip(first).for_each(look),
            Shown::First(count) => frames.take(count).for_each(look),
        }
    }

    /// Accepts no frame, so the servers send nothing in their turns. The test fetches their frames
    /// by `poll_transmit` instead.
    fn transmit(
        &mut self,
        _budget: usize,
        _fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        Ok(0)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Medium::Ethernet, 1_500)
    }
}

/// The damage to a copy of a frame. `Damage::apply` has two parameters for it: the position `at` of
/// the damaged byte, and a `value`, in most cases the new value of the byte.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Nothing,
    /// A byte is overwritten.
    Byte,
    /// A byte is overwritten, and the checksum of the IP header is corrected.
    Packet,
    /// A byte is overwritten, and the checksums of the TCP segment and the IP header are corrected.
    Segment,
    /// Padding is added.
    Pad,
    /// The end of the frame is removed.
    Cut,
    /// A byte is overwritten, and the link claims that the checksum is valid.
    Verified,
    /// The link claims that the frame is a GRO frame, merged from segments of `value` bytes.
    Joined,
    /// The copy is not damaged, so the frame arrives twice.
    Twice,
    /// The ECN codepoint is set to CE or ECT(0).
    Mark,
}

impl Damage {
    fn apply(
        self,
        whole: &[u8],
        at: usize,
        value: u8,
    ) -> Option<(Vec<u8>, RxChecksum, Option<NonZeroU16>)> {
        let mut bytes = whole.to_vec();
        let at = at % bytes.len();
        let mut told = (RxChecksum::Unverified, None);
        match self {
            Self::Nothing => return None,
            Self::Byte => bytes[at] = value,
            Self::Packet => {
                bytes[at] = value;
                fix_packet(&mut bytes);
            }
            Self::Segment => {
                bytes[at] = value;
                fix_segment(&mut bytes);
                fix_packet(&mut bytes);
            }
            Self::Pad => bytes.extend([value; 9]),
            Self::Cut => bytes.truncate(at),
            Self::Verified => {
                bytes[at] = value;
                told.0 = RxChecksum::Verified;
            }
            Self::Joined => told.1 = NonZeroU16::new(u16::from(value)),
            Self::Twice => {}
            Self::Mark => {
                if let Some(type_of_service) = bytes.get_mut(IP + 1) {
                    *type_of_service =
                        if value.is_multiple_of(2) { Ecn::Ce } else { Ecn::Ect0 } as u8;
                }
                fix_packet(&mut bytes);
            }
        }
        Some((bytes, told.0, told.1))
    }
}

fn fix_packet(bytes: &mut [u8]) {
    if let Some(header) = bytes.get_mut(IP..TCP) {
        header[10..12].fill(0);
        let checksum = Sum::of(header).finish();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

fn fix_segment(bytes: &mut [u8]) {
    if bytes.len() < TCP + 20 {
        return;
    }
    let address = |at: usize| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
    let length = bytes.len() - TCP;
    let pseudo =
        checksum::pseudo_header_v4(address(IP + 12), address(IP + 16), Protocol::TCP, length);
    bytes[TCP + 16..TCP + 18].fill(0);
    let checksum = (pseudo + Sum::of(&bytes[TCP..])).finish();
    bytes[TCP + 16..TCP + 18].copy_from_slice(&checksum.to_be_bytes());
}

#[derive(Clone, Debug)]
enum Step {
    Open(usize, Damage, u8),
    Write(usize, usize),
    Read,
    Wait(u64),
    Carry(Damage, usize, u8),
}

fn step() -> impl Strategy<Value = Step> {
    use Damage::{Byte, Cut, Joined, Mark, Nothing, Packet, Pad, Segment, Twice, Verified};
    let damage = prop::sample::select(vec![
        Nothing, Byte, Packet, Segment, Pad, Cut, Verified, Joined, Twice, Mark,
    ]);
    let odd = prop::sample::select(vec![Nothing, Pad, Joined, Twice, Mark]);
    prop_oneof![

        1 => (0_usize..2, odd, any::<u8>())
            .prop_map(|(number, odd, value)| Step::Open(number, odd, value)),
        4 => (0_usize..2, 1_usize..5_000).prop_map(|(number, length)| Step::Write(number, length)),
        2 => Just(Step::Read),
        1 => (0_u64..300_000_000).prop_map(Step::Wait),
        8 => (damage, prop_oneof![4 => 0_usize..80, 1 => 0_usize..1_514], any::<u8>())
            .prop_map(|(damage, at, value)| Step::Carry(damage, at, value)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_flow_cache_behaves_like_the_full_parser(
        counts_marks: bool,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let accurate_ecn = if counts_marks { EcnRule::Request } else { EcnRule::Off };
        let rules = Config { accurate_ecn, receive_buffer: (256 << 10).into(), ..Config::modern() };
        let mut scene = Scene::by(&rules, Limits::default().buffer_bytes);
        (0..2).for_each(|number| scene.open(number));
        for step in steps {
            match step {
                Step::Open(number, damage, value) => scene.open_over(number, damage, 0, value),
                Step::Write(number, length) => {
                    let data: Vec<u8> = (0..=250).cycle().take(length).collect();
                    let _ = scene.client.tcp_write(scene.now, scene.opened[number], &data);
                }
                Step::Read => scene.read(),
                Step::Wait(nanos) => {
                    scene.now += Duration::from_nanos(nanos);
                    let now = scene.now;
                    scene.client.handle_timeout(now, 100);
                    scene.servers.iter_mut().for_each(|server| {
                        server.handle_timeout(now, 100);
                    });
                }
                Step::Carry(damage, at, value) => scene.carry(damage, at, value),
            }
            scene.compare();
        }
    }
}

/// A change to one frame of a batch, or to its order, before the batch arrives.
#[derive(Clone, Debug)]
enum Change {
    /// A frame is replaced by its damaged copy. The numbers are those of `Damage::apply`: the
    /// position of the damaged byte, and its new value.
    Damage(Damage, usize, u8),
    Lose,
    Repeat,
    /// A frame moves ahead in the batch by this number of positions.
    Overtake(usize),
    /// A frame and all frames behind it get a new arrival time: this number of nanoseconds before
    /// the turn.
    Stamp(u64),
    /// A frame gets an arrival time this number of nanoseconds after the turn, as if the clock of
    /// the link were ahead of the host's clock.
    StampAhead(u64),
    /// The PSH flag of a segment is inverted.
    Push,
    /// The low byte of the IPv4 identification is overwritten.
    Identify(u8),
}

impl Change {
    fn apply(&self, frames: &mut Vec<Frame>, at: usize, now: Instant) {
        let at = at % frames.len();
        match *self {
            // If an earlier change has cut a frame to no bytes, there is nothing left to damage.
            Self::Damage(..) if frames[at].bytes.is_empty() => {}
            Self::Damage(damage, byte, value) => {
                if let Some((bytes, checksum, segment)) =
                    damage.apply(&frames[at].bytes, byte, value)
                {
                    frames[at] = Frame { bytes, checksum, segment, ..frames[at] };
                }
            }
            Self::Lose => drop(frames.remove(at)),
            Self::Repeat => frames.insert(at, frames[at].clone()),
            Self::Overtake(by) => {
                let frame = frames.remove(at);
                frames.insert(at.saturating_sub(by), frame);
            }
            Self::Stamp(before) => {
                let stamp =
                    Instant::ZERO + (now.since(Instant::ZERO) - Duration::from_nanos(before));
                frames[at..].iter_mut().for_each(|frame| frame.arrived = stamp);
            }
            Self::StampAhead(after) => frames[at].arrived = now + Duration::from_nanos(after),
            Self::Push => {
                if let Some(flags) = frames[at].bytes.get_mut(TCP + 13) {
                    *flags ^= 8;
                }
                fix_segment(&mut frames[at].bytes);
            }
            Self::Identify(value) => {
                if let Some(identification) = frames[at].bytes.get_mut(IP + 5) {
                    *identification = value;
                }
                fix_packet(&mut frames[at].bytes);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum RunStep {
    Write(usize, usize),
    /// Both servers write this number of bytes (second field) to this connection (first field).
    Answer(usize, usize),
    /// Both servers write as for `Answer`. Their frames are delivered to the client, and the
    /// acknowledgement that it sends after every two frames is stored for the next `Carry`.
    Acknowledge(usize, usize),
    /// Fetches the frames that the client sends now. They are in flight until the next `Carry`.
    Gather,
    Wait(u64),
    Read,
    /// The client closes its sending direction of a connection.
    CloseClient(usize),
    /// The servers close their sending direction of a connection. The client may still send on it.
    Shut(usize),
    /// The servers reset a connection. Frames of this connection may still arrive.
    Abort(usize),
    /// Applies the changes to the frames in flight, and delivers them. The number is the maximum
    /// number of frames per turn. If the flag is true, the servers send their frames only after the
    /// final turn. After each turn, the next event of the list happens.
    Carry(Vec<(usize, Change)>, usize, bool, Vec<Between>),
}

/// An event at the servers between two turns. The two turns may receive different parts of one GRO
/// run.
#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    Read,
    Answer(usize, usize),
    /// The servers write data to their loopback connection.
    WriteToSelf,
    /// This number of nanoseconds passes.
    Wait(u64),
    Shut(usize),
    Abort(usize),
}

impl Between {
    fn happen(self, scene: &mut Scene, to_self: TcpHandle) {
        let now = scene.now;
        let each =
            |scene: &mut Scene, call: &dyn Fn(&mut Stack)| scene.servers.iter_mut().for_each(call);
        match self {
            Self::Nothing => {}
            Self::Read => scene.read(),
            Self::Answer(number, length) => {
                let handle = scene.accepted[number];
                each(scene, &|server| _ = server.tcp_write(now, handle, &vec![7; length]));
            }
            Self::WriteToSelf => {
                each(scene, &|server| _ = server.tcp_write(now, to_self, &[9; 300]));
            }
            Self::Wait(nanos) => scene.now += Duration::from_nanos(nanos),
            Self::Shut(number) => {
                let handle = scene.accepted[number];
                each(scene, &|server| _ = server.tcp_shutdown_write(now, handle));
            }
            Self::Abort(number) => {
                let handle = scene.accepted[number];
                each(scene, &|server| _ = server.tcp_abort(now, handle));
            }
        }
    }
}

fn run_step() -> impl Strategy<Value = RunStep> {
    use Damage::{Byte, Cut, Joined, Mark, Packet, Pad, Segment, Verified};
    let damage =
        prop::sample::select(vec![Byte, Packet, Segment, Pad, Cut, Verified, Joined, Mark]);
    let byte = prop_oneof![4 => 0_usize..80, 1 => 0_usize..1_514];
    let change = prop_oneof![

        3 => (damage, byte, any::<u8>())
            .prop_map(|(damage, at, value)| Change::Damage(damage, at, value)),
        1 => Just(Change::Lose),
        1 => Just(Change::Repeat),
        1 => (1_usize..5).prop_map(Change::Overtake),
        2 => (0_u64..900_000).prop_map(Change::Stamp),
        1 => (0_u64..900_000).prop_map(Change::StampAhead),
        2 => Just(Change::Push),
        2 => any::<u8>().prop_map(Change::Identify),
    ];
    let changes = prop::collection::vec((any::<usize>(), change), 0..6);
    let between = prop_oneof![
        6 => Just(Between::Nothing),
        6 => Just(Between::Read),
        4 => (0_usize..2, prop_oneof![1_usize..4_000, 4_000_usize..40_000])
            .prop_map(|(number, length)| Between::Answer(number, length)),
        4 => Just(Between::WriteToSelf),
        4 => (0_u64..900_000).prop_map(Between::Wait),
        1 => (0_usize..2).prop_map(Between::Shut),
        1 => (0_usize..2).prop_map(Between::Abort),
    ];
    let events = prop::collection::vec(between, 0..8);
    let turn = prop_oneof![1 => 1_usize..6, 1 => 1_usize..70];
    prop_oneof![

        4 => (0_usize..2, 1_usize..40_000)
            .prop_map(|(number, length)| RunStep::Write(number, length)),

        1 => (0_usize..2, 1_usize..4_000)
            .prop_map(|(number, length)| RunStep::Answer(number, length)),
        2 => (0_usize..2, 4_000_usize..40_000)
            .prop_map(|(number, length)| RunStep::Acknowledge(number, length)),
        3 => Just(RunStep::Gather),
        1 => (0_u64..3_000_000).prop_map(RunStep::Wait),
        1 => (0_u64..300_000_000).prop_map(RunStep::Wait),
        4 => Just(RunStep::Read),
        1 => (0_usize..40).prop_map(RunStep::CloseClient),
        1 => (0_usize..20).prop_map(RunStep::Shut),
        1 => (0_usize..40).prop_map(RunStep::Abort),
        8 => (changes, turn, any::<bool>(), events)

            .prop_map(|(changes, turn, late, events)| {
                RunStep::Carry(changes, turn, late, events)
            }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn coalescing_behaves_like_single_segments(
        (receive_buffer, buffer_bytes) in (
            prop::sample::select(vec![6_000, 20_000, 60_000, 256 << 10]),
            prop::sample::select(vec![32 << 10, 200 << 10, 64 << 20]),
        ),
        steps in prop::collection::vec(run_step(), 1..80),
    ) {
        let mut scene = Scene::with_limits(receive_buffer, buffer_bytes);
        (0..2).for_each(|number| scene.open(number));
        let to_self = scene.open_to_itself();
        let mut in_flight = Vec::new();
        for step in steps {
            let now = scene.now;
            match step {
                RunStep::Write(number, length) => {
                    let data: Vec<u8> = (0..=250).cycle().take(length).collect();
                    let _ = scene.client.tcp_write(now, scene.opened[number], &data);
                }
                RunStep::Answer(number, length) => {
                    let handle = scene.accepted[number];

                    let data = vec![7; length];
                    let [one, other] =
                        scene.servers.each_mut().map(|server| server.tcp_write(now, handle, &data));
                    prop_assert_eq!(one, other);
                }
                RunStep::Acknowledge(number, length) => {
                    let handle = scene.accepted[number];

                    let data = vec![7; length];
                    let [one, other] =
                        scene.servers.each_mut().map(|server| server.tcp_write(now, handle, &data));
                    prop_assert_eq!(one, other);
                    scene.answer_and_fetch(&mut in_flight);
                }
                RunStep::Gather => scene.fetch(&mut in_flight),
                RunStep::Wait(nanos) => {
                    scene.now += Duration::from_nanos(nanos);
                    let now = scene.now;
                    scene.client.handle_timeout(now, 100);
                    // A wait of up to 3 ms only makes the arrival times of frames differ, so the
                    // timers of the servers are not run after it.
                    if nanos > 3_000_000 {
                        scene.servers.iter_mut().for_each(|server| {
                            server.handle_timeout(now, 100);
                        });
                    }
                }
                RunStep::Read => scene.read(),
                RunStep::CloseClient(number) => {
                    if let Some(&handle) = scene.opened.get(number) {
                        let _ = scene.client.tcp_shutdown_write(now, handle);
                    }
                }
                RunStep::Shut(number) => {
                    if let Some(&handle) = scene.accepted.get(number) {
                        for host in &mut scene.servers {
                            let _ = host.tcp_shutdown_write(now, handle);
                        }
                    }
                }
                RunStep::Abort(number) => {
                    if let Some(&handle) = scene.accepted.get(number) {
                        for host in &mut scene.servers {
                            let _ = host.tcp_abort(now, handle);
                        }
                    }
                }
                RunStep::Carry(changes, receive, late, events) => {
                    scene.fetch(&mut in_flight);
                    scene.now += Duration::from_millis(1);
                    let now = scene.now;
                    for (at, change) in changes {
                        if !in_flight.is_empty() {
                            change.apply(&mut in_flight, at, now);
                        }
                    }
                    let frames = core::mem::take(&mut in_flight);
                    let mut batch = Batch { frames, shown: Shown::All };
                    let mut events = events.into_iter();
                    while !batch.frames.is_empty() {
                        scene.turn(&mut batch, receive);
                        if !late {
                            scene.answer();
                        }
                        if let Some(between) = events.next() {
                            between.happen(&mut scene, to_self);
                        }
                    }
                    scene.answer();
                }
            }
            scene.compare();
        }
    }
}

/// Possible answers to a SYN that the servers have sent. Each has control bits, and a number that
/// is added to the correct acknowledgement number.
const ANSWERS: [(u8, u8); 12] = [
    (0x12, 0),
    (0x12, 1),
    (0x52, 0),
    (0x02, 0),
    (0x02, 1),
    (0x10, 0),
    (0x10, 1),
    (0x04, 0),
    (0x14, 0),
    (0x14, 1),
    (0x11, 0),
    (0x00, 0),
];

#[test]
fn answers_to_a_syn_behave_the_same_on_both_paths() {
    let door = SocketAddrV4::new(CLIENT, 90);
    for (bits, beyond) in ANSWERS {
        let mut scene = Scene::new();
        scene.open(0);
        scene.client.tcp_listen(door, &ListenOptions::default()).unwrap();
        let now = scene.now;
        let [one, other] = scene.servers.each_mut().map(|server| {
            let opened = server.tcp_connect(now, door, &ConnectOptions::default());
            opened.unwrap()
        });
        assert_eq!(one, other);
        scene.accepted.push(one);
        scene.answer();
        let mut frames = Vec::new();
        scene.fetch(&mut frames);
        let whole = &frames[0].bytes;
        let mut odd = whole.clone();
        odd[TCP + 13] = bits;
        odd[TCP + 11] = odd[TCP + 11].wrapping_add(beyond);
        fix_segment(&mut odd);
        scene.now += Duration::from_millis(1);
        scene.arrive(&odd, RxChecksum::Unverified, None);
        scene.answer();
        scene.arrive(whole, RxChecksum::Unverified, None);
        (0..4).for_each(|_| scene.carry(Damage::Nothing, 0, 0));
    }
}

#[test]
fn a_run_continues_on_a_connection_that_has_changed() {
    let mut scene = Scene::new();
    scene.open(0);
    let (client, server) = (scene.opened[0], scene.accepted[0]);
    let mut batch = Batch { frames: Vec::new(), shown: Shown::All };
    for round in 0..12 {
        scene.now += Duration::from_millis(1);
        scene.client.tcp_write(scene.now, client, &[7; 8 * 1_448]).unwrap();
        scene.fetch(&mut batch.frames);
        scene.turn(&mut batch, 3);
        if round == 10 {
            let now = scene.now;
            for host in &mut scene.servers {
                host.tcp_shutdown_write(now, server).unwrap();
            }
        }
        while !batch.frames.is_empty() {
            scene.turn(&mut batch, 3);
            (0..3).for_each(|_| scene.read());
        }
        scene.answer();
    }
}

impl Scene {
    /// Transfers data in several rounds, until the connection is in the steady state.
    fn warm_up(&mut self) {
        let mut batch = Batch { frames: Vec::new(), shown: Shown::All };
        for _ in 0..10 {
            self.now += Duration::from_millis(1);
            self.client.tcp_write(self.now, self.opened[0], &[7; 8 * 1_448]).unwrap();
            self.fetch(&mut batch.frames);
            self.turn(&mut batch, usize::MAX);
            (0..3).for_each(|_| self.read());
            self.answer();
        }
    }

    /// Makes the client write this number of full segments. Returns the frames that it sends.
    fn run_of_data(&mut self, segments: usize) -> Vec<Frame> {
        self.now += Duration::from_millis(1);
        self.client.tcp_write(self.now, self.opened[0], &vec![7; segments * 1_448]).unwrap();
        let mut frames = Vec::new();
        self.fetch(&mut frames);
        assert_eq!(frames.len(), segments);
        frames
    }

    /// Makes both servers write this number of full segments to connection 0.
    fn server_writes(&mut self, segments: usize) {
        let (now, handle, data) = (self.now, self.accepted[0], vec![7; segments * 1_448]);
        for server in &mut self.servers {
            assert_eq!(server.tcp_write(now, handle, &data), Ok(data.len()));
        }
    }

    fn statistics(&mut self) -> linerate_tcp::Statistics {
        self.servers[0].tcp(self.accepted[0]).unwrap().statistics().clone()
    }
}

/// Returns a copy of the frame. Its TCP timestamp is increased by `later`, which is in
/// milliseconds.
fn restamped(frame: &Frame, later: u32) -> Frame {
    let mut bytes = frame.bytes.clone();
    let place = bytes[TCP + TcpHeader::LENGTH + 4..].first_chunk_mut().unwrap();
    *place = (u32::from_be_bytes(*place) + later).to_be_bytes();
    fix_segment(&mut bytes);
    let options = Segment::parse(&bytes[TCP..]).unwrap().options;
    assert!(Timestamps::alone(options).is_some());
    Frame { bytes, ..frame.clone() }
}

/// A copy of the first segment of a run, with a later timestamp, arrives in the middle of the run.
/// It updates TS.Recent, so the host must reject the remaining segments of the run as old (PAWS,
/// RFC 7323 §5.3).
#[test]
fn a_frame_that_does_not_continue_a_run_ends_it() {
    let mut scene = Scene::new();
    scene.open(0);
    scene.warm_up();
    let mut frames = scene.run_of_data(6);
    frames.insert(3, restamped(&frames[0], 5));
    scene.turn(&mut Batch { frames, shown: Shown::All }, usize::MAX);
    assert_eq!(scene.statistics().old_timestamps, 3);
}

/// An ACK is pending in an ACK batch when a data segment arrives. The host must process the ACK
/// before the data segment, which may acknowledge less or more than the ACK.
#[test]
fn a_coalesced_ack_is_processed_before_later_data() {
    for later in [false, true] {
        let mut scene = Scene::new();
        scene.open(0);
        scene.warm_up();
        scene.server_writes(2);
        scene.answer();
        let mut frames = Vec::new();
        scene.fetch(&mut frames);
        assert_eq!(frames.len(), 1);
        if later {
            scene.server_writes(2);
            (0..2).for_each(|_| assert!(scene.answer_once()));
        }
        let mut data = scene.run_of_data(1);
        if !later {
            let place = data[0].bytes[TCP + 8..].first_chunk_mut().unwrap();
            *place = (u32::from_be_bytes(*place) - 2 * 1_448).to_be_bytes();
            fix_segment(&mut data[0].bytes);
        }
        frames.extend(data);
        let before = scene.statistics();
        scene.turn(&mut Batch { frames, shown: Shown::All }, usize::MAX);
        assert_eq!(scene.statistics().prediction.acks - before.prediction.acks, 1);
    }
}

/// Makes the servers send this number of pairs of segments. Returns the client's acknowledgements,
/// one per pair.
fn acknowledgements(scene: &mut Scene, pairs: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    for _ in 0..pairs {
        scene.server_writes(2);
        scene.answer();
        scene.now += Duration::from_micros(10);
        scene.fetch(&mut frames);
    }
    assert_eq!(frames.len(), pairs);
    frames
}

/// RFC 9768 §3.2.2: a host counts the congestion marks of all packets. It must therefore process a
/// marked acknowledgement alone, and not coalesce it with the others of a batch.
#[test]
fn a_marked_ack_is_not_coalesced() {
    let mut scene = Scene::new();
    scene.open(0);
    scene.warm_up();
    let mut frames = acknowledgements(&mut scene, 3);
    let (marked, ..) = Damage::Mark.apply(&frames[1].bytes, 0, 0).unwrap();
    frames[1].bytes = marked;
    scene.turn(&mut Batch { frames, shown: Shown::All }, usize::MAX);
    assert_eq!(scene.servers[0].counters().tcp_extra.marked_segments, 1);
}

/// If the link reports an arrival time in the future, the host uses the time of the turn instead.
#[test]
fn arrival_times_in_the_future_are_clamped_to_the_turn() {
    let ahead = Duration::from_millis(40);
    let mut scene = Scene::new();
    scene.open(0);
    scene.warm_up();
    let mut frames = acknowledgements(&mut scene, 3);
    let now = scene.now;
    frames[2].arrived = now + ahead;
    scene.turn(&mut Batch { frames, shown: Shown::All }, usize::MAX);
    // Nine consecutive data segments arrive in three turns, with one millisecond between two turns.
    // The link reports an arrival time in the future for the seventh segment.
    let mut frames = scene.run_of_data(9);
    let now = scene.now;
    frames[6].arrived = now + ahead;
    let mut batch = Batch { frames, shown: Shown::All };
    scene.turn(&mut batch, 3);
    batch
        .frames
        .iter_mut()
        .take(3)
        .for_each(|frame| frame.arrived = now + Duration::from_micros(1));
    scene.now += Duration::from_millis(1);
    scene.turn(&mut batch, 3);
    scene.now += Duration::from_millis(1);
    scene.turn(&mut batch, 3);
}

/// The memory that the host grants to a connection changes in the middle of a run of segments. The
/// reason is either another connection that takes memory, or the data of the run itself. The run
/// must continue with the new grant.
#[test]
fn a_run_continues_after_a_change_of_the_memory_grant() {
    for is_warm in [false, true] {
        let mut scene = Scene::new();
        (0..2).for_each(|number| scene.open(number));
        if is_warm {
            scene.warm_up();
        }
        let frames = scene.run_of_data(9);
        let mut batch = Batch { frames, shown: Shown::All };
        while !batch.frames.is_empty() {
            scene.turn(&mut batch, 3);
            if is_warm {
                let (now, handle) = (scene.now, scene.accepted[1]);
                scene.servers.iter_mut().for_each(|server| {
                    assert_eq!(server.tcp_write(now, handle, &[7; 9_000]), Ok(9_000));
                });
            } else {
                (0..3).for_each(|_| scene.read());
            }
        }
    }
}

/// RFC 1122 §3.2.1.3: a frame from the link must not have an address of the receiving host as its
/// source. The flow cache must not accept such a frame, even if the most recent packet belonged to
/// a loopback connection with just these addresses and ports.
#[test]
fn frames_from_the_link_cannot_enter_a_loopback_connection() {
    let mut scene = Scene::new();
    scene.open(0);
    let to_self = scene.open_to_itself();
    let mut frame = scene.run_of_data(1).remove(0);
    let now = scene.now;
    for server in &mut scene.servers {
        server.tcp_write(now, to_self, &[9; 300]).unwrap();
    }
    let local = scene.servers[0].tcp_local_addr(to_self).unwrap();
    scene.turn(&mut Batch { frames: Vec::new(), shown: Shown::All }, 1);
    for ports in [[OWN_PORT, local.port()], [local.port(), OWN_PORT]] {
        Ipv4Header::new(SERVER, SERVER, Protocol::TCP)
            .emit(frame.bytes.len() - TCP, &mut frame.bytes[IP..]);
        frame.bytes[TCP..TCP + 4].copy_from_slice(ports.map(u16::to_be_bytes).as_flattened());
        fix_segment(&mut frame.bytes);
        let before = scene.servers[0].counters().ip.in_header_errors;
        scene.arrive(&frame.bytes, frame.checksum, None);
        assert_eq!(scene.servers[0].counters().ip.in_header_errors, before + 1);
    }
}

/// The lookup prefetch must not assign a frame from the link to a loopback connection, even if its
/// addresses and ports match.
#[test]
fn prefetched_frames_from_the_link_cannot_enter_a_loopback_connection() {
    let mut scene = Scene::new();
    (0..MANY).for_each(|number| scene.open(number));
    let to_self = scene.open_to_itself();
    let local = scene.servers[0].tcp_local_addr(to_self).unwrap();
    let honest = scene.run_of_data(1).remove(0);
    let mut forged = honest.clone();
    Ipv4Header::new(SERVER, SERVER, Protocol::TCP)
        .emit(honest.bytes.len() - TCP, &mut forged.bytes[IP..]);
    let ports = [local.port(), OWN_PORT].map(u16::to_be_bytes);
    forged.bytes[TCP..TCP + 4].copy_from_slice(ports.as_flattened());
    fix_segment(&mut forged.bytes);
    scene.turn(&mut Batch { frames: vec![honest, forged], shown: Shown::All }, usize::MAX);
    assert_eq!(scene.servers[0].counters().ip.in_header_errors, 1);
}

/// A connection is in TIME-WAIT, and its application still holds the handle. The next frame is the
/// SYN of a new connection with the same addresses and ports, for which the flow cache finds the
/// old connection. The SYN must open the new connection.
#[test]
fn a_cached_flow_in_time_wait_is_reopened_by_a_syn() {
    let mut scene = Scene::new();
    scene.open(0);
    let (client, server) = (scene.opened[0], scene.accepted[0]);
    let now = scene.now;
    for host in &mut scene.servers {
        host.tcp_shutdown_write(now, server).unwrap();
    }
    scene.carry(Damage::Nothing, 0, 0);
    scene.client.tcp_close(now, client).unwrap();
    (0..2).for_each(|_| scene.carry(Damage::Nothing, 0, 0));
    scene.opened.clear();
    scene.now += Duration::from_secs(1);
    scene.open(0);
    assert_eq!(scene.accepted.len(), 2, "the new connection is accepted");
}

/// Number of connections in tests of the lookup prefetch. It is large enough that the host uses the
/// prefetch.
const MANY: usize = 20;

#[derive(Clone, Debug)]
enum ManyStep {
    /// The client writes this number of bytes to each of these connections.
    Write(Vec<usize>, usize),
    /// The servers write this number of bytes to each of these connections.
    Answer(Vec<usize>, usize),
    /// The client resets a connection, and then opens a new one with the same ports.
    Reset(usize),
    Read,
    Carry(Shown),
}

fn many_step() -> impl Strategy<Value = ManyStep> {
    let some = || prop::collection::vec(0..MANY, 1..2 * MANY);
    let shown = prop_oneof![
        4 => Just(Shown::All),
        1 => Just(Shown::Reversed),
        1 => Just(Shown::Twice),
        1 => (1_usize..8).prop_map(Shown::Later),
        1 => (0_usize..8).prop_map(Shown::First),
    ];
    prop_oneof![

        4 => (some(), 1_usize..2_000)
            .prop_map(|(numbers, length)| ManyStep::Write(numbers, length)),

        2 => (some(), 1_usize..2_000)
            .prop_map(|(numbers, length)| ManyStep::Answer(numbers, length)),
        1 => (0..MANY).prop_map(ManyStep::Reset),
        2 => Just(ManyStep::Read),
        6 => shown.prop_map(ManyStep::Carry),
    ]
}

/// Returns the byte that is written to connection `number` in round `round`. Different connections
/// get different bytes in a round, so a test fails if data reaches the wrong connection.
fn byte_of(round: usize, number: usize) -> u8 {
    u8::try_from((round * MANY + number) % 251).unwrap()
}

/// Runs the steps on both servers, and checks that they behave equally. Only the first server has
/// the lookup prefetch.
fn run_many(steps: Vec<ManyStep>) {
    let mut scene = Scene::new();
    (0..MANY).for_each(|number| scene.open(number));
    for (round, step) in steps.into_iter().enumerate() {
        let (now, access) = (scene.now, Access::at(round));
        match step {
            ManyStep::Write(numbers, length) => {
                for number in numbers {
                    let data = vec![byte_of(round, number); length];
                    let _ =
                        access.write_socket(&mut scene.client, now, scene.opened[number], &data);
                }
            }
            ManyStep::Answer(numbers, length) => {
                for number in numbers {
                    scene.write_in(
                        access,
                        scene.accepted[number],
                        &vec![byte_of(round, number); length],
                    );
                }
                scene.answer();
            }
            ManyStep::Reset(number) => {
                let local = SocketAddrV4::new(CLIENT, 40_000 + u16::try_from(number).unwrap());
                let _ = scene.client.tcp_abort(now, scene.opened[number]);
                let options =
                    ConnectOptions { local: Some(local.into()), ..ConnectOptions::default() };
                let peer = SocketAddrV4::new(SERVER, PORT);
                // `tcp_connect` fails if the client has not sent the reset of the previous
                // connection yet, because the ports are then in use. In this case, the step opens
                // no new connection.
                if let Ok(handle) = scene.client.tcp_connect(now, peer, &options) {
                    scene.opened[number] = handle;
                }
            }
            ManyStep::Read => scene.read_in(access),
            ManyStep::Carry(shown) => scene.carry_at_once(shown),
        }
        scene.now += Duration::from_micros(100);
        scene.compare();
    }
}

/// One batch contains a reset, the SYN of a new connection with the same ports, and a late segment
/// of the connection that was reset. The lookup was prefetched for the old connection. The late
/// segment must reach neither connection, and is answered by a reset.
#[test]
fn a_connection_that_ends_within_a_batch_leaves_the_prefetch() {
    let mut scene = Scene::new();
    (0..MANY).for_each(|number| scene.open(number));
    let mut late = scene.run_of_data(1);
    scene.turn(&mut Batch { frames: late.clone(), shown: Shown::All }, usize::MAX);
    scene.answer();
    let (now, mut frames) = (scene.now, Vec::new());
    scene.client.tcp_abort(now, scene.opened[0]).unwrap();
    scene.fetch(&mut frames);
    scene
        .client
        .tcp_connect(now, SocketAddrV4::new(SERVER, PORT), &ConnectOptions::default())
        .unwrap();
    scene.fetch(&mut frames);
    frames.append(&mut late);
    assert_eq!(frames.len(), 3);
    let before = scene.servers[0].counters().tcp.out_resets;
    scene.turn(&mut Batch { frames, shown: Shown::All }, usize::MAX);
    scene.answer();
    assert_eq!(
        scene.servers[0].counters().tcp.out_resets,
        before + 1,
        "the late segment is answered by a reset"
    );
}

#[test]
fn a_coalesced_ack_is_processed_before_a_later_syn() {
    let answer = |length| ManyStep::Answer(vec![12], length);
    let carry = || ManyStep::Carry(Shown::All);
    let opened_again = || ManyStep::Reset(19);
    run_many(vec![
        opened_again(),
        answer(1),
        answer(1),
        carry(),
        opened_again(),
        answer(1),
        carry(),
    ]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn lookup_prefetch_behaves_like_no_prefetch(
        steps in prop::collection::vec(many_step(), 1..40),
    ) {
        run_many(steps);
    }
}
