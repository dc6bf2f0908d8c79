//! Coalescing of consecutive received segments of one connection: GRO runs of data segments, and
//! ACK batches. The module `rx::coalesce` describes the method.

use crate::handle::TcpHandle;
use crate::link::PlainFrame;
use crate::rx::coalesce::Coalesced;
use crate::rx::coalesce::Kind;
use crate::rx::coalesce::has_memory;
use crate::rx::coalesce::{NextAcks, NextData};
use crate::rx::flow_cache::{LinkHeader, Version};
use crate::stack::Stack;
use crate::tcp::dispatch::{Dispatched, step_effects};
use linerate_tcp::AckRun;
use linerate_units::Instant;
use linerate_wire::{Segment, V4, V6};

impl Stack {
    /// Adds `frame` and the frames `after` it to the current GRO run or ACK batch, as long as they
    /// continue it. Returns the first frame that does not continue it, or `None` if all frames do.
    #[inline(always)]
    pub(super) fn continue_run<'a>(
        &mut self,
        now: Instant,
        frame: PlainFrame<'a>,
        after: &mut impl Iterator<Item = PlainFrame<'a>>,
    ) -> Option<PlainFrame<'a>> {
        if self.coalesced.as_ref().is_some_and(Coalesced::is_data) {
            self.continue_data(now, frame, after)
        } else {
            self.continue_acks(now, frame, after)
        }
    }

    #[inline(never)]
    fn continue_data<'a>(
        &mut self,
        now: Instant,
        frame: PlainFrame<'a>,
        after: &mut impl Iterator<Item = PlainFrame<'a>>,
    ) -> Option<PlainFrame<'a>> {
        // All frames of a GRO run have one IP version. It is therefore examined once for all
        // frames, and not for each frame.
        let other = match &self.coalesced {
            Some(Coalesced { kind: Kind::Data { next: NextData::V4(_), .. }, .. }) => {
                self.continue_data_of::<V4>(now, frame, after)
            }
            _ => self.continue_data_of::<V6>(now, frame, after),
        };
        if other.is_some() {
            self.end_data_run();
        }
        other
    }

    #[inline(always)]
    fn continue_data_of<'a, V: Version>(
        &mut self,
        now: Instant,
        frame: PlainFrame<'a>,
        after: &mut impl Iterator<Item = PlainFrame<'a>>,
    ) -> Option<PlainFrame<'a>> {
        if self.expects_data::<V>() { self.take_data::<V>(now, frame, after) } else { Some(frame) }
    }

    /// Can the GRO run continue with another frame? If segments of the run are pending, it can,
    /// because the conditions were checked when the first of them arrived. Otherwise three
    /// conditions must hold. The flow of the run must still be in the one-entry cache of the flow
    /// table. The connection must have memory for its receive buffer, and expect the next segment
    /// of the run.
    #[inline(always)]
    fn expects_data<V: Version>(&mut self) -> bool {
        let Some(Coalesced { handle, kind: Kind::Data { run, next, is_resumed } }) =
            &mut self.coalesced
        else {
            return false;
        };
        if run.count() > 0 {
            return true;
        }
        let index = handle.index();
        let Some(next) = V::of_data(next) else { return false };
        if self.flows.last(&V::flow(&next.ends())) == Some(index)
            && let Some(socket) = self.sockets.full_at(index)
            && self.memory.has_supplied(socket)
            && has_memory(&self.memory, socket)
            && run.resume(&socket.connection, next.next_header())
        {
            *is_resumed = true;
            return true;
        }
        false
    }

    /// Adds `frame` and the frames `after` it to a GRO run, as long as they continue it. Meanwhile
    /// no other method of the host is called, so the connection and its memory are checked only
    /// once. In each frame, only the checksum is verified and the headers are compared with the
    /// expected ones. Returns the first frame that does not continue the run.
    #[inline(always)]
    fn take_data<'a, V: Version>(
        &mut self,
        now: Instant,
        frame: PlainFrame<'a>,
        after: &mut impl Iterator<Item = PlainFrame<'a>>,
    ) -> Option<PlainFrame<'a>> {
        let medium = self.interface.capabilities.medium;
        let link = LinkHeader::of(medium, V::link_header(&self.interface.flow_cache));
        let (Some(Coalesced { handle, kind: Kind::Data { run, next, .. } }), Some(link)) =
            (&mut self.coalesced, link)
        else {
            return Some(frame);
        };
        let Some(next) = V::of_data(next) else { return Some(frame) };
        let Some(socket) = self.sockets.full_at(handle.index()) else { return Some(frame) };
        let is_pending = run.count() > 0;
        let mut count = 0;
        let mut room = run.place_of_next(&mut socket.connection);
        // The connection handles all segments of a run as if they had arrived with the first of
        // them, at the time `self.now`. So a frame with a later arrival time ends the run. Frames
        // with an arrival time after `now` count as arrived at `now`. Therefore no frame is later
        // if `self.now` has reached `now`: `until` then returns `NEVER`.
        let until = |time: Instant| if time < now { time } else { Instant::NEVER };
        let mut latest = until(self.now);
        let PlainFrame { mut bytes, mut arrived } = frame;
        let other = loop {
            if arrived > latest && !is_pending && count == 0 {
                self.now = arrived.min(now);
                latest = until(self.now);
            }
            if arrived <= latest
                && let Some(packet) = link.strip(bytes)
                && let Some(packet) = next.read(packet)
                && packet.data.len() <= room.len()
                && let (place, rest) = core::mem::take(&mut room).split_at_mut(packet.data.len())
                && next.take(packet, place)
            {
                room = rest;
                count += 1;
            } else {
                break Some(PlainFrame { bytes, arrived });
            }
            match after.next() {
                Some(next) => (bytes, arrived) = (next.bytes, next.arrived),
                None => break None,
            }
        };
        run.extend(count);
        let frame = medium.header_length() + next.packet_length();
        self.interface.flow_cache.hits += u64::from(count);
        self.counted.receive.bytes += u64::from(count) * frame as u64;
        self.advance_clock(self.now);
        other
    }

    /// Adds the acknowledgements in `frame` and in the frames `after` it to an ACK batch, as long
    /// as they continue it. An acknowledgement continues the batch if its headers are as predicted
    /// and it acknowledges more data than the acknowledgement before. Returns the first frame that
    /// does not continue the batch.
    #[inline(never)]
    fn continue_acks<'a>(
        &mut self,
        now: Instant,
        frame: PlainFrame<'a>,
        after: &mut impl Iterator<Item = PlainFrame<'a>>,
    ) -> Option<PlainFrame<'a>> {
        match &self.coalesced {
            Some(Coalesced { kind: Kind::Acks { next: NextAcks::V4(_), .. }, .. }) => {
                self.continue_acks_of::<V4>(now, frame, after)
            }
            _ => self.continue_acks_of::<V6>(now, frame, after),
        }
    }

    #[inline(always)]
    fn continue_acks_of<'a, V: Version>(
        &mut self,
        now: Instant,
        frame: PlainFrame<'a>,
        after: &mut impl Iterator<Item = PlainFrame<'a>>,
    ) -> Option<PlainFrame<'a>> {
        let medium = self.interface.capabilities.medium;
        let link = LinkHeader::of(medium, V::link_header(&self.interface.flow_cache));
        let (Some(Coalesced { kind: Kind::Acks { run, next, at }, .. }), Some(link)) =
            (&mut self.coalesced, link)
        else {
            return Some(frame);
        };
        let Some(next) = V::of_acks(next) else { return Some(frame) };
        let before = run.count();
        let mut time = self.now;
        let PlainFrame { mut bytes, mut arrived } = frame;
        let other = loop {
            if let Some(packet) = link.strip(bytes)
                && let Some(later) = next.read(packet)
                && run.extend(later.ack())
            {
                next.take(later);
                time = time.max(arrived.min(now));
                *at = time;
                self.counted.receive.bytes += bytes.len() as u64;
            } else {
                break Some(PlainFrame { bytes, arrived });
            }
            match after.next() {
                Some(next) => (bytes, arrived) = (next.bytes, next.arrived),
                None => break None,
            }
        };
        self.interface.flow_cache.hits += u64::from(run.count() - before);
        self.advance_clock(time);
        other
    }

    /// Adds `segment` to the pending ACK batch of its connection, or begins a batch with it.
    /// `segment` must have neither data nor an ECN codepoint. If `segment` cannot be coalesced,
    /// delivers all pending segments and returns false. `next` predicts the header of the next
    /// acknowledgement.
    #[inline(always)]
    pub(crate) fn coalesce_ack(
        &mut self,
        index: u32,
        next: impl Fn() -> Option<NextAcks>,
        segment: &Segment<'_>,
    ) -> bool {
        if let Some(Coalesced { handle, kind: Kind::Acks { run, next: known, at } }) =
            &mut self.coalesced
            && handle.index() == index
            && let Some(socket) = self.sockets.full_at(index)
            && AckRun::begin(&socket.connection, segment).is_some()
            && run.extend(segment.ack)
            && let Some(next) = next()
        {
            (*known, *at) = (next, self.now);
            return true;
        }
        self.flush_coalesced();
        let Some((handle, socket)) = self.sockets.full_entry(index) else { return false };
        let connection = (handle, &socket.connection);
        let Some(begun) = Coalesced::begin_acks(connection, self.now, next, segment) else {
            return false;
        };
        self.coalesced = Some(begun);
        true
    }

    /// Delivers the pending segments of a GRO run or ACK batch to their connection.
    #[inline]
    pub(crate) fn flush_coalesced(&mut self) {
        if self.coalesced.as_ref().is_some_and(Coalesced::is_pending) {
            self.deliver_coalesced();
        }
    }

    /// Delivers the pending data of a GRO run, and ends the run.
    #[inline]
    pub(crate) fn end_data_run(&mut self) {
        if self.coalesced.as_ref().is_some_and(Coalesced::is_data) {
            self.flush_coalesced();
            self.coalesced = None;
        }
    }

    #[inline(never)]
    fn deliver_coalesced(&mut self) {
        match &mut self.coalesced {
            Some(Coalesced { kind: Kind::Data { .. }, .. }) => self.deliver_data(),
            Some(Coalesced { handle, kind: Kind::Acks { run, next, at } }) => {
                let (handle, run, next, at) = (*handle, *run, *next, *at);
                self.coalesced = None;
                self.deliver_acks(handle, run, &next, at);
            }
            None => {}
        }
    }

    #[inline(always)]
    fn deliver_data(&mut self) {
        let Some(Coalesced { handle, kind: Kind::Data { run, next, is_resumed } }) =
            &mut self.coalesced
        else {
            return;
        };
        let index = handle.index();
        let mut dispatched = Dispatched::Fully;
        if let Some(last) = next.last_segment()
            && let Some(socket) = self.sockets.full_at(index)
        {
            let _ = socket.connection.driver().handle_run(self.now, *run, &last);
            dispatched = step_effects!(self).dispatch(index, socket);
        }
        // A run that contains only one segment of this batch of frames, and none of earlier
        // batches, is probably a request or a response. The next segment of the flow then
        // acknowledges the answer to this one, so it would not continue the run. Therefore the run
        // ends here.
        let is_one = run.count() == 1 && !*is_resumed;
        *run = run.handled();
        if is_one {
            self.coalesced = None;
        }
        if dispatched == Dispatched::Partly {
            self.dispatch_slowly(index);
        }
    }

    #[inline(always)]
    fn deliver_acks(&mut self, handle: TcpHandle, run: AckRun, next: &NextAcks, at: Instant) {
        let index = handle.index();
        if self.sockets.tcp_handle(index) != Some(handle) {
            return;
        }
        if let Some(socket) = self.sockets.tcp_at(index) {
            let Some(last) = next.last_segment() else { return };
            self.memory.supply(socket);
            let disposition = socket.connection.driver().handle_run(at, run, &last);
            self.finish_segment(at, index, disposition);
        }
    }
}
