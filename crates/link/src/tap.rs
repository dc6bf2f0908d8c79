//! A TAP or TUN device: the kernel's own network stack at the other end of the link.
//!
//! Whatever the kernel sends out of the interface is received here, and the other way round. The
//! interface goes with the link unless somebody made it to stay.
//!
//! With offloads the two do not cut what a wire would have them cut: super-frames of up to 64 KiB go whole
//! both ways, and checksums, which would protect them from nothing, are left out.

use crate::MonotonicClock;
use crate::arrivals::Arrivals;
use crate::departure::{Departure, leave};
use crate::kernel_interface::{InterfaceError, KernelInterface, check_name};
use crate::sys::tun::{
    MULTI_QUEUE, NO_PACKET_INFORMATION, TAP, TUN, VIRTIO_HEADER, attach, set_header_length, set_offloads,
};
use crate::virtio::{self, FRAME, HEADER, LARGEST_FRAME};
use crate::wait::Readiness;
use linerate_stack::{Capabilities, FrameSource, LentFrame, Link, LinkError, Medium, RxFrame, TxFrame};
use linerate_units::{Bytes, Clock, Instant};
use rustix::io::{Errno, ioctl_fionbio, read, write, writev};
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use thiserror::Error;

/// Where the kernel hands out such devices.
const DEVICE: &str = "/dev/net/tun";
/// Queues that an interface of the kernel's can have (`MAX_TAP_QUEUES`).
const MOST_QUEUES: usize = 256;
/// Frames that are read in a row, in a few microseconds, and have one time of arrival.
const STAMPED_AT_ONCE: usize = 8;

/// Which interface is to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapConfig {
    /// Its name. `%d` in it is replaced by a number that is free.
    pub name: String,
    /// `Ethernet` makes it TAP, `Ip` makes it TUN.
    pub medium: Medium,
    /// Bytes of the largest IP packet. An interface that exists and has another MTU is changed.
    pub mtu: usize,
    /// Whether the kernel and we leave to each other what they would leave to a network card: super-frames of
    /// several segments of TCP over IPv4 go whole both ways (`IFF_VNET_HDR`), and checksums are not computed.
    /// Each frame that is seen on the device without offloads is one that a wire could carry.
    pub offloads: bool,
}

/// A TAP device `lr0`, or the next number that is free, of 1,500 bytes, with offloads.
impl Default for TapConfig {
    fn default() -> Self {
        Self { name: "lr%d".to_owned(), medium: Medium::Ethernet, mtu: 1_500, offloads: true }
    }
}

/// A link to the kernel of this machine.
#[derive(Debug)]
pub struct Tap {
    device: OwnedFd,
    interface: KernelInterface,
    capabilities: Capabilities,
    /// Bytes of the header that the kernel has in front of each frame: a virtio-net header's, or none.
    header: usize,
    /// The frame that arrived last.
    arrival: Arrival,
    /// The frame that is offered, or waits for the system to have room for it, behind its header.
    departure: Box<[u8]>,
    /// Bytes of the waiting frame; 0 if none does.
    waiting: usize,
    refused: u64,
    malformed: u64,
}

impl Tap {
    /// Opens the interface, which is made if there is none. It begins down: give
    /// [`interface`](Self::interface) its addresses and bring it up. What the kernel sends faster than
    /// it is received waits in the interface's [queue](KernelInterface::set_queue_length).
    ///
    /// # Errors
    /// [`TapError`], which says what is missing on this machine and how to get it.
    pub fn open(config: &TapConfig) -> Result<Self, TapError> {
        Self::attach(config, 0)
    }

    /// Opens the interface with `count` queues, one for each shard of a host. The kernel sends a flow to the
    /// queue on which it last came from us, and a new one to any of them: [`crate::shard::share`] sees to it
    /// that it finds its shard. An interface that exists must have been made for several queues.
    ///
    /// # Errors
    /// As for [`open`](Self::open); [`TapError::Queues`] for none at all, or for more than the kernel has.
    pub fn open_queues(config: &TapConfig, count: usize) -> Result<Vec<Self>, TapError> {
        if !(1..=MOST_QUEUES).contains(&count) {
            return Err(TapError::Queues(count));
        }
        let first = Self::attach(config, MULTI_QUEUE)?;
        let rest = TapConfig { name: first.interface.name().to_owned(), ..config.clone() };
        let mut queues = vec![first];
        for _ in 1..count {
            queues.push(Self::attach(&rest, MULTI_QUEUE)?);
        }
        Ok(queues)
    }

