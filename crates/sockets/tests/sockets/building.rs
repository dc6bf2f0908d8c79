//! A network is what its builder was told, as far as that can be.

use crate::networks::{LEFT, RIGHT, cable, config};
use linerate_link::Readiness;
use linerate_link::memory::{MemoryConfig, MemoryLink, queues};
use linerate_sockets::{Budget, Net};
use linerate_stack::{Capabilities, Link, LinkError, RxFrame, SMALLEST_MTU, TxFrame};
use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::sync::mpsc;
use std::thread;

#[test]
fn its_threads_have_its_name_and_the_numbers_of_its_shards() {
    let (sender, names) = mpsc::channel();
    let tell = move |_| sender.send(thread::current().name().unwrap().to_owned()).unwrap();
    let (one, _other) = cable();
    let (two, _others) = queues(MemoryConfig::default(), 2).unwrap();
    let mut two = two.into_iter();
    // A name of the system's ends with a zero byte, whatever the application has behind it.
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
fn without_a_budget_it_does_one_thing_at_a_time() {
    let (left, right) = cable();
    let nothing = Budget { receive: 0, timers: 0, transmit: 0 };
    let left = Net::builder(left, config(LEFT)).budget(nothing).start().unwrap();
    let right = Net::builder(right, config(RIGHT)).start().unwrap();
    let _listener = left.bind((LEFT, 80)).unwrap();
    right.connect((LEFT, 80)).unwrap();
    // It comes to an end with what there is to do.
    let before = left.activity().sleeps;
    while left.activity().sleeps == before {
        thread::yield_now();
    }
}

/// The end of a cable that calls itself narrower than it is.
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
}

#[test]
fn a_link_in_whose_packets_no_segment_fits_is_refused() {
    let [one, other] = <[_; 2]>::from(cable());
    Net::builder(Narrow(one, SMALLEST_MTU), config(LEFT)).start().unwrap();
    let error = Net::builder(Narrow(other, SMALLEST_MTU - 1), config(RIGHT)).start().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("an MTU of 87 bytes is too narrow"), "{error}");
}
