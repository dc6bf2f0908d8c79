//! Two connections and the network between them, in virtual time.
//!
//! After every step each connection's invariants are checked, and every segment that arrives is
//! also given to a twin with header prediction switched off, which must come out the same, and is asked for
//! every segment that is sent.

use crate::{Fate, Network, Wire};
use linerate_tcp::{
    Acknowledgements, Config, Connection, Disposition, Error, Event, FastOpenOffer, ListenVerdict,
    Path, Refusal, Reset, Seeds, State, Transmit, judge_listen, judge_unconnected,
};
use linerate_units::{Duration, Instant};
use linerate_wire::{Ecn, FastOpenCookie, Segment, SeqNum, TcpHeader, TcpOptions};
use std::sync::Arc;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The end that opens.
    Client,
    /// The end that is opened.
    Server,
}

impl End {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A watcher of every segment that is sent: what it was, and what becomes of it.
type Filter = Box<dyn FnMut(Instant, End, &Segment<'_>) -> Option<Fate>>;

/// A client, a server once its SYN has come, and everything between them.
pub struct Connections {
    /// The time at both ends.
    pub now: Instant,
    /// The end that opens.
    pub client: Connection,
    /// The end that is opened; there is none before the first SYN arrives.
    pub server: Option<Connection>,
    wire: Wire<End>,
    server_config: Config,
    path: Path,
    seeds: Seeds,
    /// What the server does with the cookie that the client brings, if it brings one.
    lets_in: bool,
    filter: Filter,
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

/// What lies between the two unless a test says otherwise.
const ETHERNET: Path = Path::ipv4(1_500);

/// A transfer that needs more steps than this does not come to an end.
const MOST_STEPS: u64 = 20_000_000;

impl Connections {
    /// A client that is about to open, over Ethernet's MTU.
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

    /// The same with both initial sequence numbers chosen.
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
        // Nobody looks at checksums here: what a host's would drop does not arrive.
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
            steps: 0,
        }
    }

    /// Has the client bring a cookie, and what it writes before its SYN leaves with it (RFC 7413). Either the
    /// server lets it in, or gives it another cookie for the next time.
    ///
    /// # Panics
    /// Never: there are cookies of eight bytes.
    #[must_use]
    pub fn opened_fast(mut self, lets_in: bool) -> Self {
        let cookie = FastOpenCookie::new(&[1; 8]).expect("eight bytes");
        self.client.try_fast_open(FastOpenOffer::Data { cookie, mss: Some(1_460) });
        self.lets_in = lets_in;
        self
    }

    /// Both ends begin with what is known of `path`, instead of Ethernet.
    #[must_use]
    pub fn over(mut self, client: &Config, path: Path) -> Self {
        let seeds = Seeds { initial_sequence: SeqNum::new(3), timestamp_offset: 11 };
        self.client = Connection::connect(client, path, seeds, self.now);
        self.path = path;
        self
    }

    /// Shows every segment that is sent to `filter`, with who sent it; its answer, if there is one,
    /// is the segment's fate in place of the network's.
    pub fn set_filter(
        &mut self,
        filter: impl FnMut(Instant, End, &Segment<'_>) -> Option<Fate> + 'static,
    ) {
        self.filter = Box::new(filter);
    }

    /// Opens and runs until both ends are established.
    #[must_use]
    pub fn established(mut self) -> Self {
        self.run_until("both ends are established", |pair| {
            pair.client.state() == State::Established
                && pair.server.as_ref().is_some_and(|server| server.state() == State::Established)
        });
        self
    }

    /// The end at `side`.
    ///
    /// # Panics
    /// If the server is asked for before there is one.
    pub fn end(&mut self, side: End) -> &mut Connection {
        match side {
            End::Client => &mut self.client,
            End::Server => self.server.as_mut().expect("a SYN has arrived"),
        }
    }

    /// The server.
    ///
    /// # Panics
    /// If there is none yet.
    pub fn server(&mut self) -> &mut Connection {
        self.end(End::Server)
    }

    /// The events of one end, all that wait.
    pub fn events(&mut self, side: End) -> Vec<Event> {
        let end = self.end(side);
        core::iter::from_fn(|| end.poll_event()).collect()
    }

    /// Everything that can be read at one end.
    ///
    /// # Errors
    /// Why the connection ended, once everything that had arrived was read.
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

    /// Lets `span` go by, with everything that happens in it.
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

    /// Runs until `done` holds.
    ///
    /// # Panics
    /// If nothing can happen any more, or far too much has, before it does; `goal` says what was
    /// waited for.
    pub fn run_until(&mut self, goal: &str, mut done: impl FnMut(&mut Self) -> bool) {
        while !done(self) {
            assert!(self.step(), "nothing happens any more, and not yet: {goal}\n{self:?}");
            assert!(self.steps < MOST_STEPS, "no end in sight: {goal}\n{self:?}");
        }
    }

    /// Runs until nothing happens any more: no segment on its way, no timer set.
    ///
    /// # Panics
    /// If that never comes.
    pub fn run_to_silence(&mut self) {
        while self.step() {
            assert!(self.steps < MOST_STEPS, "never silent\n{self:?}");
        }
    }

    /// Sends what both ends have to send, then goes on to the next moment at which anything happens.
    /// False if there is none.
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

    /// The same, but not beyond `limit`: false if nothing happened until then.
    pub fn step_until(&mut self, limit: Instant) -> bool {
        self.transmit(End::Client);
        self.transmit(End::Server);
        let happens = self.next_moment() <= limit;
        if !happens {
            self.now = limit;
        }
        happens && self.step()
    }

    /// Gives `bytes`, a segment of a third party's making, to one end.
    ///
    /// # Panics
    /// If they are no segment.
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
            let sent = go_on(end, now, header, &mut frame)
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
                end.handle_timeout(now);
                end.check();
                assert!(end.poll_timeout() > now, "a timer expires for ever");
            }
        }
    }

    /// The oldest of the packets whose time has come arrives.
    fn deliver_one(&mut self) {
        if let Some(packet) = self.wire.arrive(self.now) {
            let segment = Segment::parse(&packet.bytes).expect("what we send can be parsed");
            self.deliver(packet.to, &segment, packet.ecn);
        }
    }

    fn deliver(&mut self, to: End, segment: &Segment<'_>, ecn: Ecn) {
        let now = self.now;
        if to == End::Server && self.server.is_none() {
            self.listen(segment, ecn);
            return;
        }
        let end = self.end(to);
        // As if one with the same header, whose checksum was wrong, had come before it.
        if let Some(room) = end.room_for_predicted(segment) {
            room.fill(0xdb);
        }
        let mut twin = end.clone();
        twin.set_header_prediction(false);
        // As if the link could do without the memory that it lies in.
        let memory: Arc<[u8]> = segment.payload.into();
        let segment = &Segment { payload: &memory, ..*segment };
        let disposition = end.handle_segment_in(now, segment, ecn, &memory);
        let twin_disposition = twin.handle_segment_in(now, segment, ecn, &memory);
        end.check();
        twin.check();
        assert_eq!(disposition, twin_disposition, "fast and slow path differ about {segment:?}");
        end.assert_agrees_with(&mut twin);
        match disposition {
            Disposition::OpenAgain => {
                self.server = None;
                self.listen(segment, ecn);
            }
            Disposition::Refused(Refusal::Closed) => self.refuse(to, segment),
            Disposition::Accepted | Disposition::Refused(_) => {}
        }
    }

    /// There is no connection any more at `from`: its host says so.
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
            server.note_codepoint_of_syn(ecn);
            if segment.options().fast_open.is_some() {
                if self.lets_in {
                    server.open_fast(segment);
                } else {
                    server.give_cookie(FastOpenCookie::new(&[2; 8]).expect("eight bytes"));
                }
            }
            server.check();
            self.server = Some(server);
        }
    }
}

