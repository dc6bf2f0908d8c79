//! A server for iperf3 clients, which serves one test at a time.

use super::MAX_STREAMS;
use super::messages::{Parameters, Results, StreamResults, stream_number};
use super::wire::{
    Cookie, Iperf3Error, State, expect_state, receive, receive_text, send_state, send_text,
};
use crate::interrupt::Interrupt;
use crate::observe::CallClock;
use crate::serve::{Connections, ListenAt, ListenError, Listener, lock};
use crate::socket::{Contents, Network, Options, ReadTask, SLICE, Stream, WriteTask};
use linerate_link::kernel_tcp::TcpInfo;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Timeout for each message of a client, and for the arrival of all its streams.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum duration of a test, after which the server ends the test.
const MAX_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum size of each `read` or `write` call in bytes, which limits the memory of a test.
const MAX_SIZE: f64 = (1 << 20) as f64;
/// Size of each `read` or `write` call in bytes, if the client does not request a size.
const DEFAULT_SIZE: usize = 128 << 10;
/// The iperf3 error number for an option that is not implemented.
const NOT_IMPLEMENTED: u32 = 13;
/// Number by which the limit of connections exceeds the maximum number of streams. It leaves room
/// for other clients, each of which gets a rejection.
const SPARE: usize = 16;

/// An event of the server, for its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A test has ended.
    Served(Served),
    /// A connection was rejected, or a test failed.
    Rejected {
        /// The address of the peer.
        peer: SocketAddr,
        /// The reason, as text for the user.
        reason: String,
    },
}

/// A test that has ended successfully.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The address of the client.
    pub peer: SocketAddr,
    /// Number of bytes that all streams together transferred after the omitted first part of the
    /// test.
    pub bytes: u64,
    /// Duration of the test, without the omitted first part.
    pub time: Duration,
    /// Number of streams.
    pub streams: usize,
    /// Did the server send the data?
    pub is_reverse: bool,
}

/// A listening iperf3 server.
#[derive(Debug)]
pub struct Server(Listener);

/// The state that all threads of a server share.
struct Shared<'a> {
    connections: Connections,
    /// The test that is being served; `None` if there is none. It never has more streams than its
    /// client requested.
    current: Mutex<Option<Expected>>,
    /// Condition that is notified when a stream arrives.
    arrived: Condvar,
    tell: &'a (dyn Fn(&Event) + Sync),
}

/// The test that is being served. `streams` has the streams that have arrived, until the thread of
/// the test takes them all.
struct Expected {
    cookie: Cookie,
    /// Number of streams that the server accepts for the test. It is 0 before the client is told to
    /// open streams, and 0 again after all of them have arrived.
    wanted: usize,
    streams: Vec<Stream>,
}

impl Server {
    /// Listens at `place` of `network`. Accepted connections inherit `options`.
    ///
    /// # Errors
    /// The address or an option is not available.
    pub fn bind(
        network: &Network,
        place: ListenAt,
        options: &Options,
    ) -> Result<Self, ListenError> {
        Ok(Self(Listener::bind(network, place, options)?))
    }

    /// Returns the address at which the server listens. The address has the actual port if port 0
    /// was requested.
    ///
    /// # Errors
    /// The error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves tests until `interrupt` is raised. Calls `tell` with every event.
    ///
    /// # Errors
    /// The listening socket failed.
    pub fn serve(&self, interrupt: &Interrupt, tell: &(dyn Fn(&Event) + Sync)) -> io::Result<()> {
        let shared = Shared {
            connections: Connections::new(MAX_STREAMS + SPARE),
            current: Mutex::new(None),
            arrived: Condvar::new(),
            tell,
        };
        thread::scope(|scope| {
            let outcome = self.0.accept_until(interrupt, |stream, peer| {
                let shared = &shared;
                let reject = |reason: &str| {
                    tell(&Event::Rejected { peer, reason: reason.to_owned() });
                };
                let serve = move || serve_one(stream, peer, shared);
                if thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                    reject("the machine has no thread left for it");
                }
            });
            shared.connections.close_all();
            outcome
        })
    }
}

