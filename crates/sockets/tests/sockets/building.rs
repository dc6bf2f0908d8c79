//! Tests of the options of [`Builder`](linerate_sockets::Builder).

use crate::networks::{LEFT, RIGHT, cable, config};
use linerate_link::Readiness;
use linerate_link::memory::{MemoryConfig, MemoryLink, queues};
use linerate_sockets::{Budget, Net};
use linerate_stack::{Capabilities, Link, LinkError, RxFrame, SMALLEST_MTU, TxFrame};
use linerate_units::Instant;
use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::sync::mpsc;
use std::thread;

#[test]
fn threads_have_the_name_of_the_network_and_the_number_of_their_shard() {
    let (sender, names) = mpsc::channel();
    let tell = move |_| sender.send(thread::current().name().unwrap().to_owned()).unwrap();
    let (one, _other) = cable();
    let (two, _others) = queues(MemoryConfig::default(), 2).unwrap();
    let mut two = two.into_iter();
    // A thread name of the operating system ends at a zero byte, so the builder must drop the rest
    // of this name.
    drop(
        Net::builder(one, config(LEFT)).name("one\0more").when_ended(tell.clone()).start().unwrap(),
    );
    let builder = Net::builder(two.next().unwrap(), config(RIGHT)).queues(two);
    drop(builder.name("two").when_ended(tell).start().unwrap());
    let mut names: Vec<_> = names.iter().collect();
    names.sort();
    assert_eq!(names, ["one", "two-0", "two-1"]);
}

#[test]
fn a_budget_of_zero_is_raised_to_one() {
    let (left, right) = cable();
    let nothing = Budget { receive: 0, timers: 0, transmit: 0 };
    let left = Net::builder(left, config(LEFT)).budget(nothing).start().unwrap();
    let right = Net::builder(right, config(RIGHT)).start().unwrap();
    let _listener = left.bind((LEFT, 80)).unwrap();
    right.connect((LEFT, 80)).unwrap();
    // A budget of zero must count as one. If it did not, the network would never complete its work,
    // and would never go to sleep.
    let before = left.activity().sleeps;
    while left.activity().sleeps == before {
        thread::yield_now();
    }
}

/// A memory link that reports another MTU than its own: the second field, in bytes.
struct Narrow(MemoryLink, usize);

impl Link for Narrow {
    fn receive(
        &mut self,
        budget: usize,
        on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        self.0.receive(budget, on_frame)
    }

    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        self.0.transmit(budget, fill)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { mtu: self.1, ..self.0.capabilities() }
    }
}

impl Readiness for Narrow {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.wakeup_fd()
    }

    fn wants_room(&self) -> bool {
        self.0.wants_room()
    }

    fn is_ready(&mut self) -> bool {
        self.0.is_ready()
    }

    fn prepare_to_sleep(&mut self) -> bool {
        self.0.prepare_to_sleep()
    }

    fn awake(&mut self, signalled: bool) {
        self.0.awake(signalled);
    }

    fn next_deadline(&self) -> Instant {
        self.0.next_deadline()
    }
}

#[test]
fn a_link_whose_mtu_is_too_small_for_a_segment_is_refused() {
    let [one, other] = <[_; 2]>::from(cable());
    Net::builder(Narrow(one, SMALLEST_MTU), config(LEFT)).start().unwrap();
    let error = Net::builder(Narrow(other, SMALLEST_MTU - 1), config(RIGHT)).start().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("an MTU of 87 bytes is too narrow"), "{error}");
}
