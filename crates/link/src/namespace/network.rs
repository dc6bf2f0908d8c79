//! A further network inside of the one that the process is in, for both ends of a cable to be on one
//! machine.

use super::{Isolation, NamespaceError, enter};
use crate::kernel_interface::KernelInterface;
use std::io;
use std::net::Ipv4Addr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

/// A network that a thread of its own has entered, and in which it does what it is given to do. It is
/// gone, with its interfaces, when this is dropped and no process is left in it.
#[derive(Debug)]
pub struct Network {
    id: u32,
    /// `None` once it is being dropped.
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

type Work = Box<dyn FnOnce() + Send>;

impl Network {
    /// A new network, in which there is a loopback interface that is down.
    ///
    /// # Errors
    /// [`NamespaceError::Privilege`] for a process that is not root of the network it is in, or what
    /// else [`enter`] says.
    pub fn new() -> Result<Self, NamespaceError> {
        let (work, to_do) = channel();
        let (tell, told) = channel();
        let live = move || {
            let entered = enter(Isolation::Network);
            let stays = entered.is_ok();
            let id = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
            if tell.send(entered.map(|()| id)).is_ok() && stays {
                work_off(&to_do);
            }
        };
        let thread = Builder::new()
            .name("network".to_owned())
            .spawn(live)
            .map_err(NamespaceError::Program)?;
        let id = told
            .recv()
            .unwrap_or_else(|_| Err(NamespaceError::Program(io::Error::other("no thread"))))?;
        Ok(Self { id, work: Some(work), thread: Some(thread) })
    }

    /// A new network at the far end of a virtual cable, and the near end, which is here and up. The kernel
    /// has `address` (of a network of 256) there, and none here. Neither end speaks IPv6.
    ///
    /// # Errors
    /// As for [`Network::new`], or [`NamespaceError::Interface`].
    pub fn behind_cable(
        [near, far]: [&str; 2],
        address: Ipv4Addr,
    ) -> Result<(KernelInterface, Self), NamespaceError> {
        let network = Self::new()?;
        let (near, end) = KernelInterface::create_veth(near, far)?;
        end.move_to_process(network.id())?;
        let far = far.to_owned();
        network.run(move || {
            let far = KernelInterface::named(&far)?;
            far.disable_ipv6()?;
            far.add_address(address, 24)?;
            far.set_up()
        })?;
        near.disable_ipv6()?;
        near.set_up()?;
        Ok((near, network))
    }

    /// What [`KernelInterface::move_to_process`] takes to move
    /// an interface there.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Does `work` there and returns what it returns. Sockets opened and processes started by it are in
    /// that network, and stay there.
    ///
    /// # Panics
    /// If `work` does.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = channel();
        let work = move || {
            // Whoever asked waits for the answer, and is there.
            let _ = tell.send(catch_unwind(AssertUnwindSafe(work)));
        };
        let sent = self.work.as_ref().is_some_and(|thread| thread.send(Box::new(work)).is_ok());
        match told.recv() {
            Ok(Ok(answer)) if sent => answer,
            Ok(Err(panic)) => resume_unwind(panic),
            _ => unreachable!("the thread works until it is dropped"),
        }
    }
}

fn work_off(to_do: &Receiver<Work>) {
    for work in to_do {
        work();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked: what it was given to do is caught.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::isolated_test;
    use std::fs;

    fn interfaces() -> usize {
        // Two lines of headings.
        fs::read_to_string("/proc/thread-self/net/dev").unwrap().lines().count() - 2
    }

    #[test]
    fn work_is_done_elsewhere_and_its_answer_comes_back() {
        isolated_test(|| {
            let network = Network::new().unwrap();
            KernelInterface::create_veth("left", "right").unwrap();
            assert_eq!((interfaces(), network.run(interfaces)), (3, 1));
            let panic = catch_unwind(AssertUnwindSafe(|| network.run(|| panic!("told"))));
            assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"told"));
            assert_eq!(network.run(|| 7), 7);
        });
    }
}
