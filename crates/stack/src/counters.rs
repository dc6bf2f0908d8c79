//! The counters of a host, with the names of /proc/net/snmp, /proc/net/netstat and /proc/net/dev.

use core::fmt;
use core::ops::AddAssign;

/// Declares a group of counters: a struct of numbers, with the kernel's name for each.
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
            /// The title of the group's lines.
            pub const TITLE: &'static str = $title;

            /// Returns the name and value of each counter, in the order of the line.
            pub fn names(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($name, self.$field),)*].into_iter()
            }
        }

        impl AddAssign for $group {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }

        /// Formats two lines, names and values, as in the kernel's files.
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
        /// Packets with an invalid header: version, lengths, checksum, source address.
        in_header_errors "InHdrErrors",
        /// Packets for other hosts. This host does not forward.
        in_address_errors "InAddrErrors",
        /// Packets of a transport protocol that this host does not support.
        in_unknown_protocols "InUnknownProtos",
        /// Received packets that were dropped at a limit of this host.
        in_discards "InDiscards",
        /// Packets passed to TCP, UDP or ICMP.
        in_delivers "InDelivers",
        /// Packets that TCP, UDP and ICMP submitted for sending.
        out_requests "OutRequests",
        /// Packets to send that were dropped at a limit of this host.
        out_discards "OutDiscards",
        /// Packets to send without a route.
        out_no_routes "OutNoRoutes",
        /// Incomplete datagrams whose fragments did not arrive in time.
        reassembly_timeouts "ReasmTimeout",
        /// Received fragments.
        reassembly_required "ReasmReqds",
        /// Reassembled datagrams.
        reassembly_ok "ReasmOKs",
        /// Datagrams that were not reassembled: timeouts, limits, overlaps, and fragments that are
        /// too small.
        reassembly_failures "ReasmFails",
        /// Among these, datagrams with fragments that overlap or contradict each other.
        reassembly_overlaps "ReasmOverlaps",
        /// Among the failures, datagrams that were dropped at a limit of this host.
        reassembly_evictions "ReasmLimits",
        /// Packets that were sent in fragments.
        fragmented "FragOKs",
        /// Packets that could not be sent in fragments.
        fragmentation_failures "FragFails",
        /// Sent fragments.
        fragments_created "FragCreates",
    }
}

counters! {
    /// The line `Icmp:` of /proc/net/snmp.
    IcmpCounters "Icmp" {
        /// Received messages, including invalid ones.
        in_messages "InMsgs",
        /// Received messages that were invalid.
        in_errors "InErrors",
        /// Received messages with a wrong checksum, which are also counted in `InErrors`.
        in_checksum_errors "InCsumErrors",
        /// Destination unreachable.
        in_unreachables "InDestUnreachs",
        /// Time exceeded.
        in_time_exceeded "InTimeExcds",
        /// Parameter problem.
        in_parameter_problems "InParmProbs",
        /// Source quench, which is ignored (RFC 6633).
        in_source_quenches "InSrcQuenchs",
        /// Redirect, which is ignored.
        in_redirects "InRedirects",
        /// Echo requests.
        in_echos "InEchos",
        /// Echo replies.
        in_echo_replies "InEchoReps",
        /// Sent messages.
        out_messages "OutMsgs",
        /// Messages that were dropped because the reply queue was full.
        out_errors "OutErrors",
        /// Errors that the rate limit suppressed.
        out_rate_limited "OutRateLimitGlobal",
        /// Sent destination unreachable.
        out_unreachables "OutDestUnreachs",
        /// Sent time exceeded.
        out_time_exceeded "OutTimeExcds",
        /// Sent parameter problem.
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
        /// Failed handshakes.
        attempt_failures "AttemptFails",
        /// Connections that were reset by either side.
        established_resets "EstabResets",
        /// Connections in ESTABLISHED or CLOSE-WAIT.
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
        /// Among `InErrs`, segments with a wrong checksum.
        in_checksum_errors "InCsumErrors",
    }
}

counters! {
    /// The line `Udp:` of /proc/net/snmp (RFC 4113).
    UdpCounters "Udp" {
        /// Datagrams delivered to a socket.
        in_datagrams "InDatagrams",
        /// Datagrams for a port without a socket.
        no_ports "NoPorts",
        /// Datagrams that were invalid, or dropped by a full socket.
        in_errors "InErrors",
        /// Sent datagrams.
        out_datagrams "OutDatagrams",
        /// Among `InErrors`, datagrams dropped by a full receive queue.
        receive_buffer_errors "RcvbufErrors",
        /// Datagrams of the application that were refused by a full send queue.
        send_buffer_errors "SndbufErrors",
        /// Among `InErrors`, datagrams with a wrong checksum.
        in_checksum_errors "InCsumErrors",
    }
}

