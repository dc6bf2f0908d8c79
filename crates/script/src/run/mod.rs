//! Runs a script on a host, event by event.

mod answer;
mod expect;

use crate::family::Family;
use crate::flows::Flows;
use crate::machine::{Answer, Machine, MachineError};
use crate::packet::Captured;
use crate::report::{Deviation, Report, Traced, Verdict};
use crate::syntax::{
    Action, Call, CallEvent, CodeError, Event, Expected, LineMark, ReturnTime, Script, ShellStep,
    Transfer, When, seconds,
};
use linerate_units::Duration;

/// Maximum number of packets in the trace of a report. Packets after these are omitted.
const TRACED: usize = 10_000;
/// Time to wait for a packet, or for the return of a call, after its latest permitted time. The
/// script has failed by then, but the report can say when the event happened.
const GRACE: Duration = Duration::from_millis(500);
/// Time to wait for a packet if times are not compared.
const UNTIMED_GRACE: Duration = Duration::from_secs(10);

/// Options for running a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether times are not compared, but only the events and their order. This suits a host that
    /// runs in real time on a busy machine.
    pub untimed: bool,
    /// The IP version over which the script runs.
    pub family: Family,
}

/// The run of a script on a host: the script, the host, and the state of the run.
#[derive(Debug)]
pub(crate) struct Run<'a, M> {
    script: &'a Script,
    options: Options,
    machine: M,
    flows: Flows,
    /// The call in progress: its line in the script, the call, and the time at which it should
    /// return. `None` between calls.
    waiting: Option<(u32, &'a CallEvent, Duration)>,
    /// Number of the socket of the connection that assertions examine; `None` before the first
    /// connection.
    current_socket: Option<i32>,
    printed: String,
    trace: Vec<Traced>,
}

/// The reason why a script ends early.
enum Stop {
    Deviation(Deviation),
    MachineError(MachineError),
}

impl From<MachineError> for Stop {
    fn from(trouble: MachineError) -> Self {
        Self::MachineError(trouble)
    }
}

impl<'a, M: Machine> Run<'a, M> {
    pub(crate) const fn new(
        script: &'a Script,
        flows: Flows,
        options: Options,
        machine: M,
    ) -> Self {
        Self {
            script,
            options,
            machine,
            flows,
            waiting: None,
            current_socket: None,
            printed: String::new(),
            trace: Vec::new(),
        }
    }

    /// Runs the script to its end or to the first difference.
    pub(crate) fn run_to_end(mut self) -> Report {
        let mut verdict = Verdict::Passed;
        for event in &self.script.events {
            if let Err(stop) = self.step(event) {
                verdict = stop.into_verdict(event.line);
                break;
            }
        }
        if verdict == Verdict::Passed
            && let Err(stop) = self.await_call()
        {
            let line = self.script.events.last().map_or(0, |event| event.line);
            verdict = stop.into_verdict(line);
        }
        self.trace_remaining();
        Report { verdict, took: self.machine.now(), printed: self.printed, trace: self.trace }
    }

    /// Adds the remaining packets to the trace: those that the host sent after the final packet
    /// that the script expects.
    fn trace_remaining(&mut self) {
        let now = self.machine.now();
        while let Ok(Some(Captured { at, bytes, .. })) = self.machine.next_packet(now) {
            self.trace_packet(Traced { at, sent: true, bytes });
        }
        self.trace.sort_by_key(|packet| packet.at);
    }

