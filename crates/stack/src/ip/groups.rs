//! The multicast group memberships of a host, and the times at which the host reports them (RFC
//! 3376 §5, RFC 3810 §6). One state machine serves IGMP and MLD; other modules encode the messages.

use crate::error::Error;
use crate::ip::group_filter::Filter;
use crate::keys::Keys;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::IpAddr;
use linerate_units::{Duration, Instant};
use linerate_wire::{GroupQuery, GroupRecordKind, GroupVersion, igmp, ipv6_multicast};
use siphasher::sip::SipHasher24;

/// Number of times that the report of a membership change is transmitted, until a router sets
/// another number (Robustness Variable, RFC 3376 §8.1).
const ROBUSTNESS: u8 = 2;
/// Interval of general queries, until a router sets another interval (RFC 3376 §8.2).
const QUERY_INTERVAL: Duration = Duration::from_secs(125);
/// Maximum interval between two transmissions of the report of a change (RFC 3376 §8.11, RFC 3810
/// §9.11).
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum interval between two transmissions of the report of a change for IGMPv2 and MLDv1 (RFC
/// 2236 §8.10, RFC 2710 §7.10).
const OLD_REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The limits of multicast group memberships.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupLimits {
    /// Maximum number of groups that sockets have joined.
    pub(crate) groups: usize,
    /// Maximum number of sources in the filter of a group.
    pub(crate) sources: usize,
}

/// A change of a membership by an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MembershipChange {
    /// Join the group, and receive from all sources.
    Join,
    /// Receive from this source, in addition to the sources of earlier changes. Joins the group if
    /// necessary.
    JoinSource(IpAddr),
    /// Leave the group.
    Leave,
    /// Stop receiving from this source. The socket must have joined by
    /// [`MembershipChange::JoinSource`], so that it receives only from listed sources.
    LeaveSource(IpAddr),
    /// Exclude this source. The socket must have joined by [`MembershipChange::Join`], so that it
    /// receives from all sources that are not excluded.
    Block(IpAddr),
    /// Stop excluding this source.
    Unblock(IpAddr),
}

/// A message, or a record of a message, that the host must send now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GroupReportDue {
    /// A record of an IGMPv3 or MLDv2 report.
    Record { kind: GroupRecordKind, group: IpAddr, sources: Vec<IpAddr> },
    /// An IGMPv1, IGMPv2 or MLDv1 report.
    OldReport { version: GroupVersion, group: IpAddr },
    /// An IGMPv2 leave message or MLDv1 done message.
    Leave { group: IpAddr },
}

impl GroupReportDue {
    /// Returns the group that the message is about.
    pub(crate) const fn group(&self) -> IpAddr {
        match self {
            Self::Record { group, .. } | Self::OldReport { group, .. } | Self::Leave { group } => {
                *group
            }
        }
    }
}

/// The membership of a socket in a group.
#[derive(Debug)]
struct Member {
    socket: u32,
    filter: Filter,
}

/// A multicast group that has members, or whose most recent change of membership must still be
/// reported to routers.
#[derive(Debug)]
struct Group {
    /// The memberships of sockets. Each socket has at most one membership in the group.
    members: Vec<Member>,
    /// Whether the host itself is a member, because this is the solicited-node group of one of its
    /// addresses.
    is_of_host: bool,
    /// The union of the filters of all members.
    state: Filter,
    /// Number of times that the most recent change of the filter mode must still be reported.
    mode_reports: u8,
    /// For each source that was added or removed, the number of times that this change must still
    /// be reported.
    source_reports: BTreeMap<IpAddr, u8>,
    /// The time of the next report of a change; [`Instant::NEVER`] if no report is pending.
    report_at: Instant,
    /// The time of the response to a group-specific query; [`Instant::NEVER`] if no response is
    /// pending.
    response_at: Instant,
    /// The sources about which pending group-specific queries asked. Empty if one of these queries
    /// asked about all sources, or if the sources exceed [`GroupLimits::sources`].
    queried: BTreeSet<IpAddr>,
}

