//! `cargo xtask verdict`: creates paths with known limits, diagnoses each path with `linerate why`,
//! and prints how often each limit was named.
//!
//! A plant is a path with one deliberate limit, such as a small send buffer. Limits of the kernel's
//! TCP are planted between two network namespaces of this process, whose TAP devices are connected
//! by a relay with impairments. Limits of linerate's TCP are planted in simulated networks. If
//! `linerate why` names a limit other than the planted one, the program fails. The answers
//! `contended` and `not-identified` are no failure.
//!
//! ```sh
//! cargo xtask verdict                    # all plants, for about 25 minutes
//! cargo xtask verdict sim                # those whose name begins with the word
//! cargo xtask verdict sim reports        # keeps the JSON reports in this folder
//! ```

#![allow(clippy::print_stdout, reason = "the program prints its table")]

use clap::Parser;
use linerate_link::impair::{Impair, Impairments};
use linerate_link::namespace::{Isolation, Network, enter};
use linerate_link::tap::{Tap, TapConfig};
use linerate_link::{KernelInterface, MonotonicClock};
use linerate_stack::{Link, LinkError, TxFrame};
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
/// Sleep of the relay after a pass over both links that moved no frame.
const TURN: Duration = Duration::from_micros(200);
/// Duration of one diagnosis, in seconds.
const SECONDS: &str = "20";
/// Maximum number of frames that the relay queues in each direction.
const HELD: usize = 4_096;

/// First argument of the process that keeps a CPU busy half of the time. Names of diagnoses that
/// run beside this process begin with this word.
const BYSTANDER: &str = "bystander";

/// Creates paths with known limits, diagnoses each path with `linerate why`, and prints how often
/// each limit was named.
///
/// A wrong name fails the program; `contended` and `not-identified` do not. All plants take about
/// 25 minutes, on a machine that does nothing else.
#[derive(Parser)]
#[command(bin_name = "cargo xtask verdict")]
struct Options {
    /// Only plants whose name begins with this word
    #[arg(default_value = "")]
    word: String,
    /// Keeps the JSON reports in this folder
    folder: Option<PathBuf>,
}

/// A path with one deliberate limit, and the name that `linerate why` must give to this limit.
struct Plant {
    name: &'static str,
    limit: &'static str,
    place: Place,
    /// Additional arguments of `linerate why`.
    why: &'static [&'static str],
}

/// The kind of path that has the planted limit.
enum Place {
    /// A simulated network, by its `--on` value such as `sim:10-gbe-pair`.
    Simulated(&'static str),
    /// linerate's TCP inside one process, by its `--on` value `tap` or `stack`.
    Inside(&'static str),
    /// The kernel's TCP, over the loopback device.
    Loopback {
        /// Additional arguments of `linerate sink`.
        sink: &'static [&'static str],
    },
    /// The kernel's TCP in two namespaces that a relay connects.
    Kernel(Kernel),
}

/// A path between two network namespaces, with the settings of both ends.
#[derive(Default)]
struct Kernel {
    /// Impairments of the frames towards the sink (`tx.`) and from it (`rx.`).
    impairments: &'static str,
    /// Seed of the random impairments.
    seed: u64,
    /// Sysctl settings of the sender's namespace: path below `/proc/sys`, and value.
    near: &'static [(&'static str, &'static str)],
    /// Sysctl settings of the sink's namespace: path below `/proc/sys`, and value.
    far: &'static [(&'static str, &'static str)],
    /// Metrics of the sender's route, as `ip route` takes them.
    near_route: &'static str,
    /// Metrics of the sink's route, as `ip route` takes them.
    far_route: &'static str,
    /// Receive ring of the sink's device: capacity in frames, and service time of a frame.
    ring: Option<(usize, Duration)>,
    /// Additional arguments of `linerate sink`.
    sink: &'static [&'static str],
    /// Number of processes that keep a CPU busy.
    hogs: usize,
}

const fn simulated(name: &'static str, limit: &'static str, why: &'static [&'static str]) -> Plant {
    Plant { name, limit, place: Place::Simulated("sim:10-gbe-pair"), why }
}

/// Creates a plant in a path with the given impairments.
fn path(
    name: &'static str,
    limit: &'static str,
    impairments: &'static str,
    why: &'static [&'static str],
) -> Plant {
    with(name, limit, why, Kernel { impairments, ..Kernel::default() })
}

