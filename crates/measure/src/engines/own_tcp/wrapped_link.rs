//! The wrappers of a link during a run: impairments, and a capture of the frames that the host
//! sends and receives.

use crate::bench_error::BenchError;
use linerate_link::capture_file::CaptureWriter;
use linerate_link::impair::{Impair, Impairments};
use linerate_link::{Capture, Readiness};
use linerate_stack::{Capabilities, FrameSink, FrameSource, Link, LinkError, RxFrame, TxFrame};
use linerate_units::Instant;
use std::io;
use std::os::fd::BorrowedFd;

/// The impairments and the capture file with which the link of linerate's host is wrapped for a
/// run. If both ends are linerate hosts, only the sender's link is wrapped.
#[derive(Debug)]
pub(crate) struct Wrapping {
    impairments: Option<Impairments>,
    /// The capture file; `None` without a capture, and while a run uses the file.
    capture: Option<CaptureWriter>,
}

impl Wrapping {
    pub(crate) const fn new(
        impairments: Option<Impairments>,
        capture: Option<CaptureWriter>,
    ) -> Self {
        Self { impairments, capture }
    }

    /// Wraps the link for a run. `seed` determines the random impairments.
    pub(crate) fn wrap<L: Link>(&mut self, link: L, seed: u64) -> WrappedLink<L> {
        let interface = format!("seed {seed}");
        match (self.impairments, self.capture.take()) {
            (None, None) => WrappedLink::Bare(link),
            (None, Some(capture)) => WrappedLink::Captured(Capture::new(link, &interface, capture)),
            (Some(how), None) => WrappedLink::Impaired(Impair::new(link, how, seed)),
            (Some(how), Some(capture)) => {
                WrappedLink::Both(Capture::new(Impair::new(link, how, seed), &interface, capture))
            }
        }
    }

    /// Removes the wrappers from the link after a run. The capture file stays open for the next
    /// run.
    ///
    /// # Errors
    /// [`BenchError::Capture`] if not all frames could be written, in which case the sweep must
    /// end.
    pub(crate) fn unwrap_link<L>(&mut self, wrapped: WrappedLink<L>) -> Result<L, BenchError> {
        match wrapped {
            WrappedLink::Bare(link) => Ok(link),
            WrappedLink::Impaired(impaired) => Ok(impaired.into_link()),
            WrappedLink::Captured(captured) => {
                let (link, capture) = captured.into_parts();
                self.keep(capture).map(|()| link)
            }
            WrappedLink::Both(captured) => {
                let (impaired, capture) = captured.into_parts();
                self.keep(capture).map(|()| impaired.into_link())
            }
        }
    }

    /// Flushes the capture file, and stores it for the next run. Returns an error if a frame could
    /// not be written.
    fn keep(&mut self, mut capture: CaptureWriter) -> Result<(), BenchError> {
        capture.flush();
        if let Some(error) = capture.error() {
            // The capture keeps the original error, which cannot be cloned. The caller gets a new
            // error with the same kind and text.
            let source = io::Error::new(error.kind(), error.to_string());
            return Err(BenchError::Capture { source });
        }
        self.capture = Some(capture);
        Ok(())
    }
}

/// A link with the wrappers that a run requires.
#[derive(Debug)]
pub(crate) enum WrappedLink<L> {
    /// The link without wrappers.
    Bare(L),
    /// The link with a capture.
    Captured(Capture<L>),
    /// The link with impairments.
    Impaired(Impair<L>),
    /// The link with impairments and a capture.
    Both(Capture<Impair<L>>),
}

/// Evaluates `$call` with the wrapped link, in any variant, as `$link`.
macro_rules! each {
    ($wrapped:expr, $link:ident => $call:expr) => {
        match $wrapped {
            WrappedLink::Bare($link) => $call,
            WrappedLink::Captured($link) => $call,
            WrappedLink::Impaired($link) => $call,
            WrappedLink::Both($link) => $call,
        }
    };
}

impl<L: Link> Link for WrappedLink<L> {
    fn receive(
        &mut self,
        budget: usize,
        on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        each!(self, link => link.receive(budget, on_frame))
    }

    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        each!(self, link => link.receive_into(budget, sink))
    }

    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        each!(self, link => link.transmit(budget, fill))
    }

    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        each!(self, link => link.transmit_from(budget, source))
    }

    fn hold_new_flows(&mut self, hold: bool) {
        each!(self, link => link.hold_new_flows(hold));
    }

    fn hand_over(&mut self, shard: u16, frame: RxFrame<'_>) {
        each!(self, link => link.hand_over(shard, frame));
    }

    fn capabilities(&self) -> Capabilities {
        each!(self, link => link.capabilities())
    }
}

impl<L: Link + Readiness> Readiness for WrappedLink<L> {
    fn fd(&self) -> BorrowedFd<'_> {
        each!(self, link => link.fd())
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        each!(self, link => link.wakeup_fd())
    }

    fn wants_room(&self) -> bool {
        each!(self, link => link.wants_room())
    }

    fn is_ready(&mut self) -> bool {
        each!(self, link => link.is_ready())
    }

    fn prepare_to_sleep(&mut self) -> bool {
        each!(self, link => link.prepare_to_sleep())
    }

    fn awake(&mut self, signalled: bool) {
        each!(self, link => link.awake(signalled));
    }

    fn next_deadline(&self) -> Instant {
        each!(self, link => link.next_deadline())
    }
}
