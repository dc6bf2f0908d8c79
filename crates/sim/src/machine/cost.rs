//! Processor time of each kind of work: the cost table of a machine file.

use crate::parameter::{ParameterError, Section};
use linerate_units::Span;

/// The cost table of a machine. The times apply if no other bus master slows the processor down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Time to enter and leave an interrupt handler.
    pub(crate) interrupt: Span,
    /// Time in which the driver takes a received frame from the NIC and passes it to IP.
    pub(crate) driver_receive: Span,
    /// Time in which the driver posts a frame to the NIC.
    pub(crate) driver_transmit: Span,
    /// Time in which the driver handles the completion of a sent frame.
    pub(crate) driver_done: Span,
    /// Time in which IP and TCP process a received segment, without checksum and copies.
    pub(crate) input: Span,
    /// Time in which TCP and IP build a segment, without checksum and copies.
    pub(crate) output: Span,
    /// Time to checksum one byte.
    pub(crate) sum: Span,
    /// Time to copy one byte between a task and the kernel.
    pub(crate) copy: Span,
    /// Time to copy one byte between the kernel and a NIC without DMA; zero for a NIC with DMA.
    pub(crate) nic_copy: Span,
    /// Time from the wake-up of a sleeping task until it runs: scheduling and context switch.
    pub(crate) wakeup: Span,
    /// Time to enter and leave a system call.
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
