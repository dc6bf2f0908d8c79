//! A link that writes its frames to a capture file.

use crate::capture_file::{CaptureFile, CaptureWriter, Direction, Record, Sink};
use crate::clock::{MonotonicClock, time_of_day};
use crate::wait::{Readiness, forward_readiness};
use linerate_stack::{Capabilities, FrameSource, Link, LinkError, RxFrame, TxFrame, ZeroCopyFrame};
use linerate_units::{Clock, Duration, Instant};

/// A wrapper around the link `L` that copies all sent and received frames to a capture. The time
/// stamp of a received frame is its time of arrival. The time stamp of a sent frame is the time at
/// which it was passed to the link.
///
/// The capture contains the frames in the form in which host and link exchange them. So a GSO or
/// GRO frame is one packet of the capture, and a partial checksum stays incomplete.
///
/// An error of the capture never affects the link (see [`CaptureWriter`]).
#[derive(Debug)]
pub struct Capture<L, S: Sink = CaptureFile, C = MonotonicClock> {
    link: L,
    recorder: Recorder<S, C>,
}

impl<L: Link, S: Sink> Capture<L, S> {
    /// Creates a link that captures the frames of `link`. In the capture, it is the interface
    /// `name` of `writer`. The times of `link` must come from [`MonotonicClock`]; they are
    /// converted to times of day.
    pub fn new(link: L, name: &str, writer: CaptureWriter<S>) -> Self {
        let since_start = MonotonicClock.now().since(Instant::ZERO);
        Self::with_clock(link, name, writer, MonotonicClock, time_of_day() - since_start)
    }
}

impl<L: Link, S: Sink, C: Clock> Capture<L, S, C> {
    /// Creates a link that captures the frames of `link`, whose times come from `clock`. `epoch` is
    /// the time of day at the clock's [`Instant::ZERO`], counted from 1970-01-01 00:00 UTC.
    pub fn with_clock(
        link: L,
        name: &str,
        mut writer: CaptureWriter<S>,
        clock: C,
        epoch: Duration,
    ) -> Self {
        let interface = writer.add_interface(name, &link.capabilities());
        Self { link, recorder: Recorder { writer, interface, clock, epoch } }
    }
}

impl<L, S: Sink, C> Capture<L, S, C> {
    /// Returns the writer of the capture.
    pub const fn writer(&self) -> &CaptureWriter<S> {
        &self.recorder.writer
    }

    /// Returns the link whose frames are captured.
    pub const fn link(&self) -> &L {
        &self.link
    }

    /// Returns the inner link and the writer. The writer can then capture the frames of another
    /// link.
    pub fn into_parts(self) -> (L, CaptureWriter<S>) {
        (self.link, self.recorder.writer)
    }
}

impl<L: Link, S: Sink, C: Clock> Link for Capture<L, S, C> {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        self.link.receive(budget, |frame| {
            self.recorder.record(frame.arrived, Direction::Received, frame.bytes);
            on_frame(frame);
        })
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        self.link.transmit(budget, |bytes| {
            let frame = fill(bytes)?;
            self.recorder.record_sent(bytes.get(..frame.length).unwrap_or(bytes));
            Some(frame)
        })
    }

    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        self.link.transmit_from(budget, &mut Recorded { source, recorder: &mut self.recorder })
    }

    fn hold_new_flows(&mut self, hold: bool) {
        self.link.hold_new_flows(hold);
    }

    fn hand_over(&mut self, shard: u16, frame: RxFrame<'_>) {
        self.link.hand_over(shard, frame);
    }

    fn capabilities(&self) -> Capabilities {
        self.link.capabilities()
    }
}

/// A frame source that takes its frames from another source, and captures them.
struct Recorded<'a, F, S: Sink, C> {
    source: &'a mut F,
    recorder: &'a mut Recorder<S, C>,
}

