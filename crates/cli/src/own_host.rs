//! The flags that put a host of linerate's own onto an interface.

use crate::output::Failure;
use clap::Args;
use linerate_ends::OwnHost;
use linerate_ends::socket::{Congestion, Network, check_own_congestion};
use linerate_link::LinkSpec;
use linerate_wire::Ipv4Cidr;
use std::net::Ipv4Addr;

/// Where linerate's host is, on an interface that was chosen elsewhere.
#[derive(Clone, Debug, Args)]
pub(crate) struct AddressArgs {
    /// The address of linerate's host on an interface, and the length of its network's prefix
    #[arg(long, value_name = "ADDR/LENGTH", value_parser = cidr)]
    pub(crate) address: Option<Ipv4Cidr>,

    /// The way to hosts that are not on the network of --address
    #[arg(long, value_name = "ADDR")]
    pub(crate) gateway: Option<Ipv4Addr>,
}

impl AddressArgs {
    /// The host on `link`, if it has an address.
    pub(crate) fn on(&self, link: &LinkSpec) -> Result<OwnHost, Failure> {
        let address = self.address.ok_or_else(|| needs_address(link))?;
        Ok(OwnHost { link: link.clone(), address, gateway: self.gateway })
    }

    /// Refuses to know an address where there is no host for it.
    pub(crate) fn need_none(&self) -> Result<(), Failure> {
        match (self.address, self.gateway) {
            (None, None) => Ok(()),
            (Some(_), _) => Err(Failure::input(
                "--address is that of linerate's host on an interface: leave it out, or name one, --on packet:NAME",
            )),
            (None, Some(_)) => Err(Failure::input(
                "--gateway is for linerate's host on an interface: leave it out, or name one, --on packet:NAME",
            )),
        }
    }
}

/// A service by the kernel's TCP, or by linerate's on an interface.
#[derive(Clone, Debug, Args)]
pub(crate) struct OwnHostArgs {
    /// By linerate's TCP on an interface, beside the kernel: by a packet socket (packet:NAME), at
    /// its driver by AF_XDP (xdp:NAME, or xdp:NAME:QUEUE), or behind a TAP device (tap:NAME)
    /// [default: by the kernel's TCP]
    #[arg(long, value_name = "LINK")]
    on: Option<LinkSpec>,

    #[command(flatten)]
    address: AddressArgs,

    /// The congestion control: one of the kernel's, or with --on tahoe, reno, new-reno, cubic, bbr or
    /// a fixed window (fixed:SEGMENTS) [default: the kernel's, or cubic]
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
}

impl OwnHostArgs {
    /// The congestion control that was asked for, which the TCP has that is to use it.
    pub(crate) fn congestion(&self) -> Result<Option<String>, Failure> {
        let Some(name) = &self.congestion else { return Ok(None) };
        let checked = match self.on {
            None => Congestion::of_this_machine().choose(Some(name)).map(drop),
            Some(_) => check_own_congestion(name),
        };
        checked.map_err(|error| Failure::input(error.to_string()))?;
        Ok(Some(name.clone()))
    }

    /// The kernel's network, or a new one.
    pub(crate) fn network(&self) -> Result<Network, Failure> {
        match &self.on {
            None => self.address.need_none().map(|()| Network::Kernel),
            Some(link) => Network::begin(&self.address.on(link)?)
                .map_err(|error| Failure::input(error.to_string())),
        }
    }
}

/// What to say where an interface is named and no address.
pub(crate) fn needs_address(link: &LinkSpec) -> Failure {
    let name = link.interface();
    Failure::input(format!(
        "linerate's host needs an address behind {name}: give --address ADDR/LENGTH"
    ))
}

/// The address of a host, with the prefix of its network.
pub(crate) fn cidr(text: &str) -> Result<Ipv4Cidr, String> {
    let cidr =
        Some(text).filter(|text| text.contains('/')).and_then(|text| text.parse::<Ipv4Cidr>().ok());
    let cidr =
        cidr.ok_or("write an IPv4 address and the length of its prefix, such as 10.0.0.2/24")?;
    let address = cidr.address();
    if !is_a_hosts(address) || cidr.broadcast() == Some(address) {
        return Err(format!(
            "no host can have {address}, it has a meaning of its own: choose another address"
        ));
    }
    Ok(cidr)
}

/// Can a host on a network have this address?
pub(crate) fn is_a_hosts(address: Ipv4Addr) -> bool {
    (1..224).contains(&address.octets()[0]) && !address.is_loopback()
}