counters! {
    /// The supported part of the line `TcpExt:` of /proc/net/netstat.
    TcpExtraCounters "TcpExt" {
        /// SYNs or connections dropped because an accept queue was full.
        listen_overflows "ListenOverflows",
        /// SYNs and half-open connections that a listener dropped.
        listen_drops "ListenDrops",
        /// Half-open connections that were replaced by a newer SYN, which are also counted in
        /// `ListenDrops`.
        half_open_recycled "TCPReqQFullRecycled",
        /// SYNs answered with a SYN cookie.
        syn_cookies_sent "SyncookiesSent",
        /// Connections opened by a SYN cookie.
        syn_cookies_received "SyncookiesRecv",
        /// Acknowledgements without a valid SYN cookie, or with one that was used before.
        syn_cookies_failed "SyncookiesFailed",
        /// Outgoing connections whose SYN data was acknowledged (RFC 7413).
        fast_opens_active "TCPFastOpenActive",
        /// Outgoing attempts of Fast Open that failed: no cookie, data not acknowledged, or no
        /// answer.
        fast_opens_refused "TCPFastOpenActiveFail",
        /// Outgoing connections without Fast Open, because of recent failures.
        fast_opens_withheld "TCPFastOpenBlackhole",
        /// Servers evicted from the cache of Fast Open cookies.
        fast_opens_forgotten "FastOpenForgotten",
        /// Incoming connections opened with a valid Fast Open cookie.
        fast_opens_passive "TCPFastOpenPassive",
        /// SYNs with an invalid or expired Fast Open cookie.
        fast_opens_with_wrong_cookie "TCPFastOpenPassiveFail",
        /// SYNs whose cookie is valid and was made with the previous key.
        fast_opens_by_previous_key "TCPFastOpenPassiveAltKey",
        /// SYNs handled without Fast Open, because too many such connections were pending.
        fast_open_overflows "TCPFastOpenListenOverflow",
        /// SYNs that requested a Fast Open cookie.
        fast_open_cookies_asked "TCPFastOpenCookieReqd",
        /// Connections whose TIME-WAIT was ended early at the limit.
        time_wait_overflows "TCPTimeWaitOverflow",
        /// SYNs that opened a new incarnation of a connection in TIME-WAIT.
        time_wait_recycled "TWRecycled",
        /// Times that the memory for buffers ran short.
        memory_pressures "TCPMemoryPressures",
        /// Times that out-of-order data of a connection was dropped to free memory.
        pruned "OfoPruned",
        /// Segments whose data was refused for lack of memory.
        memory_refusals "TCPRcvQDrop",
        /// Times that an application had to wait for memory to write.
        memory_waits "TCPMemoryWaits",
        /// Resets for connections in TIME-WAIT, which were ignored (RFC 1337).
        time_wait_resets "TimeWaitResets",
        /// Challenge ACKs (RFC 5961), and answers to empty segments outside the window.
        challenges "TCPChallengeACK",
        /// Challenge ACKs that the rate limit suppressed.
        challenges_limited "ChallengesLimited",
        /// Resets in answer to segments of unknown connections that the rate limit suppressed.
        resets_limited "ResetsLimited",
        /// Segments of no connection that were handled only after the segments of connections.
        unconnected_deferred "UnconnectedDeferred",
        /// Segments of no connection that were dropped because too many waited.
        unconnected_drops "UnconnectedDrops",
        /// Orphaned connections that were reset at the limit.
        orphans_reset "TCPAbortOnOrphans",
        /// ICMP errors about segments of unknown connections.
        unmatched_icmps "UnmatchedIcmps",
        /// Segments in packets with an ECN congestion mark.
        marked_segments "MarkedSegs",
        /// Segments of the same connection as the previous segment.
        flow_repeats "FlowRepeats",
        /// Segments whose connection was looked up.
        flow_lookups "FlowLookups",
    }
}

counters! {
    /// Address resolution, with the names of `lnstat arp_cache` where they exist.
    NeighborCounters "Arp" {
        /// Received ARP packets for IPv4 on Ethernet.
        in_packets "InPackets",
        /// Received ARP packets that were invalid.
        in_errors "InErrors",
        /// Sent requests.
        out_requests "OutRequests",
        /// Sent replies.
        out_replies "OutReplies",
        /// Packets in which another host claims one of our addresses (RFC 5227).
        conflicts "Conflicts",
        /// Neighbours whose MAC address changed.
        changes "Changes",
        /// Neighbours that did not answer.
        failures "ResFailed",
        /// Neighbours that the progress of a connection confirmed.
        confirmations "Confirmations",
        /// Packets dropped because the queue of an unresolved neighbour was full.
        queue_drops "UnresolvedDiscards",
        /// Neighbours that were not requested, or were evicted, at a limit.
        table_overflows "TableFulls",
    }
}

