//! A program written for `std::net` must give equal results over the sockets of the system and over
//! ours.

use crate::networks::{LEFT, networks};
use crate::store::{over_linerate, over_the_system, questions};
use std::{io, thread};

fn ask_over_the_system() -> io::Result<Vec<String>> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::scope(|scope| {
        scope.spawn(move || over_the_system::serve(&listener, 1));
        over_the_system::ask(std::net::TcpStream::connect(address)?, &questions())
    })
}

fn ask_over_linerate() -> io::Result<Vec<String>> {
    let (left, right) = networks();
    let listener = left.bind((LEFT, 0))?;
    let address = listener.local_addr()?;
    thread::scope(|scope| {
        scope.spawn(move || over_linerate::serve(&listener, 1));
        over_linerate::ask(right.connect(address)?, &questions())
    })
}

#[test]
fn a_program_for_std_net_has_the_same_results_over_these_sockets() {
    let answers = ask_over_linerate().unwrap();
    assert_eq!(answers, ask_over_the_system().unwrap());
    assert_eq!(answers[999..], ["meaning499", "?", "what?"]);
}
