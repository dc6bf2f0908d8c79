//! A session: one control connection at the sink, on which a sweep requests runs one after the
//! other.

use super::event::{Event, Served, Service};
use super::refuse::refuse;
use super::run::{ControlEnd, Run, objection};
use super::shared::Shared;
use crate::control::greeting::{self, Token};
use crate::control::{Description, LineError, Lines, Opened, Reply, Request, RunSpec};
use crate::machine;
use crate::socket::Stream;
use linerate_link::random_bytes;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time without a request while no run is in progress. After this time, the session ends.
const IDLE: Duration = Duration::from_secs(300);
/// Timeout of each write of a reply, in case the sweep does not read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for which a request for a run waits while the run of another sweep has locked the
/// receive buffer.
const BUFFER_LOCK_TIMEOUT: Duration = Duration::from_secs(4);

/// The state of a control connection, with its latest run.
struct Session<'s, 'a> {
    shared: &'s Shared<'a>,
    control: Arc<ControlEnd>,
    /// The latest run, with the token that identifies its data connection.
    run: Option<(Token, Arc<Run<'a>>)>,
    /// Number of runs that were accepted.
    runs: u64,
}

/// Serves a control connection. `already` is the data that was received together with the greeting.
pub(super) fn serve(stream: &Stream, peer: SocketAddr, already: &[u8], shared: &Shared<'_>) {
    let Some(place) = shared.enter_session() else {
        let reason = format!("this sink serves at most {} sweeps", shared.limits.sessions);
        refuse(stream, &reason);
        shared.tell(&Event::Rejected { peer, reason });
        return;
    };
    let Ok((mut lines, control)) = prepare(stream, already) else {
        return;
    };
    let mut session = Session { shared, control: Arc::new(control), run: None, runs: 0 };
    session.serve_until_it_ends(&mut lines);
    let service = Service::Control { runs: session.runs, totals: session.control.totals() };
    drop(session);
    // The session's place is freed before the event is reported: the receiver of the event may open
    // the next control connection at once.
    drop(place);
    shared.tell(&Event::Served(Served {
        peer,
        service,
        bytes: 0,
        first: None,
        span: Duration::ZERO,
    }));
}

/// Accepts the control connection by the reply to its greeting. Returns a receiver of the sweep's
/// requests, and the sending direction of the connection.
fn prepare(mut stream: &Stream, already: &[u8]) -> io::Result<(Lines, ControlEnd)> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    stream.write_all(greeting::SINK.as_bytes())?;
    Ok((Lines::new(stream.try_clone()?, already), ControlEnd::new(stream.try_clone()?)))
}

impl Session<'_, '_> {
    fn serve_until_it_ends(&mut self, lines: &mut Lines) {
        loop {
            let run_needs = self.run.as_ref().and_then(|(_, run)| run.timeout());
            match lines.next_message::<Request>(run_needs.unwrap_or(IDLE)) {
                Ok(request) => self.answer(&request),
                Err(LineError::TimedOut) if run_needs.is_some() => self.look_after_run(),
                Err(LineError::NoMessage(_)) => {
                    self.control.refuse("this is not a request of this version");
                    return;
                }
                Err(_) => return,
            }
        }
    }

