//! Everything of this crate that the compiler cannot check: memory shared by two threads, the
//! system calls that take raw memory. Each file hands out an interface that is safe to use.

mod barrier;
pub(crate) mod bpf;
pub(crate) mod ethtool;
mod mapping;
pub(crate) mod packet;
pub(crate) mod ring;
pub(crate) mod socket_option;
pub(crate) mod tun;
pub(crate) mod unshare;
pub(crate) mod xdp;
