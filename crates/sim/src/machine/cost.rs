//! Processor time of each kind of work: the cost table of a machine file.

use crate::parameter::{ParameterError, Section};
use linerate_units::Span;

/// The cost table. Every entry holds for the machine's own speed and an otherwise idle bus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Entry and exit of an interrupt.
    pub(crate) interrupt: Span,
    /// The driver takes a received frame from the NIC and passes it to IP.
    pub(crate) driver_receive: Span,
    /// The driver posts a frame to the NIC.
    pub(crate) driver_transmit: Span,
    /// The driver handles the completion of a sent frame.
    pub(crate) driver_done: Span,
    /// IP and TCP process a received segment, without checksum and copies.
    pub(crate) input: Span,
    /// TCP and IP build a segment, without checksum and copies.
    pub(crate) output: Span,
    /// The checksum of a byte.
    pub(crate) sum: Span,
    /// A byte is copied between a task and the kernel.
    pub(crate) copy: Span,
    /// A byte is copied between the kernel and a NIC without DMA; zero with DMA.
    pub(crate) nic_copy: Span,
    /// A sleeping task runs again: scheduling and context switch.
    pub(crate) wakeup: Span,
    /// A system call, entry and exit.
    pub(crate) call: Span,
    /// A timer of a connection expires.
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
