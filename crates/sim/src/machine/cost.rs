//! What work costs a processor: the table of a machine's file.

use crate::parameter::{ParameterError, Section};
use linerate_units::Span;

/// The cost table, every entry at the machine's own speed with nobody else on its bus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Entry and exit of an interrupt.
    pub(crate) interrupt: Span,
    /// The driver takes a received frame from the card and passes it on.
    pub(crate) driver_receive: Span,
    /// The driver gives the card a frame to send.
    pub(crate) driver_transmit: Span,
    /// The driver hears that a frame has left.
    pub(crate) driver_done: Span,
    /// IP and TCP take in a segment, checksum and copies apart.
    pub(crate) input: Span,
    /// TCP and IP make a segment, checksum and copies apart.
    pub(crate) output: Span,
    /// The checksum of a byte.
    pub(crate) sum: Span,
    /// A byte is copied between a task and the kernel.
    pub(crate) copy: Span,
    /// A byte is copied between the kernel and a card without DMA; nothing for a card with it.
    pub(crate) card_copy: Span,
    /// A task that slept runs again: it is put on the queue, chosen, and its context loaded.
    pub(crate) wakeup: Span,
    /// A system call, in and out.
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
            card_copy: per_byte("card_copy")?,
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
