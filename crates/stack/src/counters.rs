//! What a host has counted, in the words of /proc/net/snmp, /proc/net/netstat and /proc/net/dev, so
//! that whoever knows those knows these.

use core::fmt;
use core::ops::AddAssign;

/// Declares a group of counters: a struct of numbers, and the word that the kernel has for each.
macro_rules! counters {
    ($(#[$about:meta])* $group:ident $title:literal { $($(#[$sense:meta])* $field:ident $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $group {
            $($(#[$sense])* pub $field: u64,)*
        }

        impl $group {
            /// The name in front of the group's line.
            pub const TITLE: &'static str = $title;

            /// Each word with its number, in the order of the line.
            pub fn words(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($word, self.$field),)*].into_iter()
            }
        }

        impl AddAssign for $group {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }

        /// Two lines, words and numbers, as in the kernel's files.
        impl fmt::Display for $group {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!($title, ":"))?;
                self.words().try_for_each(|(word, _)| write!(f, " {word}"))?;
                f.write_str(concat!("\n", $title, ":"))?;
                self.words().try_for_each(|(_, number)| write!(f, " {number}"))
            }
        }
    };
}

counters! {
    /// The line `Ip:` of /proc/net/snmp (RFC 4293).
    IpCounters "Ip" {
        /// Packets from the link or from this host itself, whatever became of them.
        in_receives "InReceives",
        /// Packets whose header broke a rule: version, lengths, checksum, an impossible source.
        in_header_errors "InHdrErrors",
        /// Packets for somebody else. This host forwards nothing.
        in_address_errors "InAddrErrors",
        /// Packets of a protocol that nobody here speaks.
        in_unknown_protocols "InUnknownProtos",
        /// Packets that a limit of this host dropped.
        in_discards "InDiscards",
        /// Packets handed to TCP, UDP or ICMP.
        in_delivers "InDelivers",
        /// Packets that TCP, UDP and ICMP wanted to send.
        out_requests "OutRequests",
        /// Packets of ours that a limit of this host dropped.
        out_discards "OutDiscards",
        /// Packets of ours that no route leads on.
        out_no_routes "OutNoRoutes",
        /// Fragments that arrived. This host reassembles none.
        reassembly_required "ReasmReqds",
        /// Fragments that were dropped because they cannot be reassembled.
        reassembly_failures "ReasmFails",
    }
}

counters! {
    /// The line `Icmp:` of /proc/net/snmp.
    IcmpCounters "Icmp" {
        /// Messages that arrived, with those that were wrong.
        in_messages "InMsgs",
        /// Messages that broke a rule.
        in_errors "InErrors",
        /// Among these, messages with a wrong checksum.
        in_checksum_errors "InCsumErrors",
        /// Destination unreachable.
        in_unreachables "InDestUnreachs",
        /// Time exceeded.
        in_time_exceeded "InTimeExcds",
        /// Parameter problem.
        in_parameter_problems "InParmProbs",
        /// Source quench; ignored (RFC 6633).
        in_source_quenches "InSrcQuenchs",
        /// Redirect; ignored.
        in_redirects "InRedirects",
        /// Echo requests.
        in_echos "InEchos",
        /// Echo replies.
        in_echo_replies "InEchoReps",
        /// Messages that were sent.
        out_messages "OutMsgs",
        /// Messages that were not sent for want of room.
        out_errors "OutErrors",
        /// Errors that were not sent because there had been too many.
        out_rate_limited "OutRateLimitGlobal",
        /// Destination unreachable.
        out_unreachables "OutDestUnreachs",
        /// Echo requests.
        out_echos "OutEchos",
        /// Echo replies.
        out_echo_replies "OutEchoReps",
    }
}

counters! {
    /// The line `Tcp:` of /proc/net/snmp (RFC 4022).
    TcpCounters "Tcp" {
        /// Connections that an application began to open.
        active_opens "ActiveOpens",
        /// Connections that a peer began to open.
        passive_opens "PassiveOpens",
        /// Handshakes that came to nothing.
        attempt_failures "AttemptFails",
        /// Connections that were reset, by either side.
        established_resets "EstabResets",
        /// Connections that are open now: ESTABLISHED or CLOSE-WAIT.
        currently_established "CurrEstab",
        /// Segments that arrived, with those that were wrong.
        in_segments "InSegs",
        /// Segments that were sent, with those sent again.
        out_segments "OutSegs",
        /// Segments that were sent again.
        retransmitted_segments "RetransSegs",
        /// Segments that broke a rule.
        in_errors "InErrs",
        /// Segments that carried a reset.
        out_resets "OutRsts",
        /// Among `InErrs`, segments with a wrong checksum.
        in_checksum_errors "InCsumErrors",
    }
}

