//! The traffic of the comparison: a server, and clients in the network behind the gateway.

use super::network::FAR;
use linerate_link::namespace::{Network, join};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum size of each write and read in bytes.
const PIECE: usize = 128 << 10;
/// Time between the end of all flows and the measurement of a gateway's memory. In this time, the
/// gateway can return memory that it no longer needs.
const PAUSE: Duration = Duration::from_secs(5);
/// Maximum time for which a client waits for the answer to an upload that it ends with a
/// half-close.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// The direction of a transfer, as seen by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// The server. The first byte that a client sends selects the service:
///
/// - `u`: the server reads a number of eight bytes, discards as many bytes as the number says, and
///   answers with one byte. The number replaces a half-close at the end of the upload, because
///   ipstack loses a half-close.
/// - `h`: the server discards the bytes that follow, and answers with one byte when the stream has
///   ended.
/// - `d`: the server reads a number of eight bytes, and sends as many bytes as the number says. The
///   client knows the number, so it does not wait for the end of the stream.
/// - `e` or any other byte: the server returns each byte that follows.
#[derive(Debug)]
pub struct Server {
    pub address: SocketAddr,
    /// Number of bytes that the server has received in uploads.
    received: Arc<AtomicU64>,
}

impl Server {
    /// Starts the server in `network`. It runs until this program ends.
    ///
    /// # Errors
    /// A message that the server cannot listen.
    pub fn start(network: &Network) -> Result<Self, String> {
        let listen = || {
            let received = Arc::new(AtomicU64::new(0));
            let count = Arc::clone(&received);
            let listener = TcpListener::bind((FAR, 0))?;
            let address = listener.local_addr()?;
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    // Errors of `serve` are ignored, because a client may close its connection
                    // early.
                    let count = Arc::clone(&count);
                    let serve = move || drop(serve(stream, &count));
                    let _ = thread::Builder::new().stack_size(256 << 10).spawn(serve);
                }
            });
            Ok::<_, std::io::Error>(Self { address, received })
        };
        network.run(listen).map_err(|error| format!("the server cannot listen: {error}"))
    }

    /// Returns the number of bytes that the server has received in uploads so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

fn serve(mut stream: TcpStream, received: &AtomicU64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut wish = [0];
    stream.read_exact(&mut wish)?;
    match wish {
        [b'u'] => {
            let bytes = read_number(&mut stream)?;
            discard(&mut stream, bytes, received)?;
            stream.write_all(b"!")
        }
        [b'h'] => {
            discard(&mut stream, u64::MAX, received)?;
            stream.write_all(b"!")
        }
        [b'd'] => {
            let bytes = read_number(&mut stream)?;
            write_zeros(&mut stream, bytes)
        }
        _ => {
            let mut byte = [0];
            while stream.read(&mut byte)? > 0 {
                stream.write_all(&byte)?;
            }
            Ok(())
        }
    }
}

fn read_number(stream: &mut TcpStream) -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes)?;
    Ok(u64::from_be_bytes(bytes))
}

/// Reads `bytes` bytes, or fewer if the stream ends before, and adds their number to `received`.
fn discard(stream: &mut TcpStream, bytes: u64, received: &AtomicU64) -> std::io::Result<()> {
    let mut piece = vec![0; PIECE];
    let mut left = bytes;
    while left > 0 {
        match stream.read(&mut piece)? as u64 {
            0 => break,
            count => {
                received.fetch_add(count, Ordering::Relaxed);
                left = left.saturating_sub(count);
            }
        }
    }
    Ok(())
}

fn write_zeros(stream: &mut TcpStream, bytes: u64) -> std::io::Result<()> {
    let piece = vec![0; PIECE];
    let mut left = bytes;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        stream.write_all(&piece[..length])?;
        left -= length as u64;
    }
    Ok(())
}