/// Handles a new connection: as a stream of the current test, or as the control connection of a new
/// test.
fn serve_one(stream: Stream, peer: SocketAddr, shared: &Shared<'_>) {
    let reject = |reason: String| (shared.tell)(&Event::Rejected { peer, reason });
    let Some(_slot) = shared.connections.admit(&stream) else {
        return reject("there are too many connections".to_owned());
    };
    let cookie = match Cookie::receive(&stream, TIMEOUT) {
        Ok(cookie) => cookie,
        Err(error) => return reject(error.to_string()),
    };
    {
        let mut current = lock(&shared.current);
        match &mut *current {
            Some(test) if test.cookie == cookie && test.streams.len() < test.wanted => {
                test.streams.push(stream);
                shared.arrived.notify_all();
                return;
            }
            Some(_) => {
                drop(current);
                // An error means that the peer has closed the connection, so it needs no answer.
                let _ = send_state(&stream, State::AccessDenied);
                return reject("another test is under way".to_owned());
            }
            None => *current = Some(Expected { cookie, wanted: 0, streams: Vec::new() }),
        }
    }
    let result = serve_test(&stream, peer, cookie, shared);
    shared.release(cookie);
    match result {
        Ok(served) => (shared.tell)(&Event::Served(served)),
        Err(error) => reject(error.to_string()),
    }
}

/// Serves a test from its parameters to its results, over the connection `control`.
fn serve_test(
    control: &Stream,
    peer: SocketAddr,
    cookie: Cookie,
    shared: &Shared<'_>,
) -> Result<Served, Iperf3Error> {
    control.set_write_timeout(Some(TIMEOUT))?;
    control.set_nodelay(true)?;
    send_state(control, State::ParamExchange)?;
    let parameters: Parameters = receive_text(control, TIMEOUT)?;
    let transfer = Transfer::new(&parameters).inspect_err(|_| {
        let numbers = [NOT_IMPLEMENTED.to_be_bytes(), [0; 4]].concat();
        // An error means that the client has closed the connection, so it needs no answer.
        let _ = send_state(control, State::ServerError)
            .and_then(|()| Ok(io::Write::write_all(&mut &*control, &numbers)?));
    })?;
    let streams = shared.await_streams(control, transfer.streams)?;
    send_state(control, State::TestStart)?;
    send_state(control, State::TestRunning)?;
    let (bytes, time) = transfer.run(control, &streams, shared)?;
    send_state(control, State::ExchangeResults)?;
    let _theirs: Results = receive_text(control, TIMEOUT)?;
    send_text(control, &transfer.results(&streams, &bytes, time))?;
    // The test is removed before this state is sent: as soon as the client receives
    // `DisplayResults`, it may start its next test.
    shared.release(cookie);
    send_state(control, State::DisplayResults)?;
    // The client has all results now, and may close the connection without sending `IperfDone`. An
    // error is therefore ignored.
    let _ = expect_state(control, State::IperfDone, TIMEOUT);
    Ok(Served {
        peer,
        bytes: bytes.iter().sum(),
        time,
        streams: streams.len(),
        is_reverse: transfer.is_reverse,
    })
}

impl Shared<'_> {
    /// Removes the test of `cookie`, so that the next test can begin.
    fn release(&self, cookie: Cookie) {
        let mut current = lock(&self.current);
        if current.as_ref().is_some_and(|test| test.cookie == cookie) {
            *current = None;
        }
    }

    /// Tells the client to open `wanted` streams, and returns the streams when all have arrived.
    fn await_streams(&self, control: &Stream, wanted: usize) -> Result<Vec<Stream>, Iperf3Error> {
        if let Some(test) = &mut *lock(&self.current) {
            test.wanted = wanted;
        }
        send_state(control, State::CreateStreams)?;
        let are_missing = |test: &mut Option<Expected>| {
            test.as_ref().is_some_and(|test| test.streams.len() < wanted)
        };
        let waited = self.arrived.wait_timeout_while(lock(&self.current), TIMEOUT, are_missing);
        let (mut current, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        let test = current.as_mut().ok_or(Iperf3Error::Closed)?;
        if test.streams.len() < wanted {
            return Err(Iperf3Error::TimedOut);
        }
        // All streams have arrived, and no more are wanted. From now on, a connection with the
        // cookie of this test is rejected.
        test.wanted = 0;
        Ok(std::mem::take(&mut test.streams))
    }
}

