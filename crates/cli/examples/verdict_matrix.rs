//! `cargo xtask verdict`: plants limits, asks `linerate why` for them, and prints how often each
//! was named.
//!
//! Limits of the kernel's TCP are planted between two network namespaces of this process, whose
//! TAP devices are connected by a relay with impairments. Limits of linerate's TCP are planted in
//! simulated networks. A named limit that was not planted is a wrong name, and fails the program;
//! `contended` and `not-identified` are not.
//!
//! ```sh
//! cargo xtask verdict                    # all plants
//! cargo xtask verdict sim                # those whose name contains the word
//! ```

#![allow(clippy::print_stdout, reason = "the program prints its table")]

use linerate_link::impair::{Impair, Impairments};
use linerate_link::namespace::{Isolation, Network, enter};
use linerate_link::tap::{Tap, TapConfig};
use linerate_link::{KernelInterface, MonotonicClock};
use linerate_stack::{Link, LinkError, TxFrame};
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
/// Time between two looks of the relay at its devices.
const TURN: Duration = Duration::from_micros(200);
/// Maximum number of frames that the relay holds in each direction.
const HELD: usize = 4_096;

/// A planted limit.
struct Plant {
    name: &'static str,
    limit: &'static str,
    place: Place,
    /// Further arguments of `linerate why`.
    why: &'static [&'static str],
}

/// The place of a planted limit.
enum Place {
    /// A simulated network.
    Simulated,
    /// The kernel's TCP, over a relay.
    Kernel {
        /// The impairments towards the sink (`tx.`) and from it (`rx.`).
        impairments: &'static str,
        /// Settings at the sender.
        near: &'static [(&'static str, &'static str)],
        /// Settings at the sink.
        far: &'static [(&'static str, &'static str)],
        /// Further arguments of `linerate sink`.
        sink: &'static [&'static str],
        /// Processes that keep all CPUs busy.
        hogs: usize,
    },
}

const fn simulated(name: &'static str, limit: &'static str, why: &'static [&'static str]) -> Plant {
    Plant { name, limit, place: Place::Simulated, why }
}

const fn kernel(
    name: &'static str,
    limit: &'static str,
    impairments: &'static str,
    why: &'static [&'static str],
) -> Plant {
    let place = Place::Kernel { impairments, near: &[], far: &[], sink: &[], hogs: 0 };
    Plant { name, limit, place, why }
}

const WMEM: &str = "net/ipv4/tcp_wmem";
const RMEM: &str = "net/ipv4/tcp_rmem";
const CUBIC: &[&str] = &["--congestion", "cubic"];

/// Returns all plants.
fn plants() -> Vec<Plant> {
    let with_near = |name, limit, near: &'static [_]| Plant {
        place: Place::Kernel { impairments: "delay=10ms", near, far: &[], sink: &[], hogs: 0 },
        ..kernel(name, limit, "", &[])
    };
    let with_far = |name, limit, far: &'static [_]| Plant {
        place: Place::Kernel { impairments: "delay=10ms", near: &[], far, sink: &[], hogs: 0 },
        ..kernel(name, limit, "", &[])
    };
    let with_sink = |name, limit, sink: &'static [_]| Plant {
        place: Place::Kernel { impairments: "delay=5ms", near: &[], far: &[], sink, hogs: 0 },
        ..kernel(name, limit, "", &[])
    };
    let with_hogs = |name, limit, hogs| Plant {
        place: Place::Kernel { impairments: "delay=10ms", near: &[], far: &[], sink: &[], hogs },
        ..kernel(name, limit, "", &[])
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
        with_near("send-1", "send-buffer", &[(WMEM, "4096 16384 32768")]),
        with_near("send-2", "send-buffer", &[(WMEM, "4096 65536 131072")]),
        kernel("send-3", "send-buffer", "delay=20ms", &["--send-buffer", "48KiB"]),
        with_far("receive-1", "receive-buffer", &[(RMEM, "4096 16384 32768")]),
        with_far("receive-2", "receive-buffer", &[(RMEM, "4096 65536 65536")]),
        kernel("receive-3", "receive-buffer", "delay=20ms", &["--receive-buffer", "48KiB"]),
        kernel(
            "writer-1",
            "writer",
            "delay=5ms",
            &["--write-pause", "5ms", "--write-size", "8KiB"],
        ),
        kernel("writer-2", "writer", "delay=5ms", &["--write-pause", "50ms"]),
        with_sink("reader-1", "reader", &["--read-pause", "20ms"]),
        with_sink("reader-2", "reader", &["--read-pause", "100ms"]),
        kernel("link-1", "link-rate", "delay=10ms,tx.rate=10Mb/s,tx.queue=200KB", &[]),
        kernel("link-2", "link-rate", "delay=5ms,tx.rate=40Mb/s,tx.queue=400KB", CUBIC),
        kernel("queue-1", "queue-drop", "delay=10ms,tx.rate=50Mb/s,tx.queue=6KB", CUBIC),
        kernel("loss-1", "random-loss", "delay=10ms,tx.loss=1%", CUBIC),
        kernel("loss-2", "random-loss", "delay=20ms,tx.loss=0.3%", CUBIC),
        kernel("mtu-1", "path-mtu", "delay=5ms,tx.longest=1200", &[]),
        kernel("round-trip-1", "round-trip", "delay=300ms", &[]),
        with_hogs("contended-1", "contended", 4),
    ]
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // First, because the process must have one thread.
    enter(Isolation::UserAndNetwork)?;
    KernelInterface::loopback()?.set_up()?;
    let word = std::env::args().nth(1).unwrap_or_default();
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("why.json");
    let mut matrix: BTreeMap<(&str, String), u32> = BTreeMap::new();
    for plant in plants().iter().filter(|plant| plant.name.contains(&word)) {
        let named = match &plant.place {
            Place::Simulated => {
                let words = [&["why", "--on", "sim:10-gbe-pair"], plant.why].concat();
                ask(&words, &json)?
            }
            Place::Kernel { .. } => over_relay(plant, &json)?,
        };
        println!("{:<16} planted {:<16} named {named}", plant.name, plant.limit);
        *matrix.entry((plant.limit, named)).or_default() += 1;
    }
    Ok(report(&matrix))
}

