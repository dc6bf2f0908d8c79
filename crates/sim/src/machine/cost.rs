//! Processor time of each kind of work: the cost table of a machine file.

use crate::parameter::{ParameterError, Section};
use linerate_units::Span;

/// The cost table. Entries hold for full processor speed and an otherwise idle bus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Time for entry to and exit from an interrupt.
    pub(crate) interrupt: Span,
    /// Time of the driver to take a received frame from the NIC and pass it to IP.
    pub(crate) driver_receive: Span,
    /// Time of the driver to post a frame to the NIC.
    pub(crate) driver_transmit: Span,
    /// Time of the driver to handle the completion of a sent frame.
    pub(crate) driver_done: Span,
    /// Time of IP and TCP to process a received segment, without checksum and copies.
    pub(crate) input: Span,
    /// Time of TCP and IP to build a segment, without checksum and copies.
    pub(crate) output: Span,
    /// Time for the checksum of a byte.
    pub(crate) sum: Span,
    /// Time to copy a byte between a task and the kernel.
    pub(crate) copy: Span,
    /// Time to copy a byte between the kernel and a NIC without DMA; zero with DMA.
    pub(crate) nic_copy: Span,
    /// Time until a sleeping task runs again: scheduling and context switch.
    pub(crate) wakeup: Span,
    /// Time for entry to and exit from a system call.
    pub(crate) call: Span,
    /// Time to handle an expired timer of a connection.
    pub(crate) timer: Span,
}

impl Costs {
    pub(crate) fn read(section: &Section<'_>, scale: f64) -> Result<Self, ParameterError> {
        let span = |name: &str| section.span(name).map(|span| scaled(span, scale));
        let per_byte = |name: &str| section.span_per_byte(name).map(|span| scaled(span, scale));
        Ok(Self {
            interrupt: span("interrupt")?,
            driver_receive: span("driver_receive")?,
            driver_transmit: span("driver_transmit")?,
            driver_done: span("driver_done")?,
            input: span("input")?,
            output: span("output")?,
            sum: per_byte("sum")?,
            copy: per_byte("copy")?,
            nic_copy: per_byte("nic_copy")?,
            wakeup: span("wakeup")?,
            call: span("call")?,
            timer: span("timer")?,
        })
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a cost in picoseconds, scaled by a factor whose range was checked"
)]
fn scaled(span: Span, scale: f64) -> Span {
    Span::from_picos((span.as_picos() as f64 * scale).round() as u64)
}