/// The parameters of a test's data transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Transfer {
    streams: usize,
    is_reverse: bool,
    /// Maximum size of each `read` or `write` call, in bytes.
    size: usize,
    /// Duration of the omitted first part of the test, whose data does not count.
    omit: Duration,
    /// Rate limit of each stream in bytes per second, which applies if the server sends; `None` for
    /// no limit.
    max_rate: Option<u64>,
}

impl Transfer {
    /// Converts a client's parameters, or returns an error if the parameters are not supported or
    /// exceed a limit.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "checked numbers of JSON"
    )]
    fn new(parameters: &Parameters) -> Result<Self, Iperf3Error> {
        let refuse = |what| Err(Iperf3Error::Unsupported(what));
        if parameters.udp || parameters.sctp || !parameters.tcp {
            return refuse("another protocol than TCP");
        }
        if parameters.bidirectional {
            return refuse("both directions at once");
        }
        if !(1.0..=MAX_STREAMS as f64).contains(&parameters.parallel) {
            return refuse("a number of streams below 1 or above 128");
        }
        if !(0.0..=MAX_SIZE).contains(&parameters.len) {
            return refuse("a length of more than 1 MiB");
        }
        let max_time = MAX_TIME.as_secs_f64();
        if !(0.0..=max_time).contains(&parameters.omit) {
            return refuse("to omit more than a day");
        }
        let rate = parameters.bandwidth / 8.0;
        Ok(Self {
            streams: parameters.parallel as usize,
            is_reverse: parameters.reverse,
            size: if parameters.len < 1.0 { DEFAULT_SIZE } else { parameters.len as usize },
            omit: Duration::from_secs_f64(parameters.omit),
            max_rate: (rate >= 1.0).then_some(rate as u64),
        })
    }

    /// Transfers data until the client ends the test. Returns the number of bytes of each stream,
    /// and the duration of the transfer. Neither includes the omitted first part of the test.
    fn run(
        &self,
        control: &Stream,
        streams: &[Stream],
        shared: &Shared<'_>,
    ) -> Result<(Vec<u64>, Duration), Iperf3Error> {
        let is_over = AtomicBool::new(false);
        let clocks: Vec<CallClock> = streams.iter().map(|_| CallClock::new()).collect();
        let bytes = || clocks.iter().map(CallClock::bytes).collect::<Vec<u64>>();
        let counted = thread::scope(|scope| {
            for (stream, clock) in streams.iter().zip(&clocks) {
                let is_over = &is_over;
                let carry = move || self.carry(stream, clock, is_over);
                if let Err(error) = thread::Builder::new().spawn_scoped(scope, carry) {
                    // No thread can be started for this stream. The flag ends the threads that
                    // already serve other streams.
                    is_over.store(true, Ordering::Relaxed);
                    return Err(error.into());
                }
            }
            let counted = await_end(control, self.omit, shared, &bytes);
            is_over.store(true, Ordering::Relaxed);
            for stream in streams.iter().filter(|_| self.is_reverse || counted.is_err()) {
                // A thread may be blocked in a write to this stream, because the peer no longer
                // reads. The shutdown ends that write. It fails if the peer has closed the
                // connection, which is not an error.
                let _ = stream.shutdown(Shutdown::Both);
            }
            counted
        });
        let (before, time) = counted?;
        let difference = |(now, then): (u64, &u64)| now.saturating_sub(*then);
        Ok((bytes().into_iter().zip(&before).map(difference).collect(), time))
    }

    /// Reads or writes the data of one stream until `is_over` is set.
    fn carry(&self, stream: &Stream, clock: &CallClock, is_over: &AtomicBool) {
        if self.is_reverse {
            if let Some(rate) = self.max_rate {
                // If this fails, the server sends without a rate limit. The client notices that in
                // its results.
                let _ = stream.set_max_pacing_rate(rate);
            }
            let task = WriteTask {
                bytes: u64::MAX,
                write_size: self.size,
                contents: Contents::Any,
                pause: Duration::ZERO,
                max_rate: None,
            };
            task.run_timed(stream, clock, |_, _| is_over.load(Ordering::Relaxed));
        } else {
            let task = ReadTask {
                bytes: u64::MAX,
                read_size: self.size,
                pattern: None,
                max_time: MAX_TIME,
                idle_time: MAX_TIME,
                pause: Duration::ZERO,
                discard: false,
            };
            task.run_timed(stream, clock, b"", || is_over.load(Ordering::Relaxed));
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "numbers of JSON")]
    fn results(&self, streams: &[Stream], bytes: &[u64], time: Duration) -> Results {
        let retransmits = |stream: &Stream| match stream {
            Stream::Kernel(stream) if self.is_reverse => {
                TcpInfo::of(stream).ok()?.field("total_retrans")
            }
            _ => None,
        };
        let streams = streams.iter().zip(bytes).enumerate();
        let streams: Vec<StreamResults> = streams
            .map(|(index, (stream, &bytes))| StreamResults {
                id: stream_number(index),
                bytes: bytes as f64,
                retransmits: retransmits(stream).map_or(-1.0, |count| count as f64),
                end_time: time.as_secs_f64(),
                ..StreamResults::default()
            })
            .collect();
        let are_counted = streams.iter().all(|stream| stream.retransmits >= 0.0);
        let sender_has_retransmits = match (self.is_reverse, are_counted) {
            (true, true) => 1.0,
            (true, false) => 0.0,
            (false, _) => -1.0,
        };
        Results { sender_has_retransmits, streams, ..Results::default() }
    }
}

