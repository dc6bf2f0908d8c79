//! A sink in a thread of this process, for paths whose sender is in this process too.

use crate::bench_error::BenchError;
use linerate_ends::socket::Network;
use linerate_ends::{
    Interrupt, Peer,
    serve::{ListenAt, ListenError},
    sink,
};
use std::net::{IpAddr, SocketAddr};
use std::thread::{self, JoinHandle};

/// A sink in a thread of this process. The thread ends when this value is dropped.
#[derive(Debug)]
pub(super) struct LocalSink {
    interrupt: Interrupt,
    thread: Option<JoinHandle<()>>,
    network: Network,
}

impl LocalSink {
    /// Starts a sink that listens at `address` of `network`, on the default port of sinks. Returns
    /// the sink, and the address and port to which the sender must connect.
    ///
    /// # Errors
    /// The port is in use, the sink cannot listen for another reason, or the system provides no
    /// thread.
    pub(super) fn start(network: Network, address: IpAddr) -> Result<(Self, Peer), BenchError> {
        let port = Peer::DEFAULT_PORT;
        let place = ListenAt::Address(SocketAddr::new(address, port));
        let listening = sink::Sink::bind(&network, place, sink::Limits::default());
        let sink = listening.map_err(|error| match error {
            ListenError::InUse(_) => BenchError::PortInUse { port },
            other => BenchError::NoSink(other),
        })?;
        let interrupt = Interrupt::default();
        let until = interrupt.clone();
        // If the sink fails, its error is ignored. Its connections then end, so the transfer fails
        // and reports an error.
        let serve = move || drop(sink.serve(&until, &|_| ()));
        let thread = thread::Builder::new()
            .spawn(serve)
            .map_err(|error| BenchError::io("starting a sink", error))?;
        let peer = Peer { host: address.to_string(), port };
        Ok((Self { interrupt, thread: Some(thread), network }, peer))
    }
}

impl Drop for LocalSink {
    fn drop(&mut self) {
        self.interrupt.raise();
        if let Some(thread) = self.thread.take() {
            // If the sink's thread has panicked, the message has already been printed, so the
            // result is ignored.
            let _ = thread.join();
        }
        self.network.end();
    }
}
