//! Interprets the bytes of a fuzzer as a sequence of choices, which determine a test case.

use linerate_units::Duration;

/// The fuzzer's bytes that have not been used for choices yet. When no byte is left, every choice
/// is zero.
#[derive(Clone, Debug)]
pub(super) struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) const fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    pub(super) const fn half(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    pub(super) const fn word(&mut self) -> u32 {
        u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    pub(super) const fn yes(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Chooses one of `options`: the next byte, modulo the number of options, is its index.
    pub(super) const fn of<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.byte() as usize % options.len()]
    }

    /// Takes one byte as a length, and returns that many of the bytes after it. If fewer bytes are
    /// left, returns all of them.
    pub(super) fn bytes(&mut self) -> &'a [u8] {
        let count = usize::from(self.byte()).min(self.rest.len());
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        taken
    }

    /// Chooses a duration from one nanosecond to 21 minutes.
    pub(super) fn span(&mut self) -> Duration {
        let unit = self.of(&[1, 1_000, 1_000_000, 20_000_000, 1_000_000_000, 5_000_000_000]);
        Duration::from_nanos(unit) * (u64::from(self.byte()) + 1)
    }

    /// Chooses a number that equals `base` or is close to it in most cases.
    pub(super) const fn near(&mut self, base: u32) -> u32 {
        match self.byte() {
            0..=127 => base,
            128..=191 => base.wrapping_add_signed(self.byte().cast_signed() as i32),
            192..=239 => base.wrapping_add_signed(self.half().cast_signed() as i32),
            240..=255 => self.word(),
        }
    }
}
