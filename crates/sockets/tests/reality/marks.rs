//! A router on the path sets ECN marks in segments (RFC 3168), in both directions. Each sender must
//! reduce its window because of the marks.

use crate::kernel::{assert_content, network_with};
use crate::transfers::{download, from_kernel, to_kernel, upload};
use linerate_link::Impair;
use linerate_link::namespace::isolated_test;
use linerate_tcp::EcnRule;
use std::fs;

const BYTES: u64 = 8 << 20;

#[test]
fn marks_reduce_the_window_of_either_sender_without_loss() {
    isolated_test(|| {
        fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").unwrap();
        let router = |link| Impair::new(link, "mark=2%".parse().unwrap(), 3_168);
        let Some((net, _)) = network_with(router, |config| config.tcp.ecn = EcnRule::Request)
        else {
            return;
        };
        let (ours, kernels) = to_kernel(&net);
        upload(&ours, &kernels, BYTES);
        let statistics = ours.statistics().unwrap();
        assert!(statistics.mark_echoes > 0 && statistics.mark_reductions > 0, "{statistics:?}");

        let (ours, kernels) = from_kernel(&net);
        download(&ours, &kernels, BYTES);
        assert!(ours.statistics().unwrap().marked_segments > 0);
        // The kernel has sent segments that arrived at our host with an ECN mark. Our ACKs must
        // report the marks, and the kernel counts the reported ones in `delivered_ce`.
        let info = linerate_link::kernel_tcp::TcpInfo::of(&kernels).unwrap();
        if let Some(marked) = info.field("delivered_ce") {
            assert!(marked > 0, "no mark was reported to the kernel");
        }
        assert_content();
    });
}
