//! The receiver of a blast transfer, which acknowledges each complete blast.

use super::{BlastParameters, KIND, MOST_FRAMES, read};
use crate::generator::{FrameCosts, FrameGenerator, Header};
use crate::program::ProgramReport;
use linerate_units::Tick;

#[derive(Debug)]
pub(crate) struct BlastReceiver {
    parameters: BlastParameters,
    name: String,
    number: usize,
    from: usize,
    /// Number of the blast that is being received.
    blast: u32,
    /// Bitmap of the frames of this blast that have arrived.
    here: u64,
    /// Number of the blast that is acknowledged by the next frame to send; `None` if there is
    /// nothing to acknowledge.
    acknowledges: Option<u32>,
}

impl BlastReceiver {
    pub(crate) const fn new(
        parameters: BlastParameters,
        name: String,
        number: usize,
        from: usize,
    ) -> Self {
        Self { parameters, name, number, from, blast: 0, here: 0, acknowledges: None }
    }
}

impl FrameGenerator for BlastReceiver {
    fn handle_time(&mut self, _: Tick) {}

    fn handle_frame(&mut self, _: Tick, frame: &[u8]) {
        let Some(Header { numbers: [blast, index, count, _], .. }) = read(frame, self.number)
        else {
            return;
        };
        if u64::from(count) > MOST_FRAMES || index >= count || blast > self.blast {
            return;
        }
        let is_last = index + 1 == count;
        if blast < self.blast {
            // The frame belongs to a blast that this receiver has already received completely. The
            // sender repeats that blast because the acknowledgement was lost. So it is acknowledged
            // once more, when its final frame arrives.
            self.acknowledges = is_last.then_some(blast).or(self.acknowledges);
            return;
        }
        self.here |= 1 << index;
        if self.here.count_ones() == count {
            self.acknowledges = Some(blast);
            (self.blast, self.here) = (blast + 1, 0);
        }
    }

    fn wants(&self, frame: &[u8]) -> bool {
        read(frame, self.number).is_some()
    }

    fn poll_transmit(&mut self, _: Tick, room: &mut [u8]) -> Option<usize> {
        let numbers = [self.acknowledges.take()?, 0, 0, 0];
        let header = Header { to: self.from, from: self.number, kind: KIND, numbers };
        Some(header.write(room, Header::SHORTEST))
    }

    fn poll_timeout(&self) -> Tick {
        Tick::NEVER
    }

    fn costs(&self) -> FrameCosts {
        self.parameters.costs
    }

    fn is_finished(&self) -> bool {
        self.parameters.of_blast(self.blast) == 0
    }

    fn report(&self) -> ProgramReport {
        ProgramReport {
            complete: self.is_finished(),
            counted: vec![("blasts", u64::from(self.blast))],
            ..ProgramReport::new(&format!("{}: receiver", self.name))
        }
    }
}