impl Group {
    const fn new() -> Self {
        Self {
            members: Vec::new(),
            is_of_host: false,
            state: Filter { is_exclude: false, sources: BTreeSet::new() },
            mode_reports: 0,
            source_reports: BTreeMap::new(),
            report_at: Instant::NEVER,
            response_at: Instant::NEVER,
            queried: BTreeSet::new(),
        }
    }

    /// Returns the union of the filters of all members. If `changed` contains the index of a socket
    /// and a filter, this filter is used in place of the present filter of the socket.
    fn union(&self, changed: Option<(u32, &Filter)>) -> Filter {
        let any = Filter::any_source();
        let of_host = self.is_of_host.then_some(&any);
        let is_other = |member: &&Member| changed.is_none_or(|(socket, _)| member.socket != socket);
        let others = self.members.iter().filter(is_other).map(|member| &member.filter);
        Filter::union(of_host.into_iter().chain(others).chain(changed.map(|(_, filter)| filter)))
    }

    fn cancel_reports(&mut self) {
        (self.mode_reports, self.report_at) = (0, Instant::NEVER);
        self.source_reports.clear();
        self.cancel_response();
    }

    fn cancel_response(&mut self) {
        self.response_at = Instant::NEVER;
        self.queried.clear();
    }

    /// Can the group be removed, because it has no member and no change to report?
    fn is_done(&self) -> bool {
        self.state.admits_none() && self.report_at == Instant::NEVER
    }
}

/// The state of the routers that send queries for one IP version (RFC 3376 §7.2.1, RFC 3810
/// §8.2.1).
#[derive(Debug)]
struct Querier {
    version: GroupVersion,
    /// The times until which routers with IGMPv1 (`v1_until`), and routers with IGMPv2 or MLDv1
    /// (`v2_until`), are assumed to be present.
    v1_until: Instant,
    v2_until: Instant,
    robustness: u8,
    interval: Duration,
    /// The time of the response to a general query; [`Instant::NEVER`] if no response is pending.
    response_at: Instant,
}

impl Querier {
    const fn new() -> Self {
        Self {
            version: GroupVersion::V3,
            v1_until: Instant::ZERO,
            v2_until: Instant::ZERO,
            robustness: ROBUSTNESS,
            interval: QUERY_INTERVAL,
            response_at: Instant::NEVER,
        }
    }
}

/// The multicast group memberships of an interface.
#[derive(Debug)]
pub(crate) struct Groups {
    groups: BTreeMap<IpAddr, Group>,
    /// The state of the querying routers for IPv4 and for IPv6.
    queriers: [Querier; 2],
    limits: GroupLimits,
    /// A keyed hash that generates random delays from the counter `drawn`.
    hasher: SipHasher24,
    drawn: u64,
}

impl Groups {
    /// Creates the memberships of an interface that has joined no group.
    pub(crate) fn new(limits: GroupLimits, keys: &Keys) -> Self {
        Self {
            groups: BTreeMap::new(),
            queriers: [Querier::new(), Querier::new()],
            limits,
            hasher: keys.visible("groups"),
            drawn: 0,
        }
    }

    /// Does the host receive packets to this group? Every host is always a member of the all-hosts
    /// group.
    pub(crate) fn contains(&self, group: IpAddr) -> bool {
        is_all_hosts(group)
            || self.groups.get(&group).is_some_and(|group| !group.state.admits_none())
    }

