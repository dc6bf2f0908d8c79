//! The engines: for each kind of path, a [`Bench`](crate::Bench) that executes the runs of a sweep.

pub(crate) mod cpu_pinning;
mod interface;
mod kernel;
mod kernel_buffers;
pub(crate) mod network_interface;
pub(crate) mod own_tcp;
mod remote_sink;
mod serial;
mod sim;
mod stack;
mod stream_transfer;
pub(crate) mod tap;
mod thread_usage;
mod threads;

pub use interface::InterfaceBench;
pub use kernel::KernelBench;
pub use serial::SerialBench;
pub use sim::SimBench;
pub use stack::StackBench;
pub use tap::TapBench;
