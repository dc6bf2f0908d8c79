//! The options of a linerate host on an interface.

use crate::output::Failure;
use clap::Args;
use linerate_ends::OwnHost;
use linerate_ends::socket::{Congestion, Network, check_own_congestion};
use linerate_link::{LinkSpec, random_bytes};
use linerate_wire::IpCidr;
use std::net::IpAddr;

/// Draws the secrets of a host.
pub(crate) fn random_seed() -> Result<[u8; 32], Failure> {
    random_bytes()
        .map_err(|error| Failure::running(format!("the system gives no random numbers ({error})")))
}

/// The addresses of linerate's host.
#[derive(Clone, Debug, Args)]
pub(crate) struct AddressArgs {
    /// The address of linerate's host on an interface, with the prefix length of its network
    #[arg(long, value_name = "ADDR/LENGTH", value_parser = cidr)]
    pub(crate) address: Option<IpCidr>,

    /// The router to hosts outside the network of --address
    #[arg(long, value_name = "ADDR")]
    pub(crate) gateway: Option<IpAddr>,
}

impl AddressArgs {
    /// Returns the host on `link`, if an address was given.
    pub(crate) fn on(&self, link: &LinkSpec) -> Result<OwnHost, Failure> {
        let address = self.address.ok_or_else(|| needs_address(link))?;
        check_gateway(address, self.gateway)?;
        Ok(OwnHost { link: link.clone(), address, gateway: self.gateway })
    }

    /// Refuses addresses if there is no host for them.
    pub(crate) fn need_none(&self) -> Result<(), Failure> {
        match (self.address, self.gateway) {
            (None, None) => Ok(()),
            (Some(_), _) => Err(Failure::input(
                "--address is for linerate's host on an interface: leave it out, or name one, \
                 --on packet:NAME",
            )),
            (None, Some(_)) => Err(Failure::input(
                "--gateway is for linerate's host on an interface: leave it out, or name one, \
                 --on packet:NAME",
            )),
        }
    }
}

/// The TCP of a service: the kernel's, or linerate's on an interface.
#[derive(Clone, Debug, Args)]
pub(crate) struct OwnHostArgs {
    /// Use linerate's TCP on an interface: through a packet socket (packet:NAME), AF_XDP (xdp:NAME,
    /// or xdp:NAME:QUEUE), or a TAP device (tap:NAME)
    /// [default: the kernel's TCP]
    #[arg(long, value_name = "LINK")]
    on: Option<LinkSpec>,

    #[command(flatten)]
    address: AddressArgs,

    /// The congestion control: one of the kernel's; with --on: tahoe, reno, new-reno, cubic, bbr or
    /// a fixed window (fixed:SEGMENTS) [default: the kernel's, or cubic]
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
}

impl OwnHostArgs {
    /// Returns the requested congestion control, if the TCP that is to use it has it.
    pub(crate) fn congestion(&self) -> Result<Option<String>, Failure> {
        let Some(name) = &self.congestion else { return Ok(None) };
        let checked = match self.on {
            None => Congestion::of_this_machine().choose(Some(name)).map(drop),
            Some(_) => check_own_congestion(name),
        };
        checked.map_err(|error| Failure::input(error.to_string()))?;
        Ok(Some(name.clone()))
    }

    /// Returns the kernel's network, or starts a linerate host.
    pub(crate) fn network(&self) -> Result<Network, Failure> {
        match &self.on {
            None => self.address.need_none().map(|()| Network::Kernel),
            Some(link) => Network::begin(&self.address.on(link)?)
                .map_err(|error| Failure::input(error.to_string())),
        }
    }
}

/// Returns the failure for an interface without an address.
pub(crate) fn needs_address(link: &LinkSpec) -> Failure {
    let name = link.interface();
    Failure::input(format!(
        "linerate's host needs an address on {name}: give --address ADDR/LENGTH"
    ))
}

/// Refuses a router that the host cannot reach, because it has the other IP version.
pub(crate) fn check_gateway(own: IpCidr, gateway: Option<IpAddr>) -> Result<(), Failure> {
    match gateway {
        Some(gateway) if gateway.is_ipv4() != own.address().is_ipv4() => {
            Err(Failure::input(format!(
                "--gateway {gateway} and --address {own} are of different IP versions: choose one"
            )))
        }
        _ => Ok(()),
    }
}

/// Parses the address of a host with the prefix length of its network.
pub(crate) fn cidr(text: &str) -> Result<IpCidr, String> {
    let cidr =
        Some(text).filter(|text| text.contains('/')).and_then(|text| text.parse::<IpCidr>().ok());
    let cidr = cidr.ok_or(
        "write an IPv4 address with its prefix length, such as 10.0.0.2/24, or an IPv6 address, \
         such as 2001:db8::2/64",
    )?;
    let address = cidr.address();
    if !is_a_hosts(address) || cidr.broadcast().map(IpAddr::from) == Some(address) {
        return Err(format!(
            "{address} is reserved and cannot be the address of a host: choose another one"
        ));
    }
    Ok(cidr)
}

/// Can a host have this address?
pub(crate) const fn is_a_hosts(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, ..] = address.octets();
            first >= 1 && first < 224 && !address.is_loopback()
        }
        IpAddr::V6(address) => {
            !address.is_unspecified()
                && !address.is_loopback()
                && !address.is_multicast()
                && address.to_ipv4_mapped().is_none()
        }
    }
}