/// Prints the matrix, and returns failure if a limit was named wrongly.
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

/// Runs `linerate`, and returns the limit in its JSON file.
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

/// Returns the command, which is beside the folder of this example.
fn program() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).unwrap_or_else(|| Path::new("."));
    Ok(folder.join("linerate"))
}

/// Plants a limit between two namespaces, and asks for it.
fn over_relay(plant: &Plant, json: &Path) -> Result<String, Box<dyn Error>> {
    let Place::Kernel { impairments, near, far, sink, hogs } = &plant.place else {
        return Err("the plant is simulated".into());
    };
    let far_network = Network::new()?;
    let (far, sink) = (*far, *sink);
    let far_tap =
        far_network.run(move || tap("far", FAR, far).map_err(|error| error.to_string()))?;
    let near_tap = tap("near", NEAR, near)?;
    let far_side = Impair::new(far_tap, impairments.parse::<Impairments>()?, 1988);
    let relay = Relay::start(near_tap, far_side);
    let words = [&["sink", "--quiet"], sink].concat();
    let program_path = program()?;
    let started = far_network
        .run(move || Command::new(program_path).args(words).stdout(Stdio::piped()).spawn())?;
    let mut sink = Ended(started);
    wait_for_line(&mut sink.0)?;
    let _hogs = (0..*hogs)
        .map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().map(Ended))
        .collect::<io::Result<Vec<_>>>()?;
    let address = FAR.to_string();
    let named = ask(&[&["why", &address, "--seconds", "16"], plant.why].concat(), json);
    relay.end();
    named
}

/// Waits until the sink has printed its address.
fn wait_for_line(sink: &mut Child) -> io::Result<()> {
    let stdout = sink.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
    io::BufRead::read_line(&mut io::BufReader::new(stdout), &mut String::new()).map(|_| ())
}

/// A process that is ended when this is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Opens a device with an address in the current network, and changes settings there.
fn tap(name: &str, address: Ipv4Addr, settings: &[(&str, &str)]) -> Result<Tap, Box<dyn Error>> {
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
    Ok(tap)
}

/// A thread that carries frames between two links.
struct Relay {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Relay {
    fn start(near: Tap, far: Impair<Tap, MonotonicClock>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            // Ends when a device fails, which the transfer then shows.
            let _ = carry(near, far, &until);
        });
        Self { is_over, thread }
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

fn carry(mut near: impl Link, mut far: impl Link, is_over: &AtomicBool) -> Result<(), LinkError> {
    let (mut outward, mut inward) = (VecDeque::new(), VecDeque::new());
    while !is_over.load(Ordering::Relaxed) {
        let moved = take(&mut near, &mut outward)? + take(&mut far, &mut inward)?;
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

/// Sends all frames; also calls a link with nothing to send, so that delayed frames leave.
fn give(link: &mut impl Link, frames: &mut VecDeque<Vec<u8>>) -> Result<usize, LinkError> {
    link.transmit(HELD, |room| {
        let frame = frames.pop_front()?;
        room[..frame.len()].copy_from_slice(&frame);
        Some(TxFrame::whole(frame.len()))
    })
}
