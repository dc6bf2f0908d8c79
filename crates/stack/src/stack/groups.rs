//! Multicast group membership: joining and leaving by applications, queries from routers, and
//! reports to routers (IGMPv3, RFC 3376, and MLDv2, RFC 3810).

use crate::error::Error;
use crate::handle::UdpHandle;
use crate::ip::Arrived;
use crate::ip::groups::{GroupReportDue, MembershipChange};
use crate::ip::interface::is_link_local;
use crate::link::Medium;
use crate::ready::Sender;
use crate::services::Service;
use crate::stack::Stack;
use crate::tx::Reply;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use linerate_units::Instant;
use linerate_wire::group_membership::{OLD_MESSAGE_LENGTH, emit_leave, emit_old_report};
use linerate_wire::{
    GroupMessage, GroupQuery, GroupRecordKind, GroupReport, GroupVersion, IpHeader, Ipv4Header,
    Ipv4Packet, Ipv6Header, Ipv6Packet, Protocol, TypeOfService, igmp, ipv6_multicast, mld,
};

/// The interface of a multicast membership, in the forms in which an application can name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MulticastInterface {
    /// The interface over which the socket sends datagrams to groups
    /// ([`Stack::udp_set_multicast_interface`]), or the first interface of the host if the
    /// application has set none.
    Default,
    /// The interface that has this IP address.
    Address(IpAddr),
    /// The interface with this number.
    Number(u32),
}

/// Names an interface by one of its addresses, like the socket option `IP_ADD_MEMBERSHIP`.
/// `0.0.0.0` selects [`MulticastInterface::Default`].
impl From<Ipv4Addr> for MulticastInterface {
    fn from(address: Ipv4Addr) -> Self {
        if address.is_unspecified() { Self::Default } else { Self::Address(address.into()) }
    }
}

/// Names an interface by its number, like the socket option `IPV6_ADD_MEMBERSHIP`. Zero selects
/// [`MulticastInterface::Default`].
impl From<u32> for MulticastInterface {
    fn from(number: u32) -> Self {
        if number == 0 { Self::Default } else { Self::Number(number) }
    }
}

/// # Application calls: multicast
impl Stack {
    /// Returns the number of the interface that `given` names for a socket. The application passes
    /// this number to [`Stack::on`], to join or leave groups on the interface.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::AddressNotOurs`], [`Error::UnknownInterface`].
    pub fn multicast_interface(
        &self,
        handle: UdpHandle,
        given: impl Into<MulticastInterface>,
    ) -> Result<u32, Error> {
        let chosen = self.sockets.udp(handle)?.multicast_interface;
        match given.into() {
            MulticastInterface::Default => Ok(chosen.unwrap_or_else(|| self.served())),
            MulticastInterface::Address(own) => {
                self.interface_with(own).ok_or(Error::AddressNotOurs(own))
            }
            MulticastInterface::Number(number) => self.numbered(number).map(u32::from),
        }
    }

    /// Joins a multicast group on the current interface: the socket receives datagrams to the group
    /// and to its local port. If `source` is given, the socket receives only from this source, and
    /// further calls can add other sources; otherwise it receives from all sources. The host
    /// reports the membership to the routers of the link at once.
    ///
    /// # Errors
    /// [`Error::NotAGroup`] if `group` is not a multicast address, [`Error::OtherVersion`] if the
    /// socket cannot use its IP version, [`Error::AlreadyJoined`], or [`Error::TooManyGroups`] or
    /// [`Error::TooManySources`] if a limit is reached.
    pub fn udp_join(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        group: impl Into<IpAddr>,
        source: Option<IpAddr>,
    ) -> Result<(), Error> {
        let change = source.map_or(MembershipChange::Join, MembershipChange::JoinSource);
        self.change_membership(now, handle, group.into(), source, change)
    }

    /// Leaves a multicast group on the current interface. If `source` is given, the socket only
    /// stops receiving from this source. Closing a socket leaves all its groups.
    ///
    /// # Errors
    /// [`Error::NotAGroup`] if `group` is not a multicast address; [`Error::NotJoined`] if the
    /// socket has not joined it.
    pub fn udp_leave(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        group: impl Into<IpAddr>,
        source: Option<IpAddr>,
    ) -> Result<(), Error> {
        let change = source.map_or(MembershipChange::Leave, MembershipChange::LeaveSource);
        self.change_membership(now, handle, group.into(), source, change)
    }

