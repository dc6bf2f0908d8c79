//! The frames of a simulated run as a capture.

use linerate_link::capture_file::{CaptureWriter, Direction, Record as Packet};
use linerate_sim::{Blueprint, Captured};
use linerate_stack::Capabilities;
use linerate_units::Duration;
use std::io;

/// The frames of a run on their way into a capture, as those of interfaces of their own, a wire each.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    capture: &'a mut CaptureWriter,
    /// Activity wire; none of one that is not wanted.
    interfaces: Vec<Option<u32>>,
}

impl<'a> FrameWriter<'a> {
    /// Announces the wires of a run of this name; one wire only, if one is named.
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

    /// A frame has left its sender. Trouble with the file ends the capture, and not the run.
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

    /// Writes what was gathered.
    ///
    /// # Errors
    /// What the system says, if not all could be written.
    pub fn finish(self) -> io::Result<()> {
        self.capture.flush();
        match self.capture.error() {
            // The error stays with the capture; its copy says the same.
            Some(error) => Err(io::Error::new(error.kind(), error.to_string())),
            None => Ok(()),
        }
    }
}
