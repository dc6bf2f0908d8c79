//! All unsafe code of this crate: memory shared between threads, and system calls that access raw
//! memory. Each file has a safe interface.

pub(crate) mod allocator;
mod barrier;
pub(crate) mod bpf;
pub(crate) mod ethtool;
pub(crate) mod inherited;
mod mapping;
pub(crate) mod packet;
pub(crate) mod ring;
pub(crate) mod socket_option;
pub(crate) mod tap;
pub(crate) mod unshare;
pub(crate) mod xdp;