    fn answer(&mut self, request: &Request) {
        match *request {
            Request::Describe {} => self.control.send(&Reply::Description(self.description())),
            Request::Time {} => {
                let nanos =
                    u64::try_from(self.shared.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
                self.control.send(&Reply::Time { nanos });
            }
            Request::Grant { receive_buffer } => {
                match self.shared.receive_buffer.would_grant(receive_buffer) {
                    Ok(granted_bytes) => self.control.send(&Reply::Granted { granted_bytes }),
                    Err(error) => self.control.refuse(format!("no buffer is granted: {error}")),
                }
            }
            Request::Open(spec) => match self.open(spec) {
                Ok(opened) => self.control.send(&Reply::Opened(opened)),
                Err(reason) => self.control.refuse(reason),
            },
            Request::Stop {} => match &self.run {
                Some((token, run)) if !run.is_over() => {
                    run.stop();
                    // The run may still be waiting for its data connection, in a list of expected
                    // runs. It is removed from that list. Otherwise a sweep that repeatedly opens
                    // and stops runs could fill the sink's memory.
                    self.shared.take_expected(*token);
                }
                // There is no run to stop, so nothing is done. If a run ended while this request
                // was on its way, its report is sent in any case.
                _ => {}
            },
        }
    }

    fn description(&self) -> Description {
        Description {
            program: concat!("linerate ", env!("CARGO_PKG_VERSION")).to_owned(),
            kernel: machine::kernel(),
            tcp: self.shared.receive_buffer.tcp(),
            rmem_max: machine::sysctl("net.core.rmem_max").and_then(|limit| limit.parse().ok()),
            sessions: self.shared.session_count() as u64,
        }
    }

    /// Accepts a run: locks and sets the receive buffer, and registers the run under a new token.
    /// If the sink refuses the run, returns the reason.
    fn open(&mut self, spec: RunSpec) -> Result<Opened, String> {
        if self.run.as_ref().is_some_and(|(_, run)| !run.is_over()) {
            return Err("the previous run has not ended".to_owned());
        }
        if let Some(objection) = objection(&spec) {
            return Err(objection);
        }
        let token = new_token().map_err(|error| format!("no random token: {error}"))?;
        let guard = self
            .shared
            .receive_buffer
            .lock_buffer(BUFFER_LOCK_TIMEOUT)
            .ok_or("another sweep is opening a run: try again")?;
        let granted = guard.set(spec.receive_buffer, spec.max_segment);
        let granted_bytes =
            granted.map_err(|error| format!("the run's options are refused: {error}"))?;
        let run = Arc::new(Run::expected(
            spec,
            Arc::clone(&self.control),
            guard,
            self.shared.limits.arrival,
        ));
        self.shared.expect(token, Arc::clone(&run));
        self.run = Some((token, run));
        self.runs += 1;
        Ok(Opened { token, granted_bytes })
    }

    /// Cancels the run if its data connection is late. This unlocks the receive buffer for the runs
    /// of other sweeps.
    fn look_after_run(&mut self) {
        if let Some((token, run)) = &self.run
            && run.give_up_if_late()
        {
            self.shared.take_expected(*token);
            self.control.refuse("the data connection did not come in time");
        }
    }
}

/// Stops and removes the latest run when the sweep disconnects.
impl Drop for Session<'_, '_> {
    fn drop(&mut self) {
        if let Some((token, run)) = self.run.take() {
            run.stop();
            self.shared.take_expected(token);
        }
    }
}

/// Creates a token from random bytes of the system, so that other peers cannot guess the token.
fn new_token() -> io::Result<Token> {
    Ok(Token(u128::from_ne_bytes(random_bytes()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::limits::Limits;
    use crate::sink::receive_buffer::ReceiveBufferLock;
    use crate::socket::{Listening, Network, Options};
    use std::net::TcpStream;

    #[test]
    fn a_stopped_run_no_longer_waits_for_its_data_connection() {
        let any_port = "127.0.0.1:0".parse().unwrap();
        let listener = Listening::at(&Network::Kernel, any_port, &Options::default()).unwrap();
        let receive_buffer = ReceiveBufferLock::new(&listener).unwrap();
        let tell = |_: &Event| ();
        let shared = Shared::new(&receive_buffer, Limits::default(), &tell);
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let control = Arc::new(ControlEnd::new(stream.into()));
        let mut session = Session { shared: &shared, control, run: None, runs: 0 };
        session.answer(&Request::Open(RunSpec {
            receive_buffer: None,
            bytes: 1_000,
            read_size: 1_000,
            verify: None,
            max_milliseconds: 1_000,
            max_segment: None,
            observe_after: None,
            discard: false,
        }));
        let token = session.run.as_ref().unwrap().0;
        session.answer(&Request::Stop {});
        assert!(shared.take_expected(token).is_none());
    }
}
