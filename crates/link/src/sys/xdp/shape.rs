//! The division of an AF_XDP socket's memory into frames.

/// Number and size of the frames in a socket's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The number of frames for each direction, a power of two.
    pub(crate) frames: u32,
    /// The length of a frame's memory in bytes: 2048 or 4096.
    pub(crate) frame_size: u32,
}

impl Shape {
    /// Returns the address of frame number `frame`. The frames for receiving come first, then those
    /// for sending.
    pub(super) const fn beginning(self, frame: u32) -> u64 {
        frame as u64 * self.frame_size as u64
    }

    /// Returns the address of the frame that contains this address.
    pub(super) const fn frame_of(self, address: u64) -> u64 {
        address & !(self.frame_size as u64 - 1)
    }

    /// Returns the address of the frame for receiving that contains this address, or `None` if the
    /// address is outside of these frames.
    pub(super) fn arriving(self, address: u64) -> Option<u64> {
        (address < self.beginning(self.frames)).then(|| self.frame_of(address))
    }

    /// Returns the address of the frame for sending that contains this address, or `None` if the
    /// address is outside of these frames.
    pub(super) fn leaving(self, address: u64) -> Option<u64> {
        let all = self.beginning(self.frames)..self.beginning(2 * self.frames);
        all.contains(&address).then(|| self.frame_of(address))
    }
}
