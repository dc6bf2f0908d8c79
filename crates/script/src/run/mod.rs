//! Going through a script with a machine, event by event.

mod answer;
mod expect;

use crate::flows::Flows;
use crate::machine::{Answer, Machine, Trouble};
use crate::packet::Captured;
use crate::report::{Deviation, Report, Traced, Verdict};
use crate::syntax::{
    Action, Call, CallEvent, CodeError, Ends, Event, Expected, Script, ShellStep, Transfer, When,
    seconds,
};
use linerate_units::Duration;

/// Packets that a report holds; scripts that make more have gone wrong.
const TRACED: usize = 10_000;
/// How long after its time a packet that did not come is still waited for, so that it can be said
/// when it came.
const GRACE: Duration = Duration::from_millis(500);
/// The same where moments are not judged at all.
const UNTIMED_GRACE: Duration = Duration::from_secs(10);

/// How scripts are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Judge what happens and in which order, and not when: for a busy machine's real time.
    pub untimed: bool,
}

/// A script on its way.
#[derive(Debug)]
pub(crate) struct Run<'a, M> {
    script: &'a Script,
    options: Options,
    machine: M,
    flows: Flows,
    /// The call that waits, and when it should end.
    waiting: Option<(u32, &'a CallEvent, Duration)>,
    /// The socket whose connection code is about.
    subject: Option<i32>,
    printed: String,
    trace: Vec<Traced>,
}

