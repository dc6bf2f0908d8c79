//! ICMP messages: echo replies, and errors received and sent (RFC 792, RFC 1122 §3.2.2).

use crate::demux::flow::Hosts;
use crate::event::ReportedError;
use crate::icmp::Report;
use crate::ip::Arrived;
use crate::stack::Stack;
use core::net::IpAddr;
use linerate_units::Instant;
use linerate_wire::{
    Echo, IcmpError, IcmpMessage, IpHeader, Malformed, Protocol, Quote, Unreachable,
};

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

    /// Replies with the data of the request, from the address that was requested (RFC 1122
    /// §3.2.2.6).
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
        let kept = self.send_icmp(&header, &IcmpMessage::EchoReply(echo));
        self.counted.icmp.out_echo_replies += u64::from(kept);
    }

    /// Sends an ICMP error about a packet, within the rate limit. Packets to a broadcast address
    /// must not cause errors (RFC 1122 §3.2.2); fragments and ICMP errors do not reach this
    /// function.
    pub(crate) fn answer_with_error(&mut self, arrived: &Arrived<'_>, reason: Unreachable) {
        if arrived.is_broadcast {
            return;
        }
        if !self.icmp_errors.take(arrived.arrival.at) {
            self.counted.icmp.out_rate_limited += 1;
            return;
        }
        if matches!(arrived.hosts, Hosts::V6(_)) {
            return self.answer_with_icmpv6_error(arrived, reason);
        }
        let error = IcmpError::Unreachable(reason);
        let Ok(quote) = Quote::of(arrived.bytes) else { return };
        let Some(header) = arrived.answer_header(Protocol::ICMP) else { return };
        let kept = self.send_icmp(&header, &IcmpMessage::Error { error, quote });
        self.counted.icmp.out_unreachables += u64::from(kept);
    }

    /// Queues a message. Returns false if the queue is full.
    pub(crate) fn send_icmp(&mut self, header: &IpHeader, message: &IcmpMessage<'_>) -> bool {
        let emit = |bytes: &mut [u8]| {
            message.emit(bytes);
        };
        let kept = self.send_packet(header, message.length(), emit);
        self.counted.icmp.out_messages += u64::from(kept);
        self.counted.icmp.out_errors += u64::from(!kept);
        kept
    }

    /// Passes a received ICMP error to the socket that sent the quoted packet.
    pub(crate) fn handle_report(&mut self, now: Instant, reporter: IpAddr, report: &Report<'_>) {
        let is_ignored = matches!(
            report.error,
            ReportedError::V4(IcmpError::SourceQuench | IcmpError::Redirect { .. })
        );
        let sender = report.source();
        let is_ours = self.interface.is_ours(sender) || self.forwards_to(sender);
        if is_ignored || !is_ours {
            return;
        }
        match report.protocol() {
            Some(Protocol::TCP) => self.handle_segment_report(now, report),
            Some(Protocol::UDP) => self.handle_datagram_report(now, report),
            Some(Protocol::ICMP | Protocol::ICMPV6) => self.handle_echo_report(reporter, report),
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
