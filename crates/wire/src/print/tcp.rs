//! The line of text for a TCP segment.

use super::SequenceBases;
use super::parts::{Carried, write_verdict};
use crate::{EcnCounts, EcnOrder, Segment, SeqNum, TcpFlags, TcpHeader, TcpOptions};
use core::fmt;

/// Writes the flags, sequence number range, acknowledgement, window and options of a segment.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    carried: &Carried<'_>,
    bases: SequenceBases,
) -> fmt::Result {
    let bytes = carried.payload;
    let segment = match Segment::parse(bytes) {
        Ok(segment) => segment,
        Err(error) => {
            carried.write_hosts(f)?;
            return write!(f, "{error}");
        }
    };
    carried.write_ends(f, segment.source_port, segment.destination_port)?;
    let seq = segment.seq - bases.seq;
    write!(f, "Flags [{}], seq {seq}", FlagLetters(segment.flags()))?;
    if !segment.payload.is_empty() {
        let controls = segment.flags() & (TcpFlags::SYN | TcpFlags::FIN);
        let length = segment.sequence_length() - controls.bits().count_ones();
        write!(f, ":{}", seq.wrapping_add(length))?;
    }
    if segment.flags().contains(TcpFlags::ACK) {
        write!(f, ", ack {}", segment.ack - bases.ack)?;
    }
    if counts_marks(&segment) {
        write!(f, ", ace {}", segment.flags().ace())?;
    }
    write!(f, ", win {}", segment.window)?;
    if segment.flags().contains(TcpFlags::URG) {
        write!(f, ", urg {}", segment.urgent)?;
    }
    if !segment.options.is_empty() {
        write!(f, ", options [{}]", OptionWords(&segment.options(), bases.ack))?;
    }
    write!(f, ", length {}", segment.payload.len())?;
    let pseudo = carried.pseudo_header(bytes.len());
    write_verdict(f, TcpHeader::verify_checksum(bytes, pseudo).is_ok())
}

/// Do AE, CWR and ECE of this segment contain the ACE counter of AccECN? The handshake decides
/// that, but is not known here. Two signs are reliable: an AE flag outside a SYN, and an AccECN
/// option (RFC 9768).
fn counts_marks(segment: &Segment<'_>) -> bool {
    let flags = segment.flags();
    !flags.intersects(TcpFlags::SYN | TcpFlags::RST)
        && (flags.contains(TcpFlags::AE) || segment.options().ecn.is_some())
}

/// A formatter that prints the control bits of a segment as letters, and ACK as a dot.
struct FlagLetters(TcpFlags);

impl fmt::Display for FlagLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LETTERS: [(TcpFlags, &str); 9] = [
            (TcpFlags::SYN, "S"),
            (TcpFlags::FIN, "F"),
            (TcpFlags::RST, "R"),
            (TcpFlags::PSH, "P"),
            (TcpFlags::URG, "U"),
            (TcpFlags::ECE, "E"),
            (TcpFlags::CWR, "W"),
            (TcpFlags::AE, "e"),
            (TcpFlags::ACK, "."),
        ];
        if self.0.is_empty() {
            return f.write_str("none");
        }
        LETTERS
            .iter()
            .filter(|(flag, _)| self.0.contains(*flag))
            .try_for_each(|(_, letter)| f.write_str(letter))
    }
}

/// A formatter that prints the known TCP options, separated by commas. The given sequence number is
/// subtracted from the numbers of SACK blocks.
struct OptionWords<'a>(&'a TcpOptions, SeqNum);

impl fmt::Display for OptionWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut put = |word: fmt::Arguments<'_>| {
            f.write_str(core::mem::replace(&mut separator, ","))?;
            f.write_fmt(word)
        };
        if let Some(mss) = self.0.mss {
            put(format_args!("mss {mss}"))?;
        }
        if let Some(shift) = self.0.window_scale {
            put(format_args!("wscale {shift}"))?;
        }
        if self.0.sack_permitted {
            put(format_args!("sackOK"))?;
        }
        if let Some(timestamps) = self.0.timestamps {
            put(format_args!("TS val {} ecr {}", timestamps.value, timestamps.echo))?;
        }
        if let Some(timeout) = self.0.user_timeout {
            put(format_args!("uto {}{}", timeout.count, if timeout.minutes { "m" } else { "s" }))?;
        }
        if let Some(cookie) = self.0.fast_open {
            let kind = if cookie.is_experimental() { "exp-tfo" } else { "tfo" };
            if cookie.is_request() {
                put(format_args!("{kind} cookiereq"))?;
            } else {
                put(format_args!("{kind} cookie {cookie}"))?;
            }
        }
        if let Some(ecn) = self.0.ecn {
            put(format_args!("ecn{}", CountWords(ecn)))?;
        }
        for block in self.0.sack.as_slice() {
            put(format_args!("sack {}:{}", block.left - self.1, block.right - self.1))?;
        }
        Ok(())
    }
}

/// A formatter that prints the byte counters of an AccECN option, in the order of the option.
struct CountWords(EcnCounts);

