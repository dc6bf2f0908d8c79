//! The way on which the segments of a connection leave: over an interface, or to the host itself.

use crate::ip::interface::Interface;
use crate::ready::Ready;
use alloc::boxed::Box;
use core::hint::cold_path;

/// The way on which the segments of a connection leave. One number, so that the usual case costs
/// one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Egress(u16);

/// The bit of connections of the host with itself, above the numbers of interfaces.
const LOCAL: u16 = 1 << 15;

impl Egress {
    /// The first interface, which is used until the route is known.
    pub(crate) const FIRST: Self = Self(1);

    /// The number that follows the largest number of an interface.
    pub(crate) const NUMBERS: u16 = LOCAL;

    /// Creates the way over the interface with this number.
    pub(crate) const fn over(interface: u16) -> Self {
        Self(interface)
    }

    /// Creates the way to the host itself, for addresses of this interface.
    pub(crate) const fn local(interface: u16) -> Self {
        Self(interface | LOCAL)
    }

    /// Is the peer this host itself?
    pub(crate) const fn is_local(self) -> bool {
        self.0 & LOCAL != 0
    }

    /// Returns the number of the interface.
    pub(crate) const fn interface(self) -> u16 {
        self.0 & !LOCAL
    }

    /// Replaces the interface.
    pub(crate) const fn set_interface(&mut self, interface: u16) {
        self.0 = interface | self.0 & LOCAL;
    }

    /// Returns the ring of senders of this way.
    #[inline(always)]
    pub(crate) fn ring<'a>(
        self,
        interface: &'a mut Interface,
        others: &'a mut [Box<Interface>],
        local: &'a mut Ready,
    ) -> &'a mut Ready {
        if self.0 == interface.number {
            return &mut interface.ready;
        }
        cold_path();
        if self.is_local() {
            return local;
        }
        match others.iter_mut().find(|other| other.number == self.0) {
            Some(other) => &mut other.ready,
            None => &mut interface.ready,
        }
    }
}