    fn attach(config: &TapConfig, queues: u16) -> Result<Self, TapError> {
        check_name(&config.name.replace("%d", "0"))?;
        let device = open_device()?;
        let kind = match config.medium {
            Medium::Ethernet => TAP,
            Medium::Ip => TUN,
        };
        let header = if config.offloads { VIRTIO_HEADER } else { 0 };
        let flags = kind | NO_PACKET_INFORMATION | header | queues;
        let name = attach(device.as_fd(), padded(&config.name), flags)
            .map_err(|errno| TapError::of_attaching(&config.name, errno))?;
        let refused = |errno: Errno| TapError::Offloads { errno: errno.raw_os_error() };
        if config.offloads {
            set_header_length(device.as_fd(), virtio::LENGTH).map_err(refused)?;
        }
        set_offloads(device.as_fd(), config.offloads).map_err(refused)?;
        let interface = KernelInterface::named(&unpadded(&name))?;
        let mtu = Bytes::new(config.mtu as u64);
        if interface.state()?.mtu != mtu {
            interface.set_mtu(mtu)?;
        }
        Ok(Self::over(device, interface, config))
    }

    fn over(device: OwnedFd, interface: KernelInterface, config: &TapConfig) -> Self {
        let offloads = virtio::offloads(config.offloads);
        let capabilities = Capabilities { offloads, ..Capabilities::new(config.medium, config.mtu) };
        Self {
            device,
            interface,
            capabilities,
            header: if config.offloads { virtio::LENGTH } else { 0 },
            arrival: Arrival::new(config.offloads),
            departure: vec![0; FRAME + capabilities.room() + 4].into(),
            waiting: 0,
            refused: 0,
            malformed: 0,
        }
    }

    /// The kernel's end.
    #[must_use]
    pub const fn interface(&self) -> &KernelInterface {
        &self.interface
    }

    /// Frames that were lost because the system had no memory for them.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Frames that were dropped because the kernel has said of them what cannot be.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Writes the waiting frame, if there is one. False if it has to wait longer.
    fn depart(&mut self) -> Result<bool, LinkError> {
        if self.waiting > 0 {
            let frame = &self.departure[FRAME - self.header..FRAME + self.waiting];
            let departure = leave(|| write(&self.device, frame));
            if departure == Departure::Again {
                return Ok(false);
            }
            self.waiting = 0;
            self.note(departure)?;
        }
        Ok(true)
    }

    /// Has the frame in memory, of which `rest` is to follow, leave at once, or wait whole.
    fn depart_with(&mut self, length: usize, rest: [&[u8]; 2]) -> Result<(), LinkError> {
        let frame = &self.departure[FRAME - self.header..FRAME + length];
        let parts = [frame, rest[0], rest[1]].map(IoSlice::new);
        let parts = if rest[1].is_empty() { &parts[..2] } else { &parts[..] };
        let departure = leave(|| writev(&self.device, parts));
        if departure == Departure::Again {
            self.waiting = length;
            for part in rest {
                let end = self.waiting + part.len();
                self.departure[FRAME + self.waiting..FRAME + end].copy_from_slice(part);
                self.waiting = end;
            }
        }
        self.note(departure)
    }

    /// Counts a frame that is lost.
    fn note(&mut self, departure: Departure) -> Result<(), LinkError> {
        match departure {
            Departure::Left(_) | Departure::Again => Ok(()),
            Departure::Refused => {
                self.refused += 1;
                Ok(())
            }
            Departure::Failed(errno) => Err(explain("write a frame", errno)),
        }
    }

    /// Puts the virtio-net header before the frame in memory, if it is to have one.
    fn write_header(&mut self, frame: &TxFrame) {
        if self.header > 0 {
            virtio::write_header(frame, &mut self.departure);
        }
    }
}

