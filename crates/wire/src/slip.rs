//! Packets on a serial line: one byte ends a packet, another makes room for both of them (RFC 1055).

/// Ends a packet.
const END: u8 = 0o300;
/// What follows stands for something else.
const ESC: u8 = 0o333;
/// Behind [`ESC`]: a byte of the packet that looks like [`END`].
const ESC_END: u8 = 0o334;
/// Behind [`ESC`]: one that looks like [`ESC`].
const ESC_ESC: u8 = 0o335;

/// The bytes that bear `packet` on the line. It begins with an END, too, so that noise on a silent line
/// spoils nothing.
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

/// Finds packets in the bytes of a line, in room that its owner gives it.
#[derive(Clone, Debug)]
pub struct SlipDecoder<B> {
    room: B,
    length: usize,
    escaped: bool,
    /// The packet did not fit, or an escape stood for nothing.
    damaged: bool,
    discarded: u64,
}

impl<B: AsMut<[u8]>> SlipDecoder<B> {
    /// A decoder of packets that fit into `room`; RFC 1055 wants 1,006 bytes at least.
    pub const fn new(room: B) -> Self {
        Self { room, length: 0, escaped: false, damaged: false, discarded: 0 }
    }

    /// Packets that were too long or broken.
    pub const fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Takes the next byte of the line; the packet, if it was the last one's end.
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

    /// An END where nothing has come before it is no packet, and nothing to be counted.
    fn end(&mut self, escaped: bool) -> Option<&mut [u8]> {
        let damaged = core::mem::take(&mut self.damaged) || escaped;
        let length = core::mem::take(&mut self.length);
        self.discarded += u64::from(damaged);
        (!damaged && length > 0).then(|| &mut self.room.as_mut()[..length])
    }
}
