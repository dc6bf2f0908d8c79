//! The echo server of a dialogue (RFC 862), which reads and writes one character per system call.

use super::socket::Socket;
use super::{CHARACTER, Dialogue, Program, ProgramReport, Step, Task};
use linerate_stack::{Event, Stack};

#[derive(Debug)]
pub(crate) struct Echo {
    dialogue: Dialogue,
    state: State,
    socket: Socket,
    character: [u8; 1],
    echoed: u64,
}

/// The state of the server's task: the step whose processor time is passing. The step takes effect
/// when the task runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begin,
    Accept,
    /// Waits for a character.
    Wait,
    Read,
    Write,
}

impl Echo {
    pub(crate) const fn new(dialogue: Dialogue) -> Self {
        Self { dialogue, state: State::Begin, socket: Socket::new(), character: [0], echoed: 0 }
    }

    fn listen(&mut self, task: &mut Task<'_>) -> Step {
        self.socket.listen(task, self.dialogue.address, &self.dialogue.config);
        self.state = State::Accept;
        Step::Sleep
    }

    fn accept(&mut self, task: &mut Task<'_>) -> Step {
        if self.socket.accept(task) { self.wait(task) } else { Step::Sleep }
    }

    fn wait(&mut self, task: &Task<'_>) -> Step {
        self.state = State::Wait;
        if self.socket.has_data(task.stack) {
            self.state = State::Read;
            return CHARACTER;
        }
        Step::Sleep
    }

    fn read(&mut self, task: &mut Task<'_>) -> Step {
        let Some(handle) = self.socket.handle() else { return Step::Sleep };
        match task.stack.tcp_read(task.clock, handle, &mut self.character) {
            Ok(1) => {
                self.state = State::Write;
                CHARACTER
            }
            Ok(_) | Err(_) => self.wait(task),
        }
    }

    fn write(&mut self, task: &mut Task<'_>) -> Step {
        let written = self
            .socket
            .handle()
            .map(|handle| task.stack.tcp_write(task.clock, handle, &self.character));
        self.echoed += u64::from(matches!(written, Some(Ok(1))));
        self.wait(task)
    }
}

impl Program for Echo {
    fn handle_run(&mut self, task: &mut Task<'_>) -> Step {
        match self.state {
            State::Begin => self.listen(task),
            State::Accept => self.accept(task),
            State::Wait => self.wait(task),
            State::Read => self.read(task),
            State::Write => self.write(task),
        }
    }

    fn wants(&self, event: &Event) -> bool {
        self.socket.wants(event)
    }

    /// Always returns true. The server never finishes by itself, so the simulation must wait only
    /// for the typist.
    fn is_finished(&self) -> bool {
        true
    }

    fn report(&self, stack: &Stack) -> ProgramReport {
        ProgramReport {
            bytes: self.echoed,
            complete: true,
            tcp: self.socket.report(stack),
            ..ProgramReport::new(&format!("{}: echo", self.dialogue.name))
        }
    }
}