counters! {
    /// The line `Udp:` of /proc/net/snmp (RFC 4113).
    UdpCounters "Udp" {
        /// Datagrams that a socket received.
        in_datagrams "InDatagrams",
        /// Datagrams for a port that no socket has.
        no_ports "NoPorts",
        /// Datagrams that were wrong or that a full socket dropped.
        in_errors "InErrors",
        /// Datagrams that were sent.
        out_datagrams "OutDatagrams",
        /// Among `InErrors`, datagrams that a full socket dropped.
        receive_buffer_errors "RcvbufErrors",
        /// Datagrams that an application could not send for want of room.
        send_buffer_errors "SndbufErrors",
        /// Among `InErrors`, datagrams with a wrong checksum.
        in_checksum_errors "InCsumErrors",
    }
}

counters! {
    /// Some of the line `TcpExt:` of /proc/net/netstat.
    TcpExtraCounters "TcpExt" {
        /// Times that an accept queue was full.
        listen_overflows "ListenOverflows",
        /// SYNs and half-open connections that a listener dropped.
        listen_drops "ListenDrops",
        /// Among these, the half-open connections that a newer SYN took the place of.
        half_open_recycled "TCPReqQFullRecycled",
        /// SYNs that were answered by a cookie.
        syn_cookies_sent "SyncookiesSent",
        /// Connections that a cookie has opened.
        syn_cookies_received "SyncookiesRecv",
        /// Acknowledgements that should have brought a cookie and did not, or one that was used before.
        syn_cookies_failed "SyncookiesFailed",
        /// Connections of ours whose data was taken from the SYN (RFC 7413).
        fast_opens_active "TCPFastOpenActive",
        /// Tries of ours that came to nothing: no cookie, data not taken, or no answer.
        fast_opens_refused "TCPFastOpenActiveFail",
        /// Connections of ours that did not try, because that had come to nothing of late.
        fast_opens_withheld "TCPFastOpenBlackhole",
        /// Servers that were forgotten to remember others.
        fast_opens_forgotten "FastOpenForgotten",
        /// Connections that a peer has opened with a good cookie.
        fast_opens_passive "TCPFastOpenPassive",
        /// SYNs with a cookie that was not, or no longer, good.
        fast_opens_with_wrong_cookie "TCPFastOpenPassiveFail",
        /// Among those with a good one, SYNs whose cookie was made with the key before.
        fast_opens_by_previous_key "TCPFastOpenPassiveAltKey",
        /// SYNs that were treated as any other because too many connections waited that were opened fast.
        fast_open_overflows "TCPFastOpenListenOverflow",
        /// SYNs that asked for a cookie.
        fast_open_cookies_asked "TCPFastOpenCookieReqd",
        /// Connections whose TIME-WAIT was cut short because there were too many.
        time_wait_overflows "TCPTimeWaitOverflow",
        /// SYNs that opened a new incarnation of a connection in TIME-WAIT.
        time_wait_recycled "TWRecycled",
        /// Times that the memory for buffers ran short.
        memory_pressures "TCPMemoryPressures",
        /// Times that a connection lost what lay beyond holes, to give its memory to others.
        pruned "OfoPruned",
        /// Segments whose data was refused for want of memory.
        memory_refusals "TCPRcvQDrop",
        /// Times that an application had to wait for memory to write into.
        memory_waits "TCPMemoryWaits",
        /// Resets of connections in TIME-WAIT, which were ignored (RFC 1337).
        time_wait_resets "TimeWaitResets",
        /// Challenge acknowledgements (RFC 5961), and answers to empty segments from outside the window.
        challenges "TCPChallengeACK",
        /// Of these, the ones that were not sent because there had been too many.
        challenges_limited "ChallengesLimited",
        /// Resets for no connection that were not sent because there had been too many.
        resets_limited "ResetsLimited",
        /// Connections reset because no application held them and there were too many of these.
        orphans_reset "TCPAbortOnOrphans",
        /// ICMP errors about segments of connections that do not exist.
        unmatched_icmps "UnmatchedIcmps",
        /// Segments of connections whose packet bore a congestion mark.
        marked_segments "MarkedSegs",
        /// Segments whose connection was that of the segment before.
        flow_repeats "FlowRepeats",
        /// Segments whose connection was asked for.
        flow_lookups "FlowLookups",
    }
}

