//! SYN-ACKs that carry a SYN cookie.
//!
//! With one configuration and path, the SYN-ACKs that answer SYNs with equal features differ only
//! in sequence numbers and timestamps. Therefore the host keeps a template for each combination of
//! features, and writes only these numbers for each SYN. Creating a connection for each SYN of a
//! flood would take four times as long. The template is a copy of the SYN-ACK that a temporary
//! connection sends. This connection is created from the part of the SYN that the cookie stores.
//! The connection that the cookie later opens is created from the same part, so its options agree
//! with the SYN-ACK that was sent.

use super::syn_cookie::StoredSyn;
use alloc::boxed::Box;
use alloc::vec::Vec;
use linerate_tcp::{Connection, Offload, Path, Seeds, SharedConfig};
use linerate_units::Instant;
use linerate_wire::{Ecn, Segment, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions, Timestamps};

/// Number of combinations of features of a SYN: four bits from the cookie, one bit for accurate
/// ECN, and two bits for the ECN codepoint of the SYN's packet.
const FORMS: usize = 128;

/// The options and features that a SYN requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The part of the SYN that the cookie stores.
    pub(crate) kept: &'a StoredSyn,
    /// Whether the SYN requests accurate ECN and the configuration permits it.
    pub(crate) is_accurate: bool,
    /// ECN codepoint of the packet that carried the SYN.
    pub(crate) ecn: Ecn,
}

impl Asked<'_> {
    fn place(&self) -> usize {
        self.kept.features() | usize::from(self.is_accurate) << 4 | usize::from(self.ecn as u8) << 5
    }
}

/// The template of all SYN-ACKs for one configuration and path that answer SYNs with equal
/// features.
#[derive(Debug)]
pub(crate) struct SynAckForm {
    rules: SharedConfig,
    path: Path,
    flags: TcpFlags,
    window: u16,
    options: TcpOptions,
}

impl SynAckForm {
    /// Creates the template from the SYN-ACK that a connection with this configuration would send
    /// in answer to `syn`. Returns `None` if the connection would send none.
    fn of(rules: &SharedConfig, path: Path, asked: &Asked<'_>, syn: &Segment<'_>) -> Option<Self> {
        let (now, mut field) = (Instant::ZERO, [0; 40]);
        let remembered = asked.kept.syn(syn, asked.is_accurate, &mut field);
        let seeds = Seeds { initial_sequence: SeqNum::new(0), timestamp_offset: 0 };
        let mut connection = Connection::accept(rules.clone(), path, seeds, &remembered, now);
        connection.driver().note_codepoint_of_syn(asked.ecn);
        let mut bytes = [0; TcpHeader::MAX_LENGTH];
        let sent = connection.driver().poll_transmit(now, Offload::None, &mut bytes)?;
        let answer = Segment::parse(&bytes[..sent.length]).ok()?;
        Some(Self {
            rules: rules.clone(),
            path,
            flags: answer.flags(),
            window: answer.window,
            options: answer.options(),
        })
    }

    /// Writes a SYN-ACK with these sequence and acknowledgement numbers. Leaves the ports and the
    /// checksum field zero. Returns the length of the SYN-ACK in bytes, and the contribution of
    /// these bytes to the checksum.
    pub(crate) fn write(
        &self,
        (seq, ack): (SeqNum, SeqNum),
        timestamps: Option<Timestamps>,
        bytes: &mut [u8; TcpHeader::MAX_LENGTH],
    ) -> (usize, Sum) {
        let options = TcpOptions { timestamps, ..self.options };
        let options_length = options.emit(&mut bytes[TcpHeader::LENGTH..]);
        let header =
            TcpHeader { seq, ack, flags: self.flags, window: self.window, ..TcpHeader::default() };
        header.emit(options_length, bytes);
        let length = TcpHeader::LENGTH + options_length;
        (length, Sum::of(&bytes[..length]))
    }
}

/// The cache of SYN-ACK templates, one for each combination of features.
#[derive(Debug, Default)]
pub(crate) struct SynAckForms {
    /// The template for each combination of features; `None` until a SYN first needs it. The vector
    /// is empty until the first cookie is sent.
    forms: Vec<Option<Box<SynAckForm>>>,
}