const fn with(
    name: &'static str,
    limit: &'static str,
    why: &'static [&'static str],
    kernel: Kernel,
) -> Plant {
    Plant { name, limit, place: Place::Kernel(kernel), why }
}

const WMEM: &str = "net/ipv4/tcp_wmem";
const RMEM: &str = "net/ipv4/tcp_rmem";
const SCALING: &str = "net/ipv4/tcp_window_scaling";
const CUBIC: &[&str] = &["--congestion", "cubic"];
const RENO: &[&str] = &["--congestion", "reno"];

/// Returns all plants.
fn plants() -> Vec<Plant> {
    [in_simulation(), in_process(), at_the_ends(), on_the_path(), held_out()]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns plants in which linerate's TCP sends to the kernel's TCP across a TAP device, or to
/// another linerate host in memory. No plant has a small path MTU, because linerate's TCP discovers
/// the path MTU within a second.
fn in_process() -> Vec<Plant> {
    let plant = |on, name, limit, why| Plant { name, limit, place: Place::Inside(on), why };
    let tap = |name, limit, why| plant("tap", name, limit, why);
    let stack = |name, limit, why| plant("stack", name, limit, why);
    vec![
        tap("tap-send", "send-buffer", &["--impair", "delay=10ms", "--send-buffer", "48KiB"]),
        tap(
            "tap-receive",
            "receive-buffer",
            &["--impair", "delay=10ms", "--receive-buffer", "48KiB"],
        ),
        tap(
            "tap-writer",
            "writer",
            &["--impair", "delay=5ms", "--write-pause", "5ms", "--write-size", "8KiB"],
        ),
        tap("tap-link", "link-rate", &["--impair", "delay=10ms,tx.rate=10Mb/s,tx.queue=100KB"]),
        tap("tap-queue", "queue-drop", &["--impair", "delay=20ms,tx.rate=20Mb/s,tx.queue=5KB"]),
        tap("tap-loss", "random-loss", &["--impair", "delay=10ms,tx.loss=1%"]),
        tap(
            "tap-window",
            "congestion-window",
            &["--impair", "delay=20ms", "--congestion", "fixed:10"],
        ),
        stack("stack-send", "send-buffer", &["--impair", "delay=15ms", "--send-buffer", "32KiB"]),
        stack(
            "stack-receive",
            "receive-buffer",
            &["--impair", "delay=15ms", "--receive-buffer", "32KiB"],
        ),
        stack(
            "stack-writer",
            "writer",
            &["--impair", "delay=5ms", "--write-pause", "10ms", "--write-size", "16KiB"],
        ),
        stack("stack-link", "link-rate", &["--impair", "delay=5ms,tx.rate=20Mb/s,tx.queue=200KB"]),
        stack("stack-loss", "random-loss", &["--impair", "delay=15ms,tx.loss=0.5%"]),
        stack(
            "stack-window",
            "congestion-window",
            &["--impair", "delay=10ms", "--congestion", "fixed:20"],
        ),
    ]
}

fn in_simulation() -> Vec<Plant> {
    let wan = |name, scenario| Plant {
        name,
        limit: "link-rate",
        place: Place::Simulated(scenario),
        why: &[],
    };
    vec![
        simulated("sim-send-1", "send-buffer", &["--set", "transfer.send_buffer=8000"]),
        simulated("sim-send-2", "send-buffer", &["--set", "transfer.send_buffer=40000"]),
        simulated("sim-receive-1", "receive-buffer", &["--set", "transfer.receive_buffer=8000"]),
        simulated("sim-receive-2", "receive-buffer", &["--set", "transfer.receive_buffer=40000"]),
        simulated("sim-sender-1", "sender-cpu", &["--set", "sender.machine.scale=2.5"]),
        simulated("sim-sender-2", "sender-cpu", &["--set", "sender.machine.scale=8"]),
        simulated("sim-receiver-1", "receiver-cpu", &["--set", "receiver.machine.scale=2.5"]),
        simulated("sim-receiver-2", "receiver-cpu", &["--set", "receiver.machine.scale=8"]),
        simulated("sim-link", "link-rate", &[]),
        wan("sim-wan-1", "sim:wan-tail-drop"),
        wan("sim-wan-2", "sim:wan-two-routers"),
    ]
}

/// Returns plants that limit the sender or the receiver.
fn at_the_ends() -> Vec<Plant> {
    let ten = Kernel { impairments: "delay=10ms", ..Kernel::default() };
    let five = || Kernel { impairments: "delay=5ms", ..Kernel::default() };
    let near = |near: &'static [_]| Kernel { near, impairments: "delay=10ms", ..Kernel::default() };
    let far = |far: &'static [_]| Kernel { far, impairments: "delay=10ms", ..Kernel::default() };
    vec![
        with("send-1", "send-buffer", &[], near(&[(WMEM, "4096 16384 32768")])),
        with("send-2", "send-buffer", &[], near(&[(WMEM, "4096 65536 131072")])),
        path("send-3", "send-buffer", "delay=20ms", &["--send-buffer", "48KiB"]),
        with("receive-1", "receive-buffer", &[], far(&[(RMEM, "4096 16384 32768")])),
        with("receive-2", "receive-buffer", &[], far(&[(RMEM, "4096 65536 65536")])),
        path("receive-3", "receive-buffer", "delay=20ms", &["--receive-buffer", "48KiB"]),
        with("window-1", "route-window", &[], far(&[(SCALING, "0")])),
        with("window-2", "route-window", &[], Kernel { far_route: "window 20000", ..five() }),
        path("writer-1", "writer", "delay=5ms", &["--write-pause", "5ms", "--write-size", "8KiB"]),
        path("writer-2", "writer", "delay=5ms", &["--write-pause", "50ms"]),
        with("reader-1", "reader", &[], Kernel { sink: &["--read-pause", "20ms"], ..five() }),
        with("reader-2", "reader", &[], Kernel { sink: &["--read-pause", "100ms"], ..five() }),
        Plant {
            name: "sender-1",
            limit: "sender-cpu",
            place: Place::Loopback { sink: &[] },
            why: &["--write-size", "64"],
        },
        Plant {
            name: "receiver-1",
            limit: "receiver-cpu",
            place: Place::Loopback { sink: &["--read-size", "64"] },
            why: &[],
        },
        with("contended-1", "contended", &[], Kernel { hogs: 4, ..ten }),
    ]
}

/// Returns plants that limit the path between the ends.
fn on_the_path() -> Vec<Plant> {
    let ring = |frames, micros| Kernel {
        impairments: "delay=5ms",
        ring: Some((frames, Duration::from_micros(micros))),
        ..Kernel::default()
    };
    vec![
        path("link-1", "link-rate", "delay=10ms,tx.rate=10Mb/s,tx.queue=200KB", &[]),
        path("link-2", "link-rate", "delay=5ms,tx.rate=40Mb/s,tx.queue=400KB", CUBIC),
        path("queue-1", "queue-drop", "delay=10ms,tx.rate=50Mb/s,tx.queue=6KB", CUBIC),
        path("queue-2", "queue-drop", "delay=20ms,tx.rate=20Mb/s,tx.queue=5KB", CUBIC),
        path("loss-1", "random-loss", "delay=10ms,tx.loss=1%", CUBIC),
        path("loss-2", "random-loss", "delay=20ms,tx.loss=0.3%", CUBIC),
        with("drop-1", "receive-drop", CUBIC, ring(16, 300)),
        with("drop-2", "receive-drop", CUBIC, ring(32, 600)),
        path("mtu-1", "path-mtu", "delay=5ms,tx.longest=1200", &[]),
        path("mtu-2", "path-mtu", "delay=15ms,tx.longest=700", CUBIC),
        with(
            "congestion-1",
            "congestion-window",
            CUBIC,
            Kernel { impairments: "delay=10ms", near_route: "cwnd lock 10", ..Kernel::default() },
        ),
        path("round-trip-1", "round-trip", "delay=300ms", &[]),
    ]
}

/// Returns plants that were first run after the diagnosis rules were finished. The rules were not
/// tuned to these plants.
fn held_out() -> Vec<Plant> {
    let delay = |impairments| Kernel { impairments, ..Kernel::default() };
    vec![
        with(
            "held-send",
            "send-buffer",
            RENO,
            Kernel { near: &[(WMEM, "4096 40000 80000")], ..delay("delay=15ms,jitter=1ms") },
        ),
        with(
            "held-receive",
            "receive-buffer",
            CUBIC,
            Kernel { far: &[(RMEM, "4096 50000 50000")], ..delay("delay=25ms") },
        ),
        with(
            "held-window",
            "route-window",
            CUBIC,
            Kernel { near: &[(SCALING, "0")], ..delay("delay=20ms") },
        ),
        path(
            "held-writer",
            "writer",
            "delay=2ms",
            &["--write-pause", "1ms", "--write-size", "1KiB"],
        ),
        with(
            "held-reader",
            "reader",
            CUBIC,
            Kernel { sink: &["--read-pause", "40ms"], ..delay("delay=1ms") },
        ),
        path("held-link-1", "link-rate", "delay=25ms,tx.rate=5Mb/s,tx.queue=60KB", RENO),
        path("held-link-2", "link-rate", "delay=2ms,tx.rate=80Mb/s,tx.queue=300KB", &[]),
        path("held-queue", "queue-drop", "delay=15ms,tx.rate=30Mb/s,tx.queue=8KB", RENO),
        with(
            "held-loss-1",
            "random-loss",
            RENO,
            Kernel { seed: 7, ..delay("delay=15ms,tx.loss=2%") },
        ),
        with(
            "held-loss-2",
            "random-loss",
            CUBIC,
            Kernel { seed: 8, ..delay("delay=8ms,tx.loss=0.5%") },
        ),
        with(
            "held-drop",
            "receive-drop",
            RENO,
            Kernel { ring: Some((24, Duration::from_micros(400))), ..delay("delay=12ms") },
        ),
        path("held-mtu", "path-mtu", "delay=10ms,tx.longest=1000", RENO),
        with(
            "held-congestion",
            "congestion-window",
            RENO,
            Kernel { near_route: "cwnd lock 24", ..delay("delay=20ms") },
        ),
        path("held-round-trip", "round-trip", "delay=250ms", CUBIC),
        Plant {
            name: "held-sender",
            limit: "sender-cpu",
            place: Place::Loopback { sink: &[] },
            why: &["--write-size", "200"],
        },
        Plant {
            name: "held-receiver",
            limit: "receiver-cpu",
            place: Place::Loopback { sink: &["--read-size", "200"] },
            why: &[],
        },
    ]
}

/// Keeps a CPU busy half of the time, while another process is diagnosed.
fn bystand() -> ! {
    const HALF: Duration = Duration::from_millis(10);
    loop {
        let began = Instant::now();
        while began.elapsed() < HALF {
            std::hint::spin_loop();
        }
        thread::sleep(HALF);
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some(BYSTANDER) {
        bystand();
    }
    let Options { word, folder: kept } = Options::parse();
    // `unshare` of a user namespace requires a process with a single thread.
    enter(Isolation::UserAndNetwork)?;
    KernelInterface::loopback()?.set_up()?;
    let folder = tempfile::tempdir()?;
    let mut matrix: BTreeMap<(&str, String), u32> = BTreeMap::new();
    let plants = plants();
    let alone = plants.iter().map(|plant| (plant.name.to_owned(), false, plant));
    // A diagnosis beside the bystander process may name no limit, but must not name a wrong limit.
    let disturbed = plants
        .iter()
        .filter(|plant| matches!(plant.place, Place::Kernel(_) | Place::Loopback { .. }))
        .map(|plant| (format!("{BYSTANDER}-{}", plant.name), true, plant));
    for (name, is_disturbed, plant) in
        alone.chain(disturbed).filter(|(name, ..)| name.starts_with(&word))
    {
        let folder = kept.as_deref().unwrap_or_else(|| folder.path());
        let json = folder.join(format!("{name}.json"));
        let _bystander = if is_disturbed {
            Some(Ended(Command::new(std::env::current_exe()?).arg(BYSTANDER).spawn()?))
        } else {
            None
        };
        let named = match &plant.place {
            Place::Simulated(scenario) => {
                ask(&[&["why", "--on", scenario], plant.why].concat(), &json)?
            }
            Place::Inside(on) => {
                ask(&[&["why", "--on", on, "--seconds", SECONDS], plant.why].concat(), &json)?
            }
            Place::Loopback { sink } => {
                let words = [&["sink", "--quiet", "--listen", "127.0.0.1:1988"], *sink].concat();
                let _sink = Ended::sink(&words)?;
                ask(&[&["why", "127.0.0.1", "--seconds", SECONDS], plant.why].concat(), &json)?
            }
            Place::Kernel(kernel) => over_relay(kernel, plant.why, &json)?,
        };
        println!("{name:<26} planted {:<18} named {named}", plant.limit);
        *matrix.entry((plant.limit, named)).or_default() += 1;
    }
    if matrix.is_empty() {
        eprintln!("error: no plant has a name that begins with '{word}'");
        return Ok(ExitCode::from(2));
    }
    Ok(report(&matrix))
}

/// Prints the matrix of planted and named limits. Returns failure if a limit was named wrongly.
fn report(matrix: &BTreeMap<(&str, String), u32>) -> ExitCode {
    println!("\n{:<18}{:<18}times", "planted", "named");
    let (mut right, mut wrong, mut all) = (0, 0, 0);
    for ((planted, named), &times) in matrix {
        println!("{planted:<18}{named:<18}{times}");
        all += times;
        match named.as_str() {
            name if name == *planted => right += times,
            "contended" | "not-identified" => {}
            _ => wrong += times,
        }
    }
    println!("\nof {all}: {right} named, {wrong} named wrongly, {} open", all - right - wrong);
    if wrong > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs `linerate` with these arguments. Returns the limit that it names in the JSON file.
fn ask(words: &[&str], json: &Path) -> Result<String, Box<dyn Error>> {
    let mut command = Command::new(program()?);
    command.args(words).arg("--json").arg(json).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status()?;
    if !status.success() {
        return Err(format!("linerate {} failed: {status}", words.join(" ")).into());
    }
    let verdict: serde_json::Value = serde_json::from_slice(&std::fs::read(json)?)?;
    Ok(verdict["limit"].as_str().unwrap_or("nothing").to_owned())
}

/// Returns the path of the `linerate` binary, which is in the parent folder of this example's
/// folder.
fn program() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).unwrap_or_else(|| Path::new("."));
    Ok(folder.join("linerate"))
}

/// Creates the path between two namespaces, and returns the limit that `linerate why` names.
fn over_relay(
    kernel: &Kernel,
    why: &'static [&'static str],
    json: &Path,
) -> Result<String, Box<dyn Error>> {
    let (far_network, far_tap) = end("far", FAR, kernel.far, kernel.far_route)?;
    let (near_network, near_tap) = end("near", NEAR, kernel.near, kernel.near_route)?;
    let impairments = kernel.impairments.parse::<Impairments>()?;
    let far_side = Impair::new(far_tap, impairments, 1_988 + kernel.seed);
    let relay = Relay::start(near_tap, far_side, kernel.ring);
    let words = [&["sink", "--quiet"], kernel.sink].concat();
    let _sink = far_network.run(move || Ended::sink(&words))?;
    if !kernel.near_route.is_empty() {
        // The kernel applies some metrics only from its second connection on.
        near_network.run(connect_once)?;
    }
    let _hogs = (0..kernel.hogs)
        .map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().map(Ended))
        .collect::<io::Result<Vec<_>>>()?;
    let (why, json) = (why.to_vec(), json.to_owned());
    let named = near_network.run(move || {
        let address = FAR.to_string();
        ask(&[&["why", &address, "--seconds", SECONDS], &why[..]].concat(), &json)
            .map_err(|error| error.to_string())
    });
    relay.end();
    Ok(named?)
}