    /// Returns the sockets that receive a packet of `source` to `group`.
    pub(crate) fn members(&self, group: IpAddr, source: IpAddr) -> impl Iterator<Item = u32> + '_ {
        let members = self.groups.get(&group).map_or(&[][..], |group| &group.members);
        members
            .iter()
            .filter(move |member| member.filter.admits(source))
            .map(|member| member.socket)
    }

    /// Makes the host itself a member of the groups `wanted`, and of no other groups.
    pub(crate) fn set_host_groups(&mut self, now: Instant, wanted: &BTreeSet<IpAddr>) {
        self.update_version(now, true);
        let mut changed: BTreeSet<IpAddr> = wanted.clone();
        changed.extend(self.groups.iter().filter(|(_, group)| group.is_of_host).map(|(at, _)| *at));
        for address in changed {
            let is_of_host = wanted.contains(&address);
            self.groups.entry(address).or_insert_with(Group::new).is_of_host = is_of_host;
            self.update(now, address);
        }
    }

    /// Changes the membership of a socket in the group `address`.
    pub(crate) fn change(
        &mut self,
        now: Instant,
        address: IpAddr,
        socket: u32,
        change: MembershipChange,
    ) -> Result<(), Error> {
        self.update_version(now, address.is_ipv6());
        let group = self.groups.get(&address);
        let current = group.and_then(|group| {
            let is_it = |member: &&Member| member.socket == socket;
            group.members.iter().find(is_it).map(|member| &member.filter)
        });
        let filter = changed_filter(current, address, change)?;
        let Some(filter) = filter.filter(|filter| !filter.admits_none()) else {
            self.remove(now, address, socket);
            return Ok(());
        };
        let union =
            group.map_or_else(|| filter.clone(), |group| group.union(Some((socket, &filter))));
        let limit = self.limits.sources;
        if filter.sources.len() > limit || union.sources.len() > limit {
            return Err(Error::TooManySources { limit });
        }
        let is_joined = |group: &&Group| !group.members.is_empty();
        if !group.is_some_and(|group| is_joined(&group))
            && self.groups.values().filter(is_joined).count() >= self.limits.groups
        {
            return Err(Error::TooManyGroups { limit: self.limits.groups });
        }
        let group = self.groups.entry(address).or_insert_with(Group::new);
        match group.members.iter_mut().find(|member| member.socket == socket) {
            Some(member) => member.filter = filter,
            None => group.members.push(Member { socket, filter }),
        }
        self.update(now, address);
        Ok(())
    }

    /// Ends all memberships of a socket.
    pub(crate) fn remove_socket(&mut self, now: Instant, socket: u32) {
        let is_member = |group: &Group| group.members.iter().any(|member| member.socket == socket);
        let joined: Vec<IpAddr> =
            self.groups.iter().filter(|(_, group)| is_member(group)).map(|(at, _)| *at).collect();
        for address in joined {
            self.remove(now, address, socket);
        }
    }

    fn remove(&mut self, now: Instant, address: IpAddr, socket: u32) {
        self.update_version(now, address.is_ipv6());
        if let Some(group) = self.groups.get_mut(&address) {
            group.members.retain(|member| member.socket != socket);
            self.update(now, address);
        }
    }

    /// Recomputes the filter of a group after a change of its members, and schedules reports of the
    /// difference. A caller that adds a group must call `update_version` first. A later call could
    /// remove the new group: on a change of version, `update_version` removes all groups with an
    /// empty filter, and a new group still has one.
    //= rfc3376#5.1
    fn update(&mut self, now: Instant, address: IpAddr) {
        let Querier { version, robustness, .. } = self.queriers[usize::from(address.is_ipv6())];
        let Some(group) = self.groups.get_mut(&address) else { return };
        let after = group.union(None);
        let before = core::mem::replace(&mut group.state, after);
        let after = &group.state;
        if is_reported(address) && before != *after {
            if version < GroupVersion::V3 {
                // IGMPv1, IGMPv2 and MLDv1 report only whether the host is a member of a group, and
                // no sources.
                if before.admits_none() != after.admits_none() {
                    (group.mode_reports, group.report_at) = (robustness, now);
                }
            } else {
                if before.is_exclude == after.is_exclude {
                    for &source in before.sources.symmetric_difference(&after.sources) {
                        group.source_reports.insert(source, robustness);
                    }
                } else {
                    group.mode_reports = robustness;
                    group.source_reports.clear();
                }
                group.report_at = now;
            }
        }
        if group.is_done() {
            self.groups.remove(&address);
        }
    }

    /// Handles a query. The caller has checked that a router on the link has sent this query.
    //= rfc3376#5.2
    pub(crate) fn handle_query(&mut self, now: Instant, is_ipv6: bool, query: &GroupQuery<'_>) {
        self.note_querier(now, is_ipv6, query);
        self.update_version(now, is_ipv6);
        let most = Duration::from_millis(query.max_response.into());
        let Querier { version, response_at, .. } = self.queriers[usize::from(is_ipv6)];
        let at = now + self.draw(most);
        if response_at <= at {
            return;
        }
        match query.group {
            None if version == GroupVersion::V3 => {
                if self.groups.iter().any(|(&address, group)| responds(address, group, is_ipv6)) {
                    self.queriers[usize::from(is_ipv6)].response_at = at;
                }
            }
            None => {
                let addresses: Vec<IpAddr> = self.groups.keys().copied().collect();
                for address in addresses {
                    let at = now + self.draw(most);
                    self.schedule_response(at, is_ipv6, address, &[]);
                }
            }
            Some(group) => {
                // A query that lists more sources than the limit permits is not stored, but treated
                // like a query without sources. The response then lists all sources of the filter.
                let is_limited = query.sources.len() <= self.limits.sources;
                let sources: Vec<IpAddr> = query.sources.iter().filter(|_| is_limited).collect();
                self.schedule_response(at, is_ipv6, group, &sources);
            }
        }
    }

    fn schedule_response(
        &mut self,
        at: Instant,
        is_ipv6: bool,
        address: IpAddr,
        sources: &[IpAddr],
    ) {
        let limit = self.limits.sources;
        let Some(group) = self.groups.get_mut(&address) else { return };
        if !responds(address, group, is_ipv6) {
            return;
        }
        let is_pending = group.response_at != Instant::NEVER;
        if sources.is_empty() || (is_pending && group.queried.is_empty()) {
            group.queried.clear();
        } else {
            group.queried.extend(sources);
            if group.queried.len() > limit {
                group.queried.clear();
            }
        }
        group.response_at = group.response_at.min(at);
    }

    /// Learns the protocol version and the parameters of a router from its query.
    fn note_querier(&mut self, now: Instant, is_ipv6: bool, query: &GroupQuery<'_>) {
        let querier = &mut self.queriers[usize::from(is_ipv6)];
        let present = querier.interval * u64::from(querier.robustness)
            + Duration::from_millis(query.max_response.into());
        match query.version {
            GroupVersion::V1 => querier.v1_until = now + present,
            // A version 2 query shows that an older router is present. For IGMPv2, only a general
            // query counts; for MLDv1, any query does.
            GroupVersion::V2 if is_ipv6 || query.group.is_none() => {
                querier.v2_until = now + present;
            }
            GroupVersion::V2 => {}
            GroupVersion::V3 => {
                querier.robustness =
                    if query.robustness == 0 { ROBUSTNESS } else { query.robustness };
                querier.interval = match query.interval {
                    0 => QUERY_INTERVAL,
                    seconds => Duration::from_secs(seconds.into()),
                };
            }
        }
    }

    /// Selects the latest protocol version that all present routers support. If this is another
    /// version than before, cancels all pending responses and reports (RFC 3376 §7.2.1).
    fn update_version(&mut self, now: Instant, is_ipv6: bool) {
        let querier = &mut self.queriers[usize::from(is_ipv6)];
        let version = if now < querier.v1_until {
            GroupVersion::V1
        } else if now < querier.v2_until {
            GroupVersion::V2
        } else {
            GroupVersion::V3
        };
        if core::mem::replace(&mut querier.version, version) == version {
            return;
        }
        querier.response_at = Instant::NEVER;
        for (address, group) in &mut self.groups {
            if address.is_ipv6() == is_ipv6 {
                group.cancel_reports();
            }
        }
        self.groups.retain(|_, group| !group.is_done());
    }

    /// Returns the messages that are due at `now`, and schedules their retransmissions.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Vec<GroupReportDue> {
        let mut due = Vec::new();
        for is_ipv6 in [false, true] {
            self.update_version(now, is_ipv6);
            let querier = &mut self.queriers[usize::from(is_ipv6)];
            let is_general = querier.response_at <= now;
            if is_general {
                querier.response_at = Instant::NEVER;
            }
            let version = querier.version;
            let addresses: Vec<IpAddr> = self
                .groups
                .keys()
                .copied()
                .filter(|address| address.is_ipv6() == is_ipv6)
                .collect();
            for address in addresses {
                self.report_group(now, address, version, is_general, &mut due);
            }
        }
        self.groups.retain(|_, group| !group.is_done());
        due
    }

    fn report_group(
        &mut self,
        now: Instant,
        address: IpAddr,
        version: GroupVersion,
        is_general: bool,
        due: &mut Vec<GroupReportDue>,
    ) {
        let Some(group) = self.groups.get_mut(&address) else { return };
        let is_response = is_general || group.response_at <= now;
        if is_response && responds(address, group, address.is_ipv6()) {
            due.extend(response(address, group, version, is_general));
            group.cancel_response();
        }
        if group.report_at > now {
            return;
        }
        change_reports(address, group, version, due);
        group.report_at = Instant::NEVER;
        if group.mode_reports > 0 || !group.source_reports.is_empty() {
            let most =
                if version < GroupVersion::V3 { OLD_REPORT_INTERVAL } else { REPORT_INTERVAL };
            let at = now + self.draw(most);
            if let Some(group) = self.groups.get_mut(&address) {
                group.report_at = at;
            }
        }
    }

    /// Returns the time of the next call of [`Groups::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Instant {
        let of_groups = self.groups.values().map(|group| group.report_at.min(group.response_at));
        let of_queriers = self.queriers.iter().map(|querier| querier.response_at);
        of_groups.chain(of_queriers).min().unwrap_or(Instant::NEVER)
    }

    /// Draws a random delay between a nanosecond and `most`, both included.
    fn draw(&mut self, most: Duration) -> Duration {
        self.drawn += 1;
        let number = self.hasher.hash(&self.drawn.to_be_bytes());
        Duration::from_nanos(number.checked_rem(most.as_nanos()).map_or(0, |delay| delay + 1))
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self, mut is_socket: impl FnMut(u32) -> bool) {
        let joined = self.groups.values().filter(|group| !group.members.is_empty()).count();
        assert!(joined <= self.limits.groups, "groups are limited");
        for (address, group) in &self.groups {
            assert_eq!(group.state, group.union(None), "the state is that of the members");
            assert!(!group.is_done(), "groups without members and reports are removed");
            assert!(group.state.sources.len() <= self.limits.sources, "sources are limited");
            assert!(group.queried.len() <= self.limits.sources, "queried sources are limited");
            assert!(group.members.iter().all(|member| is_socket(member.socket)), "{address}");
        }
    }
}

