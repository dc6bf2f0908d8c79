//! ICMP messages: replies to echo requests, received errors and sent errors (RFC 792, RFC 1122
//! §3.2.2).

use crate::demux::flow::Hosts;
use crate::event::ReportedError;
use crate::icmp::Report;
use crate::ip::Arrived;
use crate::stack::Stack;
use crate::stack::icmpv6::icmpv6_error;
use core::net::IpAddr;
use linerate_units::Instant;
use linerate_wire::{
    Echo, IcmpError, IcmpMessage, Icmpv6Error, Icmpv6Message, IpHeader, Ipv6Header, Ipv6Quote,
    Malformed, Protocol, Quote, Unreachable,
};

/// An ICMP or ICMPv6 error message, with its quote of the packet that caused the error.
enum ErrorMessage<'a> {
    V4(IcmpMessage<'a>),
    V6(Icmpv6Message<'a>),
}

impl ErrorMessage<'_> {
    const fn protocol(&self) -> Protocol {
        match self {
            Self::V4(_) => Protocol::ICMP,
            Self::V6(_) => Protocol::ICMPV6,
        }
    }
}

impl Stack {
    pub(crate) fn handle_icmp(&mut self, arrived: &Arrived<'_>) {
        let counted = &mut self.counted.icmp;
        counted.in_messages += 1;
        let message = match IcmpMessage::parse(arrived.payload) {
            Ok(message) => message,
            Err(malformed) => {
                counted.in_errors += 1;
                counted.in_checksum_errors +=
                    u64::from(matches!(malformed, Malformed::Checksum { .. }));
                return;
            }
        };
        match message {
            IcmpMessage::EchoRequest(echo) => {
                counted.in_echos += 1;
                self.answer_echo(arrived, echo);
            }
            IcmpMessage::EchoReply(echo) => {
                counted.in_echo_replies += 1;
                self.handle_echo_reply(arrived, &echo);
            }
            IcmpMessage::Error { error, quote } => {
                self.count_error(error);
                let report = Report::of_ipv4(error, quote);
                self.handle_report(arrived.arrival.at, arrived.source(), &report);
            }
            IcmpMessage::Other { .. } => {}
        }
    }

    /// Sends an echo reply with the data of the request, from the destination address of the
    /// request (RFC 1122 §3.2.2.6). A request to a broadcast or multicast address is answered only
    /// if the host is configured to do so, and then from an address of the interface.
    fn answer_echo(&mut self, arrived: &Arrived<'_>, echo: Echo<'_>) {
        if !self.may_answer_echo(arrived) {
            return;
        }
        let (mut source, destination) = (arrived.destination(), arrived.source());
        if arrived.is_broadcast {
            match self.interface.source_towards(destination, destination) {
                Some(own) if self.answer_broadcast_echo => source = own,
                _ => return,
            }
        }
        let Some(header) = IpHeader::new(source, destination, Protocol::ICMP) else { return };
        self.note_answered_echo(destination, &echo);
        let kept = self.send_icmp(&header, &IcmpMessage::EchoReply(echo));
        self.counted.icmp.out_echo_replies += u64::from(kept);
    }

    /// Sends an ICMP error about a packet that cannot be delivered, unless the packet was sent to a
    /// broadcast or multicast address (RFC 1122 §3.2.2).
    pub(crate) fn answer_with_error(&mut self, arrived: &Arrived<'_>, reason: Unreachable) {
        if arrived.is_broadcast {
            return;
        }
        let error = match arrived.hosts {
            Hosts::V4(_) => ReportedError::V4(IcmpError::Unreachable(reason)),
            Hosts::V6(_) => ReportedError::V6(icmpv6_error(arrived, reason)),
        };
        self.report_problem(&arrived.hosts, arrived.bytes, error);
    }