counters! {
    /// Neighbour Discovery beyond resolution, and the detection of duplicate addresses.
    NeighborDiscoveryCounters "Nd" {
        /// Sent probes for duplicate addresses, and announcements of addresses (RFC 5227).
        out_probes "OutProbes",
        /// Addresses given up because another host has them.
        duplicates "Duplicates",
        /// Sent router solicitations.
        out_solicitations "OutRouterSolicits",
        /// Received router advertisements that were valid.
        in_advertisements "InRouterAdvertisements",
        /// Among these, advertisements ignored because the host is not configured to accept them.
        ignored_advertisements "IgnoredAdvertisements",
        /// Advertised prefixes that were invalid (RFC 4862 §5.5.3).
        refused_prefixes "RefusedPrefixes",
        /// Routers, prefixes and addresses that were not kept at a limit.
        overflows "Overflows",
        /// Times that another router became the default one.
        router_changes "RouterChanges",
        /// Redirects that did not come from the first hop, or that the host is not configured to
        /// accept.
        refused_redirects "RefusedRedirects",
    }
}

counters! {
    /// Memberships in multicast groups: IGMP and MLD.
    GroupCounters "Igmp" {
        /// Received messages, including invalid ones.
        in_messages "InMsgs",
        /// Received messages that were invalid, or not from a router of the link.
        in_errors "InErrors",
        /// Valid queries.
        in_queries "InQueries",
        /// Sent reports.
        out_reports "OutReports",
        /// Sent announcements that a group is left, to routers of older versions.
        out_leaves "OutLeaves",
        /// Reports and announcements that were dropped because the reply queue was full.
        out_errors "OutErrors",
    }
}

counters! {
    /// The DHCP client.
    DhcpCounters "Dhcp" {
        /// Messages received at the port of the client.
        in_messages "InMsgs",
        /// Messages that were malformed, or whose address cannot be used.
        in_errors "InErrors",
        /// Messages that the client did not wait for: of another exchange, or without a lease.
        in_ignored "InIgnored",
        /// Refusals of a server.
        in_naks "InNaks",
        /// Sent messages.
        out_messages "OutMsgs",
        /// Among these, messages that another host uses the address.
        out_declines "OutDeclines",
    }
}

counters! {
    /// Received frames, with the names of /proc/net/dev.
    ReceiveCounters "Receive" {
        /// Bytes of frames, including headers.
        bytes "bytes",
        /// Frames.
        packets "packets",
        /// Frames that were invalid on the medium.
        errors "errs",
        /// Frames that were not for this host, or were dropped at a limit.
        drops "drop",
        /// Frames lost to an overrun of the hardware.
        fifo "fifo",
        /// Frames of an invalid length, which are also counted in `errs`.
        frame "frame",
        /// Compressed frames.
        compressed "compressed",
        /// Frames to a multicast MAC address.
        multicast "multicast",
    }
}

counters! {
    /// Sent frames, with the names of /proc/net/dev.
    TransmitCounters "Transmit" {
        /// Bytes of frames, including headers.
        bytes "bytes",
        /// Frames.
        packets "packets",
        /// Frames that the link failed to send.
        errors "errs",
        /// Frames that were dropped at a limit of this host.
        drops "drop",
        /// Frames lost to an underrun of the hardware.
        fifo "fifo",
        /// Collisions.
        collisions "colls",
        /// Frames lost because the carrier was lost.
        carrier "carrier",
        /// Compressed frames.
        compressed "compressed",
    }
}

/// All counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// IP.
    pub ip: IpCounters,
    /// ICMP.
    pub icmp: IcmpCounters,
    /// TCP.
    pub tcp: TcpCounters,
    /// UDP.
    pub udp: UdpCounters,
    /// TCP, beyond the standard.
    pub tcp_extra: TcpExtraCounters,
    /// Address resolution.
    pub neighbor: NeighborCounters,
    /// Neighbour Discovery.
    pub neighbor_discovery: NeighborDiscoveryCounters,
    /// Memberships in multicast groups.
    pub groups: GroupCounters,
    /// The DHCP client.
    pub dhcp: DhcpCounters,
    /// Received frames.
    pub receive: ReceiveCounters,
    /// Sent frames.
    pub transmit: TransmitCounters,
}

/// Adds the counters of another shard. Packets that are passed to all shards, such as ARP, are
/// counted by each.
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

/// Formats the groups as in the kernel's files, two lines each.
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
