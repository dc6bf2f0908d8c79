//! Long transfers to and from the kernel, over good cables and bad ones.

use crate::kernel::{KERNEL, OURS, assert_content, network, network_over};
use crate::pattern;
use crate::setting;
use crate::spy::{Noted, Spy};
use linerate_link::namespace::isolated_test;
use linerate_link::{Impair, Tap};
use linerate_sockets::{Net, TcpStream};
use linerate_units::{Bytes, Duration};
use std::net::Shutdown;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::{net, thread, time};

/// How much is transferred each way.
fn bytes() -> u64 {
    setting::<Bytes>("LINERATE_TRANSFER_BYTES", "64MiB").count()
}

/// A connection that we open: our end and the kernel's.
pub(crate) fn to_kernel(net: &Net) -> (TcpStream, net::TcpStream) {
    let listener = net::TcpListener::bind((KERNEL, 0)).unwrap();
    let ours = net.connect(listener.local_addr().unwrap()).unwrap();
    (ours, listener.accept().unwrap().0)
}

/// A connection that the kernel opens: our end and the kernel's.
pub(crate) fn from_kernel(net: &Net) -> (TcpStream, net::TcpStream) {
    let listener = net.bind((OURS, 0)).unwrap();
    let kernels = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener.accept().unwrap().0, kernels)
}

/// We send so many bytes and close.
pub(crate) fn upload(ours: &TcpStream, kernels: &net::TcpStream, bytes: u64) {
    thread::scope(|scope| {
        scope.spawn(|| {
            pattern::send(ours, bytes);
            ours.shutdown(Shutdown::Write).unwrap();
        });
        pattern::receive(kernels, bytes);
    });
}

/// The kernel does.
pub(crate) fn download(ours: &TcpStream, kernels: &net::TcpStream, bytes: u64) {
    thread::scope(|scope| {
        scope.spawn(|| {
            pattern::send(kernels, bytes);
            kernels.shutdown(Shutdown::Write).unwrap();
        });
        pattern::receive(ours, bytes);
    });
}

/// Transfers, says for people who ask (`--nocapture`) how it went, and has the kernel be content.
fn report(net: &Net, what: &str, ours: &TcpStream, bytes: u64, transfer: impl FnOnce()) {
    let start = time::Instant::now();
    transfer();
    let seconds = start.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = bytes as f64 / seconds / 1e6;
    println!("{what}: {} in {seconds:.2} s, {rate:.1} MB/s", Bytes::new(bytes));
    println!("{:#?}\n{:?}", ours.statistics().unwrap(), net.activity());
    assert_content();
}

#[test]
fn the_kernel_receives_what_we_send() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let (ours, kernels) = to_kernel(&net);
        report(&net, "to the kernel", &ours, bytes(), || upload(&ours, &kernels, bytes()));
        assert_eq!(ours.statistics().unwrap().bytes_sent, bytes());
    });
}

#[test]
fn we_receive_what_the_kernel_sends() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let (ours, kernels) = from_kernel(&net);
        report(&net, "from the kernel", &ours, bytes(), || download(&ours, &kernels, bytes()));
        assert_eq!(ours.statistics().unwrap().bytes_received, bytes());
    });
}

/// A cable that loses, doubles and reorders one frame in a hundred of each direction.
pub(crate) fn bad_cable(tap: Tap) -> Impair<Tap> {
    let impairments = "loss=1%,duplicate=1%,reorder=1%,reorder-by=3,reorder-within=2ms";
    Impair::new(tap, impairments.parse().unwrap(), 1988)
}

#[test]
fn the_kernel_receives_what_we_send_over_a_bad_cable() {
    isolated_test(|| {
        let Some((net, _)) = network_over(bad_cable) else { return };
        let (ours, kernels) = to_kernel(&net);
        report(&net, "to the kernel, badly", &ours, bytes(), || upload(&ours, &kernels, bytes()));
        assert!(ours.statistics().unwrap().retransmitted_segments > 0, "the cable was too good");
    });
}

#[test]
fn we_receive_what_the_kernel_sends_over_a_bad_cable() {
    isolated_test(|| {
        let Some((net, _)) = network_over(bad_cable) else { return };
        let (ours, kernels) = from_kernel(&net);
        report(&net, "from the kernel, badly", &ours, bytes(), || {
            download(&ours, &kernels, bytes());
        });
        let statistics = ours.statistics().unwrap();
        assert!(statistics.out_of_order_segments > 0 && statistics.duplicate_segments > 0);
    });
}

/// So much is transferred across the end of sequence space.
const ACROSS: u64 = 32 << 20;

/// Opens connections until one begins shortly before the end of sequence space, on our side (0) or the
/// kernel's (1).
fn shortly_before_the_end(net: &Net, noted: &Noted, side: usize) -> (TcpStream, net::TcpStream) {
    loop {
        let (ours, kernels) = to_kernel(net);
        let port = ours.local_addr().unwrap().port();
        let number = noted.lock().unwrap()[&port][side].unwrap();
        if u64::from(number) > (1 << 32) - ACROSS / 2 {
            return (ours, kernels);
        }
        // A reset leaves nothing behind on either side.
        ours.set_linger(Some(time::Duration::ZERO)).unwrap();
    }
}

#[test]
fn sequence_numbers_go_through_zero_in_both_directions() {
    isolated_test(|| {
        let noted = Noted::default();
        let spied = |link| Spy { link, noted: Noted::clone(&noted) };
        let Some((net, _)) = network_over(spied) else { return };
        let (ours, kernels) = shortly_before_the_end(&net, &noted, 0);
        upload(&ours, &kernels, ACROSS);
        let (ours, kernels) = shortly_before_the_end(&net, &noted, 1);
        download(&ours, &kernels, ACROSS);
        assert_content();
    });
}

/// More than the buffers of both ends hold.
const MORE_THAN_FITS: u64 = 16 << 20;

/// Lets time pass: nobody sends on the channel.
fn stand_still() {
    let stall: Duration = setting("LINERATE_STALL", "5s");
    let (_sender, receiver) = channel::<()>();
    assert_eq!(receiver.recv_timeout(stall.into()), Err(RecvTimeoutError::Timeout));
}

#[test]
fn a_receiver_that_stands_still_for_long_gets_everything_afterwards() {
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
            stand_still();
            scope.spawn(|| pattern::receive(&kernels_down, MORE_THAN_FITS));
            pattern::receive(&down, MORE_THAN_FITS);
        });
        let statistics = up.statistics().unwrap();
        println!("{statistics:#?}");
        assert!(statistics.zero_windows_received > 0 && statistics.window_probes > 0);
        assert_content();
    });
}
