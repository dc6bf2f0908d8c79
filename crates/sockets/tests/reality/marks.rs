//! Congestion marks that a router on the way sets (RFC 3168), of both directions.

use crate::kernel::{KERNEL, OURS, assert_content, network_with};
use crate::pattern;
use linerate_link::namespace::isolated_test;
use linerate_link::{Readiness, Tap};
use linerate_stack::{Capabilities, Link, LinkError, RxChecksum, RxFrame, TxFrame};
use linerate_tcp::EcnRule;
use linerate_wire::Sum;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::{fs, thread};

/// One frame in so many is marked.
const ONE_IN: u32 = 50;

const BYTES: u64 = 8 << 20;

/// A router with a queue that is often too long: it marks what may be marked.
struct Router {
    link: Tap,
    seen: u32,
}

impl Router {
    /// Marks an IP packet with an ECN-capable transport: the two bits of congestion, and the checksum.
    fn mark(seen: &mut u32, frame: &mut [u8]) {
        let may_be_marked = frame.len() >= 34 && frame[12..14] == [8, 0] && frame[15] & 3 != 0;
        *seen += u32::from(may_be_marked);
        if may_be_marked && seen.is_multiple_of(ONE_IN) {
            frame[15] |= 3;
            frame[24..26].fill(0);
            let checksum = Sum::of(&frame[14..34]).finish();
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

impl Link for Router {
    fn receive(&mut self, budget: usize, mut on_frame: impl FnMut(RxFrame<'_>)) -> Result<usize, LinkError> {
        let seen = &mut self.seen;
        self.link.receive(budget, |frame| {
            let mut bytes = frame.bytes.to_vec();
            Self::mark(seen, &mut bytes);
            on_frame(RxFrame { bytes: &bytes, checksum: RxChecksum::Unverified, ..frame });
        })
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        let seen = &mut self.seen;
        self.link.transmit(budget, |bytes| {
            let frame = fill(bytes)?;
            Self::mark(seen, &mut bytes[..frame.length]);
            Some(frame)
        })
    }

    fn capabilities(&self) -> Capabilities {
        self.link.capabilities()
    }
}

impl Readiness for Router {
    fn fd(&self) -> BorrowedFd<'_> {
        self.link.fd()
    }

    fn wants_room(&self) -> bool {
        self.link.wants_room()
    }
}

#[test]
fn marks_reduce_the_sender_s_window_on_either_side_and_lose_nothing() {
    isolated_test(|| {
        fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").unwrap();
        let router = |link| Router { link, seen: 0 };
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
