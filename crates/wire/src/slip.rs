//! SLIP (RFC 1055), which frames IP packets on a serial line. A byte value, END, marks the end of a
//! packet. Within a packet, each END or ESC is replaced by two bytes, of which the first is ESC.

/// The byte that marks the end of a packet.
const END: u8 = 0o300;
/// The escape byte. Together with the byte after it, it stands for an [`END`] or [`ESC`] in a
/// packet.
const ESC: u8 = 0o333;
/// The byte that stands for [`END`] after an [`ESC`].
const ESC_END: u8 = 0o334;
/// The byte that stands for [`ESC`] after an [`ESC`].
const ESC_ESC: u8 = 0o335;

/// Returns the bytes that carry `packet` on the line. An END before the packet separates it from
/// line noise.
pub fn slip_bytes(packet: &[u8]) -> impl Iterator<Item = u8> {
    let body = packet.iter().flat_map(|&byte| {
        let (first, second) = match byte {
            END => (ESC, Some(ESC_END)),
            ESC => (ESC, Some(ESC_ESC)),
            byte => (byte, None),
        };
        core::iter::once(first).chain(second)
    });
    core::iter::once(END).chain(body).chain(core::iter::once(END))
}

/// A decoder that assembles packets from the bytes of a line, in a buffer of type `B`.
#[derive(Clone, Debug)]
pub struct SlipDecoder<B> {
    room: B,
    length: usize,
    escaped: bool,
    /// Is the packet being received too long for the buffer, or does it contain an invalid escape?
    damaged: bool,
    discarded: u64,
}

impl<B: AsMut<[u8]>> SlipDecoder<B> {
    /// Creates a decoder with the buffer `room`. RFC 1055 recommends at least 1,006 bytes.
    pub const fn new(room: B) -> Self {
        Self { room, length: 0, escaped: false, damaged: false, discarded: 0 }
    }

    /// Returns the number of packets that were discarded because they were too long or damaged.
    pub const fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Adds a byte received from the line. Returns the packet that this byte completes, if any.
    pub fn take(&mut self, byte: u8) -> Option<&mut [u8]> {
        match (byte, core::mem::take(&mut self.escaped)) {
            (END, escaped) => return self.end(escaped),
            (ESC, false) => self.escaped = true,
            (byte, false) => self.keep(byte),
            (ESC_END, true) => self.keep(END),
            (ESC_ESC, true) => self.keep(ESC),
            (_, true) => self.damaged = true,
        }
        None
    }

    fn keep(&mut self, byte: u8) {
        match self.room.as_mut().get_mut(self.length) {
            Some(place) => {
                *place = byte;
                self.length += 1;
            }
            None => self.damaged = true,
        }
    }

    /// Ends the packet, and returns it unless it is damaged. Two consecutive ENDs have no packet
    /// between them, so nothing is returned or counted.
    fn end(&mut self, escaped: bool) -> Option<&mut [u8]> {
        let damaged = core::mem::take(&mut self.damaged) || escaped;
        let length = core::mem::take(&mut self.length);
        self.discarded += u64::from(damaged);
        (!damaged && length > 0).then(|| &mut self.room.as_mut()[..length])
    }
}
