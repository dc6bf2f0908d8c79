//! The plants of the matrix, which are paths with one deliberate limit. Some plants have fixed
//! values, and a seed determines the values of the others.

use oorandom::Rand64;
use std::fmt;
use std::time::Duration;

/// A path with one deliberate limit, and the name that `linerate why` must give to this limit.
pub(crate) struct Plant {
    pub(crate) name: String,
    pub(crate) limit: &'static str,
    pub(crate) place: Place,
    /// Additional arguments of `linerate why`.
    pub(crate) why: String,
}

impl fmt::Display for Plant {
    /// Writes the values that define the path, and the additional arguments of `linerate why`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Simulated(on) | Place::Inside(on) => write!(f, "{on}")?,
            Place::Loopback { sink } => write!(f, "loopback {sink}")?,
            Place::Kernel(kernel) => write!(f, "{kernel}")?,
        }
        write!(f, " {}", self.why)
    }
}

/// The kind of path that has the planted limit.
pub(crate) enum Place {
    /// A simulated network, by its `--on` value such as `sim:10-gbe-pair`.
    Simulated(&'static str),
    /// linerate's TCP inside one process, by its `--on` value `tap` or `stack`.
    Inside(&'static str),
    /// The kernel's TCP, over the loopback device.
    Loopback {
        /// Additional arguments of `linerate sink`.
        sink: String,
    },
    /// The kernel's TCP in two network namespaces.
    Kernel(Kernel),
}

/// A path between two network namespaces, with the settings of both ends.
#[derive(Default)]
pub(crate) struct Kernel {
    /// Whether a veth pair connects the namespaces. The round trip then takes microseconds, and
    /// there are no impairments. Otherwise a relay with impairments connects them.
    pub(crate) is_direct: bool,
    /// Impairments of the frames towards the sink (`tx.`) and from it (`rx.`).
    pub(crate) impairments: String,
    /// Seed of the random impairments.
    pub(crate) seed: u64,
    /// Sysctl settings of the sender's namespace.
    pub(crate) near: Vec<Setting>,
    /// Sysctl settings of the sink's namespace.
    pub(crate) far: Vec<Setting>,
    /// Metrics of the sender's route, as `ip route` takes them.
    pub(crate) near_route: String,
    /// Metrics of the sink's route, as `ip route` takes them.
    pub(crate) far_route: String,
    /// Model of a slow receive ring at the sink's device; `None` for no such ring.
    pub(crate) ring: Option<Ring>,
    /// Additional arguments of `linerate sink`.
    pub(crate) sink: String,
    /// Number of processes that keep a CPU busy.
    pub(crate) hogs: usize,
}

impl fmt::Display for Kernel {
    /// Writes the values that differ from the defaults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", if self.is_direct { "veth" } else { &self.impairments })?;
        for (end, settings, route) in
            [("near", &self.near, &self.near_route), ("far", &self.far, &self.far_route)]
        {
            for Setting { path, value } in settings {
                write!(f, " {end} {path}={value}")?;
            }
            if !route.is_empty() {
                write!(f, " {end} route {route}")?;
            }
        }
        if let Some(Ring { frames, service }) = self.ring {
            write!(f, " ring of {frames} frames at {service:?}")?;
        }
        write!(f, " {}", self.sink)
    }
}

/// A sysctl setting.
#[derive(Clone)]
pub(crate) struct Setting {
    /// Path of the setting below `/proc/sys`.
    pub(crate) path: &'static str,
    pub(crate) value: String,
}

/// A receive ring that is emptied at a fixed rate.
#[derive(Clone, Copy)]
pub(crate) struct Ring {
    /// Capacity of the ring in frames.
    pub(crate) frames: u32,
    /// Time in which one frame is taken out of the ring.
    pub(crate) service: Duration,
}

fn plant(name: &str, limit: &'static str, place: Place, why: &str) -> Plant {
    Plant { name: name.to_owned(), limit, place, why: why.to_owned() }
}

/// Creates a plant whose path has the given impairments.
fn path(name: &str, limit: &'static str, impairments: &str, why: &str) -> Plant {
    plant(name, limit, Place::Kernel(delayed(impairments)), why)
}

/// Returns a path with the given impairments; all its other values are the defaults.
fn delayed(impairments: &str) -> Kernel {
    Kernel { impairments: impairments.to_owned(), ..Kernel::default() }
}

fn with(name: &str, limit: &'static str, why: &str, kernel: Kernel) -> Plant {
    plant(name, limit, Place::Kernel(kernel), why)
}

/// Creates a plant in which the processor limits the transfer over the loopback device.
fn loopback(name: &str, limit: &'static str, why: &str, sink: &str) -> Plant {
    plant(name, limit, Place::Loopback { sink: sink.to_owned() }, why)
}

fn set(path: &'static str, value: &str) -> Vec<Setting> {
    vec![Setting { path, value: value.to_owned() }]
}

const fn ring(frames: u32, micros: u64) -> Option<Ring> {
    Some(Ring { frames, service: Duration::from_micros(micros) })
}

const WMEM: &str = "net/ipv4/tcp_wmem";
const RMEM: &str = "net/ipv4/tcp_rmem";
const SCALING: &str = "net/ipv4/tcp_window_scaling";
const CUBIC: &str = "--congestion cubic";
const RENO: &str = "--congestion reno";

/// Returns the plants (paths with one deliberate limit) whose values do not depend on a seed.
pub(crate) fn fixed() -> Vec<Plant> {
    [in_simulation(), in_process(), over_veth(), at_the_ends(), on_the_path(), held_out()]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns plants in which linerate's TCP sends to the kernel's TCP across a TAP device, or to
/// another linerate host in memory. A small path MTU is not planted: linerate's TCP discovers it
/// within a second, so it is no limit.
fn in_process() -> Vec<Plant> {
    let tap = |name, limit, why| plant(name, limit, Place::Inside("tap"), why);
    let stack = |name, limit, why| plant(name, limit, Place::Inside("stack"), why);
    vec![
        tap("tap-send", "send-buffer", "--impair delay=10ms --send-buffer 48KiB"),
        tap("tap-receive", "receive-buffer", "--impair delay=10ms --receive-buffer 48KiB"),
        tap("tap-writer", "writer", "--impair delay=5ms --write-pause 5ms --write-size 8KiB"),
        tap("tap-link", "link-rate", "--impair delay=10ms,tx.rate=10Mb/s,tx.queue=100KB"),
        tap("tap-queue", "queue-drop", "--impair delay=20ms,tx.rate=20Mb/s,tx.queue=5KB"),
        tap("tap-loss", "random-loss", "--impair delay=10ms,tx.loss=1%"),
        tap("tap-window", "congestion-window", "--impair delay=20ms --congestion fixed:10"),
        stack("stack-send", "send-buffer", "--impair delay=15ms --send-buffer 32KiB"),
        stack("stack-receive", "receive-buffer", "--impair delay=15ms --receive-buffer 32KiB"),
        stack("stack-writer", "writer", "--impair delay=5ms --write-pause 10ms --write-size 16KiB"),
        stack("stack-link", "link-rate", "--impair delay=5ms,tx.rate=20Mb/s,tx.queue=200KB"),
        stack("stack-loss", "random-loss", "--impair delay=15ms,tx.loss=0.5%"),
        stack("stack-window", "congestion-window", "--impair delay=10ms --congestion fixed:20"),
    ]
}

fn in_simulation() -> Vec<Plant> {
    let pair = |name, limit, why| plant(name, limit, Place::Simulated("sim:10-gbe-pair"), why);
    let wan = |name, limit, why| plant(name, limit, Place::Simulated("sim:wan-tail-drop"), why);
    vec![
        pair("sim-send-1", "send-buffer", "--set transfer.send_buffer=8000"),
        pair("sim-send-2", "send-buffer", "--set transfer.send_buffer=40000"),
        pair("sim-receive-1", "receive-buffer", "--set transfer.receive_buffer=8000"),
        pair("sim-receive-2", "receive-buffer", "--set transfer.receive_buffer=40000"),
        pair("sim-sender-1", "sender-cpu", "--set sender.machine.scale=2.5"),
        pair("sim-sender-2", "sender-cpu", "--set sender.machine.scale=8"),
        pair("sim-receiver-1", "receiver-cpu", "--set receiver.machine.scale=2.5"),
        pair("sim-receiver-2", "receiver-cpu", "--set receiver.machine.scale=8"),
        pair("sim-link", "link-rate", ""),
        pair("sim-loss", "random-loss", "--set medium.loss=0.1 --set medium.delay=1000"),
        pair("sim-drop", "receive-drop", "--set receiver.nic.receive.ring=8"),
        wan("sim-wan-1", "link-rate", ""),
        plant("sim-wan-2", "link-rate", Place::Simulated("sim:wan-two-routers"), ""),
        wan("sim-queue-1", "queue-drop", "--set medium.queue.limit=4"),
        wan(
            "sim-queue-2",
            "queue-drop",
            "--set medium.queue.limit=16 --set hosts.far.cable.rate=100",
        ),
        pair("sim-round-trip-1", "round-trip", "--set medium.delay=50000 --set transfer.bytes=3e6"),
        pair("sim-round-trip-2", "round-trip", "--set medium.delay=15000 --set transfer.bytes=6e5"),
    ]
}

/// Returns plants whose round trip takes microseconds, because a veth pair connects the two
/// namespaces.
fn over_veth() -> Vec<Plant> {
    let direct = || Kernel { is_direct: true, ..Kernel::default() };
    let near = |value| Kernel { near: set(WMEM, value), ..direct() };
    let far = |value| Kernel { far: set(RMEM, value), ..direct() };
    let sink = |words: &str| Kernel { sink: words.to_owned(), ..direct() };
    vec![
        with("veth-send-1", "send-buffer", CUBIC, near("4096 16384 16384")),
        with("veth-send-2", "send-buffer", RENO, near("4096 65536 65536")),
        with("veth-receive-1", "receive-buffer", CUBIC, far("4096 8192 8192")),
        with("veth-receive-2", "receive-buffer", RENO, far("4096 32768 32768")),
        with("veth-writer", "writer", "--write-pause 1ms --write-size 4KiB", direct()),
        with("veth-reader", "reader", CUBIC, sink("--read-pause 5ms")),
        with("veth-receiver", "receiver-cpu", RENO, sink("--read-size 64")),
        with("veth-sender", "sender-cpu", "--write-size 64", direct()),
    ]
}

/// Returns plants whose limit is at the sender or at the receiver.
fn at_the_ends() -> Vec<Plant> {
    let ten = || delayed("delay=10ms");
    let five = || delayed("delay=5ms");
    let near = |path, value| Kernel { near: set(path, value), ..ten() };
    let far = |path, value| Kernel { far: set(path, value), ..ten() };
    let slow_reader = |pause: &str| Kernel { sink: format!("--read-pause {pause}"), ..five() };
    vec![
        with("send-1", "send-buffer", "", near(WMEM, "4096 16384 32768")),
        with("send-2", "send-buffer", "", near(WMEM, "4096 65536 131072")),
        path("send-3", "send-buffer", "delay=20ms", "--send-buffer 48KiB"),
        with("receive-1", "receive-buffer", "", far(RMEM, "4096 16384 32768")),
        with("receive-2", "receive-buffer", "", far(RMEM, "4096 65536 65536")),
        path("receive-3", "receive-buffer", "delay=20ms", "--receive-buffer 48KiB"),
        with("window-1", "route-window", "", far(SCALING, "0")),
        with(
            "window-2",
            "route-window",
            "",
            Kernel { far_route: "window 20000".to_owned(), ..five() },
        ),
        path("writer-1", "writer", "delay=5ms", "--write-pause 5ms --write-size 8KiB"),
        path("writer-2", "writer", "delay=5ms", "--write-pause 50ms"),
        with("reader-1", "reader", "", slow_reader("20ms")),
        with("reader-2", "reader", "", slow_reader("100ms")),
        loopback("sender-1", "sender-cpu", "--write-size 64", ""),
        loopback("receiver-1", "receiver-cpu", "", "--read-size 64"),
        with("contended-1", "contended", "", Kernel { hogs: 4, ..ten() }),
    ]
}

/// Returns plants whose limit is on the path between the ends.
fn on_the_path() -> Vec<Plant> {
    let ring = |frames, micros| Kernel { ring: ring(frames, micros), ..delayed("delay=5ms") };
    let locked = Kernel { near_route: "cwnd lock 10".to_owned(), ..delayed("delay=10ms") };
    vec![
        path("link-1", "link-rate", "delay=10ms,tx.rate=10Mb/s,tx.queue=200KB", ""),
        path("link-2", "link-rate", "delay=5ms,tx.rate=40Mb/s,tx.queue=400KB", CUBIC),
        path("queue-1", "queue-drop", "delay=10ms,tx.rate=50Mb/s,tx.queue=6KB", CUBIC),
        path("queue-2", "queue-drop", "delay=20ms,tx.rate=20Mb/s,tx.queue=5KB", CUBIC),
        path("loss-1", "random-loss", "delay=10ms,tx.loss=1%", CUBIC),
        path("loss-2", "random-loss", "delay=20ms,tx.loss=0.3%", CUBIC),
        with("drop-1", "receive-drop", CUBIC, ring(16, 300)),
        with("drop-2", "receive-drop", CUBIC, ring(32, 600)),
        path("mtu-1", "path-mtu", "delay=5ms,tx.longest=1200", ""),
        path("mtu-2", "path-mtu", "delay=15ms,tx.longest=700", CUBIC),
        with("congestion-1", "congestion-window", CUBIC, locked),
        path("round-trip-1", "round-trip", "delay=300ms", ""),
    ]
}

/// Returns plants that were first diagnosed when the rules of the diagnosis were finished, as an
/// independent test. Some rules have been changed since then, so only [`drawn`] with a new seed is
/// still independent.
fn held_out() -> Vec<Plant> {
    vec![
        with(
            "held-send",
            "send-buffer",
            RENO,
            Kernel { near: set(WMEM, "4096 40000 80000"), ..delayed("delay=15ms,jitter=1ms") },
        ),
        with(
            "held-receive",
            "receive-buffer",
            CUBIC,
            Kernel { far: set(RMEM, "4096 50000 50000"), ..delayed("delay=25ms") },
        ),
        with(
            "held-window",
            "route-window",
            CUBIC,
            Kernel { near: set(SCALING, "0"), ..delayed("delay=20ms") },
        ),
        path("held-writer", "writer", "delay=2ms", "--write-pause 1ms --write-size 1KiB"),
        with(
            "held-reader",
            "reader",
            CUBIC,
            Kernel { sink: "--read-pause 40ms".to_owned(), ..delayed("delay=1ms") },
        ),
        path("held-link-1", "link-rate", "delay=25ms,tx.rate=5Mb/s,tx.queue=60KB", RENO),
        path("held-link-2", "link-rate", "delay=2ms,tx.rate=80Mb/s,tx.queue=300KB", ""),
        path("held-queue", "queue-drop", "delay=15ms,tx.rate=30Mb/s,tx.queue=8KB", RENO),
        with(
            "held-loss-1",
            "random-loss",
            RENO,
            Kernel { seed: 7, ..delayed("delay=15ms,tx.loss=2%") },
        ),
        with(
            "held-loss-2",
            "random-loss",
            CUBIC,
            Kernel { seed: 8, ..delayed("delay=8ms,tx.loss=0.5%") },
        ),
        with(
            "held-drop",
            "receive-drop",
            RENO,
            Kernel { ring: ring(24, 400), ..delayed("delay=12ms") },
        ),
        path("held-mtu", "path-mtu", "delay=10ms,tx.longest=1000", RENO),
        with(
            "held-congestion",
            "congestion-window",
            RENO,
            Kernel { near_route: "cwnd lock 24".to_owned(), ..delayed("delay=20ms") },
        ),
        path("held-round-trip", "round-trip", "delay=250ms", CUBIC),
        loopback("held-sender", "sender-cpu", "--write-size 200", ""),
        loopback("held-receiver", "receiver-cpu", "", "--read-size 200"),
    ]
}

/// Returns plants whose strength, round-trip time and congestion control a seed determines. The
/// rules of the diagnosis were not adjusted to any seed, so these plants show whether the rules
/// also hold for other values.
///
/// The planted limit of each path is far below its other limits, so that only one answer is right.
/// Every other link or buffer allows at least three times the planted rate.
pub(crate) fn drawn(seed: u64) -> Vec<Plant> {
    let mut draw = Draw(Rand64::new(u128::from(seed)));
    let mut plants = drawn_at_the_ends(&mut draw);
    plants.append(&mut drawn_on_the_path(&mut draw));
    plants.append(&mut drawn_in_process(&mut draw));
    plants
}

fn drawn_at_the_ends(draw: &mut Draw) -> Vec<Plant> {
    let mut plants = Vec::new();
    for buffer in [draw.log(20_000, 60_000), draw.log(60_000, 200_000)] {
        let (delay, why) = (draw.log(5, 40), draw.congestion());
        // The kernel counts twice the size of the data against the send buffer. At most half of
        // `buffer` is therefore in flight during a round trip, which takes twice `delay`. The
        // resulting rate is passed to `path`.
        let path = draw.path(delay, buffer / 2 * 1_000 / (2 * delay));
        let near = set(WMEM, &format!("4096 {} {buffer}", buffer / 2));
        plants.push(with("drawn-send", "send-buffer", why, Kernel { near, ..path }));

        let (delay, why) = (draw.log(5, 40), draw.congestion());
        let path = draw.path(delay, buffer / 2 * 1_000 / (2 * delay));
        let far = set(RMEM, &format!("4096 {buffer} {buffer}"));
        plants.push(with("drawn-receive", "receive-buffer", why, Kernel { far, ..path }));

        let (delay, why) = (draw.log(5, 40), draw.congestion());
        let window = draw.log(6_000, 60_000);
        // The kernel advertises up to 65,535 bytes even if `window` is smaller. The planted rate is
        // therefore computed from at least 65,535 bytes.
        let path = draw.path(delay, window.max(65_535) * 1_000 / (2 * delay));
        let far_route = format!("window {window}");
        plants.push(with("drawn-window", "route-window", why, Kernel { far_route, ..path }));

        let (delay, pause, size) = (draw.log(1, 30), draw.log(1, 50), draw.log(1_000, 64_000));
        let path = draw.path(delay, size * 1_000 / pause);
        let why = format!("{} --write-pause {pause}ms --write-size {size}", draw.congestion());
        plants.push(with("drawn-writer", "writer", &why, path));

        let (delay, pause, why) = (draw.log(1, 20), draw.log(15, 150), draw.congestion());
        let sink = format!("--read-pause {pause}ms");
        let path = draw.path(delay, 131_072 * 1_000 / pause);
        plants.push(with("drawn-reader", "reader", why, Kernel { sink, ..path }));
    }
    let write_size = format!("--write-size {}", draw.log(32, 300));
    plants.push(loopback("drawn-sender", "sender-cpu", &write_size, ""));
    let read_size = format!("--read-size {}", draw.log(32, 300));
    plants.push(loopback("drawn-receiver", "receiver-cpu", "", &read_size));
    plants
}

fn drawn_on_the_path(draw: &mut Draw) -> Vec<Plant> {
    let mut plants = Vec::new();
    for _ in 0..2 {
        let (delay, megabits) = (draw.log(2, 40), draw.log(3, 100));
        // The queue holds one to four bandwidth-delay products, but at least 30 KB.
        let product = megabits * 2 * delay / 8;
        let queue = (draw.log(10, 40) * product / 10).max(30);
        let impairments = format!("delay={delay}ms,tx.rate={megabits}Mb/s,tx.queue={queue}KB");
        plants.push(path("drawn-link", "link-rate", &impairments, draw.congestion()));

        let (delay, megabits, queue) = (draw.log(10, 30), draw.log(20, 60), draw.log(4, 8));
        let impairments = format!("delay={delay}ms,tx.rate={megabits}Mb/s,tx.queue={queue}KB");
        plants.push(path("drawn-queue", "queue-drop", &impairments, draw.congestion()));

        let (delay, loss) = (draw.log(5, 30), draw.log(15, 300));
        let seed = draw.0.rand_u64() % 1_000;
        let impairments = format!("delay={delay}ms,tx.loss={}.{:02}%", loss / 100, loss % 100);
        let kernel = Kernel { seed, ..delayed(&impairments) };
        plants.push(with("drawn-loss", "random-loss", draw.congestion(), kernel));

        let ring = ring(u32::try_from(draw.log(8, 48)).unwrap_or(8), draw.log(200, 800));
        let kernel = Kernel { ring, ..delayed(&format!("delay={}ms", draw.log(2, 20))) };
        plants.push(with("drawn-drop", "receive-drop", draw.congestion(), kernel));

        let impairments =
            format!("delay={}ms,tx.longest={}", draw.log(2, 30), draw.log(600, 1_300));
        plants.push(path("drawn-mtu", "path-mtu", &impairments, draw.congestion()));

        let (delay, window) = (draw.log(5, 30), draw.log(4, 40));
        let near_route = format!("cwnd lock {window}");
        let kernel = draw.path(delay, window * 1_448 * 1_000 / (2 * delay));
        let kernel = Kernel { near_route, ..kernel };
        plants.push(with("drawn-congestion", "congestion-window", draw.congestion(), kernel));
    }
    let impairments = format!("delay={}ms", draw.log(200, 350));
    plants.push(path("drawn-round-trip", "round-trip", &impairments, draw.congestion()));
    plants
}

fn drawn_in_process(draw: &mut Draw) -> Vec<Plant> {
    let mut plants = Vec::new();
    for on in ["tap", "stack"] {
        let mut add = |name: &str, limit, why: String| {
            let name = format!("drawn-{on}-{name}");
            plants.push(plant(&name, limit, Place::Inside(on), &why));
        };
        let (delay, buffer) = (draw.log(5, 30), draw.log(16, 128));
        add("send", "send-buffer", format!("--impair delay={delay}ms --send-buffer {buffer}KiB"));
        let (delay, buffer) = (draw.log(5, 30), draw.log(16, 128));
        let why = format!("--impair delay={delay}ms --receive-buffer {buffer}KiB");
        add("receive", "receive-buffer", why);
        let (delay, megabits) = (draw.log(2, 30), draw.log(3, 60));
        let queue = (megabits * 2 * delay / 8).max(30);
        let why = format!("--impair delay={delay}ms,tx.rate={megabits}Mb/s,tx.queue={queue}KB");
        add("link", "link-rate", why);
        let (delay, loss) = (draw.log(5, 20), draw.log(30, 200));
        let why = format!("--impair delay={delay}ms,tx.loss={}.{:02}%", loss / 100, loss % 100);
        add("loss", "random-loss", why);
        let (delay, window) = (draw.log(5, 30), draw.log(4, 40));
        let why = format!("--impair delay={delay}ms --congestion fixed:{window}");
        add("window", "congestion-window", why);
    }
    plants
}

/// A source of random values for plants, which a seed determines.
struct Draw(Rand64);

impl Draw {
    /// Returns a random number from `least` to `most`, whose logarithm is uniformly distributed.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the numbers are small and positive"
    )]
    fn log(&mut self, least: u64, most: u64) -> u64 {
        let ratio = most as f64 / least as f64;
        (least as f64 * ratio.powf(self.0.rand_float())).round() as u64
    }

    fn congestion(&mut self) -> &'static str {
        if self.0.rand_u64().is_multiple_of(2) { CUBIC } else { RENO }
    }

    /// Returns a path with this delay in milliseconds, which must allow far more than the planted
    /// rate of `bytes_per_second`. A random half of these paths also has a link with three to ten
    /// times that rate. Its queue takes about 50 ms to empty, and has at least 30 KB.
    fn path(&mut self, delay: u64, bytes_per_second: u64) -> Kernel {
        let bits = bytes_per_second * 8 * self.log(3, 10);
        if self.0.rand_u64().is_multiple_of(2) {
            return delayed(&format!("delay={delay}ms"));
        }
        let queue = (bits / 8 / 20 / 1_000).max(30);
        delayed(&format!("delay={delay}ms,tx.rate={}kb/s,tx.queue={queue}KB", bits / 1_000))
    }
}
