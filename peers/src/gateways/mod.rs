//! Comparison of egress gateways by processor time and memory for equal traffic: `cargo xtask bench
//! gateways`.
//!
//! The traffic passes from a client in one network namespace, through a TUN device and the gateway,
//! to a server in another network namespace.

mod floods;
mod network;
mod subject;
mod traffic;

use crate::facts::Facts;
use clap::Parser;
use linerate_link::namespace::{Isolation, spawn};
use network::TestNetwork;
use rustix::process::geteuid;
use serde::Serialize;
use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use subject::Subject;
use traffic::{Direction, Server};

/// Argument that selects the comparison of gateways.
pub const WORD: &str = "gateways";
/// Argument with which this program starts itself again inside the namespace of the comparison.
pub const SERVE: &str = "serve-gateways";
/// Argument with which this program starts itself again as a client behind a gateway.
pub const CLIENT: &str = "serve-gateway-client";

pub use traffic::run_client;

/// Compares egress gateways: processor seconds per GB, memory per idle flow, and connections per
/// second.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench gateways", bin_name = "cargo xtask bench gateways")]
struct Arguments {
    /// Transfers less data and opens fewer flows.
    #[arg(long)]
    quick: bool,
    /// Measures only this gateway; may be repeated.
    #[arg(long, value_name = "NAME")]
    gateway: Vec<String>,
    /// Measures only with this MTU; may be repeated.
    #[arg(long, value_name = "BYTES")]
    mtu: Vec<usize>,
    /// Measures only the goodput of an upload beside floods from the same client.
    #[arg(long)]
    floods: bool,
    /// Rate of a flood in packets per second, or 0 for as many as possible; may be repeated.
    #[arg(long, value_name = "COUNT", requires = "floods", default_values_t = [20_000, 100_000, 0])]
    rate: Vec<u32>,
    /// Writes all results as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The results of one gateway with one MTU.
#[derive(Debug, Default, Serialize)]
struct Figures {
    gateway: &'static str,
    /// MTU of the client's device in bytes.
    mtu: usize,
    /// Processor seconds of the gateway per GB of an upload over one stream, and over eight
    /// streams.
    up: [f64; 2],
    /// Processor seconds of the gateway per GB of a download over one stream, and over eight
    /// streams.
    down: [f64; 2],
    /// Goodput of the uploads over one stream and over eight streams, in Gb/s.
    rate_up: [f64; 2],
    /// Goodput of the downloads over one stream and over eight streams, in Gb/s.
    rate_down: [f64; 2],
    /// Growth of the gateway's resident memory per idle flow, in bytes.
    idle_flow: f64,
    /// Resident memory of the gateway five seconds after all flows were closed, minus its memory
    /// before they were opened, in bytes per flow.
    after_close: f64,
    /// Processor time of the gateway per connection, in microseconds. A connection carries one byte
    /// in each direction.
    connection: f64,
    /// Number of connections per second, if connections with one byte in each direction are opened
    /// one after the other.
    connections: f64,
    /// Whether the client receives the answer to an upload that it ends with a half-close.
    half_close: bool,
}

/// The results of an upload beside one kind of flood.
#[derive(Debug, Serialize)]
struct FloodFigures {
    gateway: &'static str,
    /// Kind of the flood, one of `floods::KINDS`.
    kind: &'static str,
    /// Number of packets per second that the flood has sent.
    rate: f64,
    /// Goodput of the upload without the flood, in Gb/s.
    alone: f64,
    /// Goodput of the upload beside the flood, in Gb/s.
    beside: f64,
    /// Number of processors that the gateway keeps busy beside the flood.
    processor: f64,
    /// Resident memory of the gateway beside the flood, in bytes.
    memory: f64,
}

impl FloodFigures {
    fn row(&self) -> String {
        let (kept, rate) = (self.beside / self.alone, self.rate / 1e3);
        format!(
            "  {:<18} {:<10} {rate:>8.0} k/s {:>7.2} {:>7.3} {kept:>7.3} {:>6.2} {:>8.1} MB\n",
            self.gateway,
            self.kind,
            self.alone,
            self.beside,
            self.processor,
            self.memory / 1e6,
        )
    }
}

/// Starts this program again in a new network namespace, where it performs the comparison. Waits
/// until it has ended.
///
/// # Errors
/// A message that the namespace cannot be created, or that the program inside it has failed.
pub fn start(words: &[String]) -> Result<(), String> {
    // The arguments are parsed before the program starts itself again, so that wrong arguments are
    // reported at once.
    let _ = Arguments::parse_from(words);
    let mut command = Command::new(env::current_exe().map_err(|error| error.to_string())?);
    command.arg(SERVE).args(words.iter().skip(1));
    // Without root, a process must create a user namespace before it may create a network
    // namespace. As root, no user namespace is created: pasta changes to another user, which would
    // not exist in a new user namespace.
    let isolation =
        if geteuid().is_root() { Isolation::Network } else { Isolation::UserAndNetwork };
    let mut child = spawn(command, isolation).map_err(|error| error.to_string())?;
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err("the comparison has failed".to_owned()) }
}