    fn step(&mut self, event: &'a Event) -> Result<(), Stop> {
        if matches!(event.action, Action::Call(_)) {
            self.await_call()?;
        }
        let base = self.machine.now();
        let (first, last) = event.when.span(base, M::MAX_WAIT);
        if let Action::Outbound(packet) = &event.action {
            return self.expect(event, packet, (base, first, last));
        }
        self.machine.wait_until(first)?;
        self.check_call(first)?;
        match &event.action {
            Action::Inbound(packet) => {
                let bytes = self.flows.inbound(packet).map_err(refused)?;
                self.inject(&bytes, packet.ip().line)?;
            }
            Action::Call(call) => self.call(event.line, call, base)?,
            Action::Code(code) => {
                let (machine, current_socket) = (&self.machine, self.current_socket);
                let field = |name: &str| machine.field(current_socket?, name);
                match code.run(&field) {
                    Ok(printed) => self.printed += &printed,
                    Err(error) => return Err(self.code_failure(event, error)),
                }
            }
            Action::Shell(steps) => self.set_up(steps)?,
            Action::Outbound(_) => {}
        }
        let now = self.machine.now();
        self.check_call(now)
    }

    /// Applies the settings of the script's shell lines to the host.
    fn set_up(&mut self, steps: &[ShellStep]) -> Result<(), Stop> {
        for step in steps {
            match step {
                ShellStep::Skip { line, note } => {
                    self.printed += &format!("line {line}: {note}\n");
                }
                ShellStep::Set(setting) => match self.machine.set(setting) {
                    Err(MachineError::Refused(what)) if setting.from_list => {
                        self.printed += &format!("line {}: left out: {what}\n", setting.line);
                    }
                    result => result?,
                },
            }
        }
        Ok(())
    }

    fn code_failure(&self, event: &Event, error: CodeError) -> Stop {
        match error {
            CodeError::Assertion { line, text, values } => Stop::Deviation(Deviation {
                line,
                what: "an assertion does not hold".to_owned(),
                expected: text,
                actual: format!("{} {}", seconds(self.machine.now()), values.trim()),
            }),
            CodeError::Unknown(_) if self.current_socket.is_none() => {
                refused("there is no connection yet: accept or connect first")
            }
            error => refused(format!("line {}: {error}", event.line)),
        }
    }

    fn inject(&mut self, packet: &[u8], line: Option<LineMark>) -> Result<(), Stop> {
        self.trace_packet(Traced { at: self.machine.now(), sent: false, bytes: packet.to_vec() });
        Ok(self.machine.inject(packet, line)?)
    }

    fn trace_packet(&mut self, traced: Traced) {
        if self.trace.len() < TRACED {
            self.trace.push(traced);
        }
    }

    /// Returns the tolerance for an event at time `at`. If the host's timers are coarse, the
    /// tolerance grows with the time from `since`, when the previous event happened, to `at`.
    fn tolerance(&self, since: Duration, at: Duration) -> Duration {
        let settings = &self.script.settings;
        let coarse = if M::HAS_COARSE_TIMERS { settings.tolerance_per_mille } else { 0 };
        let share = at.abs_diff(since).as_nanos() / 1_000 * coarse;
        settings.tolerance.max(Duration::from_nanos(share))
    }

    fn call(&mut self, line: u32, event: &'a CallEvent, base: Duration) -> Result<(), Stop> {
        if opens_connection(&event.call) {
            self.flows.connect();
        }
        let name = match event.expected {
            Expected::Value(value) => i32::try_from(value).unwrap_or(-1),
            Expected::Anything | Expected::Error(_) => -1,
        };
        let answer = self.machine.begin(&event.call, name, event.ends.is_some())?;
        let now = self.machine.now();
        let ends = match event.ends {
            None => now,
            Some(ReturnTime::At(at)) => at,
            Some(ReturnTime::After(after)) => base + after,
        };
        match answer {
            Some(answer) => self.compare(line, event, ends, (now, &answer)),
            None => {
                self.waiting = Some((line, event, ends));
                if event.ends.is_some() { Ok(()) } else { self.await_call() }
            }
        }
    }

    /// Waits until `until` for the call in progress to return. If it returns, compares its result
    /// with the expected one.
    fn check_call(&mut self, until: Duration) -> Result<(), Stop> {
        let Some((line, event, ends)) = self.waiting else { return Ok(()) };
        let Some((at, answer)) = self.machine.finish(until)? else { return Ok(()) };
        self.waiting = None;
        self.compare(line, event, ends, (at, &answer))
    }

