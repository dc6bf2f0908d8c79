//! The typing task of a dialogue. It writes a character, waits for its echo, and writes the next
//! one.

use super::socket::Socket;
use super::{CHARACTER, Dialogue, Program, ProgramReport, Step, Task};
use linerate_stack::{Event, Stack};
use linerate_tcp::State;
use linerate_units::Tick;

#[derive(Debug)]
pub(crate) struct Typist {
    dialogue: Dialogue,
    phase: Phase,
    socket: Socket,
    echoed: u64,
    began: Option<Tick>,
    ended: Option<Tick>,
}

/// The state of the task: the step whose processor time is passing. The step takes effect when the
/// task runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Begin,
    Connect,
    /// Writes a character.
    Type,
    /// Waits for the echo.
    Wait,
    /// Reads the echo.
    Read,
    End,
}

impl Typist {
    pub(crate) const fn new(dialogue: Dialogue) -> Self {
        Self {
            dialogue,
            phase: Phase::Begin,
            socket: Socket::new(),
            echoed: 0,
            began: None,
            ended: None,
        }
    }

    fn connect(&mut self, task: &mut Task<'_>) -> Step {
        let Dialogue { local, address, config, .. } = &self.dialogue;
        if self.socket.connect(task, *local, *address, config) {
            self.phase = Phase::Connect;
        } else {
            self.end(task);
        }
        Step::Sleep
    }

    fn end(&mut self, task: &Task<'_>) {
        self.ended.get_or_insert(task.now);
        self.phase = Phase::End;
    }

    fn begin_when_connected(&mut self, task: &Task<'_>) -> Step {
        let connection = self.socket.connection(task.stack);
        match connection.map(|connection| connection.state()) {
            Some(State::Established) => {
                self.began = Some(task.now);
                self.phase = Phase::Type;
                return CHARACTER;
            }
            Some(State::Closed) | None => self.end(task),
            Some(_) => {}
        }
        Step::Sleep
    }

    fn write(&mut self, task: &mut Task<'_>) -> Step {
        let written =
            self.socket.handle().map(|handle| task.stack.tcp_write(task.clock, handle, b"e"));
        match written {
            Some(Ok(1)) => self.phase = Phase::Wait,
            Some(_) | None => self.end(task),
        }
        Step::Sleep
    }

    fn wait(&mut self, task: &Task<'_>) -> Step {
        if self.socket.has_data(task.stack) {
            self.phase = Phase::Read;
            return CHARACTER;
        }
        Step::Sleep
    }

    fn read(&mut self, task: &mut Task<'_>) -> Step {
        let mut character = [0];
        let read = self
            .socket
            .handle()
            .map(|handle| task.stack.tcp_read(task.clock, handle, &mut character));
        if !matches!(read, Some(Ok(1))) || character != *b"e" {
            self.end(task);
            return Step::Sleep;
        }
        self.echoed += 1;
        if self.echoed == self.dialogue.characters {
            self.end(task);
            return Step::Sleep;
        }
        self.phase = Phase::Type;
        CHARACTER
    }
}

impl Program for Typist {
    fn handle_run(&mut self, task: &mut Task<'_>) -> Step {
        match self.phase {
            Phase::Begin => self.connect(task),
            Phase::Connect => self.begin_when_connected(task),
            Phase::Type => self.write(task),
            Phase::Wait => self.wait(task),
            Phase::Read => self.read(task),
            Phase::End => Step::Sleep,
        }
    }

    fn wants(&self, event: &Event) -> bool {
        self.socket.wants(event)
    }

    fn is_finished(&self) -> bool {
        self.phase == Phase::End
    }

    fn report(&self, stack: &Stack) -> ProgramReport {
        ProgramReport {
            bytes: self.echoed,
            began: self.began,
            ended: self.ended,
            complete: self.echoed == self.dialogue.characters,
            tcp: self.socket.report(stack),
            ..ProgramReport::new(&format!("{}: typist", self.dialogue.name))
        }
    }
}
