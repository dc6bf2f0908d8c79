//! The XDP program that selects the frames for this host: ARP packets whose target is one of its
//! addresses, and IPv4 packets to one of its addresses. All other frames go to the kernel.
//!
//! The program consists of BPF instructions (RFC 9669) of eight bytes: opcode, source and
//! destination register, offset, operand.

use crate::sys::bpf::{attach, load, set_socket, socket_map};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The maximum number of addresses that the program can compare.
pub(super) const MOST_ADDRESSES: usize = 64;

/// The number of bytes of a frame that the program may read: an Ethernet header and an ARP packet.
/// An Ethernet header, an IPv4 header and eight bytes of payload have the same length.
const LOOKED_AT: i32 = 42;
/// The offsets in the frame of the fields that are compared: EtherType, IPv4 destination address,
/// and IPv4 address of the ARP target.
const ETHER_TYPE: i16 = 12;
const IPV4_DESTINATION: i16 = 30;
const ARP_TARGET: i16 = 38;

// Opcodes of BPF instructions.
const LOAD_WORD: u8 = 0x61;
const LOAD_HALF: u8 = 0x69;
const MOVE: u8 = 0xbf;
const MOVE_NUMBER: u8 = 0xb7;
const ADD_NUMBER: u8 = 0x07;
const LOAD_LONG: u8 = 0x18;
const IF_GREATER: u8 = 0x2d;
const IF_EQUAL: u8 = 0x15;
const IF_NOT_EQUAL: u8 = 0x55;
/// Opcode of a jump that compares only the lower 32 bits of a register.
const IF_EQUAL_WORD: u8 = 0x16;
const GO: u8 = 0x05;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// Source register number `BPF_PSEUDO_MAP_FD`: the 64-bit operand is the descriptor of a map.
const MAP: u8 = 1;
/// Number of the helper function `bpf_redirect_map`.
const REDIRECT: i32 = 51;
/// Return value `XDP_PASS`: the frame goes to the kernel.
const PASS: i32 = 2;

/// An XDP program attached to an interface, and its socket map. Dropping it detaches the program.
#[derive(Debug)]
pub(super) struct Program {
    sockets: OwnedFd,
    /// The descriptor by which the program is attached. Closing it detaches the program.
    _attachment: OwnedFd,
}

impl Program {
    /// Attaches a program that selects the frames for `addresses` to the interface with this index.
    /// The program runs either in the driver or after it.
    pub(super) fn new(
        interface: u32,
        addresses: &[Ipv4Addr],
        queues: u32,
        in_driver: bool,
    ) -> io::Result<Self> {
        let sockets = socket_map(queues)?;
        let program = load(&instructions(sockets.as_raw_fd(), addresses))?;
        let place = attach(program.as_fd(), interface, in_driver)?;
        Ok(Self { sockets, _attachment: place })
    }

    /// Makes the program pass the host's frames from `queue` to `socket`.
    pub(super) fn direct(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        set_socket(self.sockets.as_fd(), queue, socket)
    }
}

/// Checks whether the kernel accepts the XDP program of this module, without attaching it.
pub(super) fn probe() -> io::Result<()> {
    let sockets = socket_map(1)?;
    load(&instructions(sockets.as_raw_fd(), &[Ipv4Addr::UNSPECIFIED])).map(drop)
}

/// Returns the instructions of the program. When it starts, register 1 points to `struct xdp_md`.
/// This contains the start and the end of the frame, and the number of the receive queue.
fn instructions(map: i32, addresses: &[Ipv4Addr]) -> Vec<u64> {
    let ether_type = |kind: u16| i32::from(kind.to_be());
    // All jumps go forward. Behind the comparisons of addresses are two instructions that return
    // `XDP_PASS`. For each frame that the kernel is to get, the program ends there.
    let count = i16::try_from(addresses.len().min(MOST_ADDRESSES)).unwrap_or(0);
    let mut code = vec![
        instruction(LOAD_WORD, 2, 1, 0, 0),
        instruction(LOAD_WORD, 3, 1, 4, 0),
        instruction(LOAD_WORD, 6, 1, 16, 0),
        instruction(MOVE, 4, 2, 0, 0),
        instruction(ADD_NUMBER, 4, 0, 0, LOOKED_AT),
        // A frame with fewer bytes than the program may read goes to the kernel.
        instruction(IF_GREATER, 4, 3, 6 + count, 0),
        instruction(LOAD_HALF, 4, 2, ETHER_TYPE, 0),
        instruction(IF_EQUAL, 4, 0, 3, ether_type(0x0800)),
        instruction(IF_NOT_EQUAL, 4, 0, 3 + count, ether_type(0x0806)),
        instruction(LOAD_WORD, 5, 2, ARP_TARGET, 0),
        instruction(GO, 0, 0, 1, 0),
        instruction(LOAD_WORD, 5, 2, IPV4_DESTINATION, 0),
    ];
    for (left, address) in (0..count).rev().zip(addresses) {
        // If this address matches, the jump skips the comparisons that remain and the two
        // instructions that return `XDP_PASS`.
        code.push(instruction(IF_EQUAL_WORD, 5, 0, left + 2, i32::from_ne_bytes(address.octets())));
    }
    code.extend([
        instruction(MOVE_NUMBER, 0, 0, 0, PASS),
        instruction(EXIT, 0, 0, 0, 0),
        instruction(LOAD_LONG, 1, MAP, 0, map),
        0,
        instruction(MOVE, 2, 6, 0, 0),
        // The third argument is the result if the queue has no socket: the frame goes to the
        // kernel.
        instruction(MOVE_NUMBER, 3, 0, 0, PASS),
        instruction(CALL, 0, 0, 0, REDIRECT),
        instruction(EXIT, 0, 0, 0, 0),
    ]);
    code
}

/// Encodes a BPF instruction.
const fn instruction(opcode: u8, destination: u8, source: u8, offset: i16, operand: i32) -> u64 {
    let [a, b] = offset.to_ne_bytes();
    let [c, d, e, f] = operand.to_ne_bytes();
    // The numbers of both registers share a byte. On little-endian machines, the destination is in
    // the low bits.
    let registers = if cfg!(target_endian = "little") {
        source << 4 | destination
    } else {
        destination << 4 | source
    };
    u64::from_ne_bytes([opcode, registers, a, b, c, d, e, f])
}