    /// Waits for the call in progress, and compares its result. Returns an error if the call does
    /// not return within the tolerance and [`GRACE`] after its expected time.
    fn await_call(&mut self) -> Result<(), Stop> {
        let Some((line, event, ends)) = self.waiting else { return Ok(()) };
        let now = self.machine.now();
        let grace = if self.options.untimed { UNTIMED_GRACE } else { GRACE };
        self.check_call(ends.max(now) + self.tolerance(now, ends) + grace)?;
        if self.waiting.take().is_none() {
            return Ok(());
        }
        Err(Stop::Deviation(Deviation {
            line,
            what: "the call does not return".to_owned(),
            expected: event.text.clone(),
            actual: format!("it waits at {}", seconds(self.machine.now())),
        }))
    }

    fn compare(
        &mut self,
        line: u32,
        event: &CallEvent,
        ends: Duration,
        (at, answer): (Duration, &Answer),
    ) -> Result<(), Stop> {
        let deviation = |what: String, actual: String| {
            Stop::Deviation(Deviation {
                line,
                what,
                expected: event.text.clone(),
                actual: format!("{} {actual}", seconds(at)),
            })
        };
        answer::compare(event, answer, self.script.settings.tolerance)
            .map_err(|(what, actual)| deviation(what, actual))?;
        let off = at.abs_diff(ends);
        if !self.options.untimed && event.ends.is_some() && off > self.script.settings.tolerance {
            let word = if at < ends { "early" } else { "late" };
            return Err(deviation(
                format!("the call returned {} s {word}", seconds(off)),
                "it returned".to_owned(),
            ));
        }
        self.record_effects(event, answer);
        Ok(())
    }

    /// Updates the run's state after a successful call, such as the socket that assertions refer
    /// to.
    fn record_effects(&mut self, event: &CallEvent, answer: &Answer) {
        match (&event.call, event.expected) {
            (Call::Listen { .. }, _) if answer.result.is_ok() => self.flows.listen(),
            (Call::Connect { fd, .. } | Call::Write(Transfer { fd, .. }), _)
                if opens_connection(&event.call) =>
            {
                self.current_socket = Some(*fd);
            }
            (Call::Accept { .. }, Expected::Value(name)) => {
                self.current_socket = i32::try_from(name).ok();
            }
            _ => {}
        }
    }
}

/// Returns whether a call can make the host send the SYN of a new connection.
fn opens_connection(call: &Call) -> bool {
    const FAST_OPEN: i64 = 0x2000_0000;
    match call {
        Call::Connect { .. } => true,
        Call::Write(Transfer { address, flags, .. }) => address.is_some() || flags & FAST_OPEN != 0,
        _ => false,
    }
}

fn refused(what: impl Into<String>) -> Stop {
    Stop::MachineError(MachineError::Refused(what.into()))
}

impl Stop {
    fn into_verdict(self, line: u32) -> Verdict {
        match self {
            Self::Deviation(deviation) => Verdict::Failed(deviation),
            Self::MachineError(MachineError::Refused(what)) => Verdict::Refused { line, what },
            Self::MachineError(MachineError::Broken(what)) => Verdict::Broken { line, what },
        }
    }
}

impl When {
    /// Returns the earliest and the latest permitted time of an event, given the time `base` of the
    /// previous event. An event with any time (`*`) must happen within `timeout` after `base`.
    fn span(self, base: Duration, timeout: Duration) -> (Duration, Duration) {
        match self {
            Self::At(at) => (at, at),
            Self::After(after) => (base + after, base + after),
            Self::Any => (Duration::ZERO, base + timeout),
            Self::Between(first, last) => (first, last),
            Self::AfterBetween(first, last) => (base + first, base + last),
        }
    }
}