/// Performs the comparison. This process must already be inside its network namespace.
///
/// # Errors
/// A message about the failure.
pub fn serve(words: &[String]) -> Result<(), String> {
    let arguments = Arguments::parse_from(words);
    let json = match &arguments.json {
        Some(path) => Some(File::create(path).map_err(|error| error.to_string())?),
        None => None,
    };
    let mut subjects = Vec::new();
    let mut missing = Vec::new();
    for subject in Subject::ALL {
        if !arguments.gateway.is_empty()
            && !arguments.gateway.iter().any(|name| name == subject.name())
        {
            continue;
        }
        match subject.program() {
            Ok(program) => subjects.push((subject, program)),
            Err(reason) => {
                say(&format!("{} is left out: {reason}\n", subject.name()))?;
                missing.push((subject.name(), reason));
            }
        }
    }
    if arguments.floods {
        say(&format!(
            "  {:<18} {:<10} {:>12} {:>7} {:>7} {:>7} {:>6} {:>11}\n",
            "gateway", "flood", "packets", "alone", "beside", "kept", "CPU", "memory",
        ))?;
        let mut all = Vec::new();
        for (subject, program) in &subjects {
            match floods::measure(*subject, program, &arguments.rate) {
                Ok(figures) => all.extend(figures),
                Err(reason) => say(&format!("  {:<18} {reason}\n", subject.name()))?,
            }
        }
        return write_json(json, &subjects, &missing, &all, arguments.quick);
    }
    let mtus = if arguments.mtu.is_empty() { vec![1_500, 65_520] } else { arguments.mtu.clone() };
    let mut all = Vec::new();
    for mtu in mtus {
        say(&format!(
            "MTU {mtu}: processor seconds of the gateway per GB, and Gb/s in parentheses\n  \
             {:<18} {:>14} {:>14} {:>14} {:>14} {:>12} {:>12} {:>17}\n",
            "", "up 1", "up 8", "down 1", "down 8", "idle flow", "after close", "CPU/connection",
        ))?;
        for (subject, program) in &subjects {
            match measure(*subject, program, mtu, arguments.quick) {
                Ok(figures) => {
                    say(&row(&figures))?;
                    if !figures.half_close {
                        let defect = subject.half_close_defect().unwrap_or("the cause is unknown");
                        say(&format!("  {:<18} half-close is lost: {defect}\n", subject.name()))?;
                    }
                    all.push(figures);
                }
                Err(reason) => say(&format!("  {:<18} {reason}\n", subject.name()))?,
            }
        }
    }
    write_json(json, &subjects, &missing, &all, arguments.quick)
}

/// Writes the results and the facts about this machine as JSON. Does nothing if `file` is `None`.
fn write_json(
    file: Option<File>,
    subjects: &[(Subject, PathBuf)],
    missing: &[(&str, String)],
    figures: &impl Serialize,
    quick: bool,
) -> Result<(), String> {
    let Some(mut file) = file else { return Ok(()) };
    let versions =
        subjects.iter().map(|(subject, program)| (subject.name(), subject.version(program)));
    let facts = Facts::gather(quick, versions.collect());
    let report = serde_json::json!({ "facts": facts, "missing": missing, "figures": figures });
    writeln!(file, "{report:#}").map_err(|error| error.to_string())
}

/// Measures one gateway with one MTU.
fn measure(
    subject: Subject,
    program: &std::path::Path,
    mtu: usize,
    quick: bool,
) -> Result<Figures, String> {
    let network = TestNetwork::new()?;
    let server = Server::start(&network.server)?;
    let gateway = subject.start(program, &network, mtu)?;
    let client = traffic::Client { process: gateway.client, server: server.address };
    client.wait_until_ready()?;
    let mut figures = Figures { gateway: subject.name(), mtu, ..Figures::default() };
    // Memory is measured before the transfers. After them, a gateway could take the memory of new
    // flows from buffers that it has not returned to the system. The measured growth would then be
    // too small.
    let flows = if quick { 2_000 } else { 10_000 };
    let before = gateway.memory()?;
    let (idle, after) = client.idle_flows(flows, || gateway.memory())?;
    figures.idle_flow = (idle - before) / f64::from(flows);
    figures.after_close = (after - before) / f64::from(flows);
    let bytes: u64 = if quick { 400_000_000 } else { 2_000_000_000 };
    for (place, streams) in [1, 8].into_iter().enumerate() {
        let results = [
            (Direction::Up, &mut figures.up[place], &mut figures.rate_up[place]),
            (Direction::Down, &mut figures.down[place], &mut figures.rate_down[place]),
        ];
        for (direction, cost, rate) in results {
            let before = gateway.processor_time()?;
            let taken = client.transfer(direction, streams, bytes)?;
            let used = gateway.processor_time()? - before;
            *cost = used / (bytes as f64 / 1e9);
            *rate = bytes as f64 * 8.0 / taken.as_secs_f64() / 1e9;
        }
    }
    let connections = if quick { 500 } else { 3_000 };
    let before = gateway.processor_time()?;
    let taken = client.connect_often(connections)?;
    figures.connection = (gateway.processor_time()? - before) * 1e6 / f64::from(connections);
    figures.connections = f64::from(connections) / taken.as_secs_f64();
    figures.half_close = client.half_close().is_ok();
    Ok(figures)
}

fn row(figures: &Figures) -> String {
    let cell = |cost: f64, rate: f64| format!("{cost:.2} ({rate:.1})");
    format!(
        "  {:<18} {:>14} {:>14} {:>14} {:>14} {:>10.1} K {:>10.1} K {:>7.0} µs {:>5.0}/s\n",
        figures.gateway,
        cell(figures.up[0], figures.rate_up[0]),
        cell(figures.up[1], figures.rate_up[1]),
        cell(figures.down[0], figures.rate_down[0]),
        cell(figures.down[1], figures.rate_down[1]),
        figures.idle_flow / 1e3,
        figures.after_close / 1e3,
        figures.connection,
        figures.connections,
    )
}

fn say(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| error.to_string())
}