impl<F: FrameSource, S: Sink, C: Clock> FrameSource for Recorded<'_, F, S, C> {
    fn now(&self) -> Instant {
        self.source.now()
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Option<TxFrame> {
        let frame = self.source.fill(bytes)?;
        self.recorder.record_sent(bytes.get(..frame.length).unwrap_or(bytes));
        Some(frame)
    }

    fn fill_zero_copy(&mut self, bytes: &mut [u8]) -> Option<ZeroCopyFrame<'_>> {
        let borrowed = self.source.fill_zero_copy(bytes)?;
        let [first, second] = borrowed.rest;
        self.recorder.record_sent(
            &[bytes.get(..borrowed.frame.length).unwrap_or(bytes), first, second].concat(),
        );
        Some(borrowed)
    }
}

impl<L: Readiness, S: Sink, C> Readiness for Capture<L, S, C> {
    forward_readiness!();
}

/// A writer that copies the frames of one link to the capture.
#[derive(Debug)]
struct Recorder<S: Sink, C> {
    writer: CaptureWriter<S>,
    interface: u32,
    clock: C,
    /// Time of day at the clock's [`Instant::ZERO`], since 1970-01-01 00:00 UTC.
    epoch: Duration,
}

impl<S: Sink, C: Clock> Recorder<S, C> {
    fn record_sent(&mut self, bytes: &[u8]) {
        let now = self.clock.now();
        self.record(now, Direction::Sent, bytes);
    }

