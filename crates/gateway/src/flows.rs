//! The flows of a gateway. Each has a socket of linerate's host towards the client, and a socket of
//! the kernel towards the destination.

use linerate_stack::{DeferredHandle, TcpHandle, UdpHandle};
use std::collections::BTreeMap;
use std::net::{TcpStream, UdpSocket};

/// Flags that make up the state of a relayed connection.
pub(crate) mod bits {
    /// The client has completed its handshake.
    pub(crate) const OPEN: u8 = 1;
    /// The kernel's socket may have data to read.
    pub(crate) const CAN_READ: u8 = 2;
    /// The kernel's socket may have room to write.
    pub(crate) const CAN_WRITE: u8 = 4;
    /// The destination has closed its sending direction (`EPOLLRDHUP`). Edge-triggered epoll then
    /// reports no further event, so the socket must be read to the end of the stream.
    pub(crate) const FAR_FINISHED: u8 = 8;
    /// The client has closed its sending direction, and this has been passed to the destination.
    pub(crate) const UP_DONE: u8 = 16;
    /// The destination has closed its sending direction, and this has been passed to the client.
    pub(crate) const DOWN_DONE: u8 = 32;
    /// The flow is in the queue of flows that one turn could not finish. The flag prevents a second
    /// entry in this queue.
    pub(crate) const QUEUED: u8 = 64;
}

/// A relayed flow in one of its states. In names, "far" is the kernel's socket to the destination.
#[derive(Debug)]
pub(crate) enum Flow {
    /// A TCP flow for which the gateway is connecting to the destination. The client's handshake is
    /// deferred until the destination has accepted the connection.
    Connecting {
        /// The socket that connects to the destination.
        far: TcpStream,
        /// The client's deferred handshake.
        deferred: DeferredHandle,
    },
    /// A TCP connection that is connected on both sides.
    Tcp {
        /// The socket to the destination.
        far: TcpStream,
        /// The connection to the client.
        client: TcpHandle,
        /// Flags of [`bits`].
        state: u8,
    },
    /// A UDP flow, which relays datagrams.
    Udp {
        /// The socket to the destination.
        far: UdpSocket,
        /// The host's UDP socket to the client.
        client: UdpHandle,
        /// Has the destination sent a datagram, or has an ICMP error arrived? If the flow expires
        /// without either, the pace of new flows counts the flow as useless. A flood consists
        /// mostly of useless flows.
        is_answered: bool,
    },
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    flow: Option<Flow>,
}

/// All flows, in slots that are reused when a flow ends.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    slots: Vec<Slot>,
    free: Vec<u32>,
    pub(crate) by_deferred: BTreeMap<DeferredHandle, u32>,
    pub(crate) by_tcp: BTreeMap<TcpHandle, u32>,
    pub(crate) by_udp: BTreeMap<UdpHandle, u32>,
}

impl Flows {
    pub(crate) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the index and the generation that the next inserted flow will have. The generation
    /// distinguishes flows that use the same slot, one after the other.
    pub(crate) fn reserve(&mut self) -> (u32, u32) {
        if let Some(&index) = self.free.last() {
            return (index, self.slots[index as usize].generation);
        }
        let index = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.slots.push(Slot { generation: 0, flow: None });
        self.free.push(index);
        (index, 0)
    }

    /// Adds a flow at the index that [`Flows::reserve`] has announced, and returns this index.
    pub(crate) fn insert(&mut self, flow: Flow) -> u32 {
        let (index, _) = self.reserve();
        self.free.pop();
        self.note(&flow, index);
        self.slots[index as usize].flow = Some(flow);
        index
    }

    fn note(&mut self, flow: &Flow, index: u32) {
        match flow {
            Flow::Connecting { deferred, .. } => drop(self.by_deferred.insert(*deferred, index)),
            Flow::Tcp { client, .. } => drop(self.by_tcp.insert(*client, index)),
            Flow::Udp { client, .. } => drop(self.by_udp.insert(*client, index)),
        }
    }

    fn forget(&mut self, flow: &Flow) {
        match flow {
            Flow::Connecting { deferred, .. } => drop(self.by_deferred.remove(deferred)),
            Flow::Tcp { client, .. } => drop(self.by_tcp.remove(client)),
            Flow::Udp { client, .. } => drop(self.by_udp.remove(client)),
        }
    }

    /// Passes a flow to `step`, and puts the flow that `step` returns in its place.
    pub(crate) fn advance(&mut self, index: u32, step: impl FnOnce(Flow) -> Flow) {
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        if let Some(flow) = slot.flow.take() {
            self.forget(&flow);
            let flow = step(flow);
            self.note(&flow, index);
            self.slots[index as usize].flow = Some(flow);
        }
    }

    /// Removes and returns a flow. Its index can then be reused.
    pub(crate) fn remove(&mut self, index: u32) -> Option<Flow> {
        let slot = self.slots.get_mut(index as usize)?;
        let flow = slot.flow.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        self.forget(&flow);
        self.shrink();
        Some(flow)
    }

    /// Frees the memory of the slots when all flows have ended.
    fn shrink(&mut self) {
        if self.slots.len() == self.free.len() && self.slots.len() > 1_024 {
            // New slots begin with generation zero, so a new flow can get the index and the
            // generation of an ended flow. Their events are not confused nevertheless, because all
            // events of a wait are handled before new flows are inserted.
            (self.slots, self.free) = (Vec::new(), Vec::new());
        }
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Flow> {
        self.slots.get_mut(index as usize)?.flow.as_mut()
    }

    /// Is the flow at `index` still the flow of this generation?
    pub(crate) fn is_current(&self, index: u32, generation: u32) -> bool {
        let slot = self.slots.get(index as usize);
        slot.is_some_and(|slot| slot.generation == generation && slot.flow.is_some())
    }

    /// Returns the indices of all current flows.
    pub(crate) fn indices(&self) -> Vec<u32> {
        let used = (0..).zip(&self.slots).filter(|(_, slot)| slot.flow.is_some());
        used.map(|(index, _)| index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_stack::{Stack, StackConfig, UdpOptions};
    use linerate_wire::MacAddress;

    /// Returns a flow whose handle differs from the handles of all other flows.
    fn flow(stack: &mut Stack) -> Flow {
        let address: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
        let client = stack.udp_bind(address, &UdpOptions::default()).unwrap();
        Flow::Udp { far: UdpSocket::bind("127.0.0.1:0").unwrap(), client, is_answered: false }
    }

    #[test]
    fn a_reused_place_has_another_generation() {
        let config = StackConfig::new(MacAddress::ZERO, "192.0.2.1/24".parse().unwrap());
        let mut stack = Stack::new(config, [7; 32]);
        let mut flows = Flows::default();
        let (index, generation) = flows.reserve();
        assert_eq!(flows.reserve(), (index, generation), "a place is reserved until it is used");
        assert_eq!((flows.insert(flow(&mut stack)), flows.len()), (index, 1));
        let second = flows.insert(flow(&mut stack));
        assert_eq!((flows.indices(), flows.by_udp.len()), (vec![index, second], 2));
        assert!(flows.is_current(index, generation) && flows.remove(index).is_some());
        assert!(!flows.is_current(index, generation) && flows.remove(index).is_none());
        let (again, later) = flows.reserve();
        assert!(again == index && later != generation);
        flows.insert(flow(&mut stack));
        assert!(!flows.is_current(index, generation), "an old event finds no new flow");
        assert!(flows.is_current(index, later));
        assert_eq!(flows.len(), 2);
    }
}
