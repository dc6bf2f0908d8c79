//! Two connections and the network between them, in virtual time.
//!
//! Every segment that arrives at a connection is also delivered to a twin: a clone of the
//! connection without header prediction. The connection and its twin must then be in equal states
//! and send equal segments. The invariants of each connection are checked after every step.

use crate::arrival::arrive;
use crate::forger::Forger;
use crate::{Fate, Network, Wire};
use linerate_tcp::{
    AckWindow, Batch, BatchContent, Config, Connection, ControlRun, DataRun, Disposition, Error,
    Event, FastOpenOffer, ListenVerdict, Offload, Path, Refusal, Reset, Seeds, ShortRun, State,
    Transmit, judge_listen, judge_unconnected,
};
use linerate_units::{Duration, Instant};
use linerate_wire::{Ecn, FastOpenCookie, Segment, SeqNum};
use std::sync::Arc;

/// One endpoint of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The endpoint that opens the connection actively.
    Client,
    /// The endpoint that opens the connection passively.
    Server,
}

impl End {
    /// Returns the opposite endpoint.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A function that is called for every segment that an endpoint sends, and returns the fate of the
/// segment in the network. `None` means a random fate.
type Filter = Box<dyn FnMut(Instant, End, &Segment<'_>) -> Option<Fate>>;

/// A client, a server, and the network between them. The server exists once the client's SYN has
/// arrived.
pub struct Connections {
    /// The current virtual time, equal at both endpoints.
    pub now: Instant,
    /// The endpoint that opens the connection actively.
    pub client: Connection,
    /// The endpoint that opens the connection passively; `None` until the first SYN arrives.
    pub server: Option<Connection>,
    wire: Wire<End>,
    server_config: Config,
    path: Path,
    seeds: Seeds,
    /// Whether the server accepts the client's Fast Open cookie.
    lets_in: bool,
    filter: Filter,
    forger: Option<Forger>,
    steps: u64,
}

impl core::fmt::Debug for Connections {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Connections")
            .field("now", &self.now)
            .field("client", &self.client)
            .field("server", &self.server)
            .field("wire", &self.wire)
            .finish_non_exhaustive()
    }
}

/// The default path of both endpoints, with the MTU of Ethernet.
const ETHERNET: Path = Path::ipv4(1_500);

/// Maximum number of steps in a test. A test that exceeds it fails, because it probably never ends.
const MOST_STEPS: u64 = 20_000_000;

impl Connections {
    /// Creates a client that will send its SYN, over a path with the MTU of Ethernet.
    #[must_use]
    pub fn new(client: &Config, server: &Config, network: Network, seed: u64) -> Self {
        let mut random = oorandom::Rand32::new(seed);
        let mut seeds = || Seeds {
            initial_sequence: SeqNum::new(random.rand_u32()),
            timestamp_offset: random.rand_u32(),
        };
        let (client_seeds, server_seeds) = (seeds(), seeds());
        Self::with_seeds(client, server, network, seed, [client_seeds, server_seeds])
    }

    /// Creates a client that will send its SYN, with the given initial sequence numbers of both
    /// endpoints.
    #[must_use]
    pub fn with_initial_sequences(
        client: &Config,
        server: &Config,
        network: Network,
        iss: [u32; 2],
    ) -> Self {
        let seeds = |number| Seeds { initial_sequence: SeqNum::new(number), timestamp_offset: 7 };
        Self::with_seeds(client, server, network, u64::from(iss[0]), iss.map(seeds))
    }

    fn with_seeds(
        client: &Config,
        server: &Config,
        network: Network,
        seed: u64,
        [client_seeds, server_seeds]: [Seeds; 2],
    ) -> Self {
        // Connections do not verify checksums, because that is the task of a host. A host would
        // drop a corrupted packet, so the corruption of a packet is replaced by its loss here.
        let network = Network { loss: network.loss + network.corruption, corruption: 0, ..network };
        let now = Instant::ZERO + Duration::from_secs(1);
        Self {
            now,
            client: Connection::connect(client, ETHERNET, client_seeds, now),
            server: None,
            wire: Wire::new(network, seed),
            server_config: *server,
            path: ETHERNET,
            seeds: server_seeds,
            lets_in: false,
            filter: Box::new(|_, _, _| None),
            forger: None,
            steps: 0,
        }
    }