    fn record(&mut self, at: Instant, direction: Direction, bytes: &[u8]) {
        let time = self.epoch + at.since(Instant::ZERO);
        self.writer.write(&Record { interface: self.interface, time, direction, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture_file::{CaptureReader, LinkType};
    use crate::memory::{MemoryConfig, pair_with_clock};
    use crate::testing::{SingleFrame, check_readiness_is_passed_on, send};
    use crate::{ManualClock, MemoryLink};
    use linerate_stack::Medium;

    /// The time of day at which the tests' clock is zero: 2026-01-01 00:00 UTC, as the time since
    /// 1970.
    const EPOCH: Duration = Duration::from_secs(1_767_225_600);

    fn captured<S: Sink>(
        sink: S,
    ) -> (Capture<MemoryLink<ManualClock>, S, ManualClock>, MemoryLink<ManualClock>, ManualClock)
    {
        let clock = ManualClock::default();
        let (left, right) = pair_with_clock(MemoryConfig::default(), clock.clone()).unwrap();
        let writer = CaptureWriter::new(sink);
        (Capture::with_clock(left, "left", writer, clock.clone(), EPOCH), right, clock)
    }

    /// A frame source and a link in one value. The source makes frames of three parts: the first is
    /// in the link's buffer, and the other two are borrowed slices. The link takes such frames
    /// without joining the parts in a buffer, so `fill` is never called.
    struct Parts;

    impl FrameSource for Parts {
        fn now(&self) -> Instant {
            Instant::ZERO
        }

        fn fill(&mut self, _: &mut [u8]) -> Option<TxFrame> {
            panic!("the link gathers");
        }

        fn fill_zero_copy(&mut self, frame: &mut [u8]) -> Option<ZeroCopyFrame<'_>> {
            frame[..3].copy_from_slice(b"one");
            Some(ZeroCopyFrame { frame: TxFrame::whole(3), rest: [b"two", b"three"] })
        }
    }

    impl Link for Parts {
        fn receive(&mut self, _: usize, _: impl FnMut(RxFrame<'_>)) -> Result<usize, LinkError> {
            Ok(0)
        }

        fn transmit(
            &mut self,
            _: usize,
            _: impl FnMut(&mut [u8]) -> Option<TxFrame>,
        ) -> Result<usize, LinkError> {
            Ok(0)
        }

        fn transmit_from(
            &mut self,
            _: usize,
            source: &mut impl FrameSource,
        ) -> Result<usize, LinkError> {
            let mut frame = [0; 100];
            let borrowed = source.fill_zero_copy(&mut frame).unwrap();
            assert_eq!((borrowed.frame.length, borrowed.rest), (3, [&b"two"[..], b"three"]));
            Ok(1)
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities::new(Medium::Ethernet, 1_500)
        }
    }

    #[test]
    fn a_frame_with_borrowed_parts_is_captured_whole_and_gathered_by_the_link() {
        let mut file = Vec::new();
        let writer = CaptureWriter::new(&mut file);
        let mut link = Capture::with_clock(Parts, "parts", writer, ManualClock::default(), EPOCH);
        assert_eq!(link.transmit_from(1, &mut Parts), Ok(1));
        drop(link);
        let mut reader = CaptureReader::new(&*file).unwrap();
        assert_eq!(reader.next_packet().unwrap().unwrap().bytes, b"onetwothree");
    }

    #[test]
    fn frames_of_both_directions_are_captured_and_pass_unchanged() {
        let mut file = Vec::new();
        let (mut link, mut other, clock) = captured(&mut file);
        clock.advance(Duration::from_nanos(5));
        send(&mut link, [b"there"]).unwrap();
        send(&mut other, [b"back"]).unwrap();
        clock.advance(Duration::from_nanos(2));
        let mut received = Vec::new();
        assert_eq!(link.receive(9, |frame| received.extend_from_slice(frame.bytes)), Ok(1));
        assert_eq!(received, b"back");
        assert_eq!(other.receive(9, |frame| assert_eq!(frame.bytes, b"there")), Ok(1));
        assert_eq!(link.writer().packets(), 2);
        drop(link);

        let mut reader = CaptureReader::new(&*file).unwrap();
        for (direction, bytes) in [(Direction::Sent, &b"there"[..]), (Direction::Received, b"back")]
        {
            let packet = reader.next_packet().unwrap().unwrap();
            assert_eq!((packet.direction, packet.bytes), (Some(direction), bytes));
            assert_eq!(
                packet.time,
                Some(EPOCH + Duration::from_nanos(5)),
                "the time of arrival, not of reading"
            );
            assert_eq!(packet.link_type, LinkType::Ethernet);
        }
        assert!(reader.next_packet().unwrap().is_none());
    }

    #[test]
    fn only_the_frame_of_a_slot_is_captured_and_it_keeps_the_time_of_its_turn() {
        let mut file = Vec::new();
        let (mut link, mut other, _) = captured(&mut file);
        assert_eq!(
            link.transmit_from(9, &mut SingleFrame(Instant::from_nanos(9), Some(b"one"))),
            Ok(1)
        );
        drop(link);
        assert_eq!(
            CaptureReader::new(&*file).unwrap().next_packet().unwrap().unwrap().bytes,
            b"one"
        );
        let mut arrived = None;
        other.receive(9, |frame| arrived = Some(frame.arrived)).unwrap();
        assert_eq!(arrived, Some(Instant::from_nanos(9)));
    }

    #[test]
    fn a_frame_is_stamped_with_the_time_of_day() {
        let mut file = Vec::new();
        let (left, _right) = crate::memory::pair(MemoryConfig::default()).unwrap();
        let mut link = Capture::new(left, "left", CaptureWriter::new(&mut file));
        let now = time_of_day();
        send(&mut link, [b"now"]).unwrap();
        drop(link);
        let time =
            CaptureReader::new(&*file).unwrap().next_packet().unwrap().unwrap().time.unwrap();
        // The time stamp must be the time of day. If it is, it differs from `now` by milliseconds.
        // If it were a reading of the monotonic clock, which counts from the start of the machine,
        // it would differ by decades. Half of the machine's uptime lies between these two
        // differences, so it is the tolerance.
        let near = MonotonicClock.now().since(Instant::ZERO) / 2;
        assert!(now < time + near && time < now + near, "{now} {time}");
    }

    #[test]
    fn readiness_of_the_captured_link_is_passed_on() {
        check_readiness_is_passed_on(|link| {
            Capture::new(link, "inside", CaptureWriter::new(Vec::new()))
        });
    }

    #[test]
    fn a_full_disk_ends_the_capture_and_not_the_transfer() {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let (mut link, mut other, _) = captured(full);
        for _ in 0..100 {
            send(&mut link, [[0; 1_514]]).unwrap();
            assert_eq!(other.receive(1, |_| ()), Ok(1));
        }
        let (_, writer) = link.into_parts();
        assert_eq!(writer.error().unwrap().kind(), std::io::ErrorKind::StorageFull);
        assert_eq!((writer.packets(), writer.missing()), (0, 100));
        assert!(writer.finish().is_err());
    }
}
