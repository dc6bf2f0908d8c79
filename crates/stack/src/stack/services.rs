//! Timeouts of services, such as reassembly, DHCP and router discovery. The module `tcp` handles
//! the timers of connections.

use crate::services::Service;
use crate::stack::Stack;
use linerate_units::Instant;

impl Stack {
    /// Handles the timeout of one service of the host or of the current interface. Returns false if
    /// no service is due at `now`.
    pub(crate) fn handle_service_timeout(&mut self, now: Instant) -> bool {
        match self.deadlines.take_due(now) {
            Some(service) => self.handle_due(now, service),
            None => return self.handle_interface_service_timeout(now),
        }
        true
    }

    /// Handles the timeout of one service of the current interface. Returns false if no service is
    /// due at `now`.
    pub(crate) fn handle_interface_service_timeout(&mut self, now: Instant) -> bool {
        let due = self.interface.deadlines.take_due(now);
        due.inspect(|&service| self.handle_due(now, service)).is_some()
    }

    fn handle_due(&mut self, now: Instant, service: Service) {
        match service {
            Service::Reassembly => self.handle_reassembly_timeout(now),
            Service::Addresses => self.handle_addresses_timeout(now),
            Service::Routers => self.handle_discovery_timeout(now),
            Service::Dhcp => self.handle_dhcp_timeout(now),
            Service::Groups => self.send_group_reports(now),
            Service::Interfaces => self.handle_interfaces_timeout(now),
        }
    }
}
