//! Congestion marks that a router on the way sets (RFC 3168), in both directions.

use crate::kernel::{KERNEL, OURS, assert_content, network_with};
use crate::pattern;
use linerate_link::Impair;
use linerate_link::namespace::isolated_test;
use linerate_tcp::EcnRule;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::{fs, thread};

const BYTES: u64 = 8 << 20;

#[test]
fn marks_reduce_the_sender_s_window_on_either_side_and_lose_nothing() {
    isolated_test(|| {
        fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").unwrap();
        let router = |link| Impair::new(link, "mark=2%".parse().unwrap(), 3_168);
        let Some((net, _)) = network_with(router, |config| config.tcp.ecn = EcnRule::Request) else { return };
        let listener = TcpListener::bind((KERNEL, 0)).unwrap();
        let ours = net.connect(listener.local_addr().unwrap()).unwrap();
        let kernels = listener.accept().unwrap().0;
        thread::scope(|scope| {
            scope.spawn(|| {
                pattern::send(&ours, BYTES);
                ours.shutdown(Shutdown::Write).unwrap();
            });
            pattern::receive(&kernels, BYTES);
        });
        let statistics = ours.statistics().unwrap();
        assert!(statistics.mark_echoes > 0 && statistics.mark_reductions > 0, "{statistics:?}");

        let listener = net.bind((OURS, 0)).unwrap();
        let kernels = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let ours = listener.accept().unwrap().0;
        thread::scope(|scope| {
            scope.spawn(|| {
                pattern::send(&kernels, BYTES);
                kernels.shutdown(Shutdown::Write).unwrap();
            });
            pattern::receive(&ours, BYTES);
        });
        assert!(ours.statistics().unwrap().marked_segments > 0);
        // The kernel's window is what our echoes make it: it says whether it has heard them.
        let info = linerate_link::kernel_tcp::TcpInfo::of(&kernels).unwrap();
        if let Some(marked) = info.field("delivered_ce") {
            assert!(marked > 0, "the kernel has heard of no mark");
        }
        assert_content();
    });
}