/// Sends a few bytes to the sink.
fn connect_once() -> io::Result<()> {
    let mut first = TcpStream::connect((FAR, 1_988))?;
    first.write_all(b"first")?;
    first.shutdown(Shutdown::Write)?;
    io::copy(&mut first, &mut io::sink()).map(|_| ())
}

/// A child process that is killed when this value is dropped.
struct Ended(Child);

impl Ended {
    /// Starts `linerate sink`, and waits until it listens.
    fn sink(words: &[&str]) -> io::Result<Self> {
        let mut sink = Self(Command::new(program()?).args(words).stdout(Stdio::piped()).spawn()?);
        let stdout = sink.0.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        io::BufRead::read_line(&mut io::BufReader::new(stdout), &mut String::new())?;
        Ok(sink)
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates an end of the path: a new network namespace with a TAP device. In a shared namespace,
/// the settings and the kernel's cached metrics of a peer would affect later plants.
fn end(
    name: &'static str,
    address: Ipv4Addr,
    settings: &'static [(&str, &str)],
    route: &'static str,
) -> Result<(Network, Tap), Box<dyn Error>> {
    let network = Network::new()?;
    let tap = network
        .run(move || tap(name, address, settings, route).map_err(|error| error.to_string()))?;
    Ok((network, tap))
}

/// Opens a TAP device with an address in the current namespace, and applies the sysctl settings and
/// the metrics of the route.
fn tap(
    name: &str,
    address: Ipv4Addr,
    settings: &[(&str, &str)],
    route: &str,
) -> Result<Tap, Box<dyn Error>> {
    let config = TapConfig { name: name.to_owned(), offloads: false, ..TapConfig::default() };
    let tap = Tap::open(&config)?;
    let interface = KernelInterface::named(name)?;
    interface.disable_ipv6()?;
    interface.set_queue_length(10_000)?;
    interface.add_address(address, 24)?;
    interface.set_up()?;
    for (setting, value) in settings {
        std::fs::write(format!("/proc/sys/{setting}"), value)?;
    }
    if !route.is_empty() {
        ip(&format!("route replace 10.88.0.0/24 dev {name} scope link src {address} {route}"))?;
    }
    Ok(tap)
}

/// Runs `ip` with these arguments.
fn ip(words: &str) -> Result<(), Box<dyn Error>> {
    let status = Command::new("ip").args(words.split_whitespace()).status()?;
    if !status.success() {
        return Err(format!("ip {words} failed: {status}").into());
    }
    Ok(())
}

/// A thread that carries frames between two links.
struct Relay {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Relay {
    fn start(near: Tap, far: Impair<Tap, MonotonicClock>, ring: Option<(usize, Duration)>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let ring = ring.map(|(frames, service)| Ring { frames, service, free: Instant::now() });
        let thread = thread::spawn(move || {
            // Errors are ignored: if a device fails, the transfer fails too and reports the error.
            let _ = carry(near, far, ring, &until);
        });
        Self { is_over, thread }
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

/// Model of a receive ring that is emptied at a fixed rate. A frame that finds the ring full gets
/// an EtherType that the receiving kernel does not know, so that the kernel drops and counts it.
struct Ring {
    frames: usize,
    service: Duration,
    /// Time at which the last frame in the ring will have been processed.
    free: Instant,
}

impl Ring {
    /// EtherType for local experiments (RFC 9542 §2.1), which no kernel protocol handles.
    const UNKNOWN: [u8; 2] = [0x88, 0xb5];

    fn receive(&mut self, frame: &mut [u8]) {
        let now = Instant::now();
        self.free = self.free.max(now);
        let waiting = self.free - now;
        if waiting > self.service.saturating_mul(u32::try_from(self.frames).unwrap_or(u32::MAX)) {
            frame[12..14].copy_from_slice(&Self::UNKNOWN);
        } else {
            self.free += self.service;
        }
    }
}

fn carry(
    mut near: impl Link,
    mut far: impl Link,
    mut ring: Option<Ring>,
    is_over: &AtomicBool,
) -> Result<(), LinkError> {
    let (mut outward, mut inward) = (VecDeque::new(), VecDeque::new());
    while !is_over.load(Ordering::Relaxed) {
        let already = outward.len();
        let moved = take(&mut near, &mut outward)? + take(&mut far, &mut inward)?;
        if let Some(ring) = &mut ring {
            outward.iter_mut().skip(already).for_each(|frame| ring.receive(frame));
        }
        give(&mut far, &mut outward)?;
        give(&mut near, &mut inward)?;
        if moved == 0 {
            thread::sleep(TURN);
        }
    }
    Ok(())
}

fn take(link: &mut impl Link, frames: &mut VecDeque<Vec<u8>>) -> Result<usize, LinkError> {
    let room = HELD - frames.len().min(HELD);
    link.receive(room.min(64), |frame| frames.push_back(frame.bytes.to_vec()))
}

/// Sends all frames. Calls the link even if the queue is empty, because the link then sends frames
/// that it has delayed.
fn give(link: &mut impl Link, frames: &mut VecDeque<Vec<u8>>) -> Result<usize, LinkError> {
    link.transmit(HELD, |room| {
        let frame = frames.pop_front()?;
        room[..frame.len()].copy_from_slice(&frame);
        Some(TxFrame::whole(frame.len()))
    })
}