impl SynAckForms {
    /// Returns the template of the SYN-ACK that answers `syn`. Uses the cached template if it was
    /// made for this configuration and path, and otherwise replaces it. Returns `None` if a
    /// connection with this configuration would not answer `syn`.
    pub(crate) fn get(
        &mut self,
        rules: &SharedConfig,
        path: Path,
        asked: &Asked<'_>,
        syn: &Segment<'_>,
    ) -> Option<&SynAckForm> {
        if self.forms.is_empty() {
            self.forms.resize_with(FORMS, || None);
        }
        let form = &mut self.forms[asked.place()];
        let is_known = form
            .as_ref()
            .is_some_and(|form| form.rules.is_same_allocation(rules) && form.path == path);
        if !is_known {
            *form = SynAckForm::of(rules, path, asked, syn).map(Box::new);
        }
        form.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_tcp::{Config, EcnRule};
    use linerate_units::Duration;
    use proptest::prelude::*;

    /// Returns a SYN with these options, which are encoded in `field`.
    fn syn<'a>(flags: TcpFlags, options: &TcpOptions, field: &'a mut [u8; 40]) -> Segment<'a> {
        let length = options.emit(field);
        let words = u16::try_from(5 + length / 4).unwrap();
        Segment {
            source_port: 1,
            destination_port: 2,
            seq: SeqNum::new(77),
            ack: SeqNum::new(0),
            offset_and_flags: words << 12 | (TcpFlags::SYN | flags).bits(),
            window: 1_000,
            urgent: 0,
            options: &field[..length],
            payload: &[],
            joined: None,
        }
    }

    fn options() -> impl Strategy<Value = TcpOptions> {
        (prop::option::of(0_u16..), prop::option::of(0_u8..20), any::<bool>(), any::<Option<u32>>())
            .prop_map(|(mss, window_scale, sack_permitted, value)| TcpOptions {
                mss,
                window_scale,
                sack_permitted,
                timestamps: value.map(|value| Timestamps { value, echo: 0 }),
                ..TcpOptions::default()
            })
    }

    proptest! {
        /// A SYN-ACK that is written from a cached template equals the SYN-ACK that a connection
        /// would send, even if other SYNs have filled the cache before.
        #[test]
        fn an_answer_by_a_form_is_that_of_a_connection(
            rules in 0_usize..3,
            syns in prop::collection::vec(
                (options(), 0_usize..3, 0_usize..4, 576_usize..9_000),
                1..20,
            ),
        ) {
            let rules = [
                Config::modern(),
                Config {
                    accurate_ecn: EcnRule::Request,
                    ecn: EcnRule::Request,
                    ..Config::modern()
                },
                Config::bsd_reno(),
            ][rules];
            let shared = SharedConfig::from(&rules);
            let (mut forms, now) = (SynAckForms::default(), Instant::ZERO + Duration::from_secs(9));
            for (options, flags, codepoint, mtu) in syns {
                let flags =
                    [TcpFlags::empty(), TcpFlags::ECE | TcpFlags::CWR, TcpFlags::ACE][flags];
                let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][codepoint];
                let mut field = [0; 40];
                let syn = syn(flags, &options, &mut field);
                let path = Path::ipv4(mtu);
                let is_accurate =
                    rules.accurate_ecn != EcnRule::Off && syn.flags().asks_for_accurate_ecn();
                let kept = StoredSyn::of(&syn, rules.timestamps, is_accurate);
                let seeds = Seeds { initial_sequence: SeqNum::new(5), timestamp_offset: 6 };
                let mut field = [0; 40];
                let remembered = kept.syn(&syn, is_accurate, &mut field);
                let mut connection =
                    Connection::accept(shared.clone(), path, seeds, &remembered, now);
                connection.driver().note_codepoint_of_syn(ecn);
                let mut expected = [0; TcpHeader::MAX_LENGTH];
                let driver = connection.driver();
                let sent = driver.poll_transmit(now, Offload::None, &mut expected).unwrap();

                let asked = Asked { kept: &kept, is_accurate, ecn };
                let form = forms.get(&shared, path, &asked, &syn).unwrap();
                let timestamps = kept.has_timestamps().then(|| Timestamps {
                    value: 9_006,
                    echo: options.timestamps.unwrap().value,
                });
                let mut bytes = [0; TcpHeader::MAX_LENGTH];
                let numbers = (SeqNum::new(5), syn.seq + 1);
                let (length, sum) = form.write(numbers, timestamps, &mut bytes);
                prop_assert_eq!(&bytes[..length], &expected[..sent.length]);
                prop_assert_eq!(sum.finish(), sent.sum.finish());
            }
        }
    }
}
