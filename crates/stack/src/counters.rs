//! The counters of a host, with the names of /proc/net/snmp, /proc/net/netstat and /proc/net/dev.

use core::fmt;
use core::ops::AddAssign;

/// Declares a group of counters: a struct with one number for each counter. Each counter has the
/// name that Linux uses for it, or a name of its own if Linux has no such counter.
macro_rules! counters {

    ($(#[$group_docs:meta])* $group:ident $title:literal {
        $($(#[$field_docs:meta])* $field:ident $name:literal,)*
    }) => {
        $(#[$group_docs])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $group {
            $($(#[$field_docs])* pub $field: u64,)*
        }

        impl $group {
            /// Title of the group. Both lines of the formatted group begin with it.
            pub const TITLE: &'static str = $title;

            /// Returns the name and value of each counter, in the order in which they are
            /// formatted.
            pub fn names(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($name, self.$field),)*].into_iter()
            }
        }

        impl AddAssign for $group {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }

        /// Formats the group as two lines, like Linux's /proc/net files: the names of the counters,
        /// and below them the values.
        impl fmt::Display for $group {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!($title, ":"))?;
                self.names().try_for_each(|(name, _)| write!(f, " {name}"))?;
                f.write_str(concat!("\n", $title, ":"))?;
                self.names().try_for_each(|(_, number)| write!(f, " {number}"))
            }
        }
    };
}

counters! {
    /// The line `Ip:` of /proc/net/snmp (RFC 4293).
    IpCounters "Ip" {
        /// Packets received from the link or from this host itself, valid or not.
        in_receives "InReceives",
        /// Received packets with an invalid header: wrong version, length, checksum or address.
        in_header_errors "InHdrErrors",
        /// Received packets to addresses that do not belong to this host. Broadcast frames with a
        /// packet to a unicast address are counted as well.
        in_address_errors "InAddrErrors",
        /// Received packets of a transport protocol that this host does not support.
        in_unknown_protocols "InUnknownProtos",
        /// Received packets that were dropped because a queue of this host was full, and received
        /// fragments whose datagram was already discarded.
        in_discards "InDiscards",
        /// Received packets that were passed to TCP, UDP or ICMP.
        in_delivers "InDelivers",
        /// Packets that TCP, UDP and ICMP submitted for sending.
        out_requests "OutRequests",
        /// Packets that were not sent, for another reason than a missing route: a queue of this
        /// host was full, the next hop did not answer address resolution, or the link cannot carry
        /// the packet.
        out_discards "OutDiscards",
        /// Packets that were not sent because no route leads to their destination.
        out_no_routes "OutNoRoutes",
        /// Incomplete datagrams whose fragments did not arrive in time.
        reassembly_timeouts "ReasmTimeout",
        /// Received fragments.
        reassembly_required "ReasmReqds",
        /// Reassembled datagrams.
        reassembly_ok "ReasmOKs",
        /// Datagrams that were not reassembled, because of a timeout, a limit, an overlap, a
        /// fragment that is too small, or an invalid result.
        reassembly_failures "ReasmFails",
        /// Datagrams whose fragments overlap or contradict each other, also counted in
        /// `ReasmFails`.
        reassembly_overlaps "ReasmOverlaps",
        /// Datagrams that were dropped at a limit of [`ReassemblyLimits`](crate::ReassemblyLimits),
        /// also counted in `ReasmFails`.
        reassembly_evictions "ReasmLimits",
        /// Packets that were sent in fragments.
        fragmented "FragOKs",
        /// Packets that needed fragmentation but could not be sent in fragments.
        fragmentation_failures "FragFails",
        /// Sent fragments.
        fragments_created "FragCreates",
    }
}