/// Returns the filter of a socket's membership after a change; `None` if the socket leaves the
/// group.
fn changed_filter(
    current: Option<&Filter>,
    group: IpAddr,
    change: MembershipChange,
) -> Result<Option<Filter>, Error> {
    let mut filter = match (current, change) {
        (None, MembershipChange::Join) => return Ok(Some(Filter::any_source())),
        (None, MembershipChange::JoinSource(source)) => {
            return Ok(Some(Filter::one_source(source)));
        }
        (None, _) => return Err(Error::NotJoined(group)),
        (Some(_), MembershipChange::Leave) => return Ok(None),
        (Some(filter), _) => filter.clone(),
    };
    let is_changed = match (change, filter.is_exclude) {
        (MembershipChange::JoinSource(source), false) | (MembershipChange::Block(source), true) => {
            filter.sources.insert(source)
        }
        (MembershipChange::LeaveSource(source), false)
        | (MembershipChange::Unblock(source), true) => {
            if !filter.sources.remove(&source) {
                return Err(Error::NotJoined(group));
            }
            true
        }
        _ => false,
    };
    if is_changed { Ok(Some(filter)) } else { Err(Error::AlreadyJoined(group)) }
}

/// Is this the all-hosts group, which every host joins and never leaves?
fn is_all_hosts(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group == igmp::ALL_HOSTS,
        IpAddr::V6(group) => group == ipv6_multicast::ALL_NODES,
    }
}

