//! Assigns connections to processors. A hash of addresses and ports determines the processor of a
//! connection on each host. The simulator therefore tries local ports until the hashes select the
//! wanted processors.

use crate::parameter::{ParameterError, Section};
use crate::rng::Stream;
use linerate_stack::{FIRST_SHARD, Steering};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

/// First ephemeral port (RFC 6335).
const FIRST_PORT: u16 = 49_152;
/// Number of ephemeral ports.
const PORTS: u16 = 16_384;

/// The rule by which a program's connections are distributed over the processors of the accepting
/// host. On the connecting host, they are always distributed round robin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// At random: the RSS hash of each flow determines the processor.
    Chance,
    /// Round robin: connection n is on processor n modulo the number of processors.
    Even,
    /// All connections are on the first processor.
    One,
}

impl Spread {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        if !section.has("spread") {
            return Ok(Self::Chance);
        }
        match section.word("spread")? {
            "chance" => Ok(Self::Chance),
            "even" => Ok(Self::Even),
            "one" => Ok(Self::One),
            name => Err(ParameterError::Unknown {
                what: "spread",
                name: name.to_owned(),
                known: "chance, even, one".to_owned(),
            }),
        }
    }

    /// Returns whether, on a host with `of` processors, the rule permits that processor number
    /// `processor` processes connection `number`.
    const fn admits(self, number: usize, processor: u16, of: NonZeroU16) -> bool {
        match self {
            Self::Chance => true,
            Self::Even => processor as usize == number % of.get() as usize,
            Self::One => processor == FIRST_SHARD,
        }
    }
}

/// Port and processors that were chosen for a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    /// Local address of the connection at the connecting host. `None` if both hosts have only one
    /// processor, because the connecting host can then choose any port.
    pub(super) local: Option<SocketAddr>,
    /// Number of the connecting host's processor.
    pub(super) from: u16,
    /// Number of the accepting host's processor.
    pub(super) to: u16,
}

impl Ends {
    /// Chooses the local port of connection `number` of a program. The port determines, through
    /// RSS, which processor of each host handles the connection. The ports are tried from a random
    /// one on, until one leads to the processors that `spread` demands. The connection leads from
    /// the host with address `here` to `server`. `from` and `to` compute the RSS hashes of these
    /// two hosts.
    pub(super) fn new(
        spread: Spread,
        number: usize,
        (here, from): (IpAddr, &Steering),
        (server, to): (SocketAddr, &Steering),
        mut random: Stream,
    ) -> Self {
        if from.shards().max(to.shards()) == NonZeroU16::MIN {
            return Self { local: None, from: FIRST_SHARD, to: FIRST_SHARD };
        }
        let ends = |step: u64| {
            let [.., high, low] = (step % u64::from(PORTS)).to_be_bytes();
            let local = SocketAddr::new(here, FIRST_PORT + u16::from_be_bytes([high, low]));
            let [from, to] = [from, to].map(|host| host.of_connection(local, server));
            Self { local: Some(local), from, to }
        };
        let wanted = |ends: &Self| {
            Spread::Even.admits(number, ends.from, from.shards())
                && spread.admits(number, ends.to, to.shards())
        };
        let drawn = random.below(PORTS.into());
        // With the maximum number of processors on both hosts, about one port in a thousand leads
        // to the wanted pair of processors. There are 16,384 ports, so the search practically
        // always succeeds.
        let mut all = (drawn..drawn + u64::from(PORTS)).map(ends);
        all.find(wanted).unwrap_or_else(|| ends(drawn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 9);

    fn steering(seed: u8, shards: u16) -> Steering {
        Steering::new([seed; 32], NonZeroU16::new(shards).unwrap())
    }

    fn ends(spread: Spread, number: usize, from: u16, to: u16) -> Ends {
        let (from, to) = (steering(1, from), steering(2, to));
        let ends =
            Ends::new(spread, number, (HERE, &from), (SERVER, &to), Stream::new(1, number as u64));
        if let Some(local) = ends.local {
            assert_eq!(ends.from, from.of_connection(local, SERVER));
            assert_eq!(ends.to, to.of_connection(local, SERVER));
        }
        ends
    }

    #[test]
    fn a_connection_is_on_the_wanted_processors() {
        for number in 0..64 {
            let even = ends(Spread::Even, number, 32, 32);
            assert_eq!((usize::from(even.from), usize::from(even.to)), (number % 32, number % 32));
            let one = ends(Spread::One, number, 3, 8);
            assert_eq!((usize::from(one.from), one.to), (number % 3, FIRST_SHARD));
        }
        let mut counts = [0; 4];
        (0..400).for_each(|number| counts[usize::from(ends(Spread::Chance, number, 1, 4).to)] += 1);
        assert!(counts.iter().all(|count| (60..=140).contains(count)), "{counts:?}");
    }

    #[test]
    fn hosts_with_one_processor_choose_the_port_themselves() {
        for spread in [Spread::Chance, Spread::Even, Spread::One] {
            let Ends { local, from, to } = ends(spread, 5, 1, 1);
            assert_eq!((local, from, to), (None, FIRST_SHARD, FIRST_SHARD));
        }
    }
}
