//! What a plan says about linerate's TCP, in the words of its configuration.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::plan::Plan;
use linerate_evidence::Framing;
use linerate_link::impair::Impairments;
use linerate_tcp::{Config, CongestionName, LARGEST_BUFFER, Profile};
use linerate_wire::TcpOptions;
use std::collections::BTreeMap;

/// IPv4 and TCP headers without options.
const HEADERS: u16 = 20 + 20;
/// Less is no packet that a TCP can work with: every host takes 576 bytes (RFC 791), and options
/// and headers take up to a hundred.
const LEAST_MTU: u16 = 128;

/// The rules of all connections of a sweep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    config: Config,
    profile: Profile,
    mtu: u16,
    impairments: Option<Impairments>,
}

impl Rules {
    /// The rules of `plan`, with `congestion` control if our end is the one that sends.
    ///
    /// # Errors
    /// If it names a profile or a congestion control that there is not, or sizes that cannot be.
    pub(crate) fn new(plan: &Plan, congestion: Option<&str>) -> Result<Self, BenchError> {
        let profile = match &plan.profile {
            Some(name) => name.parse().map_err(|_| unknown("profile", name, &Profile::ALL))?,
            None => Profile::default(),
        };
        let mut config = profile.config();
        if let Some(name) = congestion {
            config.congestion = name.parse().map_err(|_| unknown_congestion(name))?;
        }
        if plan.mtu < LEAST_MTU {
            let remedy = format!("linerate's TCP takes one from {LEAST_MTU} on");
            return Err(BenchError::Mtu { mtu: plan.mtu.into(), remedy });
        }
        let impairments = plan.impairments();
        let rules = Self { config, profile, mtu: plan.mtu, impairments };
        for (which, list) in [("send", &plan.send_buffers), ("receive", &plan.receive_buffers)] {
            let largest = list.sizes().iter().map(|size| size.bytes(rules.payload())).max();
            rules.grant(which, largest.unwrap_or(0))?;
        }
        Ok(rules)
    }

    /// Payload bytes of a full segment.
    pub(crate) fn payload(&self) -> u32 {
        u32::from(self.mtu) - u32::from(HEADERS) - self.options()
    }

    /// Ethernet frames, of which nothing but the header crosses a link without a cable.
    pub(crate) fn framing(&self) -> Framing {
        Framing::ethernet_in_memory(self.options())
    }

    /// Largest IP packet, in bytes.
    pub(crate) fn mtu(&self) -> usize {
        self.mtu.into()
    }

    /// What is done to the frames of linerate's host, if anything is.
    pub(crate) const fn impairments(&self) -> Option<Impairments> {
        self.impairments
    }

    /// What decides the figures, by name.
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

    /// The configuration of one end of a run.
    ///
    /// # Errors
    /// As for [`Rules::new`].
    pub(crate) fn config(&self, request: &RunRequest) -> Result<Config, BenchError> {
        let mut config = self.config;
        config.send_buffer = self.grant("send", request.send_buffer.bytes)?.into();
        config.receive_buffer = self.grant("receive", request.receive_buffer.bytes)?.into();
        Ok(config)
    }

    /// What connections keep to for which a run says nothing.
    pub(crate) const fn usual(&self) -> &Config {
        &self.config
    }

    /// Bytes of the TCP options that every segment carries.
    pub(crate) const fn options(&self) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "twelve")]
        const TIMESTAMPS: u32 = TcpOptions::TIMESTAMPS_LENGTH as u32;
        if self.config.timestamps { TIMESTAMPS } else { 0 }
    }

    /// A buffer that can be had; without window scaling a receiver can offer no more than 65,535.
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
            "a window reaches no farther; ask for less".to_owned()
        };
        Err(BenchError::BufferTooLarge { which, requested, granted: most as u64, remedy })
    }
}

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

    fn rules(change: impl FnOnce(&mut Draft)) -> Result<Rules, String> {
        let mut draft = Draft::of_1988(BenchKind::Stack);
        change(&mut draft);
        Rules::new(&Plan::new(draft.clone()).unwrap(), draft.congestion.as_deref())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_full_segment_of_today_carries_timestamps_and_one_of_1988_does_not() {
        assert_eq!(rules(|_| ()).unwrap().payload(), 1_448);
        let tahoe = rules(|draft| draft.profile = Some("bsd_tahoe".to_owned())).unwrap();
        assert_eq!(tahoe.payload(), 1_460);
        assert_eq!(tahoe.settings()["tcp.congestion"], "tahoe");
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        let error = rules(|draft| draft.profile = Some("vax".to_owned())).unwrap_err();
        assert_eq!(error, "there is no profile `vax`: choose one of modern, bsd_tahoe, bsd_reno");
        let error = rules(|draft| draft.congestion = Some("vegas".to_owned())).unwrap_err();
        assert_eq!(
            error,
            "there is no congestion control `vegas`: choose one of tahoe, reno, new-reno, cubic, bbr, fixed:SEGMENTS"
        );
    }

    #[test]
    fn buffers_beyond_the_window_are_refused() {
        let error = rules(|draft| draft.send_buffers = "2GiB".parse().unwrap()).unwrap_err();
        assert!(error.contains("a send buffer of 2147483648 bytes"), "{error}");
        let error = rules(|draft| {
            draft.profile = Some("bsd_reno".to_owned());
            draft.receive_buffers = "64KiB".parse().unwrap();
        })
        .unwrap_err();
        assert!(error.contains("65535 are granted: the profile has no window scaling"), "{error}");
        assert!(rules(|draft| draft.mtu = 100).unwrap_err().contains("from 128 on"));
    }
}
