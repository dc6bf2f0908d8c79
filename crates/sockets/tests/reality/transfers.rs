//! Long transfers to and from the kernel, over links with and without impairments.

use crate::isn_recorder::{IsnRecorder, Recorded};
use crate::kernel::{KERNEL, OURS, assert_content, network, network_over};
use crate::pattern;
use crate::setting;
use linerate_link::namespace::isolated_test;
use linerate_link::{Impair, Tap};
use linerate_sockets::{Net, TcpStream};
use linerate_units::{Bytes, Duration};
use std::net::Shutdown;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::{net, thread, time};

/// Returns the number of bytes that a test transfers in each direction.
fn bytes() -> u64 {
    setting::<Bytes>("LINERATE_TRANSFER_BYTES", "64MiB").count()
}

/// Opens a connection to the kernel. Returns our stream and the kernel's.
pub(crate) fn to_kernel(net: &Net) -> (TcpStream, net::TcpStream) {
    let listener = net::TcpListener::bind((KERNEL, 0)).unwrap();
    let ours = net.connect(listener.local_addr().unwrap()).unwrap();
    (ours, listener.accept().unwrap().0)
}

/// Accepts a connection that the kernel opens. Returns our stream and the kernel's.
pub(crate) fn from_kernel(net: &Net) -> (TcpStream, net::TcpStream) {
    let listener = net.bind((OURS, 0)).unwrap();
    let kernels = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener.accept().unwrap().0, kernels)
}

/// Transfers `bytes` bytes from our host to the kernel.
pub(crate) fn upload(ours: &TcpStream, kernels: &net::TcpStream, bytes: u64) {
    thread::scope(|scope| {
        scope.spawn(|| {
            pattern::send(ours, bytes);
            ours.shutdown(Shutdown::Write).unwrap();
        });
        pattern::receive(kernels, bytes);
    });
}

/// Transfers `bytes` bytes from the kernel to our host.
pub(crate) fn download(ours: &TcpStream, kernels: &net::TcpStream, bytes: u64) {
    thread::scope(|scope| {
        scope.spawn(|| {
            pattern::send(kernels, bytes);
            kernels.shutdown(Shutdown::Write).unwrap();
        });
        pattern::receive(ours, bytes);
    });
}

/// Runs a transfer, prints its rate and counters (`--nocapture`), and checks the kernel's counters.
fn report(net: &Net, what: &str, ours: &TcpStream, bytes: u64, transfer: impl FnOnce()) {
    let start = time::Instant::now();
    transfer();
    let seconds = start.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "the figure is rounded for display")]
    let rate = bytes as f64 / seconds / 1e6;
    println!("{what}: {} in {seconds:.2} s, {rate:.1} MB/s", Bytes::new(bytes));
    println!("{:#?}\n{:?}", ours.statistics().unwrap(), net.activity());
    assert_content();
}

#[test]
fn the_kernel_receives_all_data() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let (ours, kernels) = to_kernel(&net);
        report(&net, "to the kernel", &ours, bytes(), || upload(&ours, &kernels, bytes()));
        assert_eq!(ours.statistics().unwrap().bytes_sent, bytes());
    });
}

#[test]
fn we_receive_all_data() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let (ours, kernels) = from_kernel(&net);
        report(&net, "from the kernel", &ours, bytes(), || download(&ours, &kernels, bytes()));
        assert_eq!(ours.statistics().unwrap().bytes_received, bytes());
    });
}

/// Returns a link that loses 1 % of the frames of each direction, duplicates 1 %, and reorders 1 %.
pub(crate) fn impaired_link(tap: Tap) -> Impair<Tap> {
    let impairments = "loss=1%,duplicate=1%,reorder=1%,reorder-by=3,reorder-within=2ms";
    Impair::new(tap, impairments.parse().unwrap(), 1988)
}

