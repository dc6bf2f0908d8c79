//! The kernel of this machine as the host under test. The application uses real sockets in a
//! network namespace, the script exchanges packets through a TUN device, and time is real.

mod calls;
mod descriptors;
mod polling;
mod worker;

use crate::family::longer;
use crate::flows::Flows;
use crate::machine::{Answer, Machine, MachineError};
use crate::packet::{Captured, MOST_CAPTURED, is_expectable};
use crate::report::Report;
use crate::run::{Options, Run};
use crate::syntax::{Call, LineMark, Script, Setting, Settings};
use linerate_link::kernel_interface::InterfaceError;
use linerate_link::kernel_tcp::TcpInfo;
use linerate_link::namespace::{NamespaceError, Network};
use linerate_link::tap::TapError;
use linerate_link::{KernelInterface, MonotonicClock, Tap, TapConfig, Waiter};
use linerate_stack::{Link, Medium, TxFrame};
use linerate_units::{Bytes, Clock, Duration, Instant};
use std::collections::VecDeque;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thiserror::Error;
use worker::Worker;

/// Time limit of a call that the script expects to return immediately. The limit is generous,
/// because a busy machine may delay the call.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Flag `MSG_ERRQUEUE` of `recvmsg`.
const ERROR_QUEUE: i64 = 0x2000;

/// The reason why no script can be run against the kernel of this machine.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The network namespace could not be created.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The TUN device could not be opened.
    #[error(transparent)]
    Device(#[from] TapError),
    /// The interfaces in the namespace could not be configured.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The machine has no thread or no file descriptor left.
    #[error("the machine has no thread or descriptor left to run a script: {0}")]
    Exhausted(String),
}

/// Runs a script against the kernel of this machine, in a network namespace that is removed
/// afterwards. The process must have root privileges in its user namespace, as it has after
/// [`enter_private_network`](linerate_link::namespace::enter_private_network).
///
/// # Errors
/// [`KernelError`]: the machine cannot provide the namespace, the TUN device or the thread.
pub fn run_on_kernel(script: &Script, options: &Options) -> Result<Report, KernelError> {
    let settings = match options.family.settings(&script.settings) {
        Ok(settings) => settings,
        Err(what) => return Ok(Report::refused(what)),
    };
    if let Some(what) = obstacle(&settings) {
        return Ok(Report::refused(what));
    }
    let network = Network::new()?;
    let (script, options) = (script.clone(), *options);
    network.run(move || {
        let longer = longer(&script.settings, &settings);
        let machine = KernelMachine::new(&settings, longer)?;
        let flows = Flows::new(settings, longer);
        Ok(Run::new(&script, flows, options, machine).run_to_end())
    })
}

/// Returns the reason why a script cannot run against the kernel, or `None` if it can.
fn obstacle(settings: &Settings) -> Option<String> {
    /// The smallest MTU of an interface with IPv6 (RFC 8200 §5).
    const SMALLEST_MTU_IPV6: u16 = 1_280;
    if settings.line.is_some() {
        return Some("serial lines (--line) are for linerate's host".to_owned());
    }
    (settings.local.is_ipv6() && settings.mtu < SMALLEST_MTU_IPV6).then(|| {
        format!(
            "the kernel's interfaces need an MTU of {SMALLEST_MTU_IPV6} bytes for IPv6, and the \
             script has {}",
            settings.mtu
        )
    })
}

/// The kernel, its interface, and the application's thread.
#[derive(Debug)]
struct KernelMachine {
    tap: Tap,
    waiter: Waiter,
    worker: Worker,
    begin: Instant,
    local: IpAddr,
    remote: IpAddr,
    /// Number of bytes by which IP headers on the wire are longer than those that the script
    /// assumes.
    longer: u16,
    sent: VecDeque<Captured>,
    finished: Option<(Duration, Answer)>,
}

