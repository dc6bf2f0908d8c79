//! The JSON messages of an iperf3 test.

use serde::{Deserialize, Serialize};

/// The parameters of a test, which the client sends. Unknown parameters are ignored. An iperf3
/// server treats an option as set if it is present, whatever its value. Options that are `false`
/// are therefore omitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Parameters {
    /// Does the test use TCP?
    #[serde(skip_serializing_if = "is_unset")]
    pub(super) tcp: bool,
    /// Does the test use UDP, which is not supported?
    #[serde(skip_serializing_if = "is_unset")]
    pub(super) udp: bool,
    /// Does the test use SCTP, which is not supported?
    #[serde(skip_serializing_if = "is_unset")]
    pub(super) sctp: bool,
    /// Do client and server send at the same time, which is not supported?
    #[serde(skip_serializing_if = "is_unset")]
    pub(super) bidirectional: bool,
    /// Does the server send, instead of the client?
    #[serde(skip_serializing_if = "is_unset")]
    pub(super) reverse: bool,
    /// Duration in seconds of the first part of the test, whose data is not counted.
    pub(super) omit: f64,
    /// Duration of the test in seconds; 0 if the test has another limit.
    pub(super) time: f64,
    /// Number of bytes to transfer; 0 for no limit.
    pub(super) num: f64,
    /// Number of blocks of `len` bytes to transfer; 0 for no limit.
    pub(super) blockcount: f64,
    /// Number of streams.
    pub(super) parallel: f64,
    /// Size of each `read` or `write` call in bytes; 0 selects a default.
    pub(super) len: f64,
    /// Rate limit of each stream in bits per second; 0 for no limit.
    pub(super) bandwidth: f64,
    /// Name and version of the client.
    pub(super) client_version: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
const fn is_unset(flag: &bool) -> bool {
    !*flag
}

/// The results of a test, as the client or the server measured them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Processor time in per cent of the test's duration; 0 if it was not measured.
    #[serde(default)]
    pub cpu_util_total: f64,
    /// Processor time in user mode, in per cent of the test's duration; 0 if it was not measured.
    #[serde(default)]
    pub cpu_util_user: f64,
    /// Processor time in the kernel, in per cent of the test's duration; 0 if it was not measured.
    #[serde(default)]
    pub cpu_util_system: f64,
    /// Does this end count retransmissions? 1 from a sender that counts them, 0 from a sender that
    /// does not, and -1 from a receiver.
    #[serde(default)]
    pub sender_has_retransmits: f64,
    /// The results of each stream.
    pub streams: Vec<StreamResults>,
}

/// The results of one stream, as the client or the server measured them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamResults {
    /// The number by which client and server identify the stream: 1, 3, 4, 5 and so on.
    pub id: f64,
    /// Number of bytes that the reporting end (client or server) sent or received.
    pub bytes: f64,
    /// Number of retransmitted segments; -1 if retransmissions were not counted.
    #[serde(default)]
    pub retransmits: f64,
    /// Jitter in seconds, which only UDP has; 0 for TCP.
    #[serde(default)]
    pub jitter: f64,
    /// Number of lost packets, which only UDP has; 0 for TCP.
    #[serde(default)]
    pub errors: f64,
    /// Number of packets, which only UDP has; 0 for TCP.
    #[serde(default)]
    pub packets: f64,
    /// Start of the stream in seconds since the start of the test.
    #[serde(default)]
    pub start_time: f64,
    /// End of the stream in seconds since the start of the test.
    #[serde(default)]
    pub end_time: f64,
}

/// Returns the number of the stream with this index. Client and server identify streams by this
/// number in their results. As in iperf3, the numbers are 1, 3, 4, 5 and so on.
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