/// The parameters for starting clients. A client is this program, started again in the network
/// namespace behind the gateway.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// ID of the process or thread whose network namespace the client enters.
    pub process: u32,
    /// Address of the server.
    pub server: SocketAddr,
}

impl Client {
    /// Waits until the gateway relays connections to the server.
    ///
    /// # Errors
    /// A message that the gateway has relayed no connection for ten seconds.
    pub fn wait_until_ready(self) -> Result<(), String> {
        self.ask(&["wait"]).map(drop)
    }

    /// Transfers `bytes` bytes, divided among `streams` simultaneous connections. Returns the
    /// duration.
    ///
    /// # Errors
    /// A message that a connection has failed.
    pub fn transfer(
        self,
        direction: Direction,
        streams: u64,
        bytes: u64,
    ) -> Result<Duration, String> {
        let word = if direction == Direction::Up { "up" } else { "down" };
        self.ask(&[word, &streams.to_string(), &bytes.to_string()])
    }

    /// Opens `count` connections one after the other, and exchanges one byte over each. Returns the
    /// duration.
    ///
    /// # Errors
    /// A message that a connection has failed.
    pub fn connect_often(self, count: u32) -> Result<Duration, String> {
        self.ask(&["connect", &count.to_string()])
    }

    /// Uploads data, closes the sending direction, and waits for an answer.
    ///
    /// # Errors
    /// A message that there is no answer.
    pub fn half_close(self) -> Result<(), String> {
        self.ask(&["half-close"]).map(drop)
    }

    /// Opens `count` flows, each of which exchanges one byte and is then idle. Calls `look` twice:
    /// while the flows are open, and five seconds after they were closed. Returns both results.
    ///
    /// # Errors
    /// A message that a flow cannot be opened, or the error of `look`.
    pub fn idle_flows(
        self,
        count: u32,
        look: impl Fn() -> Result<f64, String>,
    ) -> Result<(f64, f64), String> {
        let mut child = self.start(&["idle", &count.to_string()])?;
        answer(&mut child)?;
        thread::sleep(PAUSE);
        let idle = look()?;
        // The client closes its flows when its standard input ends.
        drop(child.stdin.take());
        child.wait().map_err(|error| error.to_string())?;
        thread::sleep(PAUSE);
        Ok((idle, look()?))
    }

    /// Runs a client with the arguments `words`, and returns the duration that it prints.
    fn ask(self, words: &[&str]) -> Result<Duration, String> {
        let mut child = self.start(words)?;
        let taken = answer(&mut child);
        child.wait().map_err(|error| error.to_string())?;
        taken
    }

    /// Starts a client with the arguments `words`, without waiting for its answer.
    ///
    /// # Errors
    /// A message that the system cannot start the program.
    pub fn start(self, words: &[&str]) -> Result<Child, String> {
        let program = env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.arg(super::CLIENT).arg(self.process.to_string()).arg(self.server.to_string());
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().map_err(|error| format!("the client does not start: {error}"))
    }
}