    /// Gives the client a Fast Open cookie, so that its SYN carries the data that are written first
    /// (RFC 7413). The server accepts the cookie if `lets_in` is true, and otherwise sends a
    /// different cookie.
    ///
    /// # Panics
    /// Never: eight bytes are a valid length of a cookie.
    #[must_use]
    pub fn opened_fast(mut self, lets_in: bool) -> Self {
        let cookie = FastOpenCookie::new(&[1; 8]).expect("eight bytes");
        self.client.driver().try_fast_open(FastOpenOffer::Data { cookie, mss: Some(1_460) });
        self.lets_in = lets_in;
        self
    }

    /// Adds an attacker who forges segments: on average `share` for every thousand genuine segments
    /// that arrive. The connections must refuse each forged segment.
    #[must_use]
    pub fn with_forger(mut self, share: u32, seed: u64) -> Self {
        self.forger = Some(Forger::new(share, seed));
        self
    }

    /// Replaces the path of both endpoints. By default, the path has the MTU of Ethernet.
    #[must_use]
    pub fn over(mut self, client: &Config, path: Path) -> Self {
        let seeds = Seeds { initial_sequence: SeqNum::new(3), timestamp_offset: 11 };
        self.client = Connection::connect(client, path, seeds, self.now);
        self.path = path;
        self
    }

