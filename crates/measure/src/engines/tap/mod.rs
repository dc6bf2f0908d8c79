//! The engine with linerate's TCP at one end of a TAP or TUN device, and the kernel's TCP at the
//! other end.
//!
//! linerate's host and the kernel's socket have a thread each. The process must be in a private
//! network namespace (see [`linerate_link::namespace::enter_private_network`]), because the engine
//! gives the kernel addresses and routes.

mod device;
mod floor;
mod from_kernel;
mod snmp;
mod to_kernel;

use crate::bench::{Bench, RunRequest};
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::PinnedThread;
use crate::engines::kernel_buffers;
use crate::engines::own_tcp::{Rules, WrappedLink, Wrapping};
use crate::plan::{Direction, Family, Plan};
use linerate_ends::Interrupt;
use linerate_ends::socket::Congestion;
use linerate_evidence::{BenchFacts, Floor, RunOutcome};
use linerate_link::Tap;
use linerate_link::capture_file::CaptureWriter;
use linerate_stack::Medium;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Returns the IPv4 address of linerate's host and that of the kernel.
pub(crate) const fn ends() -> [IpAddr; 2] {
    device::ends(Family::Ipv4)
}

/// Creates a TAP device in the current network namespace, with the kernel's IPv4 address.
pub(crate) fn open_device(mtu: usize, offloads: bool) -> Result<Tap, BenchError> {
    device::open(Medium::Ethernet, mtu, offloads, Family::Ipv4)
}

/// The bench for transfers between linerate's TCP and the kernel's.
#[derive(Debug)]
pub struct TapBench {
    rules: Rules,
    /// The kind of the device, as text for the facts of a sweep.
    device: &'static str,
    /// Does the device carry GSO frames?
    offloads: bool,
    direction: Direction,
    family: Family,
    /// Name of the kernel's congestion control; `None` if the kernel receives, or if its default is
    /// unknown.
    kernel_congestion: Option<String>,
    /// Settings that affect the results, by name.
    settings: BTreeMap<String, String>,
    /// The device; `None` while a run uses it, and after a run has failed.
    tap: Option<Tap>,
    /// The impairments and the capture file with which linerate's end of the device is wrapped
    /// during a run.
    wrapping: Wrapping,
}

impl TapBench {
    /// Creates the bench for `plan`, with a device in the current network namespace, which should
    /// be a private one. If `capture` is given, all frames are written to the capture file.
    ///
    /// # Errors
    /// linerate's TCP or the kernel's TCP does not grant what the plan requires, or no device can
    /// be created.
    pub fn new(plan: &Plan, capture: Option<CaptureWriter>) -> Result<Self, BenchError> {
        let direction = plan.direction.unwrap_or(Direction::ToKernel);
        let (ours, kernel_congestion) = match direction {
            Direction::ToKernel => (plan.congestion.as_deref(), None),
            Direction::FromKernel => {
                (None, Congestion::of_this_machine().choose(plan.congestion.as_deref())?)
            }
        };
        let rules = Rules::new(plan, ours)?;
        let mut settings = rules.settings();
        settings.append(&mut match direction {
            Direction::ToKernel => kernel_buffers::receiver(plan, rules.payload())?,
            Direction::FromKernel => kernel_buffers::sender(plan, rules.payload())?,
        });
        if let Some(name) = &kernel_congestion {
            settings.insert("kernel.congestion".to_owned(), name.clone());
        }
        let wrapping = Wrapping::new(rules.impairments(), capture);
        let offloads = plan.offloads.unwrap_or(false);
        let medium = if plan.has_link_header() { Medium::Ethernet } else { Medium::Ip };
        let tap = device::open(medium, rules.mtu(), offloads, plan.ip_version())?;
        settings.insert("link.family".to_owned(), plan.ip_version().to_string());
        settings.insert("threads.place".to_owned(), PinnedThread::describe());
        settings.insert("link.offloads".to_owned(), if offloads { "on" } else { "off" }.to_owned());
        settings.insert("link.queue_of_the_kernel".to_owned(), device::QUEUE.to_string());
        Ok(Self {
            rules,
            device: if medium == Medium::Ethernet { "a TAP device" } else { "a TUN device" },
            offloads,
            direction,
            family: plan.ip_version(),
            kernel_congestion,
            settings,
            tap: Some(tap),
            wrapping,
        })
    }

    /// Executes a transfer in the direction of the plan. Returns the outcome, with the kernel's
    /// counters of invalid packets, and the link.
    fn carry(
        &self,
        link: WrappedLink<Tap>,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<(RunOutcome, WrappedLink<Tap>), BenchError> {
        let before = snmp::read()?;
        let config = self.rules.config(request)?;
        let (mut outcome, link) = match self.direction {
            Direction::ToKernel => {
                to_kernel::carry(link, &config, self.family, request, interrupt)?
            }
            Direction::FromKernel => from_kernel::carry(
                link,
                &config,
                self.family,
                self.kernel_congestion.as_deref(),
                request,
                interrupt,
            )?,
        };
        let kernel = match self.direction {
            Direction::ToKernel => &mut outcome.counters.receiver,
            Direction::FromKernel => &mut outcome.counters.sender,
        };
        snmp::note_difference(before, snmp::read()?, kernel);
        Ok((outcome, link))
    }

    /// Takes the device for a run. Returns an error if a failed run has dropped the device.
    fn take_device(&mut self) -> Result<Tap, BenchError> {
        let gone = || BenchError::ConnectionLost {
            bytes: 0,
            what: "the device was lost with a failed run".to_owned(),
        };
        self.tap.take().ok_or_else(gone)
    }
}

impl Bench for TapBench {
    fn facts(&self) -> BenchFacts {
        let description = match self.direction {
            Direction::ToKernel => "linerate's TCP sends, the kernel's receives",
            Direction::FromKernel => "the kernel's TCP sends, linerate's receives",
        };
        BenchFacts {
            description: format!("{description}, across {}", self.device),
            segment_payload: self.rules.payload(),
            framing: self.rules.framing(),
            line_rate: None,
            settings: self.settings.clone(),
        }
    }

    fn floor(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<Option<Floor>, BenchError> {
        if self.offloads {
            // With offloads, a frame of a run carries several segments (GSO), but a frame of a
            // floor measurement only one datagram. The two times would not be comparable, so there
            // is no floor.
            return Ok(None);
        }
        let tap = self.take_device()?;
        let (floor, tap) =
            floor::measure(tap, self.direction, self.rules.payload(), request, interrupt)?;
        self.tap = Some(tap);
        Ok(Some(floor))
    }

    fn run(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<RunOutcome, BenchError> {
        if interrupt.is_raised() {
            return Err(BenchError::Interrupted);
        }
        let tap = self.take_device()?;
        let link = self.wrapping.wrap(tap, request.seed);
        let (outcome, link) = self.carry(link, request, interrupt)?;
        self.tap = Some(self.wrapping.unwrap_link(link)?);
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
