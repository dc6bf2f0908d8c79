//! The limits that a verdict can name.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The factor that limits the throughput of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The sender's socket buffer is smaller than the bandwidth-delay product.
    SendBuffer,
    /// The receiver's socket buffer is smaller than the bandwidth-delay product.
    ReceiveBuffer,
    /// The sending program writes more slowly than the path can carry.
    Writer,
    /// The receiving program reads more slowly than the path can carry.
    Reader,
    /// A thread at the sender uses its processor all the time.
    SenderCpu,
    /// A thread at the receiver uses its processor all the time.
    ReceiverCpu,
    /// The bit rate of a link or of a shaper on the path.
    LinkRate,
    /// A queue on the path is too short: it overflows in bursts although the mean load is below the
    /// rate of the link.
    QueueDrop,
    /// Packets are lost at random, regardless of the load of the path.
    RandomLoss,
    /// The receiving machine drops packets, for instance because its receive ring is full.
    ReceiveDrop,
    /// The receive window stays smaller than the receive buffer allows. The cause is a metric of
    /// the route, or a connection without window scaling.
    RouteWindow,
    /// Packets larger than the path MTU are lost, and no ICMP message tells the sender.
    PathMtu,
    /// The congestion window does not grow, although no packets are lost and none wait in queues.
    CongestionWindow,
    /// The transfer lasts too few round trips: its congestion window is still growing at the end.
    RoundTrip,
    /// Other work on the machines disturbed too many runs, so no limit can be named.
    Contended,
    /// The evidence does not single out a limit.
    NotIdentified,
}

impl Limit {
    /// All limits, in the order in which they are listed.
    pub const ALL: [Self; 16] = [
        Self::SendBuffer,
        Self::ReceiveBuffer,
        Self::Writer,
        Self::Reader,
        Self::SenderCpu,
        Self::ReceiverCpu,
        Self::LinkRate,
        Self::QueueDrop,
        Self::RandomLoss,
        Self::ReceiveDrop,
        Self::RouteWindow,
        Self::PathMtu,
        Self::CongestionWindow,
        Self::RoundTrip,
        Self::Contended,
        Self::NotIdentified,
    ];

    /// Returns the name of the limit in JSON and in text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SendBuffer => "send-buffer",
            Self::ReceiveBuffer => "receive-buffer",
            Self::Writer => "writer",
            Self::Reader => "reader",
            Self::SenderCpu => "sender-cpu",
            Self::ReceiverCpu => "receiver-cpu",
            Self::LinkRate => "link-rate",
            Self::QueueDrop => "queue-drop",
            Self::RandomLoss => "random-loss",
            Self::ReceiveDrop => "receive-drop",
            Self::RouteWindow => "route-window",
            Self::PathMtu => "path-mtu",
            Self::CongestionWindow => "congestion-window",
            Self::RoundTrip => "round-trip",
            Self::Contended => "contended",
            Self::NotIdentified => "not-identified",
        }
    }

    /// Returns advice to the user how to raise the limit, in one or two sentences.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::SendBuffer => {
                "Enlarge the send buffer: net.ipv4.tcp_wmem, or SO_SNDBUF and net.core.wmem_max \
                 (Linux); Config::send_buffer (linerate)."
            }
            Self::ReceiveBuffer => {
                "Enlarge the receive buffer: net.ipv4.tcp_rmem, or SO_RCVBUF and \
                 net.core.rmem_max (Linux); Config::receive_buffer (linerate)."
            }
            Self::Writer => {
                "Let the sending program write more data at a time and without pauses; TCP waits \
                 for it."
            }
            Self::Reader => {
                "Let the receiving program read sooner; its buffer is full of data that TCP has \
                 delivered."
            }
            Self::SenderCpu => {
                "Reduce the sender's work: larger writes, segmentation offload, a larger MTU, or \
                 several connections on several CPUs."
            }
            Self::ReceiverCpu => {
                "Reduce the receiver's work: larger reads, receive offload (GRO), a larger MTU, or \
                 several connections on several CPUs."
            }
            Self::LinkRate => {
                "Nothing at the ends helps: the link is full. Only a faster link, or less framing, \
                 gives more."
            }
            Self::QueueDrop => {
                "Lengthen the queue in front of the bottleneck, or pace the sender (fq, BBR) so \
                 that its bursts fit."
            }
            Self::RandomLoss => {
                "Find the lossy link (cable, radio, duplex mismatch); until then use BBR or \
                 several connections."
            }
            Self::ReceiveDrop => {
                "Let the receiving machine keep up with bursts: a larger NIC ring (ethtool -G), \
                 net.core.netdev_max_backlog, or interrupts on more CPUs."
            }
            Self::RouteWindow => {
                "Remove the cap on the window: `window` in `ip route`, \
                 net.ipv4.tcp_window_scaling, or a middlebox that strips window scaling."
            }
            Self::PathMtu => {
                "Packets of full size are lost without a message: let ICMP pass, lower the MTU, or \
                 set net.ipv4.tcp_mtu_probing=1."
            }
            Self::CongestionWindow => {
                "The congestion control keeps the window small without losses: look for `cwnd` in \
                 `ip route`, or use another congestion control or several connections."
            }
            Self::RoundTrip => {
                "The transfer ends while its window still grows: keep connections open, raise \
                 `initcwnd` in `ip route`, or shorten the path."
            }
            Self::Contended => {
                "Repeat the measurement without other work on these machines, or on other CPUs."
            }
            Self::NotIdentified => {
                "See the table of evidence; a longer measurement (--seconds) narrows the intervals."
            }
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json_report() {
        for limit in Limit::ALL {
            let text = serde_json::to_string(&limit).unwrap();
            assert_eq!(text, format!("\"{limit}\""));
            assert!(limit.advice().ends_with('.'), "{limit}");
        }
    }
}
