//! The timers of the services of a host. A service is any activity with a timer, such as DHCP,
//! except a connection. Each service has one timer. These few timers expire rarely, so they are
//! kept in an array and not in the timer wheel.

use linerate_units::Instant;

/// A service: an activity of the host, other than a connection, that has a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// The reassembly of datagrams from fragments.
    Reassembly,
    /// Addresses: their duplicate address detection and their lifetimes.
    Addresses,
    /// The discovery of routers and prefixes.
    Routers,
    /// Multicast groups: the reports of memberships.
    Groups,
    /// The DHCP client.
    Dhcp,
    /// All interfaces except the one that the host serves at present. The deadline of this service
    /// is the earliest deadline of their services and neighbour caches.
    Interfaces,
}

impl Service {
    /// All services. The position of a service in this list is the index of its deadline in
    /// [`Deadlines`].
    const ALL: [Self; 6] = [
        Self::Reassembly,
        Self::Addresses,
        Self::Routers,
        Self::Groups,
        Self::Dhcp,
        Self::Interfaces,
    ];
}

/// The deadline of each service.
#[derive(Debug)]
pub(crate) struct Deadlines {
    at: [Instant; Service::ALL.len()],
    /// The earliest deadline, cached because every turn of the host reads it.
    next: Instant,
}

impl Deadlines {
    /// Creates the deadlines, none of which is set.
    pub(crate) const fn new() -> Self {
        Self { at: [Instant::NEVER; Service::ALL.len()], next: Instant::NEVER }
    }

    /// Returns the earliest deadline of all services; [`Instant::NEVER`] if no deadline is set.
    #[inline]
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// Sets the deadline of a service. [`Instant::NEVER`] means that the service has no deadline.
    pub(crate) fn set(&mut self, service: Service, at: Instant) {
        self.at[service as usize] = at;
        self.next = self.at.into_iter().min().unwrap_or(Instant::NEVER);
    }

    /// Returns a service whose deadline has passed at `now`, and clears this deadline. The caller
    /// must run the service, which sets its next deadline.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Service> {
        let due = Service::ALL.into_iter().find(|&service| self.at[service as usize] <= now)?;
        self.set(due, Instant::NEVER);
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Duration;

    #[test]
    fn each_service_is_due_once_at_its_deadline() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut deadlines = Deadlines::new();
        assert_eq!(deadlines.next(), Instant::NEVER);
        deadlines.set(Service::Dhcp, at(3));
        deadlines.set(Service::Reassembly, at(5));
        assert_eq!(deadlines.next(), at(3));
        assert_eq!(deadlines.take_due(at(2)), None);
        assert_eq!(deadlines.take_due(at(6)), Some(Service::Reassembly));
        assert_eq!(deadlines.take_due(at(6)), Some(Service::Dhcp));
        assert_eq!(deadlines.take_due(at(6)), None);
        assert_eq!(deadlines.next(), Instant::NEVER);
    }
}