impl KernelMachine {
    fn new(settings: &Settings, longer: u16) -> Result<Self, KernelError> {
        let exhausted = |error: &dyn std::fmt::Display| KernelError::Exhausted(error.to_string());
        KernelInterface::loopback()?.set_up()?;
        // The link must take packets of any size, because a script may inject packets that are
        // larger than the MTU of the tested kernel. The MTU of the script applies only to what the
        // kernel sends. It is set below, on the kernel's interface.
        let mtu = usize::from(u16::MAX);
        let tap = Tap::open(&TapConfig {
            name: "tun0".to_owned(),
            medium: Medium::Ip,
            mtu,
            offloads: false,
        })?;
        let interface = tap.interface();
        interface.set_mtu(Bytes::new(settings.mtu.into()))?;
        let everywhere: IpAddr = match settings.local {
            IpAddr::V4(_) => {
                interface.disable_ipv6()?;
                Ipv4Addr::UNSPECIFIED.into()
            }
            IpAddr::V6(_) => {
                interface.enable_ipv6()?;
                Ipv6Addr::UNSPECIFIED.into()
            }
        };
        // The interface must be up before it gets an address. Otherwise an IPv6 address could not
        // be used immediately.
        interface.set_up()?;
        interface.add_address(settings.local, 16)?;
        interface.add_route(everywhere, 0, None)?;
        // Scripts are written for CUBIC, but the default congestion control differs between
        // machines.
        let _ = fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "cubic");
        let waiter = Waiter::new().map_err(|error| exhausted(&error))?;
        let worker = Worker::start(waiter.doorbell(), settings, longer)
            .map_err(|error| exhausted(&error))?;
        Ok(Self {
            tap,
            waiter,
            worker,
            begin: MonotonicClock.now(),
            local: settings.local,
            remote: settings.remote,
            longer,
            sent: VecDeque::new(),
            finished: None,
        })
    }

    /// Handles packets and results of calls until `limit`, or until `done` returns true.
    fn run_until(
        &mut self,
        limit: Duration,
        done: impl Fn(&Self) -> bool,
    ) -> Result<(), MachineError> {
        let limit = self.begin + limit;
        loop {
            self.collect()?;
            if done(self) || MonotonicClock.now() >= limit {
                return Ok(());
            }
            self.waiter
                .wait(&mut self.tap, limit)
                .map_err(|error| MachineError::Broken(error.to_string()))?;
        }
    }

    fn collect(&mut self) -> Result<(), MachineError> {
        let Self { tap, sent, begin, local, remote, .. } = self;
        let mut more = true;
        while more {
            let received = tap.receive(64, |frame| {
                if sent.len() < MOST_CAPTURED && is_expectable(frame.bytes, *local, *remote) {
                    sent.push_back(Captured {
                        at: frame.arrived.since(*begin),
                        bytes: frame.bytes.to_vec(),
                        line: None,
                    });
                }
            });
            more = received.map_err(|error| MachineError::Broken(error.to_string()))? == 64;
        }
        if let Some((at, answer)) = self.worker.finished() {
            self.finished = Some((at.since(self.begin), answer));
        }
        Ok(())
    }
}

impl Machine for KernelMachine {
    const MAX_WAIT: Duration = Duration::from_secs(60);
    const HAS_COARSE_TIMERS: bool = true;

    fn now(&self) -> Duration {
        MonotonicClock.now().since(self.begin)
    }

    fn wait_until(&mut self, at: Duration) -> Result<(), MachineError> {
        self.run_until(at, |_| false)
    }

    fn inject(&mut self, packet: &[u8], line: Option<LineMark>) -> Result<(), MachineError> {
        if line.is_some() {
            let what = "only a serial line damages and loses packets, and the kernel has none here";
            return Err(MachineError::Refused(what.to_owned()));
        }
        let sent = self.tap.transmit(1, |frame| {
            let room = frame.get_mut(..packet.len())?;
            room.copy_from_slice(packet);
            Some(TxFrame::whole(packet.len()))
        });
        match sent {
            Ok(1) => Ok(()),
            Ok(_) => Err(MachineError::Refused("this packet exceeds the limit of IP".to_owned())),
            Err(error) => Err(MachineError::Broken(error.to_string())),
        }
    }

    fn next_packet(&mut self, until: Duration) -> Result<Option<Captured>, MachineError> {
        self.run_until(until, |machine| !machine.sent.is_empty())?;
        Ok(self.sent.pop_front())
    }

    fn set(&mut self, setting: &Setting) -> Result<(), MachineError> {
        let Setting { name, value, .. } = setting;
        // Only sysctls below `net.ipv4` are set, because they belong to the network namespace of
        // the script. Other sysctls would change the whole machine.
        let own = name.starts_with("net.ipv4.")
            && name.chars().all(|next| next.is_ascii_alphanumeric() || "._".contains(next));
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        if !own || path.contains("//") {
            return Err(MachineError::Refused(format!(
                "{name}: only settings of net.ipv4 are supported"
            )));
        }
        fs::write(&path, value)
            .map_err(|error| MachineError::Refused(format!("{name}={value}: {error}")))
    }

    fn begin(
        &mut self,
        call: &Call,
        name: i32,
        may_wait: bool,
    ) -> Result<Option<Answer>, MachineError> {
        if let Call::Read(transfer) | Call::Write(transfer) = call
            && (transfer.control.is_some() || transfer.flags & ERROR_QUEUE != 0)
        {
            let what =
                "control messages and the error queue of a kernel's socket are not supported";
            return Err(MachineError::Refused(what.to_owned()));
        }
        self.worker.begin(call, name);
        if may_wait {
            return Ok(None);
        }
        let limit = self.now() + AT_ONCE;
        Ok(self.finish(limit)?.map(|(_, answer)| answer))
    }

    fn finish(&mut self, until: Duration) -> Result<Option<(Duration, Answer)>, MachineError> {
        if self.finished.is_none() {
            self.run_until(until, |machine| machine.finished.is_some())?;
        }
        Ok(self.finished.take())
    }

    fn field(&self, name: i32, field: &str) -> Option<u64> {
        let value = TcpInfo::of(self.worker.socket(name)?).ok()?.field(field)?;
        let longer = if field == "tcpi_pmtu" || field == "pmtu" { self.longer } else { 0 };
        Some(value.saturating_sub(longer.into()))
    }
}
