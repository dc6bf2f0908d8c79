//! A fake sink for tests. It follows the protocol, but compares and counts no data: it ends each
//! run with a given report.

use super::greeting::{self, Token};
use super::message::{Description, Opened, Ready, Reply, Report, Request, SinkTcp};
use crate::peer::Peer;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

/// Starts a thread that serves one sweep, and ends each run with `report`. Returns the address of
/// this sink and the handle of its thread.
///
/// # Panics
/// If the sweep violates the protocol.
#[must_use]
#[allow(clippy::unwrap_used, reason = "a sink for tests")]
pub fn fake_sink(report: Report) -> (Peer, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = Peer { host: "127.0.0.1".to_owned(), port: listener.local_addr().unwrap().port() };
    (peer, thread::spawn(move || serve(&listener, &report)))
}

#[allow(clippy::unwrap_used, reason = "a sink for tests")]
fn serve(listener: &TcpListener, report: &Report) {
    let (mut control, _) = listener.accept().unwrap();
    let mut lines = BufReader::new(control.try_clone().unwrap()).lines().map_while(Result::ok);
    lines.next().unwrap();
    control.write_all(greeting::SINK.as_bytes()).unwrap();
    let mut send = |reply: Reply| {
        // An error means that the sweep has closed the connection, so it needs no reply.
        let _ = writeln!(control, "{}", serde_json::to_string(&reply).unwrap());
    };
    for line in lines {
        match serde_json::from_str(&line).unwrap() {
            Request::Describe {} => send(Reply::Description(description())),
            Request::Grant { receive_buffer } => {
                send(Reply::Granted { granted_bytes: receive_buffer * 2 });
            }
            Request::Time {} => send(Reply::Time { nanos: 0 }),
            Request::Open(_) => {
                send(Reply::Opened(Opened { token: Token(7), granted_bytes: 1 }));
                let (mut data, _) = listener.accept().unwrap();
                thread::spawn(move || io::copy(&mut data, &mut io::sink()));
                send(Reply::Ready(Ready { granted_bytes: 1 }));
                send(Reply::Done(report.clone()));
            }
            Request::Stop {} => {}
        }
    }
}

fn description() -> Description {
    let (program, kernel) = ("false".to_owned(), "none".to_owned());
    Description { program, kernel, tcp: SinkTcp::Kernel, rmem_max: None, sessions: 1 }
}
