//! The configuration of linerate's TCP that a plan describes.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::network_interface::additional_header_bytes;
use crate::plan::{Family, Plan};
use linerate_evidence::Framing;
use linerate_link::impair::Impairments;
use linerate_tcp::{Config, CongestionName, LARGEST_BUFFER, Profile};
use linerate_wire::TcpOptions;
use std::collections::BTreeMap;

/// Number of bytes in a TCP header without options.
const TCP_HEADER: u16 = 20;
/// Minimum MTU in bytes. It leaves room for data, because headers and options take at most 100
/// bytes.
const MIN_MTU: u16 = 128;
/// Minimum MTU of a link with IPv6, in bytes (RFC 8200 §5).
const MIN_MTU_IPV6: u16 = 1_280;

/// The configuration of linerate's TCP that is the same for all connections of a sweep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Configuration of a connection, without the buffers of a run.
    config: Config,
    profile: Profile,
    /// Size of the largest IP packet in bytes.
    mtu: u16,
    family: Family,
    /// Do frames begin with an Ethernet header?
    has_link_header: bool,
    /// Does the link compress headers (RFC 1144)?
    compresses_headers: bool,
    /// Impairments of the frames of linerate's host; `None` for an unimpaired link.
    impairments: Option<Impairments>,
}

impl Rules {
    /// Creates the configuration that `plan` describes. `congestion` is the name of the congestion
    /// control if linerate's TCP sends; `None` selects the profile's default.
    ///
    /// # Errors
    /// The plan names an unknown profile or congestion control, or impossible sizes.
    pub(crate) fn new(plan: &Plan, congestion: Option<&str>) -> Result<Self, BenchError> {
        let profile = match &plan.profile {
            Some(name) => name.parse().map_err(|_| unknown("profile", name, &Profile::ALL))?,
            None => Profile::default(),
        };
        let mut config = profile.config();
        if let Some(name) = congestion {
            config.congestion = name.parse().map_err(|_| unknown_congestion(name))?;
        }
        // RFC 1144 does not compress the header of a segment whose timestamps have changed.
        // Timestamps are therefore switched off on a link that compresses headers.
        let compresses_headers = plan.compresses_headers();
        config.timestamps &= !compresses_headers;
        let family = plan.ip_version();
        let least = match family {
            Family::Ipv4 => MIN_MTU,
            Family::Ipv6 => MIN_MTU_IPV6,
        };
        if plan.mtu < least {
            let remedy = match family {
                Family::Ipv4 => format!("linerate's TCP needs at least {least}"),
                Family::Ipv6 => format!("IPv6 needs at least {least}"),
            };
            return Err(BenchError::Mtu { mtu: plan.mtu.into(), remedy });
        }
        let impairments = plan.impairments();
        let rules = Self {
            config,
            profile,
            mtu: plan.mtu,
            family,
            has_link_header: plan.has_link_header(),
            compresses_headers,
            impairments,
        };
        for (which, list) in [("send", &plan.send_buffers), ("receive", &plan.receive_buffers)] {
            let largest = list.sizes().iter().map(|size| size.bytes(rules.payload())).max();
            rules.grant(which, largest.unwrap_or(0))?;
        }
        Ok(rules)
    }

    /// Returns the number of data bytes in a full segment.
    pub(crate) fn payload(&self) -> u32 {
        u32::from(self.mtu - self.family.header_length() - TCP_HEADER) - self.options()
    }

    /// Returns the framing in memory, where a frame or packet occupies only its own bytes: there is
    /// no preamble and no gap between frames.
    pub(crate) fn framing(&self) -> Framing {
        let more = self.additional_header_bytes();
        if self.has_link_header {
            Framing::ethernet_in_memory(more)
        } else {
            Framing::ip_in_memory(more)
        }
    }

    /// Returns the number of additional header bytes in each segment, as the function
    /// [`additional_header_bytes`] defines them.
    pub(crate) fn additional_header_bytes(&self) -> u32 {
        additional_header_bytes(self.options(), self.family == Family::Ipv6)
    }

    /// Are the headers of the packets on a serial line compressed? RFC 1144 covers IPv4 only.
    pub(crate) fn has_compressed_headers(&self) -> bool {
        self.compresses_headers && self.family == Family::Ipv4
    }

    /// Does the link compress headers (RFC 1144)? If so, the host numbers its packets consecutively
    /// in the IPv4 identification field, which compression can then omit.
    pub(crate) const fn compresses_headers(&self) -> bool {
        self.compresses_headers
    }

    /// Returns the size of the largest IP packet, in bytes.
    pub(crate) fn mtu(&self) -> usize {
        self.mtu.into()
    }

    /// Returns the impairments of the frames of linerate's host; `None` for an unimpaired link.
    pub(crate) const fn impairments(&self) -> Option<Impairments> {
        self.impairments
    }