/// Waits until the client ends the test. Returns how many bytes each stream had transferred at the
/// end of the omitted first part. Also returns the duration of the rest of the test.
fn await_end(
    control: &Stream,
    omit: Duration,
    shared: &Shared<'_>,
    bytes: &impl Fn() -> Vec<u64>,
) -> Result<(Vec<u64>, Duration), Iperf3Error> {
    let opened = Instant::now();
    let mut counted = (opened, vec![0; bytes().len()]);
    let mut is_omitting = omit > Duration::ZERO;
    loop {
        let now = Instant::now();
        if is_omitting && now - opened >= omit {
            counted = (now, bytes());
            is_omitting = false;
        }
        if shared.connections.is_closing() || now - opened >= MAX_TIME {
            return Err(Iperf3Error::Closed);
        }
        let mut state = [0];
        match receive(control, &mut state, now + SLICE) {
            Err(Iperf3Error::TimedOut) => {}
            Err(error) => return Err(error),
            Ok(()) if state[0] == State::TestEnd as u8 => {
                let (began, before) = counted;
                return Ok((before, began.elapsed()));
            }
            Ok(()) if state[0] == State::ClientTerminate as u8 => return Err(Iperf3Error::Closed),
            Ok(()) => {
                let wanted = State::TestEnd as u8;
                return Err(Iperf3Error::Unexpected { got: state[0], wanted });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_host::Location;
    use linerate_link::memory::{MemoryConfig, pair};
    use linerate_tcp::Config;

    #[test]
    fn the_rate_of_the_client_replaces_that_of_the_socket_on_both_kinds_of_networks() {
        let bandwidth = 8_000_000.0;
        let asked = Parameters {
            tcp: true,
            reverse: true,
            parallel: 1.0,
            bandwidth,
            ..Parameters::default()
        };
        let transfer = Transfer::new(&asked).unwrap();
        let connect = |network: &Network, place: &str| {
            let options = Options { max_pacing_rate: Some(2_000_000), ..Options::default() };
            let place = place.parse().unwrap();
            let listener = Listener::bind(network, place, &Options::default()).unwrap();
            let address = listener.local_addr().unwrap();
            network.connect(address, &options, TIMEOUT).unwrap()
        };
        let rate = |stream: &Stream| match stream {
            Stream::Kernel(stream) => TcpInfo::of(stream).unwrap().field("max_pacing_rate"),
            Stream::Own(stream, _) => stream.max_pacing_rate().unwrap(),
        };
        // The host connects to its own address, so nothing needs to be attached to the other end of
        // its link.
        let (link, _other_end) = pair(MemoryConfig::default()).unwrap();
        let address = "10.0.0.1/24".parse().unwrap();
        let location = Location { address, gateway: None, compresses_headers: false };
        let host = Network::on(location, None, link, &Config::default(), drop).unwrap();
        for (network, place) in [(Network::Kernel, "127.0.0.1:0"), (host, "10.0.0.1:5201")] {
            let stream = connect(&network, place);
            assert_eq!(rate(&stream), Some(2_000_000));
            // The flag in the last argument says that the transfer is already over. `carry` still
            // sets the pacing rate, and writes once.
            transfer.carry(&stream, &CallClock::new(), &AtomicBool::new(true));
            assert_eq!(rate(&stream), Some(1_000_000));
        }
    }
}
