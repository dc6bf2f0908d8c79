//! Support for congestion control algorithms that are defined in other crates.

use super::{Controller, Window};
use alloc::boxed::Box;
use alloc::format;
use core::hash::{Hash, Hasher};

/// A congestion control algorithm that is defined in another crate: its name and its constructor.
///
/// A connection with such an algorithm is never compacted, because the state of the algorithm is
/// unknown to this crate.
#[derive(Clone, Copy, Debug)]
pub struct CustomCongestion {
    /// The name in reports. Two custom algorithms with the same name are considered equal.
    pub name: &'static str,
    /// Creates a controller, given the initial congestion window.
    pub new: fn(Window) -> Box<dyn Controller>,
}

impl PartialEq for CustomCongestion {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for CustomCongestion {}

impl Hash for CustomCongestion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// The controller of a connection that uses a [`CustomCongestion`].
#[derive(Debug)]
pub(crate) struct Custom(Box<dyn Controller>);

impl Custom {
    pub(super) fn new(custom: CustomCongestion, window: Window) -> Self {
        Self((custom.new)(window))
    }

    pub(super) fn controller(&self) -> &dyn Controller {
        &*self.0
    }

    pub(super) fn controller_mut(&mut self) -> &mut dyn Controller {
        &mut *self.0
    }
}

impl Clone for Custom {
    fn clone(&self) -> Self {
        Self(self.0.boxed_clone())
    }
}

/// Compares controllers by their debug output, because the type of a custom controller is unknown.
/// Only tests compare controllers.
impl PartialEq for Custom {
    fn eq(&self, other: &Self) -> bool {
        format!("{:?}", self.0) == format!("{:?}", other.0)
    }
}