    /// Returns the settings of linerate's TCP that affect the results, by name.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let settings = [
            ("tcp.profile", self.profile.to_string()),
            ("tcp.congestion", self.config.congestion.to_string()),
            ("tcp.header_prediction", self.config.header_prediction.to_string()),
            ("tcp.timestamps", self.config.timestamps.to_string()),
            ("tcp.window_scaling", self.config.window_scaling.to_string()),
            ("tcp.selective_acks", self.config.selective_acks.to_string()),
            ("tcp.initial_window_segments", self.config.initial_window.to_string()),
            ("tcp.delayed_ack", self.config.delayed_ack.to_string()),
        ];
        settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Returns the configuration of a connection with the buffers of the run `request`.
    ///
    /// # Errors
    /// [`BenchError::BufferTooLarge`] if a buffer is too large.
    pub(crate) fn config(&self, request: &RunRequest) -> Result<Config, BenchError> {
        let mut config = self.config;
        config.send_buffer = self.grant("send", request.send_buffer.bytes)?.into();
        config.receive_buffer = self.grant("receive", request.receive_buffer.bytes)?.into();
        Ok(config)
    }

    /// Returns the configuration of connections outside of runs, such as the control connection.
    pub(crate) const fn usual(&self) -> &Config {
        &self.config
    }

    /// Returns the number of bytes of TCP options in every segment.
    pub(crate) const fn options(&self) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "twelve")]
        const TIMESTAMPS: u32 = TcpOptions::TIMESTAMPS_LENGTH as u32;
        if self.config.timestamps { TIMESTAMPS } else { 0 }
    }

    /// Returns the requested size of the `which` buffer (`send` or `receive`), or an error if it
    /// exceeds the maximum of linerate's TCP. Without window scaling, the maximum of a receive
    /// buffer is 65,535 bytes.
    fn grant(&self, which: &'static str, requested: u64) -> Result<usize, BenchError> {
        let most = match which {
            "receive" if !self.config.window_scaling => usize::from(u16::MAX),
            _ => LARGEST_BUFFER,
        };
        let bytes = usize::try_from(requested).unwrap_or(usize::MAX);
        if bytes <= most {
            return Ok(bytes);
        }
        let remedy = if most < LARGEST_BUFFER {
            "the profile has no window scaling; ask for less, or leave --profile out".to_owned()
        } else {
            "no window is larger; ask for less".to_owned()
        };
        Err(BenchError::BufferTooLarge { which, requested, granted: most as u64, remedy })
    }
}

/// Returns the error of an unknown `name`. `what` is the kind of name, and `known` contains the
/// valid names.
fn unknown(what: &'static str, name: &str, known: &[impl ToString]) -> BenchError {
    let known = known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    BenchError::UnknownName { what, name: name.to_owned(), known }
}

fn unknown_congestion(name: &str) -> BenchError {
    let fixed = "fixed:SEGMENTS".to_owned();
    let known =
        CongestionName::ALL.iter().map(ToString::to_string).chain([fixed]).collect::<Vec<_>>();
    unknown("congestion control", name, &known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BenchKind, Draft};
    use linerate_ends::OwnHost;

    fn rules(change: impl FnOnce(&mut Draft)) -> Result<Rules, String> {
        let mut draft = Draft::of_1988(BenchKind::Stack);
        change(&mut draft);
        Rules::new(&Plan::new(draft.clone()).unwrap(), draft.congestion.as_deref())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_full_segment_carries_timestamps_unless_the_profile_is_of_1988() {
        assert_eq!(rules(|_| ()).unwrap().payload(), 1_448);
        let tahoe = rules(|draft| draft.profile = Some("bsd_tahoe".to_owned())).unwrap();
        assert_eq!(tahoe.payload(), 1_460);
        assert_eq!(tahoe.settings()["tcp.congestion"], "tahoe");
    }

    #[test]
    fn the_address_of_a_host_determines_the_ip_header() {
        let on = |address: &str| {
            rules(|draft| {
                let link = "packet:eth1".parse().unwrap();
                draft.host = Some(OwnHost::new(link, address.parse().unwrap()));
                draft.peer = Some("sink".parse().unwrap());
                draft.on = BenchKind::Interface;
            })
            .unwrap()
        };
        let (ipv4, ipv6) = (on("192.0.2.9/24"), on("2001:db8::9/64"));
        assert_eq!((ipv4.payload(), ipv4.additional_header_bytes()), (1_448, 12));
        assert_eq!((ipv6.payload(), ipv6.additional_header_bytes()), (1_428, 32));
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let error = rules(|draft| draft.profile = Some("vax".to_owned())).unwrap_err();
        assert_eq!(error, "there is no profile `vax`: choose one of modern, bsd_tahoe, bsd_reno");
        let error = rules(|draft| draft.congestion = Some("vegas".to_owned())).unwrap_err();
        assert_eq!(
            error,
            "there is no congestion control `vegas`: choose one of tahoe, reno, new-reno, \
             cubic, bbr, fixed:SEGMENTS"
        );
    }

    #[test]
    fn buffers_larger_than_the_window_are_refused() {
        let error = rules(|draft| draft.send_buffers = "2GiB".parse().unwrap()).unwrap_err();
        assert!(error.contains("a send buffer of 2147483648 bytes"), "{error}");
        let error = rules(|draft| {
            draft.profile = Some("bsd_reno".to_owned());
            draft.receive_buffers = "64KiB".parse().unwrap();
        })
        .unwrap_err();
        assert!(error.contains("65535 are granted: the profile has no window scaling"), "{error}");
        assert!(rules(|draft| draft.mtu = 100).unwrap_err().contains("at least 128"));
        let ipv6 = |mtu| {
            rules(move |draft| {
                draft.on = BenchKind::Tap;
                (draft.family, draft.mtu) = (Some(Family::Ipv6), mtu);
            })
        };
        assert!(ipv6(1_279).unwrap_err().contains("at least 1280"));
        assert_eq!(ipv6(1_500).unwrap().payload(), 1_428);
    }
}
