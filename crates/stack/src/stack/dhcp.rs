//! The DHCP client in the stack: sends and receives its messages, probes an offered address by ARP,
//! and configures the address and routes of a lease (RFC 2131).

use crate::counters::DhcpCounters;
use crate::dhcp::client::{DhcpAction, DhcpSend};
use crate::dhcp::lease::DhcpLease;
use crate::event::Event;
use crate::ip::Arrived;
use crate::ip::address::{AddressOptions, AddressOrigin};
use crate::ip::route::{Route, RouteOrigin};
use crate::link::Medium;
use crate::ready::Sender;
use crate::services::Service;
use crate::stack::Stack;
use crate::tx::Reply;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use linerate_units::Instant;
use linerate_wire::dhcp::{
    CLIENT_PORT, DhcpMessage, DhcpMessageType, DhcpWriter, SERVER_PORT, option,
};
use linerate_wire::{
    ArpOperation, ArpPacket, IpCidr, IpHeader, MacAddress, Protocol, Sum, UdpDatagram, UdpHeader,
};

/// Size in bytes of the buffer in which the client writes a message. Every message of the client is
/// shorter.
const ROOM: usize = 320;
/// The Maximum DHCP Message Size that the client announces, in bytes of the IP packet (RFC 2132
/// §9.10). This size may exceed the MTU of the link, because the host can reassemble the packet
/// from fragments. The messages that servers send in practice are shorter than this size.
const MAX_MESSAGE_SIZE: u16 = 1_500;
/// The options that the client requests from the server.
const PARAMETERS: [u8; 8] = [
    option::SUBNET_MASK,
    option::ROUTER,
    option::DNS,
    option::DOMAIN_NAME,
    option::INTERFACE_MTU,
    option::LEASE_TIME,
    option::RENEWAL_TIME,
    option::REBINDING_TIME,
];

/// # DHCP
impl Stack {
    /// Returns the lease that a DHCP server has granted to the current interface (see
    /// [`Stack::on`]); `None` if there is no lease or no DHCP client.
    #[must_use]
    pub fn dhcp_lease(&self) -> Option<&DhcpLease> {
        self.interface.dhcp.as_ref()?.client.lease()
    }

    /// Releases the lease of the current interface: sends DHCPRELEASE to the server, and stops the
    /// client. The address is removed 100 ms later, because the message is sent from this address.
    /// The removal ends the connections of the address. [`Event::Dhcp`] reports the change.
    pub fn dhcp_release(&mut self, now: Instant) {
        self.advance_clock(now);
        let Some(service) = &mut self.interface.dhcp else { return };
        let actions = service.client.release(self.now);
        self.perform_dhcp(actions);
    }

    /// Performs the actions of the DHCP client that are due at `now`.
    pub(crate) fn handle_dhcp_timeout(&mut self, now: Instant) {
        let Some(service) = &mut self.interface.dhcp else { return };
        let actions = service.client.handle_timeout(now);
        self.perform_dhcp(actions);
    }

    /// Passes a datagram, whose destination port is 68, to the DHCP client. Does so only if the
    /// client is enabled and the datagram came from a DHCP server. Returns whether the datagram was
    /// for the client.
    #[inline(never)]
    pub(crate) fn handle_dhcp_datagram(
        &mut self,
        arrived: &Arrived<'_>,
        datagram: &UdpDatagram<'_>,
    ) -> bool {
        let ports = datagram.header;
        let Some(service) = &mut self.interface.dhcp else { return false };
        if ports.source_port != SERVER_PORT || !arrived.source().is_ipv4() {
            return false;
        }
        let counted = &mut self.counted.dhcp;
        counted.in_messages += 1;
        let Ok(message) = DhcpMessage::parse(datagram.payload) else {
            counted.in_errors += 1;
            return true;
        };
        let probes = self.interface.capabilities.medium == Medium::Ethernet;
        match service.client.handle_message(arrived.arrival.at, &message, probes) {
            Some(actions) => {
                counted.in_naks += u64::from(message.message_type == DhcpMessageType::Nak);
                self.perform_dhcp(actions);
            }
            None => counted.in_ignored += 1,
        }
        true
    }

    /// Checks whether an ARP packet shows that another host uses the address that the DHCP client
    /// probes, and if so, declines the lease. The packet shows this if its sender has this address,
    /// or if it is a probe of another host for this address (RFC 5227 §2.1.1).
    pub(crate) fn check_dhcp_probe(&mut self, now: Instant, packet: &ArpPacket) {
        let Some(service) = &mut self.interface.dhcp else { return };
        if packet.sender_mac == self.interface.mac {
            return;
        }
        let is_probe =
            packet.operation == ArpOperation::Request && packet.sender_ip.is_unspecified();
        let address = if is_probe { packet.target_ip } else { packet.sender_ip };
        let actions = service.client.handle_conflict(now, address);
        if !actions.is_empty() {
            self.interface.neighbors.counters_mut().conflicts += 1;
            self.perform_dhcp(actions);
        }
    }

