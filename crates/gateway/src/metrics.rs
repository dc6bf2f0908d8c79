//! The counters of a gateway, and their text in the format of Prometheus.

use crate::error::GatewayError;
use crate::gateway::Gateway;
use crate::metrics_server::MetricsServer;
use crate::poller::Token;
use linerate_link::Readiness;
use linerate_stack::Link;
use rustix::event::epoll::EventFlags;
use std::fmt::{self, Write};
use std::net::SocketAddr;

/// The counters of a gateway since it was created.
///
/// ```
/// use linerate_gateway::{Gateway, GatewayConfig};
/// use linerate_link::memory::{MemoryConfig, pair};
///
/// let (link, _clients) = pair(MemoryConfig::default())?;
/// let gateway = Gateway::new(link, &GatewayConfig::default(), [7; 32])?;
/// let counters = gateway.counters();
/// assert_eq!(counters.tcp_bytes_up + counters.udp_bytes_up, 0);
/// // The text for Prometheus has the same counters.
/// assert!(gateway.metrics_text().contains("linerate_gateway"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayCounters {
    /// Number of connections that the gateway accepted from clients, each after its destination had
    /// accepted.
    pub tcp_accepted: u64,
    /// Number of connections that the client and the destination have both closed.
    pub tcp_closed: u64,
    /// Number of connections that the client or the destination has reset.
    pub tcp_reset: u64,
    /// Number of UDP flows that were relayed.
    pub udp_opened: u64,
    /// Number of flows that the destination or the configuration refused.
    pub refused: u64,
    /// Number of flows that got no answer: because of a limit, because the destination was silent,
    /// or because the client had given up.
    pub flows_dropped: u64,
    /// Number of connections that were removed because too many clients had incomplete handshakes.
    pub half_open_recycled: u64,
    /// Number of datagrams that could not be sent, because the link or the kernel's socket refused
    /// them.
    pub datagrams_dropped: u64,
    /// Number of TCP data bytes relayed from clients.
    pub tcp_bytes_up: u64,
    /// Number of TCP data bytes relayed to clients.
    pub tcp_bytes_down: u64,
    /// Number of UDP data bytes relayed from clients.
    pub udp_bytes_up: u64,
    /// Number of UDP data bytes relayed to clients.
    pub udp_bytes_down: u64,
}

impl<L: Link + Readiness> Gateway<L> {
    /// Serves the metrics over HTTP at an address of this machine, under the path `/metrics`.
    /// Returns the address with its actual port, which matters if the requested port is 0.
    ///
    /// # Errors
    /// [`GatewayError::Metrics`].
    pub fn serve_metrics(&mut self, address: SocketAddr) -> Result<SocketAddr, GatewayError> {
        let explain = |source| GatewayError::Metrics { address, source };
        let server = MetricsServer::bind(address).map_err(explain)?;
        let address = server.listener.local_addr().map_err(explain)?;
        self.poller.add(&server.listener, Token::Metrics, EventFlags::IN)?;
        self.metrics = Some(server);
        Ok(address)
    }

    /// Returns the counters of the gateway.
    #[must_use]
    pub const fn counters(&self) -> GatewayCounters {
        self.counters
    }

    /// Accepts an HTTP client of the metrics, and adds its connection to the poller.
    pub(crate) fn accept_metrics_client(&mut self) {
        if let Some(server) = &mut self.metrics
            && let Some((place, stream)) = server.accept()
        {
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            // If the poller refuses the connection, no event arrives for it, so the client gets no
            // response. The connection is closed when a later client gets the same index.
            let _ = self.poller.add(stream, Token::MetricsClient(place), flags);
        }
    }

    /// Continues to receive the request or to send the response of an HTTP client.
    pub(crate) fn serve_metrics_client(&mut self, place: usize) {
        if let Some(mut server) = self.metrics.take() {
            server.advance(place, || self.metrics_text());
            self.metrics = Some(server);
        }
    }

    /// Returns the metrics in the text format of Prometheus.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let mut text = String::new();
        let _ = self.write_metrics(&mut text);
        text
    }

    fn write_metrics(&self, text: &mut String) -> fmt::Result {
        let counters = &self.counters;
        let forward = self.host.stack().forward_statistics();
        let host = self.host.stack().counters();
        let mut metric = |name: &str, kind: &str, help: &str, rows: &[(&str, u64)]| {
            writeln!(text, "# HELP linerate_gateway_{name} {help}")?;
            writeln!(text, "# TYPE linerate_gateway_{name} {kind}")?;
            for (labels, value) in rows {
                writeln!(text, "linerate_gateway_{name}{labels} {value}")?;
            }
            Ok(())
        };
        let tcp = self.flows.by_tcp.len() as u64;
        let udp = self.flows.by_udp.len() as u64;
        let connecting = self.flows.by_deferred.len() as u64;
        metric(
            "flows",
            "gauge",
            "Current flows.",
            &[
                ("{state=\"connecting\"}", connecting),
                ("{state=\"tcp\"}", tcp),
                ("{state=\"udp\"}", udp),
            ],
        )?;
        metric(
            "flows_total",
            "counter",
            "Flows that were accepted.",
            &[
                ("{protocol=\"tcp\"}", counters.tcp_accepted),
                ("{protocol=\"udp\"}", counters.udp_opened),
            ],
        )?;
        metric(
            "bytes_total",
            "counter",
            "Relayed bytes of data.",
            &[
                ("{protocol=\"tcp\",direction=\"up\"}", counters.tcp_bytes_up),
                ("{protocol=\"tcp\",direction=\"down\"}", counters.tcp_bytes_down),
                ("{protocol=\"udp\",direction=\"up\"}", counters.udp_bytes_up),
                ("{protocol=\"udp\",direction=\"down\"}", counters.udp_bytes_down),
            ],
        )?;
        metric(
            "refused_total",
            "counter",
            "Flows that were refused, by the far end or by the configuration.",
            &[("", counters.refused)],
        )?;
        metric(
            "drops_total",
            "counter",
            "Flows and packets that were dropped.",
            &[
                ("{reason=\"flow_limit_or_silence\"}", counters.flows_dropped),
                ("{reason=\"too_many_new_flows\"}", self.admission.dropped()),
                ("{reason=\"handshake_recycled\"}", forward.recycled),
                ("{reason=\"half_open_recycled\"}", counters.half_open_recycled),
                ("{reason=\"udp_evicted\"}", forward.udp_evicted),
                ("{reason=\"datagram\"}", counters.datagrams_dropped),
                ("{reason=\"udp_queue\"}", host.udp.receive_buffer_errors),
                ("{reason=\"fragment\"}", host.ip.reassembly_failures),
                ("{reason=\"unconnected_segment\"}", host.tcp_extra.unconnected_drops),
            ],
        )?;
        metric(
            "tcp_ended_total",
            "counter",
            "Connections that have ended.",
            &[("{how=\"closed\"}", counters.tcp_closed), ("{how=\"reset\"}", counters.tcp_reset)],
        )?;
        metric(
            "packets_total",
            "counter",
            "Frames on the link of the clients.",
            &[
                ("{direction=\"received\"}", host.receive.packets),
                ("{direction=\"sent\"}", host.transmit.packets),
            ],
        )
    }
}