counters! {
    /// The line `Icmp:` of /proc/net/snmp.
    IcmpCounters "Icmp" {
        /// Received ICMP messages, including invalid ones.
        in_messages "InMsgs",
        /// Received ICMP messages that were invalid.
        in_errors "InErrors",
        /// Received ICMP messages with a wrong checksum, also counted in `InErrors`.
        in_checksum_errors "InCsumErrors",
        /// Received destination unreachable messages.
        in_unreachables "InDestUnreachs",
        /// Received time exceeded messages.
        in_time_exceeded "InTimeExcds",
        /// Received parameter problem messages.
        in_parameter_problems "InParmProbs",
        /// Received source quench messages, which are ignored (RFC 6633).
        in_source_quenches "InSrcQuenchs",
        /// Received redirects. The host ignores IPv4 redirects, and accepts IPv6 redirects only if
        /// it is configured to trust routers.
        in_redirects "InRedirects",
        /// Received echo requests.
        in_echos "InEchos",
        /// Received echo replies.
        in_echo_replies "InEchoReps",
        /// Sent ICMP messages.
        out_messages "OutMsgs",
        /// ICMP messages that were not sent because the reply queue was full.
        out_errors "OutErrors",
        /// ICMP errors that were not sent because of the rate limit.
        out_rate_limited "OutRateLimitGlobal",
        /// Sent destination unreachable messages.
        out_unreachables "OutDestUnreachs",
        /// Sent time exceeded messages.
        out_time_exceeded "OutTimeExcds",
        /// Sent parameter problem messages.
        out_parameter_problems "OutParmProbs",
        /// Sent echo requests.
        out_echos "OutEchos",
        /// Sent echo replies.
        out_echo_replies "OutEchoReps",
    }
}

counters! {
    /// The line `Tcp:` of /proc/net/snmp (RFC 4022).
    TcpCounters "Tcp" {
        /// Connections opened by an application of this host.
        active_opens "ActiveOpens",
        /// Connections opened by a peer.
        passive_opens "PassiveOpens",
        /// Connections that ended during their handshake.
        attempt_failures "AttemptFails",
        /// Connections that went from ESTABLISHED or CLOSE-WAIT directly to CLOSED, usually by a
        /// reset.
        established_resets "EstabResets",
        /// Connections that are now in ESTABLISHED or CLOSE-WAIT.
        currently_established "CurrEstab",
        /// Received segments, including invalid ones.
        in_segments "InSegs",
        /// Sent segments, including retransmissions.
        out_segments "OutSegs",
        /// Retransmitted segments.
        retransmitted_segments "RetransSegs",
        /// Received segments that were invalid.
        in_errors "InErrs",
        /// Sent segments with RST.
        out_resets "OutRsts",
        /// Received segments with a wrong checksum, also counted in `InErrs`.
        in_checksum_errors "InCsumErrors",
    }
}

counters! {
    /// The line `Udp:` of /proc/net/snmp (RFC 4113).
    UdpCounters "Udp" {
        /// Datagrams delivered to a socket.
        in_datagrams "InDatagrams",
        /// Received datagrams for a port without a socket.
        no_ports "NoPorts",
        /// Received datagrams that were invalid, or were dropped because the receive queue of the
        /// socket was full.
        in_errors "InErrors",
        /// Sent datagrams.
        out_datagrams "OutDatagrams",
        /// Datagrams dropped because the receive queue of the socket was full, also counted in
        /// `InErrors`.
        receive_buffer_errors "RcvbufErrors",
        /// Datagrams that a socket refused because its send queue was full.
        send_buffer_errors "SndbufErrors",
        /// Received datagrams with a wrong checksum, also counted in `InErrors`.
        in_checksum_errors "InCsumErrors",
    }
}