counters! {
    /// Address resolution; the words of `lnstat arp_cache` where it has one.
    NeighborCounters "Arp" {
        /// ARP packets that arrived and were about IPv4 on Ethernet.
        in_packets "InPackets",
        /// ARP packets that broke a rule.
        in_errors "InErrors",
        /// Requests that were sent.
        out_requests "OutRequests",
        /// Replies that were sent.
        out_replies "OutReplies",
        /// Packets from another station that claims an address of ours (RFC 5227).
        conflicts "Conflicts",
        /// Neighbours whose link address changed.
        changes "Changes",
        /// Neighbours that did not answer.
        failures "ResFailed",
        /// Packets dropped because too many waited for the same neighbour.
        queue_drops "UnresolvedDiscards",
        /// Neighbours that could not be asked, or were forgotten, because there were too many.
        table_overflows "TableFulls",
    }
}

counters! {
    /// Frames that arrived, in the words of /proc/net/dev.
    ReceiveCounters "Receive" {
        /// Bytes of frames, headers counted.
        bytes "bytes",
        /// Frames.
        packets "packets",
        /// Frames that broke a rule of the medium.
        errors "errs",
        /// Frames that nobody here wanted, or that a limit dropped.
        drops "drop",
        /// Frames lost to an overrun of the hardware.
        fifo "fifo",
        /// Among the errors, frames of a wrong length.
        frame "frame",
        /// Compressed frames.
        compressed "compressed",
        /// Frames for a group of stations.
        multicast "multicast",
    }
}

counters! {
    /// Frames that were sent, in the words of /proc/net/dev.
    TransmitCounters "Transmit" {
        /// Bytes of frames, headers counted.
        bytes "bytes",
        /// Frames.
        packets "packets",
        /// Frames that the link could not send.
        errors "errs",
        /// Frames that a limit of this host dropped.
        drops "drop",
        /// Frames lost to an underrun of the hardware.
        fifo "fifo",
        /// Collisions.
        collisions "colls",
        /// Frames lost with the carrier.
        carrier "carrier",
        /// Compressed frames.
        compressed "compressed",
    }
}

/// Everything that a host has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Frames that arrived.
    pub receive: ReceiveCounters,
    /// Frames that were sent.
    pub transmit: TransmitCounters,
}

/// What several shards of one host have counted together. What is given to each of them, such as ARP, each
/// has counted.
impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.ip += other.ip;
        self.icmp += other.icmp;
        self.tcp += other.tcp;
        self.udp += other.udp;
        self.tcp_extra += other.tcp_extra;
        self.neighbor += other.neighbor;
        self.receive += other.receive;
        self.transmit += other.transmit;
    }
}

/// The groups as the kernel's files have them, two lines each.
impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n{}\n{}", self.ip, self.icmp, self.tcp, self.udp)?;
        writeln!(f, "{}\n{}", self.tcp_extra, self.neighbor)?;
        write!(f, "{}\n{}", self.receive, self.transmit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_group_prints_its_words_above_its_numbers() {
        let udp = UdpCounters { in_datagrams: 7, no_ports: 1, ..UdpCounters::default() };
        assert_eq!(
            udp.to_string(),
            "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors\n\
             Udp: 7 1 0 0 0 0 0"
        );
        assert_eq!(udp.words().next(), Some(("InDatagrams", 7)));
    }

    #[test]
    fn shards_count_together() {
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
    fn everything_prints_in_pairs_of_lines_with_as_many_numbers_as_words() {
        let text = Counters::default().to_string();
        let lines: alloc::vec::Vec<_> = text.lines().map(|line| line.split(' ').count()).collect();
        assert_eq!(lines.len(), 16);
        assert!(lines.chunks(2).all(|pair| pair[0] == pair[1]));
    }
}