impl Link for Tap {
    fn receive(&mut self, budget: usize, mut on_frame: impl FnMut(RxFrame<'_>)) -> Result<usize, LinkError> {
        let mut received = 0;
        let mut now = Instant::ZERO;
        while received < budget {
            match read(&self.device, self.arrival.next()) {
                Ok(length) => match self.arrival.frame(length) {
                    Some(frame) => {
                        if received.is_multiple_of(STAMPED_AT_ONCE) {
                            now = MonotonicClock.now();
                        }
                        let frame = RxFrame { arrived: now, ..frame };
                        on_frame(frame);
                        received += 1;
                    }
                    None => self.malformed += 1,
                },
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(explain("read a frame", errno)),
            }
        }
        Ok(received)
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        let mut sent = 0;
        while self.depart()? && sent < budget {
            let Some(frame) = fill(&mut self.departure[FRAME..]) else { break };
            self.waiting = frame.length.min(self.departure.len() - FRAME);
            self.write_header(&frame);
            sent += 1;
        }
        Ok(sent)
    }

    /// What is lent goes to the kernel from where it is (`writev`). Without offloads nothing can be lent.
    fn transmit_from(&mut self, budget: usize, source: &mut impl FrameSource) -> Result<usize, LinkError> {
        if self.header == 0 {
            return self.transmit(budget, |frame| source.fill(frame));
        }
        let mut sent = 0;
        while self.depart()? && sent < budget {
            let Some(LentFrame { frame, rest }) = source.lend(&mut self.departure[FRAME..]) else { break };
            sent += 1;
            self.write_header(&frame);
            if rest[0].is_empty() {
                // What is whole goes by `write`: of a frame of 1,514 bytes `writev` is a twentieth.
                self.waiting = frame.length;
            } else {
                self.depart_with(frame.length, rest)?;
            }
        }
        Ok(sent)
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}

/// Memory for one frame.
#[derive(Debug)]
enum Arrival {
    /// Of a device without offloads, from [`FRAME`] on. Nobody keeps such a frame, so nobody is asked whether he does: over memory
    /// that was just written that is an eightieth of a frame's time.
    Plain(Box<[u8]>),
    /// Behind its header, beside those that a host has kept.
    Kept(Arrivals),
}

impl Arrival {
    fn new(offloads: bool) -> Self {
        if offloads {
            Self::Kept(Arrivals::new(FRAME + LARGEST_FRAME, 1))
        } else {
            Self::Plain(vec![0; FRAME + LARGEST_FRAME].into())
        }
    }

    /// Where the kernel is to write what comes next.
    fn next(&mut self) -> &mut [u8] {
        match self {
            Self::Plain(memory) => &mut memory[FRAME..],
            Self::Kept(arrivals) => &mut arrivals.next_one()[HEADER..],
        }
    }

    /// What the `length` bytes are that the kernel has written; `None` if they cannot be a frame. When it arrived is for
    /// the caller to say.
    fn frame(&self, length: usize) -> Option<RxFrame<'_>> {
        match self {
            Self::Plain(memory) => Some(RxFrame::plain(memory.get(FRAME..FRAME + length)?, Instant::ZERO)),
            Self::Kept(arrivals) => {
                let memory = arrivals.memory(0);
                Some(RxFrame { memory: Some(memory), ..virtio::arrived(memory, length)? })
            }
        }
    }
}

impl Readiness for Tap {
    fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn wants_room(&self) -> bool {
        self.waiting > 0
    }
}

/// What the kernel's refusal means: EIO is an interface that was taken down, EBADFD one that was
/// removed.
fn explain(what: &'static str, errno: Errno) -> LinkError {
    match errno {
        Errno::IO | Errno::BADFD => LinkError::Down,
        _ => LinkError::Io { errno: errno.raw_os_error(), what },
    }
}

fn open_device() -> Result<OwnedFd, TapError> {
    let file = File::options().read(true).write(true).open(DEVICE).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => TapError::NoDevice,
        io::ErrorKind::PermissionDenied => TapError::DeviceForbidden,
        _ => TapError::Open { errno: error.raw_os_error().unwrap_or(0) },
    })?;
    ioctl_fionbio(&file, true).map_err(|errno| TapError::Open { errno: errno.raw_os_error() })?;
    Ok(file.into())
}

/// The name as the kernel takes it, zeros behind it.
fn padded(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    // One zero at least has to follow.
    for (to, from) in bytes.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    bytes
}