counters! {
    /// The supported part of the line `TcpExt:` of /proc/net/netstat.
    TcpExtraCounters "TcpExt" {
        /// SYNs and final acknowledgements of handshakes that were ignored because an accept queue
        /// was full.
        listen_overflows "ListenOverflows",
        /// SYNs and half-open connections that a listening socket dropped.
        listen_drops "ListenDrops",
        /// Half-open connections that a newer SYN replaced because the SYN queue was full, also
        /// counted in `ListenDrops`.
        half_open_recycled "TCPReqQFullRecycled",
        /// SYNs answered with a SYN cookie.
        syn_cookies_sent "SyncookiesSent",
        /// Connections opened by a SYN cookie.
        syn_cookies_received "SyncookiesRecv",
        /// Acknowledgements without a valid SYN cookie, or with a SYN cookie that was used before.
        syn_cookies_failed "SyncookiesFailed",
        /// Outgoing connections whose SYN data was acknowledged (RFC 7413).
        fast_opens_active "TCPFastOpenActive",
        /// Outgoing Fast Open attempts that failed: the server sent no cookie, did not acknowledge
        /// the data of the SYN, or did not answer.
        fast_opens_refused "TCPFastOpenActiveFail",
        /// Outgoing connections that did not use Fast Open because recent Fast Open attempts
        /// failed.
        fast_opens_withheld "TCPFastOpenBlackhole",
        /// Servers and server ports that were evicted from the Fast Open cache, because the cache
        /// was full.
        fast_opens_forgotten "FastOpenForgotten",
        /// Incoming connections that were opened with a valid Fast Open cookie.
        fast_opens_passive "TCPFastOpenPassive",
        /// Received SYNs with an invalid or expired Fast Open cookie.
        fast_opens_with_wrong_cookie "TCPFastOpenPassiveFail",
        /// Received SYNs whose Fast Open cookie is valid and was made with the previous key.
        fast_opens_by_previous_key "TCPFastOpenPassiveAltKey",
        /// Received SYNs handled without Fast Open, because too many Fast Open connections had not
        /// yet completed their handshake.
        fast_open_overflows "TCPFastOpenListenOverflow",
        /// Received SYNs that requested a Fast Open cookie.
        fast_open_cookies_asked "TCPFastOpenCookieReqd",
        /// Connections whose TIME-WAIT ended early because too many connections were in TIME-WAIT.
        time_wait_overflows "TCPTimeWaitOverflow",
        /// SYNs that opened a new incarnation of a connection in TIME-WAIT.
        time_wait_recycled "TWRecycled",
        /// Number of times that the buffer memory of all connections ran short.
        memory_pressures "TCPMemoryPressures",
        /// Number of times that a connection dropped out-of-order data to free buffer memory.
        pruned "OfoPruned",
        /// Received segments whose data was dropped for lack of buffer memory.
        memory_refusals "TCPRcvQDrop",
        /// Number of times that an application had to wait for buffer memory before it could write.
        memory_waits "TCPMemoryWaits",
        /// Received resets for connections in TIME-WAIT. The host ignores these resets (RFC 1337).
        time_wait_resets "TimeWaitResets",
        /// Sent challenge ACKs (RFC 5961), including answers to empty segments outside the receive
        /// window.
        challenges "TCPChallengeACK",
        /// Challenge ACKs that were not sent because of the rate limit.
        challenges_limited "ChallengesLimited",
        /// Resets that were not sent because of the rate limit. Each would have answered a segment
        /// that belongs to no connection.
        resets_limited "ResetsLimited",
        /// Received segments that belong to no connection, and were handled only after the segments
        /// of existing connections.
        unconnected_deferred "UnconnectedDeferred",
        /// Received segments that belong to no connection, and were dropped because their queue was
        /// full.
        unconnected_drops "UnconnectedDrops",
        /// Connections that were reset when the application closed them, because there were too
        /// many orphaned connections.
        orphans_reset "TCPAbortOnOrphans",
        /// Received ICMP errors about segments that belong to no connection.
        unmatched_icmps "UnmatchedIcmps",
        /// Received segments in packets with the ECN codepoint CE (congestion experienced).
        marked_segments "MarkedSegs",
        /// Received segments that belong to the connection to which the previous received segment
        /// belonged.
        flow_repeats "FlowRepeats",
        /// Lookups of connections for received segments, including those that the one-entry cache
        /// answers without the hash table of connections.
        flow_lookups "FlowLookups",
    }
}

