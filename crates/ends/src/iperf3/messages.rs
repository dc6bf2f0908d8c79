//! The JSON texts of a test.

use serde::{Deserialize, Serialize};

/// The parameters of a test, from the client. Unknown ones are ignored. An iperf3 server takes an
/// option as set if its name is present, so `false` is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Parameters {
    #[serde(skip_serializing_if = "is_unset")]
    pub(super) tcp: bool,
    #[serde(skip_serializing_if = "is_unset")]
    pub(super) udp: bool,
    #[serde(skip_serializing_if = "is_unset")]
    pub(super) sctp: bool,
    #[serde(skip_serializing_if = "is_unset")]
    pub(super) bidirectional: bool,
    #[serde(skip_serializing_if = "is_unset")]
    pub(super) reverse: bool,
    /// Seconds at the start that do not count.
    pub(super) omit: f64,
    pub(super) time: f64,
    pub(super) num: f64,
    pub(super) blockcount: f64,
    pub(super) parallel: f64,
    /// Bytes of a write.
    pub(super) len: f64,
    /// Bits per second of each stream; 0 is no limit.
    pub(super) bandwidth: f64,
    pub(super) client_version: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
const fn is_unset(flag: &bool) -> bool {
    !*flag
}

/// The results of one end of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Processor time in per cent; 0 if it was not measured.
    #[serde(default)]
    pub cpu_util_total: f64,
    /// Processor time in user mode.
    #[serde(default)]
    pub cpu_util_user: f64,
    /// Processor time in the kernel.
    #[serde(default)]
    pub cpu_util_system: f64,
    /// 1 if the sender counts retransmissions, 0 if it does not, -1 from a receiver.
    #[serde(default)]
    pub sender_has_retransmits: f64,
    /// The streams.
    pub streams: Vec<StreamResults>,
}

/// The results of one stream at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamResults {
    /// The number of the stream.
    pub id: f64,
    /// Bytes sent or received.
    pub bytes: f64,
    /// Retransmitted segments; -1 if they were not counted.
    #[serde(default)]
    pub retransmits: f64,
    /// A figure of UDP.
    #[serde(default)]
    pub jitter: f64,
    /// A figure of UDP.
    #[serde(default)]
    pub errors: f64,
    /// A figure of UDP.
    #[serde(default)]
    pub packets: f64,
    /// Start, in seconds.
    #[serde(default)]
    pub start_time: f64,
    /// End, in seconds.
    #[serde(default)]
    pub end_time: f64,
}

/// Returns the number that iperf3 gives to a stream: 1, 3, 4, 5 and so on. It finds streams in the
/// other end's results by this number.
#[allow(clippy::cast_precision_loss, reason = "at most 128 streams")]
pub(super) const fn stream_number(index: usize) -> f64 {
    if index == 0 { 1.0 } else { (index + 2) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_iperf3_are_read() {
        let text = r#"{"tcp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":8,
            "reverse":true,"len":131072,"pacing_timer":1000,"client_version":"3.12"}"#;
        let read: Parameters = serde_json::from_str(text).unwrap();
        assert!(read.tcp && read.reverse && !read.udp);
        assert_eq!((read.parallel, read.len, read.time), (8.0, 131_072.0, 10.0));
    }

    #[test]
    fn options_that_are_not_set_are_left_out() {
        let text = serde_json::to_string(&Parameters { tcp: true, ..Parameters::default() });
        let text = text.unwrap();
        assert!(text.contains("\"tcp\":true") && !text.contains("reverse"), "{text}");
    }

    #[test]
    fn streams_have_the_numbers_of_iperf3() {
        assert_eq!([0, 1, 2, 7].map(stream_number), [1.0, 3.0, 4.0, 9.0]);
    }
}