    /// Blocks the datagrams from `source` to a group that the socket has joined for all sources.
    ///
    /// # Errors
    /// [`Error::NotJoined`]; [`Error::AlreadyJoined`] if the socket has joined the group for given
    /// sources only, or has already blocked this source; [`Error::TooManySources`].
    pub fn udp_block_source(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        group: impl Into<IpAddr>,
        source: IpAddr,
    ) -> Result<(), Error> {
        let change = MembershipChange::Block(source);
        self.change_sources(now, handle, group.into(), source, change)
    }

    /// Ends the blocking of datagrams from `source` by [`Stack::udp_block_source`].
    ///
    /// # Errors
    /// [`Error::NotJoined`] if the source is not blocked.
    pub fn udp_unblock_source(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        group: impl Into<IpAddr>,
        source: IpAddr,
    ) -> Result<(), Error> {
        let change = MembershipChange::Unblock(source);
        self.change_sources(now, handle, group.into(), source, change)
    }

    /// Sets the interface over which this socket sends datagrams to multicast groups. The default
    /// is the first interface. If the destination is a link-local group with a zone, the zone takes
    /// precedence.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::AddressNotOurs`], [`Error::UnknownInterface`].
    pub fn udp_set_multicast_interface(
        &mut self,
        handle: UdpHandle,
        interface: impl Into<MulticastInterface>,
    ) -> Result<(), Error> {
        let chosen = match interface.into() {
            MulticastInterface::Default => None,
            interface => Some(self.multicast_interface(handle, interface)?),
        };
        self.sockets.udp_mut(handle)?.1.multicast_interface = chosen;
        Ok(())
    }

    /// Returns the number of the interface over which this socket sends datagrams to multicast
    /// groups; `None` if the application has not set an interface.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_multicast_interface(&self, handle: UdpHandle) -> Result<Option<u32>, Error> {
        Ok(self.sockets.udp(handle)?.multicast_interface)
    }

    /// Sets the TTL or hop limit of this socket's datagrams to multicast groups. With zero, the
    /// datagrams do not leave the host.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_set_multicast_hops(&mut self, handle: UdpHandle, hops: u8) -> Result<(), Error> {
        self.sockets.udp_mut(handle)?.1.multicast_hops = hops;
        Ok(())
    }

    /// Returns the TTL or hop limit of this socket's datagrams to multicast groups.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_multicast_hops(&self, handle: UdpHandle) -> Result<u8, Error> {
        Ok(self.sockets.udp(handle)?.multicast_hops)
    }

    /// Enables or disables multicast loopback: whether datagrams of this socket to a group also
    /// reach the sockets of this host that have joined the group.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_set_multicast_loop(&mut self, handle: UdpHandle, on: bool) -> Result<(), Error> {
        self.sockets.udp_mut(handle)?.1.multicast_loop = on;
        Ok(())
    }

    /// Is multicast loopback enabled: do datagrams of this socket to a group also reach the sockets
    /// of this host that have joined the group?
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_multicast_loop(&self, handle: UdpHandle) -> Result<bool, Error> {
        Ok(self.sockets.udp(handle)?.multicast_loop)
    }

    /// Adds or removes `source` in the socket's membership of `group`. If the socket has joined the
    /// group on several interfaces, only the membership on the first of them changes.
    fn change_sources(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        group: IpAddr,
        source: IpAddr,
        change: MembershipChange,
    ) -> Result<(), Error> {
        let mut result = Err(Error::NotJoined(group));
        self.serving_each(|stack| {
            if matches!(result, Err(Error::NotJoined(_))) {
                result = stack.change_membership(now, handle, group, Some(source), change);
            }
        });
        result
    }

    fn change_membership(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        group: IpAddr,
        source: Option<IpAddr>,
        change: MembershipChange,
    ) -> Result<(), Error> {
        self.advance_clock(now);
        let (index, socket) = self.sockets.udp_mut(handle)?;
        let binding = socket.binding;
        if !group.is_multicast() {
            return Err(Error::NotAGroup(group));
        }
        for remote in [Some(group), source].into_iter().flatten() {
            binding.check_version(remote)?;
        }
        self.interface.groups.change(self.now, group, index, change)?;
        self.send_group_reports(self.now);
        Ok(())
    }
}