/// Why a script does not go on.
enum Stop {
    Deviation(Deviation),
    Trouble(Trouble),
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
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
            subject: None,
            printed: String::new(),
            trace: Vec::new(),
        }
    }

    /// Goes through the script, to its end or to where the machine leaves it.
    pub(crate) fn go(mut self) -> Report {
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
        self.note_the_rest();
        Report { verdict, took: self.machine.now(), printed: self.printed, trace: self.trace }
    }

    /// What was sent and not expected any more belongs to the trace, too.
    fn note_the_rest(&mut self) {
        let now = self.machine.now();
        while let Ok(Some(Captured { at, bytes })) = self.machine.next_packet(now) {
            self.note(Traced { at, sent: true, bytes });
        }
        self.trace.sort_by_key(|packet| packet.at);
    }

    fn step(&mut self, event: &'a Event) -> Result<(), Stop> {
        if matches!(event.action, Action::Call(_)) {
            self.await_call()?;
        }
        let base = self.machine.now();
        let (first, last) = event.when.span(base, M::PATIENCE);
        if let Action::Outbound(segment) = &event.action {
            return self.expect(event, segment, (base, first, last));
        }
        self.machine.pass_until(first)?;
        self.check_call(first)?;
        match &event.action {
            Action::Inbound(segment) => {
                let packet = self.flows.inbound(segment);
                self.inject(&packet)?;
            }
            Action::InboundIcmp(icmp) => match self.flows.inbound_icmp(icmp) {
                Some(packet) => self.inject(&packet)?,
                None => {
                    return Err(refused(
                        "there is no connection yet whose segment could be quoted",
                    ));
                }
            },
            Action::Call(call) => self.call(event.line, call, base)?,
            Action::Code(code) => {
                let (machine, subject) = (&self.machine, self.subject);
                let field = |name: &str| machine.field(subject?, name);
                match code.run(&field) {
                    Ok(printed) => self.printed += &printed,
                    Err(error) => return Err(self.judge_code(event, error)),
                }
            }
            Action::Shell(steps) => self.set_up(steps)?,
            Action::Outbound(_) => {}
        }
        let now = self.machine.now();
        self.check_call(now)
    }

    /// Carries out shell lines.
    fn set_up(&mut self, steps: &[ShellStep]) -> Result<(), Stop> {
        for step in steps {
            match step {
                ShellStep::Skip { line, note } => {
                    self.printed += &format!("line {line}: {note}\n");
                }
                ShellStep::Set(setting) => match self.machine.set(setting) {
                    Err(Trouble::Refused(what)) if setting.from_list => {
                        self.printed += &format!("line {}: left out: {what}\n", setting.line);
                    }
                    result => result?,
                },
            }
        }
        Ok(())
    }

    fn judge_code(&self, event: &Event, error: CodeError) -> Stop {
        match error {
            CodeError::Assertion { line, text, values } => Stop::Deviation(Deviation {
                line,
                what: "an assertion does not hold".to_owned(),
                expected: text,
                came: format!("{} {}", seconds(self.machine.now()), values.trim()),
            }),
            CodeError::Unknown(_) if self.subject.is_none() => {
                refused("there is no connection yet that could be asked: accept or connect first")
            }
            error => refused(format!("line {}: {error}", event.line)),
        }
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), Stop> {
        self.note(Traced { at: self.machine.now(), sent: false, bytes: packet.to_vec() });
        Ok(self.machine.inject(packet)?)
    }

    fn note(&mut self, traced: Traced) {
        if self.trace.len() < TRACED {
            self.trace.push(traced);
        }
    }

    /// What a moment may be off, `since` the event before.
    fn tolerance(&self, since: Duration, at: Duration) -> Duration {
        let settings = &self.script.settings;
        let coarse = if M::COARSE { settings.tolerance_per_mille } else { 0 };
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
            Some(Ends::At(at)) => at,
            Some(Ends::After(after)) => base + after,
        };
        match answer {
            Some(answer) => self.judge(line, event, ends, (now, &answer)),
            None => {
                self.waiting = Some((line, event, ends));
                if event.ends.is_some() { Ok(()) } else { self.await_call() }
            }
        }
    }

    /// If the call that waits has ended by `until`, judges it.
    fn check_call(&mut self, until: Duration) -> Result<(), Stop> {
        let Some((line, event, ends)) = self.waiting else { return Ok(()) };
        let Some((at, answer)) = self.machine.finish(until)? else { return Ok(()) };
        self.waiting = None;
        self.judge(line, event, ends, (at, &answer))
    }

    /// The call that waits must end now, if there is one.
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
            came: format!("it waits at {}", seconds(self.machine.now())),
        }))
    }

    fn judge(
        &mut self,
        line: u32,
        event: &CallEvent,
        ends: Duration,
        (at, answer): (Duration, &Answer),
    ) -> Result<(), Stop> {
        let deviation = |what: String, came: String| {
            Stop::Deviation(Deviation {
                line,
                what,
                expected: event.text.clone(),
                came: format!("{} {came}", seconds(at)),
            })
        };
        answer::judge(event, answer, self.script.settings.tolerance)
            .map_err(|(what, came)| deviation(what, came))?;
        let off = at.abs_diff(ends);
        if !self.options.untimed && event.ends.is_some() && off > self.tolerance(ends, ends) {
            let word = if at < ends { "early" } else { "late" };
            return Err(deviation(
                format!("the call returned {} s {word}", seconds(off)),
                "it returned".to_owned(),
            ));
        }
        self.learn(event, answer);
        Ok(())
    }

    /// What a call means for what comes after it.
    fn learn(&mut self, event: &CallEvent, answer: &Answer) {
        match (&event.call, event.expected) {
            (Call::Listen { .. }, _) if answer.result.is_ok() => self.flows.listen(),
            (Call::Connect { fd, .. } | Call::Write(Transfer { fd, .. }), _)
                if opens_connection(&event.call) =>
            {
                self.subject = Some(*fd);
            }
            (Call::Accept { .. }, Expected::Value(name)) => self.subject = i32::try_from(name).ok(),
            _ => {}
        }
    }
}

/// Can the SYN of a new connection follow from this call?
fn opens_connection(call: &Call) -> bool {
    const FAST_OPEN: i64 = 0x2000_0000;
    match call {
        Call::Connect { .. } => true,
        Call::Write(Transfer { address, flags, .. }) => address.is_some() || flags & FAST_OPEN != 0,
        _ => false,
    }
}

fn refused(what: impl Into<String>) -> Stop {
    Stop::Trouble(Trouble::Refused(what.into()))
}

impl Stop {
    fn into_verdict(self, line: u32) -> Verdict {
        match self {
            Self::Deviation(deviation) => Verdict::Failed(deviation),
            Self::Trouble(Trouble::Refused(what)) => Verdict::Refused { line, what },
            Self::Trouble(Trouble::Broken(what)) => Verdict::Broken { line, what },
        }
    }
}

impl When {
    /// From when to when, if the event before was at `base`.
    fn span(self, base: Duration, patience: Duration) -> (Duration, Duration) {
        match self {
            Self::At(at) => (at, at),
            Self::After(after) => (base + after, base + after),
            Self::Any => (Duration::ZERO, base + patience),
            Self::Between(first, last) => (first, last),
            Self::AfterBetween(first, last) => (base + first, base + last),
        }
    }
}