/// Does the host report memberships in the group? It does not report the all-hosts group, nor IPv6
/// groups of interface-local scope (RFC 3376 §5, RFC 3810 §6).
fn is_reported(group: IpAddr) -> bool {
    let is_wide = match group {
        IpAddr::V4(_) => true,
        IpAddr::V6(group) => group.octets()[1] & 0xf >= 2,
    };
    is_wide && !is_all_hosts(group)
}

/// Must the host report its membership in the group when a query of this IP version asks for it?
fn responds(address: IpAddr, group: &Group, is_ipv6: bool) -> bool {
    address.is_ipv6() == is_ipv6 && is_reported(address) && !group.state.admits_none()
}

/// Returns the report about a group that responds to a query; `None` if the host receives from none
/// of the queried sources.
fn response(
    address: IpAddr,
    group: &Group,
    version: GroupVersion,
    is_general: bool,
) -> Option<GroupReportDue> {
    if version < GroupVersion::V3 {
        return Some(GroupReportDue::OldReport { version, group: address });
    }
    let Filter { is_exclude, sources } = &group.state;
    if is_general || group.queried.is_empty() {
        let kind =
            if *is_exclude { GroupRecordKind::IsExclude } else { GroupRecordKind::IsInclude };
        let sources = sources.iter().copied().collect();
        return Some(GroupReportDue::Record { kind, group: address, sources });
    }
    let admitted = group.queried.iter().copied().filter(|&source| group.state.admits(source));
    let sources: Vec<IpAddr> = admitted.collect();
    let kind = GroupRecordKind::IsInclude;
    (!sources.is_empty()).then_some(GroupReportDue::Record { kind, group: address, sources })
}

