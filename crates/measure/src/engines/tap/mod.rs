//! linerate's TCP against the kernel's, across a TAP device. linerate's host has a thread, the
//! kernel's socket another one; the network must be one of our own (see
//! [`linerate_link::namespace::enter_private_network`]), because the kernel gets an address and
//! routes.

mod device;
mod floor;
mod from_kernel;
mod snmp;
mod to_kernel;

use crate::bench::{Bench, RunRequest};
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::Seat;
use crate::engines::kernel_buffers;
use crate::engines::own_tcp::{Rules, WrappedLink, Wrapping};
use crate::plan::{Direction, Plan};
use linerate_ends::Interrupt;
use linerate_ends::socket::Congestion;
use linerate_evidence::{BenchFacts, Floor, RunOutcome};
use linerate_link::Tap;
use linerate_link::capture_file::CaptureWriter;
use std::collections::BTreeMap;

/// linerate's TCP against the kernel's.
#[derive(Debug)]
pub struct TapBench {
    rules: Rules,
    /// Whether super-frames cross the device.
    offloads: bool,
    direction: Direction,
    /// The congestion control of the kernel, if that is what sends.
    kernel_congestion: Option<String>,
    settings: BTreeMap<String, String>,
    /// The device, while no run has it.
    tap: Option<Tap>,
    /// What is around it in a run.
    dressing: Wrapping,
}

impl TapBench {
    /// The bench for `plan`, with its frames written to `capture` if there is one. The device is
    /// made in the network of this process, which should be one of its own.
    ///
    /// # Errors
    /// If the plan asks for what linerate's TCP or the kernel's will not grant, or there can be no
    /// device.
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
        let dressing = Wrapping::new(rules.impairments(), capture);
        let offloads = plan.offloads.unwrap_or(false);
        let tap = device::open(rules.mtu(), offloads)?;
        settings.insert("threads.place".to_owned(), Seat::describe());
        settings.insert("link.offloads".to_owned(), if offloads { "on" } else { "off" }.to_owned());
        settings.insert("link.queue_of_the_kernel".to_owned(), device::QUEUE.to_string());
        Ok(Self {
            rules,
            offloads,
            direction,
            kernel_congestion,
            settings,
            tap: Some(tap),
            dressing,
        })
    }

    fn carry(
        &self,
        link: WrappedLink<Tap>,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<(RunOutcome, WrappedLink<Tap>), BenchError> {
        let before = snmp::read()?;
        let config = self.rules.config(request)?;
        let (mut outcome, link) = match self.direction {
            Direction::ToKernel => to_kernel::carry(link, &config, request, interrupt)?,
            Direction::FromKernel => from_kernel::carry(
                link,
                &config,
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

    fn take_device(&mut self) -> Result<Tap, BenchError> {
        let gone = || BenchError::ConnectionLost {
            bytes: 0,
            what: "the device went with a run that failed".to_owned(),
        };
        self.tap.take().ok_or_else(gone)
    }
}

impl Bench for TapBench {
    fn facts(&self) -> BenchFacts {
        let description = match self.direction {
            Direction::ToKernel => {
                "linerate's TCP sends, the kernel's receives, across a TAP device"
            }
            Direction::FromKernel => {
                "the kernel's TCP sends, linerate's receives, across a TAP device"
            }
        };
        BenchFacts {
            description: description.to_owned(),
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
            // Datagrams, one a frame, are no floor to super-frames.
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
        let link = self.dressing.put_on(tap, request.seed);
        let (outcome, link) = self.carry(link, request, interrupt)?;
        self.tap = Some(self.dressing.take_off(link)?);
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