counters! {
    /// Counters of address resolution, with the names of `lnstat arp_cache` where these exist.
    NeighborCounters "Arp" {
        /// Received ARP packets for IPv4 on Ethernet.
        in_packets "InPackets",
        /// Received ARP packets that were invalid.
        in_errors "InErrors",
        /// Sent ARP requests and Neighbour Solicitations.
        out_requests "OutRequests",
        /// Sent ARP replies.
        out_replies "OutReplies",
        /// Received packets in which another host claims an address of this host (RFC 5227).
        conflicts "Conflicts",
        /// Neighbours whose MAC address changed.
        changes "Changes",
        /// Neighbours that were removed because they did not answer.
        failures "ResFailed",
        /// Number of times that the progress of a connection confirmed that a neighbour is
        /// reachable.
        confirmations "Confirmations",
        /// Packets to unresolved neighbours that were dropped, because the queue of the neighbour
        /// was full, or the neighbour cache had no entry for the neighbour.
        queue_drops "UnresolvedDiscards",
        /// Neighbours that were not resolved or were evicted because the neighbour cache was full.
        table_overflows "TableFulls",
    }
}

counters! {
    /// Counters of duplicate address detection, and of Neighbour Discovery except address
    /// resolution.
    NeighborDiscoveryCounters "Nd" {
        /// Sent probes for duplicate addresses (RFC 4862, RFC 5227), and sent announcements of
        /// addresses (RFC 5227).
        out_probes "OutProbes",
        /// Addresses that this host gave up because another host uses them.
        duplicates "Duplicates",
        /// Sent router solicitations.
        out_solicitations "OutRouterSolicits",
        /// Received router advertisements that were valid.
        in_advertisements "InRouterAdvertisements",
        /// Valid router advertisements that were ignored because the host is not configured to
        /// accept router advertisements.
        ignored_advertisements "IgnoredAdvertisements",
        /// Advertised prefixes that were invalid (RFC 4862 §5.5.3).
        refused_prefixes "RefusedPrefixes",
        /// Advertised routers and prefixes that were not stored because a limit was reached.
        overflows "Overflows",
        /// Number of times that a router was installed as the default router.
        router_changes "RouterChanges",
        /// Received redirects that were refused: they did not come from the first hop, they concern
        /// an address of this host, or the host is not configured to accept redirects.
        refused_redirects "RefusedRedirects",
    }
}

counters! {
    /// Counters of multicast group membership: IGMP and MLD.
    GroupCounters "Igmp" {
        /// Received IGMP and MLD messages, including invalid ones.
        in_messages "InMsgs",
        /// Received IGMP and MLD messages that were invalid, or that did not come from a router on
        /// the link.
        in_errors "InErrors",
        /// Received IGMP and MLD queries that were valid.
        in_queries "InQueries",
        /// Sent membership reports.
        out_reports "OutReports",
        /// Sent IGMPv2 leave and MLDv1 done messages.
        out_leaves "OutLeaves",
        /// Membership reports and leave messages that were not sent because the reply queue was
        /// full.
        out_errors "OutErrors",
    }
}

counters! {
    /// Counters of the DHCP client.
    DhcpCounters "Dhcp" {
        /// Received DHCP messages: all datagrams to the UDP port of the DHCP client.
        in_messages "InMsgs",
        /// Received DHCP messages that were malformed, or that offered an unusable address.
        in_errors "InErrors",
        /// Received DHCP messages that the client ignored: they belong to another exchange, or
        /// contain no lease.
        in_ignored "InIgnored",
        /// Received DHCPNAK messages, by which a server refuses a request.
        in_naks "InNaks",
        /// Sent DHCP messages.
        out_messages "OutMsgs",
        /// Sent DHCPDECLINE messages, which report that another host uses the address. They are
        /// also counted in `OutMsgs`.
        out_declines "OutDeclines",
    }
}

counters! {
    /// Counters of received frames, with the names of /proc/net/dev.
    ReceiveCounters "Receive" {
        /// Bytes of received frames, including their link headers.
        bytes "bytes",
        /// Received frames.
        packets "packets",
        /// Received frames that were too short for their link header. No other errors of received
        /// frames are counted here.
        errors "errs",
        /// Frames that were not for this host, or had a VLAN tag, an invalid source address or an
        /// unknown EtherType.
        drops "drop",
        /// Frames lost because a receive FIFO of the hardware overran. Always zero, because links
        /// do not report these frames.
        fifo "fifo",
        /// Frames that were too short for their link header, also counted in `errs`.
        frame "frame",
        /// Received compressed frames. Always zero, because links decompress frames before the host
        /// receives them.
        compressed "compressed",
        /// Frames to a multicast MAC address.
        multicast "multicast",
    }
}