fn unpadded(name: &[u8]) -> String {
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..length]).into_owned()
}

/// Why there is no TAP device. The machine or the person who runs it can mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TapError {
    /// The kernel has no such devices, or the container does not show them.
    #[error(
        "there is no {DEVICE}: load the module (`modprobe tun`), or pass the device to the container (`--device {DEVICE}`)"
    )]
    NoDevice,
    /// The device belongs to somebody else.
    #[error("no permission to open {DEVICE}: run as root, or let users have it (`chmod 0666 {DEVICE}`)")]
    DeviceForbidden,
    /// The device may be opened, and no interface may be made.
    #[error(
        "no permission to have the interface `{name}`: run as root, or in a user and network namespace of your own"
    )]
    InterfaceForbidden {
        /// The interface.
        name: String,
    },
    /// Somebody else holds the interface.
    #[error("the interface `{name}` is in use by another program: choose another name, or end that program")]
    Busy {
        /// The interface.
        name: String,
    },
    /// There is an interface of that name that is of another kind.
    #[error(
        "the interface `{name}` exists and is not of the kind, or not for as many queues as, was asked for: choose another name"
    )]
    Kind {
        /// The interface.
        name: String,
    },
    /// The caller asked for no queue at all, or for too many.
    #[error("an interface cannot have {0} queues: choose 1 to {MOST_QUEUES}")]
    Queues(usize),
    /// The interface is there and cannot be set up as it was asked for.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The kernel knows the device and not the offloads.
    #[error(
        "the kernel grants {DEVICE} no offloads (error {errno}: {}): open the interface without them",
        io::Error::from_raw_os_error(*errno)
    )]
    Offloads {
        /// The error number of the system.
        errno: i32,
    },
    /// The system refused for another reason.
    #[error("the system could not open {DEVICE} (error {errno}: {})", io::Error::from_raw_os_error(*errno))]
    Open {
        /// The error number of the system.
        errno: i32,
    },
}

