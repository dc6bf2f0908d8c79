//! The egress of a connection's segments: an interface, or the queue of packets to the host itself.

use crate::ip::interface::Interface;
use crate::ready::Ready;
use alloc::boxed::Box;
use core::hint::cold_path;

/// The egress of a socket's packets: an interface, or the queue of packets to the host itself. Both
/// are encoded in one number. So a single comparison tells whether the packets leave over the
/// interface that the host serves at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Egress(u16);

/// The bit that is set for packets to the host itself. The numbers of all interfaces are smaller
/// than this bit.
const LOCAL: u16 = 1 << 15;

impl Egress {
    /// The first interface, which is used until the route is known.
    pub(crate) const FIRST: Self = Self(1);

    /// Upper bound of the numbers of interfaces: each number is smaller.
    pub(crate) const NUMBERS: u16 = LOCAL;

    /// Creates the egress over the interface with this number.
    pub(crate) const fn over(interface: u16) -> Self {
        Self(interface)
    }

    /// Creates the egress for packets from the host to itself. They do not leave over an interface,
    /// but are handled as if `interface` had received them.
    pub(crate) const fn local(interface: u16) -> Self {
        Self(interface | LOCAL)
    }

    /// Do the packets go to this host itself?
    pub(crate) const fn is_local(self) -> bool {
        self.0 & LOCAL != 0
    }

    /// Returns the number of the interface.
    pub(crate) const fn interface(self) -> u16 {
        self.0 & !LOCAL
    }

    /// Replaces the number of the interface.
    pub(crate) const fn set_interface(&mut self, interface: u16) {
        self.0 = interface | self.0 & LOCAL;
    }

    /// Returns the ring of senders in which a socket with this egress waits to send. `interface` is
    /// the interface that the host serves at present, `others` are all other interfaces, and
    /// `local` is the ring of senders to the host itself. If the interface of this egress no longer
    /// exists, returns the ring of `interface`.
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
