//! A frame with the header of the frame before it takes a short way to its connection. Whatever arrives, a
//! host that knows the short way does what one does that judges every frame from its first byte on. So does one
//! that was shown what comes next, be that true or not, and one that tells a connection of all the data of a train at
//! once, wherever that is cut, or hears the last of several acknowledgements.

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
/// Where the server's host listens to itself.
const OWN_PORT: u16 = 81;
const IP: usize = 14;
const TCP: usize = IP + 20;

fn config(address: Ipv4Addr, frame_prediction: bool) -> StackConfig {
    let mac = MacAddress::new([2, 0, 0, 0, 0, address.octets()[3]]);
    let config = StackConfig::new(mac, format!("{address}/24").parse().unwrap());
    StackConfig { frame_prediction, ..config }
}

/// A client, and a server with its twin, which hear and do the same.
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

    /// The servers have receive buffers of so many bytes, and so many bytes for all of them.
    fn with_limits(receive_buffer: usize, buffer_bytes: usize) -> Self {
        Self::by(
            &Config { receive_buffer: receive_buffer.into(), ..Config::modern() },
            buffer_bytes,
        )
    }

    /// All have these rules, and the servers so many bytes for the buffers of all connections.
    fn by(rules: &Config, buffer_bytes: usize) -> Self {
        let mut servers = [true, false].map(|predicts| {
            let mut config = config(SERVER, predicts);
            config.tcp = *rules;
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
            client: Stack::new(StackConfig { tcp: *rules, ..config(CLIENT, true) }, [1; 32]),
            servers,
            listener,
            opened: Vec::new(),
            accepted: Vec::new(),
        }
    }

    /// Opens the connection with this number; what has had its ports before is reset.
    fn open(&mut self, number: usize) {
        self.open_over(number, Spoil::Nothing, 0, 0);
    }

    /// The same, and each frame to the servers comes spoilt first.
    fn open_over(&mut self, number: usize, spoil: Spoil, at: usize, value: u8) {
        let local = SocketAddrV4::new(CLIENT, 40_000 + u16::try_from(number).unwrap());
        if let Some(&handle) = self.opened.get(number) {
            self.client.tcp_abort(self.now, handle).unwrap();
            self.carry(Spoil::Nothing, 0, 0);
        }
        let options = ConnectOptions { local: Some(local), ..ConnectOptions::default() };
        let handle =
            self.client.tcp_connect(self.now, SocketAddrV4::new(SERVER, PORT), &options).unwrap();
        if number < self.opened.len() {
            self.opened[number] = handle;
        } else {
            self.opened.push(handle);
        }
        (0..4).for_each(|_| self.carry(spoil, at, value));
    }

    /// Opens a connection of the servers' host with itself: its end that writes.
    fn open_to_itself(&mut self) -> TcpHandle {
        let (now, door) = (self.now, SocketAddrV4::new(SERVER, OWN_PORT));
        let [one, other] = self.servers.each_mut().map(|server| {
            server.tcp_listen(door, &ListenOptions::default()).unwrap();
            server.tcp_connect(now, door, &ConnectOptions::default()).unwrap()
        });
        assert_eq!(one, other);
        let mut silence = Batch { frames: Vec::new(), shown: Shown::All };
        (0..4).for_each(|_| self.turn(&mut silence, 1));
        one
    }

    /// Carries what there is in both directions. Each frame to the servers comes spoilt first, and then whole.
    fn carry(&mut self, spoil: Spoil, at: usize, value: u8) {
        let mut frame = [0; 1_518];
        while let Some(sent) = self.client.poll_transmit(self.now, &mut frame) {
            let whole = frame[..sent.length].to_vec();
            if let Some((spoilt, checksum, segment)) = spoil.apply(&whole, at, value) {
                self.arrive(&spoilt, checksum, segment);
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

    /// Carries what there is in one batch, of which the servers are shown what is in `shown`.
    fn carry_at_once(&mut self, shown: Shown) {
        let mut frames = Vec::new();
        self.gather(&mut frames);
        self.turn(&mut Batch { frames, shown }, usize::MAX);
        self.answer();
        self.accept();
    }

    /// Fetches what the client has to send.
    fn gather(&mut self, frames: &mut Vec<Frame>) {
        let mut frame = [0; 1_518];
        while let Some(sent) = self.client.poll_transmit(self.now, &mut frame) {
            frames.push(Frame::new(&frame[..sent.length], self.now));
        }
    }

    /// The servers have a turn, for so many frames at most, and nothing of theirs leaves.
    fn turn(&mut self, batch: &mut Batch, receive: usize) {
        for server in &mut self.servers {
            server.turn(batch, Budget { receive, ..Budget::default() }, self.now).unwrap();
        }
        let count = batch.frames.len().min(receive);
        batch.frames.drain(..count);
        self.compare();
    }

    /// Both servers say the same, and the client hears it once.
    fn answer(&mut self) {
        while self.answer_once() {}
    }

    /// The same, and after each two frames the client's acknowledgement is on its way.
    fn answer_and_gather(&mut self, frames: &mut Vec<Frame>) {
        while self.answer_once() {
            self.answer_once();
            self.gather(frames);
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

    /// All applications of the servers read.
    fn read(&mut self) {
        self.read_in(Access::Copied);
    }

    /// Reads by this access mode; each call may return a part.
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

    /// The applications of the servers that hold `handle` write, in this way, of which each call may take a part.
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
                (Some(one), Some(other)) => one.assert_hears_like(&mut other.into_owned()),
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

/// A frame, and what the link says of it.
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

    fn lent(&self) -> RxFrame<'_> {
        let &Self { arrived, checksum, segment, .. } = self;
        RxFrame { checksum, segment, ..RxFrame::plain(&self.bytes, arrived) }
    }
}

/// Frames that have come together.
struct Batch {
    frames: Vec<Frame>,
    shown: Shown,
}

/// What is shown of them before they are handed over.
#[derive(Clone, Copy, Debug)]
enum Shown {
    All,
    Reversed,
    Twice,
    /// From this one on.
    Later(usize),
    /// Before this one.
    First(usize),
}

impl Link for Batch {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        let count = self.frames.len().min(budget);
        self.frames[..count].iter().for_each(|frame| on_frame(frame.lent()));
        Ok(count)
    }

    /// Those of which nothing else is known are lent together.
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
                sink.take(run[0].lent());
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

    /// It is full.
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

/// What is wrong with a copy of a frame.
#[derive(Clone, Copy, Debug)]
enum Spoil {
    Nothing,
    /// A byte is another one.
    Byte,
    /// The same, and the IP header's checksum fits.
    Packet,
    /// The same, and both checksums fit.
    Segment,
    /// Padded by the medium.
    Pad,
    /// Cut short.
    Cut,
    /// The link vouches for the checksum, wrong as it may be.
    Verified,
    /// The link says that segments were joined.
    Joined,
    /// It comes twice.
    Twice,
    /// A router was congested, or says with its codepoint that it could tell.
    Mark,
}

impl Spoil {
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
                mend_packet(&mut bytes);
            }
            Self::Segment => {
                bytes[at] = value;
                mend_segment(&mut bytes);
                mend_packet(&mut bytes);
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
                mend_packet(&mut bytes);
            }
        }
        Some((bytes, told.0, told.1))
    }
}

fn mend_packet(bytes: &mut [u8]) {
    if let Some(header) = bytes.get_mut(IP..TCP) {
        header[10..12].fill(0);
        let checksum = Sum::of(header).finish();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

fn mend_segment(bytes: &mut [u8]) {
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
    Open(usize, Spoil, u8),
    Write(usize, usize),
    Read,
    Wait(u64),
    Carry(Spoil, usize, u8),
}

fn step() -> impl Strategy<Value = Step> {
    use Spoil::{Byte, Cut, Joined, Mark, Nothing, Packet, Pad, Segment, Twice, Verified};
    let spoil = prop::sample::select(vec![
        Nothing, Byte, Packet, Segment, Pad, Cut, Verified, Joined, Twice, Mark,
    ]);
    let odd = prop::sample::select(vec![Nothing, Pad, Joined, Twice, Mark]);
    prop_oneof![
        1 => (0_usize..2, odd, any::<u8>()).prop_map(|(number, odd, value)| Step::Open(number, odd, value)),
        4 => (0_usize..2, 1_usize..5_000).prop_map(|(number, length)| Step::Write(number, length)),
        2 => Just(Step::Read),
        1 => (0_u64..300_000_000).prop_map(Step::Wait),
        8 => (spoil, prop_oneof![4 => 0_usize..80, 1 => 0_usize..1_514], any::<u8>())
            .prop_map(|(spoil, at, value)| Step::Carry(spoil, at, value)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_host_that_predicts_frames_does_what_one_does_that_judges_them_all(
        counts_marks: bool,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let accurate_ecn = if counts_marks { EcnRule::Request } else { EcnRule::Off };
        let rules = Config { accurate_ecn, receive_buffer: (256 << 10).into(), ..Config::modern() };
        let mut scene = Scene::by(&rules, Limits::default().buffer_bytes);
        (0..2).for_each(|number| scene.open(number));
        for step in steps {
            match step {
                Step::Open(number, spoil, value) => scene.open_over(number, spoil, 0, value),
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
                Step::Carry(spoil, at, value) => scene.carry(spoil, at, value),
            }
            scene.compare();
        }
    }
}

/// What happens to frames of a batch.
#[derive(Clone, Debug)]
enum Change {
    /// One comes spoilt in its own place.
    Spoil(Spoil, usize, u8),
    Lose,
    Repeat,
    /// One comes earlier.
    Overtake(usize),
    /// It, and those behind it, are stamped with a time so many nanoseconds before that of the turn.
    Stamp(u64),
    /// It is stamped with a time so many nanoseconds after that of the turn, since the link's clock is ahead.
    StampAhead(u64),
    /// It is pushed, or it is not.
    Push,
    /// Its packet is counted.
    Identify(u8),
}

impl Change {
    fn apply(&self, frames: &mut Vec<Frame>, at: usize, now: Instant) {
        let at = at % frames.len();
        match *self {
            // Nothing is left of one that was cut before.
            Self::Spoil(..) if frames[at].bytes.is_empty() => {}
            Self::Spoil(spoil, byte, value) => {
                if let Some((bytes, checksum, segment)) =
                    spoil.apply(&frames[at].bytes, byte, value)
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
                mend_segment(&mut frames[at].bytes);
            }
            Self::Identify(value) => {
                if let Some(identification) = frames[at].bytes.get_mut(IP + 5) {
                    *identification = value;
                }
                mend_packet(&mut frames[at].bytes);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum TrainStep {
    Write(usize, usize),
    /// Both servers do.
    Answer(usize, usize),
    /// The same, much of it, and the client acknowledges every other segment.
    Acknowledge(usize, usize),
    /// What the client has to send is on its way.
    Gather,
    Wait(u64),
    Read,
    /// The client has said all.
    CompletedBy(usize),
    /// The servers have, while the client may go on.
    Shut(usize),
    /// The servers reset a connection while there may be more of it on its way.
    Abort(usize),
    /// What is on its way has changed, and arrives, so many frames in a turn. Perhaps the servers' answers to one
    /// turn leave only after the next.
    Carry(Vec<(usize, Change)>, usize, bool, Vec<Between>),
}

/// What happens to the servers between two turns, while there are frames of the same train on their way.
#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    Read,
    Answer(usize, usize),
    /// Their host sends something to itself.
    TellItself,
    /// A little time goes by.
    Wait(u64),
    Shut(usize),
    Abort(usize),
}

impl Between {
    fn happen(self, scene: &mut Scene, itself: TcpHandle) {
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
            Self::TellItself => each(scene, &|server| _ = server.tcp_write(now, itself, &[9; 300])),
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

fn train_step() -> impl Strategy<Value = TrainStep> {
    use Spoil::{Byte, Cut, Joined, Mark, Packet, Pad, Segment, Verified};
    let spoil = prop::sample::select(vec![Byte, Packet, Segment, Pad, Cut, Verified, Joined, Mark]);
    let byte = prop_oneof![4 => 0_usize..80, 1 => 0_usize..1_514];
    let change = prop_oneof![
        3 => (spoil, byte, any::<u8>()).prop_map(|(spoil, at, value)| Change::Spoil(spoil, at, value)),
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
        4 => Just(Between::TellItself),
        4 => (0_u64..900_000).prop_map(Between::Wait),
        1 => (0_usize..2).prop_map(Between::Shut),
        1 => (0_usize..2).prop_map(Between::Abort),
    ];
    let happens = prop::collection::vec(between, 0..8);
    let turn = prop_oneof![1 => 1_usize..6, 1 => 1_usize..70];
    prop_oneof![
        4 => (0_usize..2, 1_usize..40_000).prop_map(|(number, length)| TrainStep::Write(number, length)),
        1 => (0_usize..2, 1_usize..4_000).prop_map(|(number, length)| TrainStep::Answer(number, length)),
        2 => (0_usize..2, 4_000_usize..40_000)
            .prop_map(|(number, length)| TrainStep::Acknowledge(number, length)),
        3 => Just(TrainStep::Gather),
        1 => (0_u64..3_000_000).prop_map(TrainStep::Wait),
        1 => (0_u64..300_000_000).prop_map(TrainStep::Wait),
        4 => Just(TrainStep::Read),
        1 => (0_usize..40).prop_map(TrainStep::CompletedBy),
        1 => (0_usize..20).prop_map(TrainStep::Shut),
        1 => (0_usize..40).prop_map(TrainStep::Abort),
        8 => (changes, turn, any::<bool>(), happens)
            .prop_map(|(changes, turn, late, happens)| TrainStep::Carry(changes, turn, late, happens)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_host_that_takes_in_trains_does_what_one_does_that_takes_in_segments(
        (receive_buffer, buffer_bytes) in (
            prop::sample::select(vec![6_000, 20_000, 60_000, 256 << 10]),
            prop::sample::select(vec![32 << 10, 200 << 10, 64 << 20]),
        ),
        steps in prop::collection::vec(train_step(), 1..80),
    ) {
        let mut scene = Scene::with_limits(receive_buffer, buffer_bytes);
        (0..2).for_each(|number| scene.open(number));
        let itself = scene.open_to_itself();
        let mut under_way = Vec::new();
        for step in steps {
            let now = scene.now;
            match step {
                TrainStep::Write(number, length) => {
                    let data: Vec<u8> = (0..=250).cycle().take(length).collect();
                    let _ = scene.client.tcp_write(now, scene.opened[number], &data);
                }
                TrainStep::Answer(number, length) => {
                    let handle = scene.accepted[number];
                    let [one, other] =
                        scene.servers.each_mut().map(|server| server.tcp_write(now, handle, &vec![7; length]));
                    prop_assert_eq!(one, other);
                }
                TrainStep::Acknowledge(number, length) => {
                    let handle = scene.accepted[number];
                    let [one, other] =
                        scene.servers.each_mut().map(|server| server.tcp_write(now, handle, &vec![7; length]));
                    prop_assert_eq!(one, other);
                    scene.answer_and_gather(&mut under_way);
                }
                TrainStep::Gather => scene.gather(&mut under_way),
                TrainStep::Wait(nanos) => {
                    scene.now += Duration::from_nanos(nanos);
                    let now = scene.now;
                    scene.client.handle_timeout(now, 100);
                    // Longer than frames are under way, the servers wait for nothing but them.
                    if nanos > 3_000_000 {
                        scene.servers.iter_mut().for_each(|server| {
                            server.handle_timeout(now, 100);
                        });
                    }
                }
                TrainStep::Read => scene.read(),
                TrainStep::CompletedBy(number) => {
                    if let Some(&handle) = scene.opened.get(number) {
                        let _ = scene.client.tcp_shutdown_write(now, handle);
                    }
                }
                TrainStep::Shut(number) => {
                    if let Some(&handle) = scene.accepted.get(number) {
                        for host in &mut scene.servers {
                            let _ = host.tcp_shutdown_write(now, handle);
                        }
                    }
                }
                TrainStep::Abort(number) => {
                    if let Some(&handle) = scene.accepted.get(number) {
                        for host in &mut scene.servers {
                            let _ = host.tcp_abort(now, handle);
                        }
                    }
                }
                TrainStep::Carry(changes, receive, late, happens) => {
                    scene.gather(&mut under_way);
                    scene.now += Duration::from_millis(1);
                    let now = scene.now;
                    for (at, change) in changes {
                        if !under_way.is_empty() {
                            change.apply(&mut under_way, at, now);
                        }
                    }
                    let frames = core::mem::take(&mut under_way);
                    let mut batch = Batch { frames, shown: Shown::All };
                    let mut happens = happens.into_iter();
                    while !batch.frames.is_empty() {
                        scene.turn(&mut batch, receive);
                        if !late {
                            scene.answer();
                        }
                        if let Some(between) = happens.next() {
                            between.happen(&mut scene, itself);
                        }
                    }
                    scene.answer();
                }
            }
            scene.compare();
        }
    }
}

/// What may come first in answer to a SYN: these control bits, and what is acknowledged beyond that.
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
fn an_answer_to_a_syn_is_taken_on_the_short_way_as_on_the_long_one() {
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
        scene.gather(&mut frames);
        let whole = &frames[0].bytes;
        let mut odd = whole.clone();
        odd[TCP + 13] = bits;
        odd[TCP + 11] = odd[TCP + 11].wrapping_add(beyond);
        mend_segment(&mut odd);
        scene.now += Duration::from_millis(1);
        scene.arrive(&odd, RxChecksum::Unverified, None);
        scene.answer();
        scene.arrive(whole, RxChecksum::Unverified, None);
        (0..4).for_each(|_| scene.carry(Spoil::Nothing, 0, 0));
    }
}

#[test]
fn a_train_that_goes_on_finds_a_connection_that_expects_something_else() {
    let mut scene = Scene::new();
    scene.open(0);
    let (client, server) = (scene.opened[0], scene.accepted[0]);
    let mut batch = Batch { frames: Vec::new(), shown: Shown::All };
    for round in 0..12 {
        scene.now += Duration::from_millis(1);
        scene.client.tcp_write(scene.now, client, &[7; 8 * 1_448]).unwrap();
        scene.gather(&mut batch.frames);
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
    /// Trains have come, and were read and answered: the connection is in full flow.
    fn warm_up(&mut self) {
        let mut batch = Batch { frames: Vec::new(), shown: Shown::All };
        for _ in 0..10 {
            self.now += Duration::from_millis(1);
            self.client.tcp_write(self.now, self.opened[0], &[7; 8 * 1_448]).unwrap();
            self.gather(&mut batch.frames);
            self.turn(&mut batch, usize::MAX);
            (0..3).for_each(|_| self.read());
            self.answer();
        }
    }

    /// The frames of the next train.
    fn train(&mut self, segments: usize) -> Vec<Frame> {
        self.now += Duration::from_millis(1);
        self.client.tcp_write(self.now, self.opened[0], &vec![7; segments * 1_448]).unwrap();
        let mut frames = Vec::new();
        self.gather(&mut frames);
        assert_eq!(frames.len(), segments);
        frames
    }

    /// The servers write so many segments.
    fn tell(&mut self, segments: usize) {
        let (now, handle, data) = (self.now, self.accepted[0], vec![7; segments * 1_448]);
        for server in &mut self.servers {
            assert_eq!(server.tcp_write(now, handle, &data), Ok(data.len()));
        }
    }

    fn statistics(&mut self) -> linerate_tcp::Statistics {
        self.servers[0].tcp(self.accepted[0]).unwrap().statistics().clone()
    }
}

/// The same segment, sent so many milliseconds later.
fn restamped(frame: &Frame, later: u32) -> Frame {
    let mut bytes = frame.bytes.clone();
    let place = bytes[TCP + TcpHeader::LENGTH + 4..].first_chunk_mut().unwrap();
    *place = (u32::from_be_bytes(*place) + later).to_be_bytes();
    mend_segment(&mut bytes);
    let options = Segment::parse(&bytes[TCP..]).unwrap().options;
    assert!(Timestamps::alone(options).is_some());
    Frame { bytes, ..frame.clone() }
}

/// PAWS (RFC 7323 §5.3): the first segment once more, sent later, takes the timestamp on; what belongs to the train that it
/// has interrupted is from the past then.
#[test]
fn a_train_is_over_with_the_first_frame_that_is_none_of_it() {
    let mut scene = Scene::new();
    scene.open(0);
    scene.warm_up();
    let mut frames = scene.train(6);
    frames.insert(3, restamped(&frames[0], 5));
    scene.turn(&mut Batch { frames, shown: Shown::All }, usize::MAX);
    assert_eq!(scene.statistics().old_timestamps, 3);
}

/// The same of an acknowledgement that waits: it is heard before data that come behind it, whether those acknowledge less
/// or more.
#[test]
fn data_behind_an_acknowledgement_find_it_heard() {
    for later in [false, true] {
        let mut scene = Scene::new();
        scene.open(0);
        scene.warm_up();
        scene.tell(2);
        scene.answer();
        let mut frames = Vec::new();
        scene.gather(&mut frames);
        assert_eq!(frames.len(), 1);
        if later {
            scene.tell(2);
            (0..2).for_each(|_| assert!(scene.answer_once()));
        }
        let mut data = scene.train(1);
        if !later {
            let place = data[0].bytes[TCP + 8..].first_chunk_mut().unwrap();
            *place = (u32::from_be_bytes(*place) - 2 * 1_448).to_be_bytes();
            mend_segment(&mut data[0].bytes);
        }
        frames.extend(data);
        let before = scene.statistics();
        scene.turn(&mut Batch { frames, shown: Shown::All }, usize::MAX);
        assert_eq!(scene.statistics().prediction.acks - before.prediction.acks, 1);
    }
}

/// An acknowledgement for each of so many pairs of segments, which come together.
fn acknowledgements(scene: &mut Scene, pairs: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    for _ in 0..pairs {
        scene.tell(2);
        scene.answer();
        scene.now += Duration::from_micros(10);
        scene.gather(&mut frames);
    }
    assert_eq!(frames.len(), pairs);
    frames
}

/// RFC 9768 §3.2.2: what a router has marked is counted, whichever acknowledgement it is.
#[test]
fn a_marked_acknowledgement_waits_for_none_and_none_for_it() {
    let mut scene = Scene::new();
    scene.open(0);
    scene.warm_up();
    let mut frames = acknowledgements(&mut scene, 3);
    let (marked, ..) = Spoil::Mark.apply(&frames[1].bytes, 0, 0).unwrap();
    frames[1].bytes = marked;
    scene.turn(&mut Batch { frames, shown: Shown::All }, usize::MAX);
    assert_eq!(scene.servers[0].counters().tcp_extra.marked_segments, 1);
}

/// What a link stamps with a time that has not come yet has come now.
#[test]
fn stamps_of_a_clock_that_is_ahead_are_those_of_the_turn() {
    let ahead = Duration::from_millis(40);
    let mut scene = Scene::new();
    scene.open(0);
    scene.warm_up();
    let mut frames = acknowledgements(&mut scene, 3);
    let now = scene.now;
    frames[2].arrived = now + ahead;
    scene.turn(&mut Batch { frames, shown: Shown::All }, usize::MAX);
    // A train goes on after a while in which the host has heard nothing.
    let mut frames = scene.train(9);
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

/// What the connection may take has changed: another one holds memory now, or as much has gone through this one as it
/// holds.
#[test]
fn a_train_that_goes_on_is_told_of_other_memory() {
    for is_warm in [false, true] {
        let mut scene = Scene::new();
        (0..2).for_each(|number| scene.open(number));
        if is_warm {
            scene.warm_up();
        }
        let frames = scene.train(9);
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

/// RFC 1122 §3.2.1.3: an address of this host is none from which something comes on the link, also where the packet before
/// was one of the host to itself.
#[test]
fn nobody_on_the_link_speaks_in_a_conversation_of_the_host_with_itself() {
    let mut scene = Scene::new();
    scene.open(0);
    let itself = scene.open_to_itself();
    let mut frame = scene.train(1).remove(0);
    let now = scene.now;
    for server in &mut scene.servers {
        server.tcp_write(now, itself, &[9; 300]).unwrap();
    }
    let local = scene.servers[0].tcp_local_addr(itself).unwrap();
    scene.turn(&mut Batch { frames: Vec::new(), shown: Shown::All }, 1);
    for ports in [[OWN_PORT, local.port()], [local.port(), OWN_PORT]] {
        Ipv4Header::new(SERVER, SERVER, Protocol::TCP)
            .emit(frame.bytes.len() - TCP, &mut frame.bytes[IP..]);
        frame.bytes[TCP..TCP + 4].copy_from_slice(ports.map(u16::to_be_bytes).as_flattened());
        mend_segment(&mut frame.bytes);
        let before = scene.servers[0].counters().ip.in_header_errors;
        scene.arrive(&frame.bytes, frame.checksum, None);
        assert_eq!(scene.servers[0].counters().ip.in_header_errors, before + 1);
    }
}

/// The same where a host with many connections looks at what comes next.
#[test]
fn nobody_on_the_link_is_foreseen_to_speak_in_a_conversation_of_the_host_with_itself() {
    let mut scene = Scene::new();
    (0..MANY).for_each(|number| scene.open(number));
    let itself = scene.open_to_itself();
    let local = scene.servers[0].tcp_local_addr(itself).unwrap();
    let honest = scene.train(1).remove(0);
    let mut forged = honest.clone();
    Ipv4Header::new(SERVER, SERVER, Protocol::TCP)
        .emit(honest.bytes.len() - TCP, &mut forged.bytes[IP..]);
    let ports = [local.port(), OWN_PORT].map(u16::to_be_bytes);
    forged.bytes[TCP..TCP + 4].copy_from_slice(ports.as_flattened());
    mend_segment(&mut forged.bytes);
    scene.turn(&mut Batch { frames: vec![honest, forged], shown: Shown::All }, usize::MAX);
    assert_eq!(scene.servers[0].counters().ip.in_header_errors, 1);
}

/// An application still holds the connection that was closed; the SYN of the next one is in a frame like the last.
#[test]
fn a_connection_in_time_wait_that_an_application_holds_is_opened_again_by_a_frame_like_the_one_before()
 {
    let mut scene = Scene::new();
    scene.open(0);
    let (client, server) = (scene.opened[0], scene.accepted[0]);
    let now = scene.now;
    for host in &mut scene.servers {
        host.tcp_shutdown_write(now, server).unwrap();
    }
    scene.carry(Spoil::Nothing, 0, 0);
    scene.client.tcp_close(now, client).unwrap();
    (0..2).for_each(|_| scene.carry(Spoil::Nothing, 0, 0));
    scene.opened.clear();
    scene.now += Duration::from_secs(1);
    scene.open(0);
    assert_eq!(scene.accepted.len(), 2, "somebody was let in again");
}

/// More than a host has at hand.
const MANY: usize = 20;

#[derive(Clone, Debug)]
enum ManyStep {
    /// The client writes so many bytes to each of these, so many times.
    Write(Vec<usize>, usize),
    /// The servers do.
    Answer(Vec<usize>, usize),
    /// The client resets a connection, and opens another between the same ports at once.
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
        4 => (some(), 1_usize..2_000).prop_map(|(numbers, length)| ManyStep::Write(numbers, length)),
        2 => (some(), 1_usize..2_000).prop_map(|(numbers, length)| ManyStep::Answer(numbers, length)),
        1 => (0..MANY).prop_map(ManyStep::Reset),
        2 => Just(ManyStep::Read),
        6 => shown.prop_map(ManyStep::Carry),
    ]
}

/// What is written to a connection in a round: nothing that others are written.
fn of(round: usize, number: usize) -> u8 {
    u8::try_from((round * MANY + number) % 251).unwrap()
}

/// Two servers, of which one looks ahead, live through the same.
fn live_through(steps: Vec<ManyStep>) {
    let mut scene = Scene::new();
    (0..MANY).for_each(|number| scene.open(number));
    for (round, step) in steps.into_iter().enumerate() {
        let (now, way) = (scene.now, Access::at(round));
        match step {
            ManyStep::Write(numbers, length) => {
                for number in numbers {
                    let data = vec![of(round, number); length];
                    let _ = way.write_socket(&mut scene.client, now, scene.opened[number], &data);
                }
            }
            ManyStep::Answer(numbers, length) => {
                for number in numbers {
                    scene.write_in(way, scene.accepted[number], &vec![of(round, number); length]);
                }
                scene.answer();
            }
            ManyStep::Reset(number) => {
                let local = SocketAddrV4::new(CLIENT, 40_000 + u16::try_from(number).unwrap());
                let _ = scene.client.tcp_abort(now, scene.opened[number]);
                let options = ConnectOptions { local: Some(local), ..ConnectOptions::default() };
                let peer = SocketAddrV4::new(SERVER, PORT);
                // Its reset may not have left yet.
                if let Ok(handle) = scene.client.tcp_connect(now, peer, &options) {
                    scene.opened[number] = handle;
                }
            }
            ManyStep::Read => scene.read_in(way),
            ManyStep::Carry(shown) => scene.carry_at_once(shown),
        }
        scene.now += Duration::from_micros(100);
        scene.compare();
    }
}

/// A connection is reset, another is opened, and what the first had sent comes once more, all in one batch that the host has
/// looked at: nobody hears what was meant for the one that is gone.
#[test]
fn a_connection_that_ends_in_a_batch_is_not_foreseen_for_the_rest_of_it() {
    let mut scene = Scene::new();
    (0..MANY).for_each(|number| scene.open(number));
    let mut late = scene.train(1);
    scene.turn(&mut Batch { frames: late.clone(), shown: Shown::All }, usize::MAX);
    scene.answer();
    let (now, mut frames) = (scene.now, Vec::new());
    scene.client.tcp_abort(now, scene.opened[0]).unwrap();
    scene.gather(&mut frames);
    scene
        .client
        .tcp_connect(now, SocketAddrV4::new(SERVER, PORT), &ConnectOptions::default())
        .unwrap();
    scene.gather(&mut frames);
    frames.append(&mut late);
    assert_eq!(frames.len(), 3);
    let before = scene.servers[0].counters().tcp.out_resets;
    scene.turn(&mut Batch { frames, shown: Shown::All }, usize::MAX);
    scene.answer();
    assert_eq!(
        scene.servers[0].counters().tcp.out_resets,
        before + 1,
        "it is told that it is gone"
    );
}

#[test]
fn an_acknowledgement_that_waits_is_heard_before_a_syn_behind_it_is_answered() {
    let answer = |length| ManyStep::Answer(vec![12], length);
    let carry = || ManyStep::Carry(Shown::All);
    let opened_again = || ManyStep::Reset(19);
    live_through(vec![
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
    fn a_host_that_looks_ahead_does_what_one_does_that_does_not(
        steps in prop::collection::vec(many_step(), 1..40),
    ) {
        live_through(steps);
    }
}