    /// Calls `filter` for every segment that is sent. A fate that `filter` returns replaces the
    /// random fate.
    pub fn set_filter(
        &mut self,
        filter: impl FnMut(Instant, End, &Segment<'_>) -> Option<Fate> + 'static,
    ) {
        self.filter = Box::new(filter);
    }

    /// Runs the handshake over the network, and returns when both endpoints are in ESTABLISHED.
    #[must_use]
    pub fn established(mut self) -> Self {
        self.run_until("both ends are established", |pair| {
            pair.client.state() == State::Established
                && pair.server.as_ref().is_some_and(|server| server.state() == State::Established)
        });
        self
    }

    /// Returns one endpoint of the connection.
    ///
    /// # Panics
    /// If `side` is the server and no SYN has arrived yet.
    pub fn end(&mut self, side: End) -> &mut Connection {
        match side {
            End::Client => &mut self.client,
            End::Server => self.server.as_mut().expect("a SYN has arrived"),
        }
    }

    /// Returns the server.
    ///
    /// # Panics
    /// If the SYN has not arrived yet.
    pub fn server(&mut self) -> &mut Connection {
        self.end(End::Server)
    }

    /// Removes and returns all queued events of one endpoint.
    pub fn events(&mut self, side: End) -> Vec<Event> {
        let end = self.end(side);
        core::iter::from_fn(|| end.driver().poll_event()).collect()
    }

    /// Reads all data that can be read at one endpoint.
    ///
    /// # Errors
    /// The error that ended the connection, if there is nothing more to read.
    pub fn read_all(&mut self, side: End) -> Result<Vec<u8>, Error> {
        let now = self.now;
        let end = self.end(side);
        let mut data = Vec::new();
        let mut part = [0; 4_096];
        loop {
            match end.read(now, &mut part) {
                Ok(0) | Err(Error::WouldBlock) => return Ok(data),
                Ok(count) => data.extend_from_slice(&part[..count]),
                Err(_) if !data.is_empty() => return Ok(data),
                Err(error) => return Err(error),
            }
        }
    }

    /// Advances the time by `span`. Segments that arrive and timers that expire within this time
    /// are handled.
    pub fn pass_time(&mut self, span: Duration) {
        let until = self.now + span;
        self.transmit(End::Client);
        self.transmit(End::Server);
        while self.next_moment() <= until {
            self.step();
            self.transmit(End::Client);
            self.transmit(End::Server);
        }
        self.now = until;
    }

    /// Runs until `done` returns true. `goal` describes this condition in the message of a panic.
    ///
    /// # Panics
    /// If nothing more will happen, or `MOST_STEPS` steps have been made, before `done` returns
    /// true.
    pub fn run_until(&mut self, goal: &str, mut done: impl FnMut(&mut Self) -> bool) {
        while !done(self) {
            assert!(self.step(), "nothing happens any more, and not yet: {goal}\n{self:?}");
            assert!(self.steps < MOST_STEPS, "no end in sight: {goal}\n{self:?}");
        }
    }

    /// Runs until no segment is in flight and no timer is running.
    ///
    /// # Panics
    /// If that takes more than `MOST_STEPS` steps.
    pub fn run_to_silence(&mut self) {
        while self.step() {
            assert!(self.steps < MOST_STEPS, "never silent\n{self:?}");
        }
    }

    /// Sends the pending segments of both endpoints, then advances to the next event: the arrival
    /// of a segment or the expiry of a timer. Returns false if there is no such event.
    pub fn step(&mut self) -> bool {
        self.steps += 1;
        self.transmit(End::Client);
        self.transmit(End::Server);
        let moment = self.next_moment();
        if moment == Instant::NEVER {
            return false;
        }
        self.now = self.now.max(moment);
        self.fire_timers();
        self.deliver_one();
        true
    }

    /// Sends the pending segments of both endpoints. If the next event is not later than `limit`,
    /// advances to it and returns true. Otherwise, advances to `limit` and returns false.
    pub fn step_until(&mut self, limit: Instant) -> bool {
        self.transmit(End::Client);
        self.transmit(End::Server);
        let happens = self.next_moment() <= limit;
        if !happens {
            self.now = limit;
        }
        happens && self.step()
    }

    /// Delivers the segment `bytes` to one endpoint, as if a third party had sent it.
    ///
    /// # Panics
    /// If `bytes` cannot be parsed as a segment.
    pub fn inject(&mut self, to: End, bytes: &[u8]) {
        let segment = Segment::parse(bytes).expect("a segment");
        self.deliver(to, &segment, Ecn::NotEct);
    }

    fn next_moment(&self) -> Instant {
        let server = self.server.as_ref().map_or(Instant::NEVER, Connection::poll_timeout);
        self.wire.next().min(self.client.poll_timeout()).min(server)
    }

    fn transmit(&mut self, from: End) {
        if from == End::Server && self.server.is_none() {
            return;
        }
        let mut frame = vec![0; self.path.link_payload];
        let mut header = 0;
        loop {
            let now = self.now;
            let end = self.end(from);
            let sent = continue_burst(end, now, header, &mut frame)
                .or_else(|| poll_with_twin(end, now, &mut frame));
            end.check();
            let Some(sent) = sent else { return };
            header = sent.header;
            assert_eq!(
                sent.sum.finish(),
                linerate_wire::Sum::of(&frame[..sent.length]).finish(),
                "the sum taken while building is not that of the bytes"
            );
            self.send(from, &frame[..sent.length], sent.ecn);
        }
    }

    fn send(&mut self, from: End, bytes: &[u8], ecn: Ecn) {
        let segment = Segment::parse(bytes).expect("what we send can be parsed");
        let fate = (self.filter)(self.now, from, &segment);
        let fate = match fate {
            Some(Fate::Spoil(_)) => Some(Fate::Lose),
            fate => fate,
        };
        self.wire.send(self.now, from.other(), bytes.to_vec(), ecn, fate);
    }

    fn fire_timers(&mut self) {
        let now = self.now;
        for end in core::iter::once(&mut self.client).chain(self.server.as_mut()) {
            if end.poll_timeout() <= now {
                end.driver().handle_timeout(now);
                end.check();
                assert!(end.poll_timeout() > now, "a timer expires for ever");
            }
        }
    }

    /// Delivers one of the packets that have arrived by now: the one that arrived first.
    fn deliver_one(&mut self) {
        if let Some(packet) = self.wire.arrive(self.now) {
            let segment = Segment::parse(&packet.bytes).expect("what we send can be parsed");
            self.deliver_forged(packet.to, &segment);
            self.deliver(packet.to, &segment, packet.ecn);
        }
    }

    /// Delivers a forged segment just before the segment `genuine`, if the forger's random numbers
    /// choose so. The endpoint must refuse the forged segment.
    fn deliver_forged(&mut self, to: End, genuine: &Segment<'_>) {
        if to == End::Server && self.server.is_none() {
            return;
        }
        let forged = self.forger.as_mut().and_then(|forger| forger.forge(genuine));
        if let Some((bytes, ecn)) = forged {
            let segment = Segment::parse(&bytes).expect("a segment");
            let disposition = self.give(to, &segment, ecn);
            assert!(
                matches!(disposition, Disposition::Refused(_)),
                "{disposition:?} of {segment:?}"
            );
        }
    }

    fn deliver(&mut self, to: End, segment: &Segment<'_>, ecn: Ecn) {
        if to == End::Server && self.server.is_none() {
            self.listen(segment, ecn);
        } else if self.give(to, segment, ecn) == Disposition::OpenAgain {
            self.server = None;
            self.listen(segment, ecn);
        }
    }

    /// Delivers a segment to an endpoint, which must exist, and to its twin. Their dispositions and
    /// states must be equal.
    fn give(&mut self, to: End, segment: &Segment<'_>, ecn: Ecn) -> Disposition {
        let now = self.now;
        let end = self.end(to);
        // A host may copy data to the receive buffer before it verifies the checksum. If it then
        // drops the segment, wrong bytes remain in the free space of the buffer. The 0xdb bytes
        // written here imitate such bytes. The connection must overwrite them with the data of the
        // segment.
        if let Some(room) = DataRun::place_of_first(end, segment) {
            room.fill(0xdb);
        }
        let mut twin = end.clone();
        twin.set_header_prediction(false);
        // As on some links, the segment is delivered with a reference to the memory that contains
        // its data. The connection may keep this memory instead of copying the data.
        let memory: Arc<[u8]> = segment.payload.into();
        let segment = &Segment { payload: &memory, ..*segment };
        let disposition = arrive(end, &mut twin, |end| {
            let run = (ecn == Ecn::NotEct).then(|| give_as_run(end, now, segment)).flatten();
            run.unwrap_or_else(|| {
                end.driver().handle_segment_with(now, segment, ecn, Some(&memory))
            })
        });
        end.assert_agrees_with(&mut twin);
        if disposition == Disposition::Refused(Refusal::Closed) {
            self.refuse(to, segment);
        }
        disposition
    }

    /// Answers a segment with a reset, as a host does if it has no connection for the segment. The
    /// reset comes from the endpoint `from`.
    fn refuse(&mut self, from: End, segment: &Segment<'_>) {
        if let Some(reset) = judge_unconnected(segment) {
            let mut bytes = [0; Reset::LONGEST];
            let sent = reset.emit(&mut bytes);
            self.send(from, &bytes[..sent.length], Ecn::NotEct);
        }
    }

    fn listen(&mut self, segment: &Segment<'_>, ecn: Ecn) {
        if judge_listen(segment) == ListenVerdict::Open {
            let mut server =
                Connection::accept(self.server_config, self.path, self.seeds, segment, self.now);
            server.driver().note_codepoint_of_syn(ecn);
            if segment.options().fast_open.is_some() {
                if self.lets_in {
                    server.driver().open_fast(segment);
                } else {
                    server.driver().give_cookie(FastOpenCookie::new(&[2; 8]).expect("eight bytes"));
                }
            }
            server.check();
            self.server = Some(server);
        }
    }
}

/// Delivers a short segment to `end` by `handle_run`, as a host does for a segment of a cached
/// flow. Returns `None` if the segment is too long or header prediction does not accept it. In this
/// case, the segment has not been delivered.
fn give_as_run(end: &mut Connection, now: Instant, segment: &Segment<'_>) -> Option<Disposition> {
    /// Payload size in bytes below which a segment is delivered by `handle_run`. Longer segments
    /// are delivered with a reference to their buffer, which the connection may keep instead of
    /// copying the data.
    const SHORT: usize = 64;
    if segment.payload.len() >= SHORT {
        return None;
    }
    if let Some(run) = ControlRun::of(end, segment) {
        return Some(end.driver().handle_run(now, run, segment));
    }
    let run = ShortRun::of(end, segment)?;
    Some(end.driver().handle_run(now, run, segment))
}

/// Returns the next segment that `end` sends; `None` if there is nothing to send. A copy of `end`
/// without header prediction, its twin, must send an equal segment and reach an equal state.
pub(crate) fn poll_with_twin(
    end: &mut Connection,
    now: Instant,
    frame: &mut [u8],
) -> Option<Transmit> {
    let mut twin = end.clone();
    twin.set_header_prediction(false);
    let sent = end.driver().poll_transmit(now, Offload::None, frame);
    let mut bytes = vec![0; frame.len()];
    let twins = twin.driver().poll_transmit(now, Offload::None, &mut bytes);
    let as_chosen = sent.map(|sent| Transmit { is_predicted: false, ..sent });
    assert_eq!(
        format!("{as_chosen:?}"),
        format!("{twins:?}"),
        "a predicted segment is another than the chosen one"
    );
    if let Some(sent) = sent {
        assert_eq!(
            frame[..sent.length],
            bytes[..sent.length],
            "a predicted segment is written otherwise"
        );
    }
    end.assert_agrees_with(&mut twin);
    if let Some(sent) = sent
        && let Some(batch) = end.driver().poll_batch(now, sent.header)
        && let BatchContent::Acks(window) = batch.content
    {
        continue_ack_batch(end.clone(), now, batch, window, &mut bytes);
    }
    sent
}

/// Checks the remaining acknowledgements of an ACK batch. `end` is a copy of the connection, and
/// `frame` contains the first acknowledgement of the batch. Each remaining one is made from it by
/// changing only the acknowledgement number and the window. It must equal the one that
/// `poll_transmit` writes.
fn continue_ack_batch(
    mut end: Connection,
    now: Instant,
    batch: Batch,
    window: AckWindow,
    frame: &mut [u8],
) {
    let mut asked = end.clone();
    let mut bytes = vec![0; frame.len()];
    for number in 0..batch.count {
        let ack = batch.first + batch.step * number;
        frame[8..12].copy_from_slice(&ack.number().to_be_bytes());
        frame[14..16].copy_from_slice(&window.at(ack).to_be_bytes());
        let sent = asked
            .driver()
            .poll_transmit(now, Offload::None, &mut bytes)
            .expect("the rest of a batch can be sent");
        assert_eq!(
            frame[..sent.length],
            bytes[..sent.length],
            "acknowledgements of a batch differ only in number and window"
        );
    }
    end.driver().commit_batch(now, batch.content, batch.count);
    end.check();
    end.assert_went_on_like(&mut asked);
}

/// Sends the next segment of a burst; `None` if the burst has no more segments. Before the call,
/// `frame` contains the previous segment of the burst, whose TCP header has `header` bytes. The
/// next segment is made from it, and must equal the segment that `poll_transmit` writes.
fn continue_burst(
    end: &mut Connection,
    now: Instant,
    header: usize,
    frame: &mut [u8],
) -> Option<Transmit> {
    let next = end.driver().poll_batch(now, header).filter(|_| header > 0)?;
    if next.content != BatchContent::Data {
        return None;
    }
    let mut asked = end.clone();
    let length = header + next.step as usize;
    let sum = end.copy_of_batch(next.first, &mut frame[header..length]);
    end.driver().commit_batch(now, next.content, 1);
    frame[4..8].copy_from_slice(&next.first.number().to_be_bytes());
    let mut bytes = vec![0; frame.len()];
    let sent = asked
        .driver()
        .poll_transmit(now, Offload::None, &mut bytes)
        .expect("the rest of a burst can be sent");
    assert_eq!((sent.header, sent.length), (header, length), "segments of a burst are alike");
    assert_eq!(
        frame[..sent.length],
        bytes[..sent.length],
        "segments of a burst differ only in their numbers"
    );
    assert_eq!(sum.finish(), linerate_wire::Sum::of(&frame[header..sent.length]).finish());
    if !end.wants_transmit() {
        let more = asked.driver().poll_transmit(now, Offload::None, &mut bytes);
        assert!(more.is_none(), "a connection has more to send after the end of its burst");
    }
    end.assert_went_on_like(&mut asked);
    Some(sent)
}