#[test]
fn the_kernel_receives_all_data_over_an_impaired_link() {
    isolated_test(|| {
        let Some((net, _)) = network_over(impaired_link) else { return };
        let (ours, kernels) = to_kernel(&net);
        report(&net, "to the kernel, impaired", &ours, bytes(), || {
            upload(&ours, &kernels, bytes());
        });
        assert!(ours.statistics().unwrap().retransmitted_segments > 0, "no segment was lost");
    });
}

#[test]
fn we_receive_all_data_over_an_impaired_link() {
    isolated_test(|| {
        let Some((net, _)) = network_over(impaired_link) else { return };
        let (ours, kernels) = from_kernel(&net);
        report(&net, "from the kernel, impaired", &ours, bytes(), || {
            download(&ours, &kernels, bytes());
        });
        let statistics = ours.statistics().unwrap();
        assert!(statistics.out_of_order_segments > 0 && statistics.duplicate_segments > 0);
    });
}

/// Number of bytes of a transfer during which the sequence numbers wrap around.
const ACROSS: u64 = 32 << 20;

/// Opens connections until the initial sequence number of one endpoint is at most [`ACROSS`] / 2
/// before the wrap-around. This endpoint is our host if `side` is 0, and the kernel if `side` is 1.
/// Returns the connection that was opened last.
fn shortly_before_the_end(
    net: &Net,
    recorded: &Recorded,
    side: usize,
) -> (TcpStream, net::TcpStream) {
    loop {
        let (ours, kernels) = to_kernel(net);
        let port = ours.local_addr().unwrap().port();
        let number = recorded.lock().unwrap()[&port][side].unwrap();
        if u64::from(number) > (1 << 32) - ACROSS / 2 {
            return (ours, kernels);
        }
        // The initial sequence number is too far from the wrap-around, so this connection is
        // dropped. With a linger time of zero, dropping resets it, so that no endpoint keeps a
        // TIME-WAIT record.
        ours.set_linger(Some(time::Duration::ZERO)).unwrap();
    }
}

#[test]
fn sequence_numbers_wrap_in_both_directions() {
    isolated_test(|| {
        let recorded = Recorded::default();
        let spied = |link| IsnRecorder { link, recorded: Recorded::clone(&recorded) };
        let Some((net, _)) = network_over(spied) else { return };
        let (ours, kernels) = shortly_before_the_end(&net, &recorded, 0);
        upload(&ours, &kernels, ACROSS);
        let (ours, kernels) = shortly_before_the_end(&net, &recorded, 1);
        download(&ours, &kernels, ACROSS);
        assert_content();
    });
}

/// Number of bytes of a transfer that is larger than the buffers of both endpoints together.
const MORE_THAN_FITS: u64 = 16 << 20;

/// Waits for the time for which a receiver does not read (`LINERATE_STALL`). It waits on a channel
/// on which nothing is ever sent.
fn stall() {
    let stall: Duration = setting("LINERATE_STALL", "5s");
    let (_sender, receiver) = channel::<()>();
    assert_eq!(receiver.recv_timeout(stall.into()), Err(RecvTimeoutError::Timeout));
}

#[test]
fn a_receiver_that_stalls_gets_all_data_afterwards() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let (up, kernels_down) = to_kernel(&net);
        let (down, kernels_up) = from_kernel(&net);
        thread::scope(|scope| {
            scope.spawn(|| {
                pattern::send(&up, MORE_THAN_FITS);
                up.shutdown(Shutdown::Write).unwrap();
            });
            scope.spawn(|| {
                pattern::send(&kernels_up, MORE_THAN_FITS);
                kernels_up.shutdown(Shutdown::Write).unwrap();
            });
            stall();
            scope.spawn(|| pattern::receive(&kernels_down, MORE_THAN_FITS));
            pattern::receive(&down, MORE_THAN_FITS);
        });
        let statistics = up.statistics().unwrap();
        println!("{statistics:#?}");
        assert!(statistics.zero_windows_received > 0 && statistics.window_probes > 0);
        assert_content();
    });
}