    /// Sends an ICMP error about a packet or a first fragment, unless the rate limit of ICMP errors
    /// is exceeded. No error is sent about an ICMP error, or about a packet whose source is not a
    /// unicast address (RFC 1122 §3.2.2, RFC 4443 §2.4 e).
    pub(crate) fn report_problem(&mut self, hosts: &Hosts, packet: &[u8], error: ReportedError) {
        let (own, source) = (hosts.local(), hosts.remote());
        if source.is_unspecified() || source.is_multicast() {
            return;
        }
        let own = if own.is_multicast() {
            self.interface.source_towards(source, source)
        } else {
            Some(own)
        };
        let message = match error {
            ReportedError::V4(error) => Quote::of(packet)
                .ok()
                .filter(|quote| !quote.is_error())
                .map(|quote| ErrorMessage::V4(IcmpMessage::Error { error, quote })),
            ReportedError::V6(error) => Ipv6Quote::of(packet)
                .ok()
                .filter(|quote| !quote.is_error())
                .map(|quote| ErrorMessage::V6(Icmpv6Message::Error { error, quote })),
        };
        let (Some(own), Some(message)) = (own, message) else { return };
        if !self.icmp_errors.take(self.now) {
            self.counted.icmp.out_rate_limited += 1;
            return;
        }
        let kept = match (&message, IpHeader::new(own, source, message.protocol())) {
            (ErrorMessage::V4(message), Some(header)) => self.send_icmp(&header, message),
            (ErrorMessage::V6(message), Some(IpHeader::V6(header))) => {
                self.send_icmpv6(header, message)
            }
            _ => return,
        };
        self.count_sent_error(error, kept);
    }

    const fn count_sent_error(&mut self, error: ReportedError, kept: bool) {
        let counted = &mut self.counted.icmp;
        let counter = match error {
            ReportedError::V4(IcmpError::TimeExceeded(_))
            | ReportedError::V6(Icmpv6Error::ReassemblyTimeExceeded) => {
                &mut counted.out_time_exceeded
            }
            ReportedError::V4(IcmpError::ParameterProblem { .. })
            | ReportedError::V6(Icmpv6Error::ParameterProblem { .. }) => {
                &mut counted.out_parameter_problems
            }
            _ => &mut counted.out_unreachables,
        };
        *counter += kept as u64;
    }

    /// Queues an ICMP message. Returns false if the queue is full.
    pub(crate) fn send_icmp(&mut self, header: &IpHeader, message: &IcmpMessage<'_>) -> bool {
        let emit = |bytes: &mut [u8]| {
            message.emit(bytes);
        };
        let kept = self.send_packet(header, message.length(), emit);
        self.counted.icmp.out_messages += u64::from(kept);
        self.counted.icmp.out_errors += u64::from(!kept);
        kept
    }

    /// Passes a received ICMP error, `report`, to the socket that sent the quoted packet.
    /// `reporter` is the host that sent the error.
    pub(crate) fn handle_report(&mut self, now: Instant, reporter: IpAddr, report: &Report<'_>) {
        let is_ignored = matches!(
            report.error,
            ReportedError::V4(IcmpError::SourceQuench | IcmpError::Redirect { .. })
        );
        // A path MTU below the minimum MTU of IPv6 is invalid, so an ICMPv6 error that reports such
        // a value is discarded (RFC 8201 §4).
        let is_too_narrow = matches!(
            report.error,
            ReportedError::V6(Icmpv6Error::PacketTooBig { mtu })
                if (mtu as usize) < Ipv6Header::MIN_MTU
        );
        let sender = report.source();
        let is_ours = self.is_ours(sender) || self.forwards_to(sender);
        // An ICMP error that quotes a fragment contains the Identification of the fragment. Only
        // nodes on the path know recent values. An error with any other value is discarded as
        // forged.
        let is_forged = report.identification().is_some_and(|identification| {
            !self.fragment_ids.is_recent(sender, report.destination(), identification)
        });
        if is_ignored || is_too_narrow || !is_ours || is_forged {
            return;
        }
        match report.protocol() {
            Some(Protocol::TCP) => self.handle_segment_report(now, report),
            Some(Protocol::UDP) => self.handle_datagram_report(now, report),
            Some(Protocol::ICMP | Protocol::ICMPV6) => {
                self.note_echo_mtu(now, report);
                self.handle_echo_report(reporter, report);
            }
            _ => {}
        }
    }

    const fn count_error(&mut self, error: IcmpError) {
        let counted = &mut self.counted.icmp;
        match error {
            IcmpError::Unreachable(_) | IcmpError::FragmentationNeeded { .. } => {
                counted.in_unreachables += 1;
            }
            IcmpError::TimeExceeded(_) => counted.in_time_exceeded += 1,
            IcmpError::ParameterProblem { .. }
            | IcmpError::OptionMissing
            | IcmpError::BadLength => {
                counted.in_parameter_problems += 1;
            }
            IcmpError::Redirect { .. } => counted.in_redirects += 1,
            IcmpError::SourceQuench => counted.in_source_quenches += 1,
        }
    }
}