/// The next segment of `end`, which a twin that predicts nothing sends, too, and remembers as the same.
pub(crate) fn poll_with_twin(
    end: &mut Connection,
    now: Instant,
    frame: &mut [u8],
) -> Option<Transmit> {
    let mut twin = end.clone();
    twin.set_header_prediction(false);
    let sent = end.poll_transmit(now, frame);
    let mut bytes = vec![0; frame.len()];
    let twins = twin.poll_transmit(now, &mut bytes);
    assert_eq!(
        format!("{sent:?}"),
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
    if let Some(row) = end.poll_acks()
        && sent.is_some_and(|sent| sent.length == TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH)
    {
        go_on_with_row(end.clone(), now, row, &mut bytes);
    }
    sent
}

/// Goes on with the row of which `frame` holds the last acknowledgement: each must be the one that would have been
/// chosen.
fn go_on_with_row(mut end: Connection, now: Instant, row: Acknowledgements, frame: &mut [u8]) {
    let mut asked = end.clone();
    let mut bytes = vec![0; frame.len()];
    for number in 0..row.count {
        let ack = row.first + row.step * number;
        frame[8..12].copy_from_slice(&ack.number().to_be_bytes());
        frame[14..16].copy_from_slice(&row.window(ack).to_be_bytes());
        let sent = asked.poll_transmit(now, &mut bytes).expect("what is left of a row may leave");
        assert_eq!(
            frame[..sent.length],
            bytes[..sent.length],
            "they differ in nothing but number and window"
        );
    }
    end.note_acks(row.count);
    end.check();
    end.assert_went_on_like(&mut asked);
}

/// Goes on with the burst of which `frame` holds the last segment, with so long a header, if there is more of
/// it. The next segment must be the one that would have been chosen.
fn go_on(end: &mut Connection, now: Instant, header: usize, frame: &mut [u8]) -> Option<Transmit> {
    let mut asked = (header > 0 && end.is_in_burst()).then(|| end.clone())?;
    let next = end.poll_burst(now)?;
    let sum = end.copy_of_burst(next.seq, &mut frame[header..header + next.length as usize]);
    end.note_burst(1);
    frame[4..8].copy_from_slice(&next.seq.number().to_be_bytes());
    let mut bytes = vec![0; frame.len()];
    let sent = asked.poll_transmit(now, &mut bytes).expect("what is left of a burst may leave");
    assert_eq!(
        (sent.header, sent.length),
        (header, header + next.length as usize),
        "segments of a burst are alike"
    );
    assert_eq!(
        frame[..sent.length],
        bytes[..sent.length],
        "they differ in nothing but their numbers"
    );
    assert_eq!(sum.finish(), linerate_wire::Sum::of(&frame[header..sent.length]).finish());
    end.assert_went_on_like(&mut asked);
    if end.falls_silent_after_burst(now) {
        assert!(
            asked.poll_transmit(now, &mut bytes).is_none(),
            "who is silent after a burst has nothing to send"
        );
        end.assert_went_on_like(&mut asked);
    }
    Some(sent)
}