/// Adds the reports of a group's pending changes to `due`, and decrements the numbers of remaining
/// transmissions.
fn change_reports(
    address: IpAddr,
    group: &mut Group,
    version: GroupVersion,
    due: &mut Vec<GroupReportDue>,
) {
    let Filter { is_exclude, sources } = &group.state;
    if version < GroupVersion::V3 {
        group.mode_reports = group.mode_reports.saturating_sub(1);
        if !group.state.admits_none() {
            due.push(GroupReportDue::OldReport { version, group: address });
        } else {
            group.mode_reports = 0;
            // IGMPv1 has no message for leaving a group.
            if version > GroupVersion::V1 {
                due.push(GroupReportDue::Leave { group: address });
            }
        }
        return;
    }
    if group.mode_reports > 0 {
        group.mode_reports -= 1;
        let kind =
            if *is_exclude { GroupRecordKind::ToExclude } else { GroupRecordKind::ToInclude };
        let sources = sources.iter().copied().collect();
        due.push(GroupReportDue::Record { kind, group: address, sources });
    } else {
        let (allowed, blocked): (Vec<IpAddr>, Vec<IpAddr>) =
            group.source_reports.keys().partition(|&&source| group.state.admits(source));
        for (kind, sources) in
            [(GroupRecordKind::Allow, allowed), (GroupRecordKind::Block, blocked)]
        {
            if !sources.is_empty() {
                due.push(GroupReportDue::Record { kind, group: address, sources });
            }
        }
    }
    group.source_reports.retain(|_, left| {
        *left -= 1;
        *left > 0
    });
}

#[cfg(test)]
mod tests;