counters! {
    /// Counters of sent frames, with the names of /proc/net/dev.
    TransmitCounters "Transmit" {
        /// Bytes of sent frames, including their link headers.
        bytes "bytes",
        /// Sent frames.
        packets "packets",
        /// Frames that the link failed to send. Always zero, because links do not report these
        /// frames.
        errors "errs",
        /// ARP packets that were not sent because the reply queue was full.
        drops "drop",
        /// Frames lost because a transmit FIFO of the hardware underran. Always zero, because links
        /// do not report these frames.
        fifo "fifo",
        /// Collisions on the medium. Always zero, because links do not report collisions.
        collisions "colls",
        /// Frames that were not sent completely, because the carrier failed. Always zero, because
        /// links do not report these frames.
        carrier "carrier",
        /// Sent compressed frames. Always zero, because links compress frames after the host has
        /// sent them.
        compressed "compressed",
    }
}

/// All counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Counters of IP.
    pub ip: IpCounters,
    /// Counters of ICMP.
    pub icmp: IcmpCounters,
    /// Standard counters of TCP (RFC 4022).
    pub tcp: TcpCounters,
    /// Counters of UDP.
    pub udp: UdpCounters,
    /// Further counters of TCP, which no RFC defines.
    pub tcp_extra: TcpExtraCounters,
    /// Counters of address resolution.
    pub neighbor: NeighborCounters,
    /// Counters of Neighbour Discovery and of duplicate address detection.
    pub neighbor_discovery: NeighborDiscoveryCounters,
    /// Counters of multicast group membership.
    pub groups: GroupCounters,
    /// Counters of the DHCP client.
    pub dhcp: DhcpCounters,
    /// Counters of received frames.
    pub receive: ReceiveCounters,
    /// Counters of sent frames.
    pub transmit: TransmitCounters,
}

/// Adds the counters of another shard. A packet that the link passes to all shards, such as an ARP
/// packet, is counted once by each shard.
impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.ip += other.ip;
        self.icmp += other.icmp;
        self.tcp += other.tcp;
        self.udp += other.udp;
        self.tcp_extra += other.tcp_extra;
        self.neighbor += other.neighbor;
        self.neighbor_discovery += other.neighbor_discovery;
        self.groups += other.groups;
        self.dhcp += other.dhcp;
        self.receive += other.receive;
        self.transmit += other.transmit;
    }
}

/// Formats each group as two lines, like Linux's /proc/net files.
impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n{}\n{}", self.ip, self.icmp, self.tcp, self.udp)?;
        writeln!(f, "{}\n{}", self.tcp_extra, self.neighbor)?;
        writeln!(f, "{}", self.neighbor_discovery)?;
        writeln!(f, "{}", self.groups)?;
        writeln!(f, "{}", self.dhcp)?;
        write!(f, "{}\n{}", self.receive, self.transmit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_group_is_formatted_as_names_above_values() {
        let udp = UdpCounters { in_datagrams: 7, no_ports: 1, ..UdpCounters::default() };
        assert_eq!(
            udp.to_string(),
            "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors \
             InCsumErrors\nUdp: 7 1 0 0 0 0 0"
        );
        assert_eq!(udp.names().next(), Some(("InDatagrams", 7)));
    }

    #[test]
    fn counters_of_shards_are_added() {
        let one = UdpCounters { in_datagrams: 7, no_ports: 1, ..UdpCounters::default() };
        let mut sum = Counters { udp: one, ..Counters::default() };
        sum += Counters {
            udp: one,
            tcp: TcpCounters { in_errors: 3, ..TcpCounters::default() },
            ..sum
        };
        assert_eq!((sum.udp.in_datagrams, sum.udp.no_ports, sum.tcp.in_errors), (14, 2, 3));
    }

    #[test]
    fn each_group_is_formatted_with_as_many_values_as_names() {
        let text = Counters::default().to_string();
        let lines: alloc::vec::Vec<_> = text.lines().map(|line| line.split(' ').count()).collect();
        assert_eq!(lines.len(), 22);
        assert!(lines.chunks(2).all(|pair| pair[0] == pair[1]));
    }
}
