//! Captures of simulated runs.

use linerate_link::capture_file::{CaptureWriter, Direction, Record as Packet};
use linerate_sim::{Blueprint, Captured};
use linerate_stack::Capabilities;
use linerate_units::Duration;
use std::io;

/// Writes the frames of a run into a capture, in which each wire is an interface.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    capture: &'a mut CaptureWriter,
    /// Number of each wire's interface in the capture; `None` for a wire that is not captured.
    interfaces: Vec<Option<u32>>,
}

impl<'a> FrameWriter<'a> {
    /// Adds an interface for each wire of a run, or only for the wire named by `only`.
    pub fn new(
        capture: &'a mut CaptureWriter,
        blueprint: &Blueprint,
        name: &str,
        only: Option<&str>,
    ) -> Self {
        let mtu = blueprint.transfer().map_or(1_500, |transfer| transfer.mtu);
        let wires = blueprint.wires().zip(blueprint.framings());
        let interfaces = wires.map(|(wire, (rate, framing))| {
            let capabilities = Capabilities { rate: Some(rate), ..Capabilities::new(framing, mtu) };
            let wanted = only.is_none_or(|only| wire == only);
            wanted.then(|| capture.add_interface(&format!("{name}, {wire}"), &capabilities))
        });
        Self { interfaces: interfaces.collect(), capture }
    }

    /// Writes a frame, unless its wire is not captured. After an error of the file, nothing more is
    /// captured, but the simulation continues.
    pub fn handle_frame(&mut self, frame: &Captured) {
        let Some(&Some(interface)) = self.interfaces.get(usize::from(frame.wire)) else { return };
        let time = Duration::from_nanos(frame.at.as_picos() / 1_000);
        self.capture.write(&Packet {
            interface,
            time,
            direction: Direction::Received,
            bytes: &frame.bytes,
        });
    }

    /// Writes the buffered frames.
    ///
    /// # Errors
    /// The first error of the operating system, if not all frames could be written.
    pub fn finish(self) -> io::Result<()> {
        self.capture.flush();
        match self.capture.error() {
            // The capture owns its error and returns only a reference. An `io::Error` cannot be
            // cloned, so a new error is made from the kind and the text of the original.
            Some(error) => Err(io::Error::new(error.kind(), error.to_string())),
            None => Ok(()),
        }
    }
}