impl Stack {
    /// Handles an IGMP message. Only queries have an effect; reports of other hosts are ignored.
    pub(crate) fn handle_igmp(&mut self, arrived: &Arrived<'_>) {
        let counted = &mut self.counted.groups;
        counted.in_messages += 1;
        match igmp::parse(arrived.payload) {
            Ok(Some(GroupMessage::Query(query))) => {
                // A query must have the Router Alert option (RFC 3376 §9.1), except a query of
                // IGMPv1, which does not define the option.
                let packet = Ipv4Packet::parse(arrived.bytes);
                let is_alert = packet.is_ok_and(|packet| igmp::has_router_alert(packet.options));
                // A query about all groups must be addressed to the group of all hosts, or to a
                // unicast address.
                let to = arrived.destination();
                let is_elsewhere =
                    query.group.is_none() && to.is_multicast() && to != IpAddr::V4(igmp::ALL_HOSTS);
                let is_valid = (query.version == GroupVersion::V1 || is_alert) && !is_elsewhere;
                self.handle_group_query(arrived, &query, is_valid);
            }
            Ok(_) => {}
            Err(_) => counted.in_errors += 1,
        }
    }

    /// Handles an ICMPv6 message with a valid checksum, if it is an MLD message. Ignores other
    /// messages.
    pub(crate) fn handle_mld(&mut self, arrived: &Arrived<'_>) {
        match mld::parse(arrived.payload) {
            Ok(Some(GroupMessage::Query(query))) => {
                self.counted.groups.in_messages += 1;
                // A valid MLD query has a link-local source, a hop limit of 1 and a Router Alert
                // option in a Hop-by-Hop Options header (RFC 3810 §6.2).
                let packet = Ipv6Packet::parse(arrived.bytes);
                let is_alert = packet.is_ok_and(|packet| {
                    packet.header.next_header == Protocol::HOP_BY_HOP
                        && mld::has_router_alert(packet.extensions)
                });
                let is_valid =
                    is_link_local(arrived.source()) && arrived.ttl == mld::HOP_LIMIT && is_alert;
                self.handle_group_query(arrived, &query, is_valid);
            }
            Ok(Some(_)) => self.counted.groups.in_messages += 1,
            Ok(None) => {}
            Err(_) => {
                self.counted.groups.in_messages += 1;
                self.counted.groups.in_errors += 1;
            }
        }
    }

    fn handle_group_query(
        &mut self,
        arrived: &Arrived<'_>,
        query: &GroupQuery<'_>,
        is_valid: bool,
    ) {
        if !is_valid {
            self.counted.groups.in_errors += 1;
            return;
        }
        self.counted.groups.in_queries += 1;
        let is_ipv6 = arrived.source().is_ipv6();
        self.interface.groups.handle_query(arrived.arrival.at, is_ipv6, query);
        self.schedule_groups();
    }

    fn schedule_groups(&mut self) {
        self.interface.deadlines.set(Service::Groups, self.interface.groups.poll_timeout());
    }

    /// Queues the membership reports that are due on the current interface.
    #[inline(never)]
    pub(crate) fn send_group_reports(&mut self, now: Instant) {
        if self.interface.groups.poll_timeout() <= now {
            let mut due = self.interface.groups.handle_timeout(now);
            // Solicited-node groups serve address resolution, which a link without MAC addresses
            // does not need. So reports about these groups are omitted on such a link. On a host of
            // several shards, only the first shard sends reports.
            let is_needed = |group: IpAddr| match group {
                IpAddr::V6(group) if self.interface.capabilities.medium == Medium::Ip => {
                    !ipv6_multicast::is_solicited_node(group)
                }
                _ => true,
            };
            due.retain(|report| self.shard.is_first() && is_needed(report.group()));
            let (ipv6, ipv4): (Vec<_>, Vec<_>) =
                due.into_iter().partition(|report| report.group().is_ipv6());
            self.send_reports_of_version(&ipv4);
            self.send_reports_of_version(&ipv6);
            self.schedule_replies();
        }
        self.schedule_groups();
    }

    /// Queues the reports `due`, which must all belong to one IP version. Each IGMPv3 or MLDv2
    /// message contains as many group records as fit.
    fn send_reports_of_version(&mut self, due: &[GroupReportDue]) {
        let Some(first) = due.first() else { return };
        let (source, receivers, routers) = self.report_addresses(first.group());
        let mut records: VecDeque<Record<'_>> = VecDeque::new();
        for report in due {
            match report {
                GroupReportDue::Record { kind, group, sources } => {
                    records.push_back(Record { kind: *kind, group: *group, sources });
                }
                GroupReportDue::OldReport { version, group } => {
                    let kept = self.send_group_message(source, *group, |header, message| {
                        emit_old_report(header, *version, *group, message)
                    });
                    self.counted.groups.out_reports += u64::from(kept);
                }
                GroupReportDue::Leave { group } => {
                    let kept = self.send_group_message(source, routers, |header, message| {
                        emit_leave(header, *group, message)
                    });
                    self.counted.groups.out_leaves += u64::from(kept);
                }
            }
        }
        while !records.is_empty() {
            let kept = self.send_group_message(source, receivers, |header, message| {
                let mut report = GroupReport::new(message);
                pack(&mut report, &mut records);
                report.finish(header)
            });
            self.counted.groups.out_reports += u64::from(kept);
        }
    }

