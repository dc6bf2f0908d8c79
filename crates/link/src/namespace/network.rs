//! A second network namespace for tests. Usually it is connected to the test's own namespace by a
//! veth pair, with one interface in each of the two.

use super::enter::enter;
use super::error::NamespaceError;
use super::isolation::Isolation;
use crate::kernel_interface::KernelInterface;
use std::io;
use std::net::Ipv4Addr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

/// A network namespace, and a thread that executes closures inside it. The kernel deletes the
/// namespace and its interfaces once this value has been dropped and no process is left inside.
#[derive(Debug)]
pub struct Network {
    id: u32,
    /// Channel for the closures that the thread executes; `None` while this value is being dropped.
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

type Work = Box<dyn FnOnce() + Send>;

impl Network {
    /// Creates a network. Its only interface is a loopback interface, which is down.
    ///
    /// # Errors
    /// [`NamespaceError::Privilege`] if the process is not root of its network, or another error of
    /// [`enter`].
    pub fn new() -> Result<Self, NamespaceError> {
        let (work, queue) = channel();
        let (sender, receiver) = channel();
        let run_thread = move || {
            let entered = enter(Isolation::Network);
            let stays = entered.is_ok();
            let id = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
            if sender.send(entered.map(|()| id)).is_ok() && stays {
                execute_all(&queue);
            }
        };
        let thread = Builder::new()
            .name("network".to_owned())
            .spawn(run_thread)
            .map_err(NamespaceError::Program)?;
        let id = receiver
            .recv()
            .unwrap_or_else(|_| Err(NamespaceError::Program(io::Error::other("no thread"))))?;
        Ok(Self { id, work: Some(work), thread: Some(thread) })
    }

    /// Creates a network that is connected to the current one by a veth pair. The interface `near`
    /// stays in the current network, is up, and has no address. The interface `far` is in the new
    /// network, and has `address`/24. IPv6 is disabled on both. Returns the new network and the
    /// interface `near`.
    ///
    /// # Errors
    /// An error of [`Network::new`], or [`NamespaceError::Interface`] if the veth pair cannot be
    /// created.
    pub fn behind_veth(
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

    /// Returns the ID of the thread inside this network. [`KernelInterface::move_to_process`]
    /// accepts it to move an interface into this network.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Executes `work` inside the network, and returns its result. Sockets that `work` opens and
    /// processes that it starts belong to this network permanently.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = channel();
        let work = move || {
            // Sending cannot fail, because the caller keeps the channel open until it has the
            // result.
            let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
        };
        let sent = self.work.as_ref().is_some_and(|thread| thread.send(Box::new(work)).is_ok());
        match receiver.recv() {
            Ok(Ok(result)) if sent => result,
            Ok(Err(panic)) => resume_unwind(panic),
            _ => unreachable!("the thread works until it is dropped"),
        }
    }
}

fn execute_all(queue: &Receiver<Work>) {
    for work in queue {
        work();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // `join` returns an error only if the thread has panicked. That cannot happen, because
            // panics of the closures are caught.
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
        // The first two lines of the file are headings. Each of the other lines is one interface.
        fs::read_to_string("/proc/thread-self/net/dev").unwrap().lines().count() - 2
    }

    #[test]
    fn work_is_executed_in_the_network_and_its_result_is_returned() {
        isolated_test(|| {
            let network = Network::new().unwrap();
            KernelInterface::create_veth("left", "right").unwrap();
            assert_eq!((interfaces(), network.run(interfaces)), (3, 1));
            let panic = catch_unwind(AssertUnwindSafe(|| network.run(|| panic!("failed"))));
            assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"failed"));
            assert_eq!(network.run(|| 7), 7);
        });
    }
}
