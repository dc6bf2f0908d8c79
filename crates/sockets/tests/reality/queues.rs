//! A TAP device with several queues. Our host has a shard on each queue, and the kernel is its
//! peer.

use crate::kernel::{assert_content, configure_kernel_end};
use crate::transfers::{download, from_kernel, to_kernel, upload};
use linerate_link::namespace::{isolated_test, skip_test};
use linerate_link::tap::TapError;
use linerate_link::{Tap, TapConfig};
use linerate_sockets::{Net, StackConfig};

const QUEUES: usize = 3;
const BYTES: u64 = 4 << 20;

/// Starts a host with a shard for each queue of a device. Returns `None`, with a message, if this
/// machine has no TAP devices.
fn network(offloads: bool) -> Option<Net> {
    let queues = match Tap::open_queues(&TapConfig { offloads, ..TapConfig::default() }, QUEUES) {
        Err(error @ (TapError::NoDevice | TapError::DeviceForbidden)) => {
            skip_test(&error);
            return None;
        }
        opened => opened.unwrap(),
    };
    configure_kernel_end(&queues[0], crate::kernel::KERNEL);
    let config =
        StackConfig::new("02:00:00:00:00:02".parse().unwrap(), "10.0.0.2/24".parse().unwrap());
    let mut queues = queues.into_iter();
    let first = queues.next().unwrap();
    Some(Net::builder(first, config).queues(queues).start().unwrap())
}

/// Opens two connections per shard, one by our host and one by the kernel, and transfers data in
/// both directions over each.
fn exchange(net: &Net) {
    let ours: Vec<_> = (0..QUEUES).flat_map(|_| [to_kernel(net), from_kernel(net)]).collect();
    for (ours, kernels) in &ours {
        upload(ours, kernels, BYTES);
        download(ours, kernels, BYTES);
    }
    let counted = net.counters().unwrap();
    assert_eq!(
        (counted.tcp.active_opens, counted.tcp.passive_opens),
        (QUEUES as u64, QUEUES as u64)
    );
    assert_eq!(
        (counted.tcp.in_errors, counted.ip.in_header_errors, counted.tcp.out_resets),
        (0, 0, 0)
    );
    let dropped: u64 = net.handovers().iter().map(|shard| shard.dropped).sum();
    assert_eq!(dropped, 0);
    assert_content();
}

#[test]
fn every_connection_reaches_its_shard_whatever_queue_the_kernel_chooses() {
    isolated_test(|| {
        if let Some(net) = network(false) {
            exchange(&net);
        }
    });
}

#[test]
fn gso_frames_reach_their_shard() {
    isolated_test(|| {
        if let Some(net) = network(true) {
            exchange(&net);
        }
    });
}