    /// Returns three addresses for messages about `group`: the source, the destination of IGMPv3 or
    /// MLDv2 reports, and the destination of leave messages, which is the group of all routers. If
    /// the interface has no suitable address, the source is the unspecified address (RFC 3376
    /// §4.2.13, RFC 3810 §5.2.13).
    fn report_addresses(&self, group: IpAddr) -> (IpAddr, IpAddr, IpAddr) {
        let source = |is_possible: fn(IpAddr) -> bool| {
            let mut addresses = self.interface.addresses.in_use().iter().map(|own| own.address());
            addresses.find(|&address| is_possible(address))
        };
        match group {
            IpAddr::V4(_) => (
                source(|own| own.is_ipv4()).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
                igmp::REPORT_RECEIVERS.into(),
                igmp::ALL_ROUTERS.into(),
            ),
            IpAddr::V6(_) => (
                source(is_link_local).unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
                mld::REPORT_RECEIVERS.into(),
                ipv6_multicast::ALL_ROUTERS.into(),
            ),
        }
    }

    /// Queues a packet with a TTL or hop limit of 1, a Router Alert option, and the message that
    /// `emit` writes. Returns false if the queue is full.
    fn send_group_message(
        &mut self,
        source: IpAddr,
        destination: IpAddr,
        emit: impl FnOnce(&IpHeader, &mut [u8]) -> usize,
    ) -> bool {
        let Some(mut header) = IpHeader::new(source, destination, Protocol::ICMPV6) else {
            return false;
        };
        header.set_hops(mld::HOP_LIMIT);
        let option = match header {
            IpHeader::V4(_) => &igmp::ROUTER_ALERT[..],
            IpHeader::V6(_) => &mld::ROUTER_ALERT,
        };
        let head = header.length() + option.len();
        let room = self.interface.capabilities.mtu.saturating_sub(head);
        let mut message = vec![0; room.max(OLD_MESSAGE_LENGTH)];
        let length = emit(&header, &mut message);
        let kept = self.interface.replies.push_with(Reply::Packet, head + length, |packet| {
            match header {
                IpHeader::V4(header) => {
                    let type_of_service = INTERNETWORK_CONTROL;
                    let protocol = Protocol::IGMP;
                    Ipv4Header { type_of_service, protocol, ..header }
                        .emit_with_options(option, length, packet);
                }
                IpHeader::V6(header) => {
                    Ipv6Header { next_header: Protocol::HOP_BY_HOP, ..header }
                        .emit(option.len() + length, packet);
                    packet[Ipv6Header::LENGTH..head].copy_from_slice(option);
                }
            }
            packet[head..].copy_from_slice(&message[..length]);
        });
        self.interface.ready.push(Sender::Replies);
        self.counted.ip.out_requests += 1;
        self.counted.groups.out_errors += u64::from(!kept);
        kept
    }
}

/// The type of service of IGMP messages: Internetwork Control (RFC 3376 §4).
const INTERNETWORK_CONTROL: TypeOfService = TypeOfService::from_byte(0xc0);

/// A group record to send in a report.
#[derive(Clone, Copy, Debug)]
struct Record<'a> {
    kind: GroupRecordKind,
    group: IpAddr,
    sources: &'a [IpAddr],
}

/// Moves group records from `records` into `report`, as far as they fit. If a list of sources fits
/// only in part, the rest stays in `records`.
fn pack(report: &mut GroupReport<'_>, records: &mut VecDeque<Record<'_>>) {
    let mut is_first = true;
    while let Some(record) = records.front_mut() {
        let written = report.record(record.kind, record.group, record.sources);
        let is_whole = written == Some(record.sources.len());
        let is_exclude =
            matches!(record.kind, GroupRecordKind::IsExclude | GroupRecordKind::ToExclude);
        match written {
            // The report contains no record yet, and this record still does not fit. It would fit
            // into no other report either, so it is dropped.
            None if is_first => {}
            None => return,
            // Only part of the sources fits into the report. A list of excluded sources cannot be
            // split over several reports, so the remaining sources are omitted (RFC 3376 §4.2.16).
            Some(_) if is_whole || is_exclude => {}
            Some(count) => {
                record.sources = &record.sources[count..];
                return;
            }
        }
        records.pop_front();
        is_first = false;
    }
}
