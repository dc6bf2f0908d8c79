//! The counters of a gateway, and their text for Prometheus.

use crate::error::GatewayError;
use crate::gateway::Gateway;
use crate::metrics_server::MetricsServer;
use crate::poller::Token;
use linerate_link::Readiness;
use linerate_stack::Link;
use rustix::event::epoll::EventFlags;
use std::fmt::{self, Write};
use std::net::SocketAddr;

/// The counters of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayCounters {
    /// Connections that were accepted after their far end.
    pub tcp_accepted: u64,
    /// Connections that both ends have finished.
    pub tcp_closed: u64,
    /// Connections that one end has reset.
    pub tcp_reset: u64,
    /// UDP flows.
    pub udp_opened: u64,
    /// Flows that were refused, by the far end or by the configuration.
    pub refused: u64,
    /// Flows without an answer: at a limit, or because the far end was silent.
    pub flows_dropped: u64,
    /// Connections that ended because too many clients did not complete their handshakes.
    pub half_open_recycled: u64,
    /// Datagrams that one side could not take.
    pub datagrams_dropped: u64,
    /// Bytes of connections from clients.
    pub tcp_bytes_up: u64,
    /// Bytes of connections to clients.
    pub tcp_bytes_down: u64,
    /// Bytes of datagrams from clients.
    pub udp_bytes_up: u64,
    /// Bytes of datagrams to clients.
    pub udp_bytes_down: u64,
}

impl<L: Link + Readiness> Gateway<L> {
    /// Serves the metrics at an address of this machine, over HTTP at the path `/metrics`. Returns
    /// the address, with the port that the kernel has chosen if it was zero.
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

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> GatewayCounters {
        self.counters
    }

    /// Accepts a client of the metrics.
    pub(crate) fn accept_metrics_client(&mut self) {
        if let Some(server) = &mut self.metrics
            && let Some((place, stream)) = server.accept()
        {
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            // A client that cannot be waited for gets no answer, and is replaced later.
            let _ = self.poller.add(stream, Token::MetricsClient(place), flags);
        }
    }

    /// Continues the connection of a client of the metrics.
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
