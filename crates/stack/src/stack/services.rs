//! Timeouts of services that are not connections.

use crate::services::Service;
use crate::stack::Stack;
use linerate_units::Instant;

impl Stack {
    /// Handles the timeout of one service. Returns false if none is due.
    pub(crate) fn handle_service_timeout(&mut self, now: Instant) -> bool {
        let due = self.deadlines.take_due(now);
        let due = due.or_else(|| self.interface.deadlines.take_due(now));
        let Some(service) = due else { return false };
        match service {
            Service::Reassembly => self.handle_reassembly_timeout(now),
            Service::Addresses => self.handle_addresses_timeout(now),
            Service::Routers => self.handle_discovery_timeout(now),
            Service::Dhcp => self.handle_dhcp_timeout(now),
            Service::Groups => self.send_group_reports(now),
        }
        true
    }
}