    fn perform_dhcp(&mut self, actions: Vec<DhcpAction>) {
        for action in actions {
            match action {
                DhcpAction::Send(message) => self.send_dhcp(&message),
                DhcpAction::Probe(address) => self.send_arp_request(Ipv4Addr::UNSPECIFIED, address),
                DhcpAction::Configure(lease) => self.use_lease(&lease),
                DhcpAction::Remove(lease) => self.end_lease(&lease),
            }
        }
        let next =
            self.interface.dhcp.as_ref().map_or(Instant::NEVER, |it| it.client.poll_timeout());
        self.interface.deadlines.set(Service::Dhcp, next);
        self.schedule_replies();
    }

    fn send_dhcp(&mut self, send: &DhcpSend) {
        let source = IpAddr::V4(send.header.client);
        let Some(header) = IpHeader::new(source, send.to.into(), Protocol::UDP) else { return };
        let mut message = [0; ROOM];
        let length = write_message(send, self.interface.mac, &mut message);
        let total = UdpHeader::LENGTH + length;
        let ports = UdpHeader { source_port: CLIENT_PORT, destination_port: SERVER_PORT };
        let emit = |packet: &mut [u8]| {
            let (head, datagram) = packet.split_at_mut(header.length());
            header.emit(total, head);
            ports.emit(length, datagram);
            datagram[UdpHeader::LENGTH..].copy_from_slice(&message[..length]);
            UdpHeader::fill_checksum(datagram, header.pseudo_header(total), Sum::of(datagram));
        };
        let kept = self.interface.replies.push_with(Reply::Packet, header.length() + total, emit);
        self.interface.ready.push(Sender::Replies);
        let DhcpCounters { out_messages, out_declines, .. } = &mut self.counted.dhcp;
        *out_messages += 1;
        *out_declines += u64::from(send.kind == DhcpMessageType::Decline);
        self.counted.ip.out_requests += 1;
        self.counted.ip.out_discards += u64::from(!kept);
    }

    /// Configures the address and the routes of a lease, or renews them if they are configured
    /// already.
    fn use_lease(&mut self, lease: &DhcpLease) {
        let lifetime =
            (lease.expires_at != Instant::NEVER).then(|| lease.expires_at.since(self.now));
        let options = AddressOptions {
            origin: AddressOrigin::Dhcp,
            preferred_lifetime: lifetime,
            valid_lifetime: lifetime,
        };
        let is_new = !self.interface.is_ours(lease.address.address());
        if self.add_address(self.now, lease.address, &options).is_err() {
            self.counted.dhcp.in_errors += 1;
            return;
        }
        let mtu = lease.mtu.map(usize::from);
        let interface = Some(self.served());
        let over = |route| Route { mtu, interface, ..route };
        let direct = over(Route::direct(lease.address));
        let gateway = lease.routers.first();
        let default = gateway.map(|&router| over(Route::via(IpCidr::ALL_IPV4, router)));
        let wanted: Vec<Route> = mtu.map(|_| direct).into_iter().chain(default).collect();
        self.replace_dhcp_routes(wanted);
        let is_usable = self.interface.is_ours(lease.address.address());
        if is_new && is_usable && self.interface.capabilities.medium == Medium::Ethernet {
            // Other hosts may have cached the MAC address of the host that had this IP address
            // before. This ARP announcement makes them replace it by our MAC address (RFC 2131
            // §4.4.1).
            self.send_arp_request(lease.own(), lease.own());
        }
        self.events.note_change(Event::Dhcp);
    }

    /// Removes the address and the routes that the lease has configured.
    fn end_lease(&mut self, lease: &DhcpLease) {
        self.replace_dhcp_routes(Vec::new());
        self.remove_address(self.now, lease.address.address());
        self.events.note_change(Event::Dhcp);
    }

    /// Replaces the routes of the previous lease by the routes `wanted`.
    fn replace_dhcp_routes(&mut self, wanted: Vec<Route>) {
        let Some(service) = &mut self.interface.dhcp else { return };
        if service.routes == wanted {
            return;
        }
        for old in core::mem::replace(&mut service.routes, wanted.clone()) {
            self.routes.withdraw(old.destination, RouteOrigin::Dhcp, self.served());
        }
        wanted.into_iter().for_each(|route| self.routes.insert(RouteOrigin::Dhcp, route));
    }
}

/// Writes a message of the DHCP client into `bytes`, and returns its length in bytes.
fn write_message(send: &DhcpSend, mac: MacAddress, bytes: &mut [u8; ROOM]) -> usize {
    let mut writer = DhcpWriter::new(&send.header, send.kind, bytes);
    // The client identifier consists of the hardware type, 1 for Ethernet, and the MAC address (RFC
    // 2132 §9.14).
    let [a, b, c, d, e, f] = mac.octets();
    writer.option(option::CLIENT_ID, &[1, a, b, c, d, e, f]);
    for (code, address) in
        [(option::REQUESTED_ADDRESS, send.requested), (option::SERVER_ID, send.server)]
    {
        if let Some(address) = address {
            writer.option(code, &address.octets());
        }
    }
    if matches!(send.kind, DhcpMessageType::Discover | DhcpMessageType::Request) {
        writer.option(option::MAX_MESSAGE_SIZE, &MAX_MESSAGE_SIZE.to_be_bytes());
        writer.option(option::PARAMETER_LIST, &PARAMETERS);
    }
    writer.finish()
}