/// Reads the line that a client prints: a duration in nanoseconds, or an error message.
///
/// # Errors
/// The client's error message.
pub fn answer(child: &mut Child) -> Result<Duration, String> {
    let mut line = String::new();
    let output = child.stdout.as_mut().ok_or("the client has no output")?;
    BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
    match line.trim_end().parse() {
        Ok(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
        Err(_) => Err(line.trim_end().to_owned()),
    }
}

/// Acts as a client: does what the arguments say, and prints a duration in nanoseconds or an error
/// message.
///
/// # Errors
/// A message that the arguments are invalid.
pub fn run_client(words: &[&str]) -> Result<(), String> {
    let [process, server, words @ ..] = words else { return Err("no client".to_owned()) };
    let number = |word: &str| word.parse::<u64>().map_err(|error| error.to_string());
    let process = process.parse().map_err(|_| "no process".to_owned())?;
    join(process).map_err(|error| error.to_string())?;
    // Selects Reno in the client's network namespace. A gateway that creates this namespace itself
    // leaves it with the machine's default congestion control.
    super::network::pin_reno()?;
    let server = server.parse().map_err(|_| "no server".to_owned())?;
    let started = Instant::now();
    let mut flows = Vec::new();
    let result = match words {
        ["wait"] => wait(server),
        ["up", streams, bytes] => {
            transfer_all(server, Direction::Up, number(streams)?, number(bytes)?)
        }
        ["down", streams, bytes] => {
            transfer_all(server, Direction::Down, number(streams)?, number(bytes)?)
        }
        ["connect", count] => (0..number(count)?)
            .try_for_each(|_| echo(server))
            .map_err(|error| format!("a connection fails: {error}")),
        ["half-close"] => half_close(server).map_err(|error| error.to_string()),
        ["stream"] => transfer(server, Direction::Up, u64::MAX),
        ["flood", kind, rate] => {
            return match super::floods::send(server, kind, number(rate)?) {
                Ok(sent) => print_line(&sent.to_string()),
                Err(reason) => print_line(&reason),
            };
        }
        ["idle", count] => open(server, number(count)?)
            .map(|opened| flows = opened)
            .map_err(|error| format!("a flow cannot be opened: {error}")),
        _ => Err("unknown words".to_owned()),
    };
    let text = match result {
        Ok(()) => started.elapsed().as_nanos().to_string(),
        Err(reason) => reason,
    };
    print_line(&text)?;
    if !flows.is_empty() {
        let _ = std::io::stdin().read(&mut [0]);
    }
    Ok(())
}

fn print_line(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

fn wait(server: SocketAddr) -> Result<(), String> {
    let started = Instant::now();
    loop {
        match TcpStream::connect_timeout(&server, Duration::from_secs(1)) {
            Ok(_) => return Ok(()),
            Err(error) if started.elapsed() > Duration::from_secs(10) => {
                return Err(format!("it relays nothing: {error}"));
            }
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn transfer_all(
    server: SocketAddr,
    direction: Direction,
    streams: u64,
    bytes: u64,
) -> Result<(), String> {
    let share = bytes / streams;
    let start = |_| thread::spawn(move || transfer(server, direction, share));
    let workers: Vec<_> = (0..streams).map(start).collect();
    for worker in workers {
        worker.join().map_err(|_| "a client has failed".to_owned())??;
    }
    Ok(())
}

fn open(server: SocketAddr, count: u64) -> std::io::Result<Vec<TcpStream>> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    (0..count)
        .map(|_| {
            let mut stream = TcpStream::connect(server)?;
            stream.write_all(b"ee")?;
            stream.read_exact(&mut [0])?;
            Ok(stream)
        })
        .collect()
}

fn echo(server: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    stream.write_all(b"e1")?;
    stream.read_exact(&mut [0])
}

fn half_close(server: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(b"h")?;
    write_zeros(&mut stream, 1 << 20)?;
    stream.shutdown(Shutdown::Write)?;
    stream.read_exact(&mut [0])
}

fn transfer(server: SocketAddr, direction: Direction, bytes: u64) -> Result<(), String> {
    let transfer = || {
        let mut stream = TcpStream::connect(server)?;
        if direction == Direction::Up {
            stream.write_all(b"u")?;
            stream.write_all(&bytes.to_be_bytes())?;
            write_zeros(&mut stream, bytes)?;
            stream.read_exact(&mut [0])?;
            return Ok(bytes);
        }
        stream.write_all(b"d")?;
        stream.write_all(&bytes.to_be_bytes())?;
        let received = AtomicU64::new(0);
        discard(&mut stream, bytes, &received)?;
        Ok(received.into_inner())
    };
    match transfer() {
        Ok(received) if received == bytes => Ok(()),
        Ok(received) => Err(format!("only {received} of {bytes} bytes arrive")),
        Err(error) => {
            Err::<(), std::io::Error>(error).map_err(|error| format!("a stream fails: {error}"))
        }
    }
}