impl fmt::Display for CountWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (e0b, e1b) = (("e0b", self.0.e0b()), ("e1b", self.0.e1b()));
        let (first, last) = if self.0.order() == EcnOrder::Zero { (e0b, e1b) } else { (e1b, e0b) };
        for (name, count) in [first, ("ceb", self.0.ceb()), last] {
            count.map_or(Ok(()), |count| write!(f, " {name} {count}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::print::PacketLine;
    use crate::{FastOpenCookie, Ipv4Header, Protocol, SackBlock, Sum, Timestamps, UserTimeout};
    use core::net::Ipv4Addr;
    use std::string::{String, ToString};
    use std::vec;
    use std::vec::Vec;

    /// Returns the line for a segment with these flags and options, and `payload_length` bytes of
    /// data.
    fn line(flags: TcpFlags, options: &TcpOptions, payload_length: usize) -> String {
        PacketLine(&segment(flags, options, payload_length)).to_string()
    }

    /// Returns a packet with a TCP segment that has these flags and options, and `payload_length`
    /// bytes of data.
    fn segment(flags: TcpFlags, options: &TcpOptions, payload_length: usize) -> Vec<u8> {
        let ip = Ipv4Header::new(
            Ipv4Addr::new(192, 0, 2, 1),
            Ipv4Addr::new(192, 0, 2, 2),
            Protocol::TCP,
        );
        let length = TcpHeader::LENGTH + options.length() + payload_length;
        let mut bytes = vec![0xee; Ipv4Header::LENGTH + length];
        let at = ip.emit(length, &mut bytes);
        let segment = &mut bytes[at..];
        let (seq, ack) = (SeqNum::new(u32::MAX), SeqNum::new(7));
        let header = TcpHeader {
            source_port: 19,
            destination_port: 9,
            seq,
            ack,
            flags,
            window: 512,
            urgent: 3,
        };
        header.emit(options.length(), segment);
        options.emit(&mut segment[TcpHeader::LENGTH..]);
        let sum = Sum::of(segment);
        TcpHeader::fill_checksum(segment, ip.pseudo_header(length), sum);
        bytes
    }

    #[test]
    fn a_segment_prints_flags_sequence_range_ack_window_and_length() {
        assert_eq!(
            line(TcpFlags::PSH | TcpFlags::ACK | TcpFlags::FIN, &TcpOptions::default(), 3),
            "IP 192.0.2.1.19 > 192.0.2.2.9: Flags [FP.], seq 4294967295:2, ack 7, win 512, length 3"
        );
        assert_eq!(
            line(TcpFlags::RST, &TcpOptions::default(), 0),
            "IP 192.0.2.1.19 > 192.0.2.2.9: Flags [R], seq 4294967295, win 512, length 0"
        );
        let flags = TcpFlags::URG | TcpFlags::ECE | TcpFlags::CWR;
        assert!(
            line(flags, &TcpOptions::default(), 1)
                .contains("[UEW], seq 4294967295:0, win 512, urg 3")
        );
        assert!(line(TcpFlags::empty(), &TcpOptions::default(), 0).contains("Flags [none]"));
    }

    #[test]
    fn relative_numbers_begin_with_those_of_the_syns() {
        let mut options = TcpOptions::default();
        options.sack.push(SackBlock { left: SeqNum::new(20), right: SeqNum::new(30) });
        let (seq, ack) = (SeqNum::new(u32::MAX - 9), SeqNum::new(5));
        let bases = SequenceBases { seq, ack };
        let bytes = segment(TcpFlags::ACK, &options, 3);
        let line = PacketLine(&bytes).relative_to(bases).to_string();
        assert!(line.contains("seq 9:12, ack 2, win 512, options [sack 15:25]"), "{line}");
    }

    #[test]
    fn the_ace_counter_is_printed_if_the_bits_can_be_nothing_else() {
        let plain = TcpOptions::default();
        let request = TcpFlags::SYN | TcpFlags::ACE;
        assert!(line(request, &plain, 0).contains("Flags [SEWe], seq 4294967295, win"));
        let (ack, five, two) = (TcpFlags::ACK, TcpFlags::of_ace(5), TcpFlags::of_ace(2));
        assert!(
            line(ack | five, &plain, 0).contains("Flags [Ee.], seq 4294967295, ack 7, ace 5, win")
        );
        assert!(line(ack | two, &plain, 0).contains("Flags [W.], seq 4294967295, ack 7, win"));
        let counts = EcnCounts::new(EcnOrder::One, 1, 2, 3).cut_to(2);
        let options = TcpOptions { ecn: Some(counts), ..plain };
        assert!(
            line(ack | two, &options, 0)
                .contains("ack 7, ace 2, win 512, options [ecn e1b 3 ceb 2], length")
        );
        let empty = TcpOptions { ecn: Some(counts.cut_to(0)), ..plain };
        assert!(line(ack, &empty, 0).contains("ack 7, ace 0, win 512, options [ecn], length"));
    }

    #[test]
    fn options_are_printed_between_brackets() {
        let timestamps = Some(Timestamps { value: 5, echo: 6 });
        let syn = TcpOptions {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps,
            user_timeout: Some(UserTimeout { minutes: true, count: 3 }),
            ..TcpOptions::default()
        };
        let words = "options [mss 1460,wscale 7,sackOK,TS val 5 ecr 6,uto 3m], length 0";
        assert!(line(TcpFlags::SYN, &syn, 0).ends_with(words));
        let fast_open = FastOpenCookie::new(&[0x0b, 0xad, 0xc0, 0xde]);
        let cookie = TcpOptions { fast_open, ..TcpOptions::default() };
        assert!(
            line(TcpFlags::SYN, &cookie, 1).contains("options [tfo cookie 0badc0de], length 1")
        );
        let request =
            TcpOptions { fast_open: Some(FastOpenCookie::REQUEST), ..TcpOptions::default() };
        assert!(line(TcpFlags::SYN, &request, 0).contains("options [tfo cookiereq], length 0"));
        let mut sack = TcpOptions { timestamps, ..TcpOptions::default() };
        sack.sack.push(SackBlock { left: SeqNum::new(10), right: SeqNum::new(20) });
        assert!(line(TcpFlags::ACK, &sack, 0).contains("[TS val 5 ecr 6,sack 10:20]"));
    }
}
