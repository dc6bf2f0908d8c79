//! A frame arrives: is it for us, and what does it carry?

use crate::link::{Medium, PlainFrame, RxChecksum, RxFrame};
use crate::stack::Stack;
use alloc::sync::Arc;
use core::num::NonZeroU16;
use linerate_units::Instant;
use linerate_wire::{EtherType, EthernetFrame, MacAddress};

/// Data of segments that are shorter are summed before they are copied.
const LONG: usize = 256;

/// How a packet came to us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    /// When.
    pub(crate) at: Instant,
    /// Does the link vouch for the checksum inside?
    pub(crate) verified: bool,
    /// If it is a super-frame: bytes of payload in each of its segments.
    pub(crate) joined: Option<NonZeroU16>,
    /// The memory that it lies in, if it may be kept there.
    pub(crate) memory: Option<&'a Arc<[u8]>>,
    /// Was the frame for all stations?
    pub(crate) to_all_stations: bool,
    /// Did it come from this host itself?
    pub(crate) local: bool,
}

impl<'a> Arrival<'a> {
    /// That of a packet in `frame`, which has come at this time from a link, and to this station alone.
    #[inline(always)]
    pub(crate) fn of(frame: &RxFrame<'a>, at: Instant) -> Self {
        let verified = frame.checksum != RxChecksum::Unverified;
        let (joined, memory) = (frame.segment, frame.memory);
        Self { at, verified, joined, memory, to_all_stations: false, local: false }
    }
}

impl Stack {
    /// Takes in a frame that arrived.
    pub fn handle_frame(&mut self, now: Instant, frame: RxFrame<'_>) {
        self.handle_frame_of_batch(now, &frame);
        self.end_batch();
    }

    /// The same for one that others may follow at once.
    #[inline]
    pub(crate) fn handle_frame_of_batch(&mut self, now: Instant, frame: &RxFrame<'_>) {
        match frame.as_plain() {
            Some(frame) => self.handle_batch(now, core::iter::once(frame)),
            None => {
                self.end_train();
                self.handle_bearing_frame(now, frame);
            }
        }
    }

    /// Takes in `frames`, which others may follow at once: an acknowledgement waits for them, and so do data, until
    /// [`end_batch`](Self::end_batch).
    #[inline(always)]
    pub(crate) fn handle_batch<'a>(
        &mut self,
        now: Instant,
        mut frames: impl Iterator<Item = PlainFrame<'a>>,
    ) {
        while let Some(frame) = frames.next() {
            if self.held_data.is_none() && self.held_ack.is_none() {
                self.handle_plain_frame(now, frame.bytes, frame.arrived);
                continue;
            }
            // Moved there and back, or all frames would be asked for through memory.
            let mut after = frames;
            let other = if self.held_data.is_some() {
                self.go_on_with_train(now, frame, &mut after)
            } else {
                self.go_on_with_acks(now, frame, &mut after)
            };
            frames = after;
            let Some(PlainFrame { bytes, arrived }) = other else { return };
            self.handle_plain_frame(now, bytes, arrived);
        }
    }

    /// Nothing waits that has come with a batch of frames.
    #[inline]
    pub(crate) fn end_batch(&mut self) {
        self.release_data();
        self.release_ack();
    }

    /// Takes in a frame of which nothing else is known.
    #[inline(never)]
    fn handle_plain_frame(&mut self, now: Instant, bytes: &[u8], arrived: Instant) {
        // The stamp of the link says better than `now` when the frame came, but no later call may
        // see an earlier time than this one.
        self.pass_time(arrived.min(now));
        self.counted.receive.bytes += bytes.len() as u64;
        match self.find_familiar(bytes) {
            Some((index, packet)) if self.predicts_frames => {
                if packet.segment().len() < LONG {
                    self.handle_familiar(bytes, index, packet);
                } else {
                    self.handle_familiar_data(bytes, index, packet);
                }
            }
            _ => self.handle_other_flow(&RxFrame::plain(bytes, self.now)),
        }
    }

    /// The same for one of which the link has something to say.
    #[inline(never)]
    fn handle_bearing_frame(&mut self, now: Instant, frame: &RxFrame<'_>) {
        self.pass_time(frame.arrived.min(now));
        self.counted.receive.bytes += frame.bytes.len() as u64;
        match self.find_familiar(frame.bytes) {
            Some((index, packet)) if self.predicts_frames => {
                self.handle_familiar_bearing(frame, index, packet);
            }
            _ => self.handle_other_flow(frame),
        }
    }

    /// Judges a frame of which nothing else is known from its first byte on.
    #[cold]
    pub(crate) fn handle_unfamiliar_bytes(&mut self, bytes: &[u8]) {
        self.handle_unfamiliar(&RxFrame::plain(bytes, self.now));
    }

    /// Judges a frame from its first byte on.
    #[inline(never)]
    pub(crate) fn handle_unfamiliar(&mut self, frame: &RxFrame<'_>) {
        self.counted.receive.packets += 1;
        let arrival = Arrival::of(frame, self.now);
        match self.interface.capabilities.medium {
            Medium::Ip => self.handle_packet(arrival, frame.bytes),
            Medium::Ethernet => self.handle_ethernet(arrival, frame.bytes),
        }
    }

    fn handle_ethernet(&mut self, mut arrival: Arrival<'_>, bytes: &[u8]) {
        let Ok(frame) = EthernetFrame::parse(bytes) else {
            self.counted.receive.errors += 1;
            self.counted.receive.frame += 1;
            return;
        };
        let header = frame.header;
        if header.destination != self.interface.mac {
            if !header.destination.is_multicast() {
                self.counted.receive.drops += 1;
                return;
            }
            self.counted.receive.multicast += 1;
            arrival.to_all_stations = true;
        }
        if !header.tags.is_untagged() || !is_possible_sender(header.source) {
            self.counted.receive.drops += 1;
            return;
        }
        match header.ether_type {
            EtherType::IPV4 => {
                if !arrival.to_all_stations {
                    self.stations = bytes.first_chunk().copied();
                }
                self.handle_packet(arrival, frame.payload);
            }
            EtherType::ARP => {
                self.release_ack();
                self.handle_arp(arrival, frame.payload);
            }
            _ => self.counted.receive.drops += 1,
        }
    }
}

/// Can a frame come from this station? Not from a group, and not from nobody.
pub(crate) fn is_possible_sender(station: MacAddress) -> bool {
    !station.is_multicast() && station != MacAddress::ZERO
}