impl TapError {
    fn of_attaching(name: &str, errno: Errno) -> Self {
        let name = name.to_owned();
        match errno {
            Errno::PERM => Self::InterfaceForbidden { name },
            Errno::BUSY => Self::Busy { name },
            Errno::INVAL => Self::Kind { name },
            _ => Self::Open { errno: errno.raw_os_error() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Waiter;
    use crate::namespace::{isolated_test, skip_test};
    use crate::testing::lent_frames_leave_whole;
    use crate::testing::{arp_reply, next, packet_sent_back, send, sent_back};
    use linerate_stack::{PartialChecksum, RxChecksum};
    use std::net::{Ipv4Addr, UdpSocket};
    use std::num::NonZeroU16;
    use std::os::unix::net::UnixDatagram;

    const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const OUR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

    /// Without offloads: what the tests send back is what they have received.
    fn plain() -> TapConfig {
        TapConfig { offloads: false, ..TapConfig::default() }
    }

    /// A device of the kernel's, where the machine has any.
    fn open(config: &TapConfig) -> Option<Tap> {
        match Tap::open(config) {
            Err(error @ (TapError::NoDevice | TapError::DeviceForbidden)) => {
                skip_test(&error);
                None
            }
            opened => {
                let tap = opened.unwrap();
                tap.interface.disable_ipv6().unwrap();
                Some(tap)
            }
        }
    }

    fn bring_up(tap: &Tap) {
        tap.interface.add_address(KERNEL, 24).unwrap();
        tap.interface.set_up().unwrap();
    }

    #[test]
    fn the_kernel_sends_a_flow_to_the_queue_that_it_came_from() {
        isolated_test(|| {
            if open(&plain()).is_none() {
                return;
            }
            let mut queues =
                Tap::open_queues(&TapConfig { name: "many%d".to_owned(), ..plain() }, 4).unwrap();
            queues[0].interface.disable_ipv6().unwrap();
            bring_up(&queues[0]);
            let socket = UdpSocket::bind((KERNEL, 0)).unwrap();
            let question = |queues: &mut [Tap]| {
                socket.send_to(b"to whichever queue", (OURS, 7)).unwrap();
                loop {
                    for (number, queue) in queues.iter_mut().enumerate() {
                        let mut frame = None;
                        queue.receive(1, |arrived| frame = Some(arrived.bytes.to_vec())).unwrap();
                        if let Some(frame) = frame {
                            return (number, frame);
                        }
                    }
                }
            };
            let (_, request) = question(&mut queues);
            send(&mut queues[1], &[arp_reply(&request, OURS, OUR_MAC)]).unwrap();
            let (mut first, mut frame) = (0, Vec::new());
            while frame.get(12..14) != Some(&[8, 0]) {
                // What waited for the answer comes by itself.
                for (number, queue) in queues.iter_mut().enumerate() {
                    queue.receive(1, |arrived| (first, frame) = (number, arrived.bytes.to_vec())).unwrap();
                }
            }
            for other in (0..4).filter(|&other| other != first) {
                send(&mut queues[other], [sent_back(&frame)]).unwrap();
                socket.recv(&mut [0; 64]).unwrap();
                assert_eq!(question(&mut queues).0, other);
            }
        });
    }

    #[test]
    fn no_queue_and_too_many_are_refused() {
        assert_eq!(Tap::open_queues(&plain(), 0).unwrap_err(), TapError::Queues(0));
        assert!(Tap::open_queues(&plain(), 257).unwrap_err().to_string().contains("1 to 256"));
    }

    #[test]
    fn the_kernel_s_frames_arrive_and_ours_arrive_at_the_kernel() {
        isolated_test(|| {
            let Some(mut tap) = open(&plain()) else { return };
            bring_up(&tap);
            assert_eq!(tap.interface().name(), "lr0");
            let mac = tap.interface.state().unwrap().mac.unwrap();
            let socket = UdpSocket::bind((KERNEL, 0)).unwrap();
            socket.send_to(b"over a TAP", (OURS, 7)).unwrap();
            let request = next(&mut tap);
            assert_eq!(send(&mut tap, &[arp_reply(&request, OURS, OUR_MAC)]), Ok(1));
            let frame = next(&mut tap);
            assert_eq!((&frame[..6], &frame[6..12]), (&OUR_MAC[..], &mac[..]));
            assert_eq!(send(&mut tap, [sent_back(&frame)]), Ok(1));
            let mut echo = [0; 64];
            let (length, from) = socket.recv_from(&mut echo).unwrap();
            assert_eq!((&echo[..length], from), (&b"over a TAP"[..], (OURS, 7).into()));
        });
    }

    #[test]
    fn over_tun_frames_begin_with_the_packet() {
        isolated_test(|| {
            let config = TapConfig { medium: Medium::Ip, mtu: 1_300, ..plain() };
            let Some(mut tun) = open(&config) else { return };
            bring_up(&tun);
            assert_eq!(tun.interface.state().unwrap().mtu, Bytes::new(1_300));
            let name = tun.interface.name().to_owned();
            assert_eq!(tun.interface.station(), Err(InterfaceError::NoEthernet(name)));
            let socket = UdpSocket::bind((KERNEL, 0)).unwrap();
            socket.send_to(&[7; 1_272], (OURS, 7)).unwrap();
            let packet = next(&mut tun);
            assert_eq!((packet[0], packet.len()), (0x45, 1_300));
            assert_eq!(send(&mut tun, &[packet_sent_back(&packet)]), Ok(1));
            assert_eq!(socket.recv_from(&mut [0; 1_500]).unwrap().0, 1_272);
        });
    }

    #[test]
    fn as_many_frames_wait_to_be_received_as_the_queue_of_the_interface_holds() {
        isolated_test(|| {
            let Some(mut tap) = open(&plain()) else { return };
            bring_up(&tap);
            let socket = UdpSocket::bind((KERNEL, 0)).unwrap();
            socket.set_broadcast(true).unwrap();
            for length in [40, 2_000] {
                tap.interface.set_queue_length(length).unwrap();
                for _ in 0..length {
                    socket.send_to(b"to all", (Ipv4Addr::new(10, 0, 0, 255), 9)).unwrap();
                }
                assert_eq!(tap.receive(10_000, |_| ()), Ok(length as usize));
            }
        });
    }

    #[test]
    fn an_interface_that_was_taken_down_or_removed_is_a_link_that_is_down() {
        isolated_test(|| {
            let Some(mut tap) = open(&plain()) else { return };
            assert_eq!(send(&mut tap, &[vec![0; 60]]), Err(LinkError::Down));
            assert_eq!(tap.receive(1, |_| ()), Ok(0));
            bring_up(&tap);
            assert_eq!(send(&mut tap, &[vec![0; 60]]), Ok(1));
            tap.interface.clone().delete().unwrap();
            assert!(Waiter::new().unwrap().wait(&mut tap, Instant::NEVER).unwrap().link);
            assert_eq!(tap.receive(1, |_| ()), Err(LinkError::Down));
        });
    }

    #[test]
    fn a_name_that_is_taken_is_told_from_one_that_is_no_name() {
        isolated_test(|| {
            let config = |name: &str| TapConfig { name: name.to_owned(), ..TapConfig::default() };
            let Some(tap) = open(&config("taken")) else { return };
            let refusal = |name| Tap::open(&config(name)).map(drop).unwrap_err();
            assert_eq!(refusal("taken"), TapError::Busy { name: "taken".to_owned() });
            assert_eq!(refusal("lo"), TapError::Kind { name: "lo".to_owned() });
            assert!(matches!(refusal("a b"), TapError::Interface(InterfaceError::Name(_))));
            drop(tap);
            Tap::open(&config("taken")).unwrap();
        });
    }

    #[test]
    fn a_frame_whose_header_says_what_cannot_be_is_dropped_and_counted() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let interface = KernelInterface::loopback().unwrap();
        let mut tap = Tap::over(ours.into(), interface, &TapConfig::default());
        let send = |header: [u8; 10], length: usize| {
            let frame = [&header[..], &vec![9; length]].concat();
            theirs.send(&frame).unwrap();
        };
        theirs.send(&[0; 9]).unwrap();
        theirs.send(&[]).unwrap();
        send([1, 0, 0, 0, 0, 0, 60, 0, 0, 0], 60);
        send([1, 1, 0, 0, 0, 0, 34, 0, 16, 0], 60);
        send([1, 3, 0, 0, 1, 0, 34, 0, 16, 0], 60);
        send([0; 10], 60);
        send([1, 1, 54, 0, 5, 0, 34, 0, 16, 0], 65_000);
        let mut seen = Vec::new();
        let received = tap.receive(100, |frame| {
            seen.push((frame.bytes.len(), frame.checksum, frame.segment.map(NonZeroU16::get)));
        });
        let place = PartialChecksum { start: 34, offset: 16 };
        assert_eq!(received, Ok(2));
        assert_eq!(seen, [(60, RxChecksum::Unverified, None), (65_000, RxChecksum::Partial(place), Some(5))]);
        assert_eq!(tap.malformed(), 5);
    }

    #[test]
    fn what_is_lent_leaves_behind_what_was_written_also_if_it_has_to_wait() {
        lent_frames_leave_whole(|ours| {
            Tap::over(ours, KernelInterface::loopback().unwrap(), &TapConfig::default())
        });
    }

    #[test]
    fn a_frame_for_which_the_system_has_no_room_waits_and_none_is_lost_or_sent_twice() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let interface = KernelInterface::loopback().unwrap();
        let mut tap = Tap::over(ours.into(), interface, &plain());
        let mut next = 0_u32;
        let mut fill = |bytes: &mut [u8]| {
            bytes[..4].copy_from_slice(&next.to_be_bytes());
            next += 1;
            Some(TxFrame::whole(60))
        };
        let sent = tap.transmit(100_000, &mut fill).unwrap();
        assert!(sent < 100_000 && tap.wants_room());
        assert_eq!(tap.transmit(100, |_| panic!("one frame waits already")), Ok(0));
        let mut frames = Vec::new();
        let mut drain = || {
            let mut bytes = [0; 100];
            while let Ok(length) = theirs.recv(&mut bytes) {
                assert_eq!(length, 60);
                frames.push(u32::from_be_bytes(bytes[..4].try_into().unwrap()));
            }
        };
        drain();
        assert!(Waiter::new().unwrap().wait(&mut tap, Instant::NEVER).unwrap().link, "there is room");
        assert_eq!(tap.transmit(2, &mut fill), Ok(2));
        assert!(!tap.wants_room());
        drain();
        let expected: Vec<_> = (0..u32::try_from(sent).unwrap() + 2).collect();
        assert_eq!(frames, expected);
    }
}
