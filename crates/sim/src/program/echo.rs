//! The task that echoes what is typed (RFC 862), a character a system call.

use super::socket::Socket;
use super::{CHARACTER, Dialogue, Program, ProgramReport, Step, Task};
use linerate_stack::{Event, Stack};

#[derive(Debug)]
pub(crate) struct Echo {
    dialogue: Dialogue,
    does: Does,
    socket: Socket,
    character: [u8; 1],
    echoed: u64,
}

/// What the task was doing when it was last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Begin,
    Accept,
    /// It waits for a character.
    Wait,
    Read,
    Write,
}

impl Echo {
    pub(crate) const fn new(dialogue: Dialogue) -> Self {
        Self { dialogue, does: Does::Begin, socket: Socket::new(), character: [0], echoed: 0 }
    }

    fn listen(&mut self, task: &mut Task<'_>) -> Step {
        self.socket.listen(task, self.dialogue.address, &self.dialogue.config);
        self.does = Does::Accept;
        Step::Sleep
    }

    fn accept(&mut self, task: &mut Task<'_>) -> Step {
        if self.socket.accept(task) { self.wait(task) } else { Step::Sleep }
    }

    fn wait(&mut self, task: &Task<'_>) -> Step {
        self.does = Does::Wait;
        if self.socket.has_data(task.stack) {
            self.does = Does::Read;
            return CHARACTER;
        }
        Step::Sleep
    }

    fn read(&mut self, task: &mut Task<'_>) -> Step {
        let Some(handle) = self.socket.handle() else { return Step::Sleep };
        match task.stack.tcp_read(task.clock, handle, &mut self.character) {
            Ok(1) => {
                self.does = Does::Write;
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
        match self.does {
            Does::Begin => self.listen(task),
            Does::Accept => self.accept(task),
            Does::Wait => self.wait(task),
            Does::Read => self.read(task),
            Does::Write => self.write(task),
        }
    }

    fn wants(&self, event: &Event) -> bool {
        self.socket.wants(event)
    }

    /// It echoes as long as anybody types.
    fn is_over(&self) -> bool {
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
