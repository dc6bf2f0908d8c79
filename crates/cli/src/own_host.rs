//! The options of commands that use linerate's TCP on an interface.

use crate::amounts::mtu;
use crate::output::Failure;
use clap::{Args, ValueEnum};
use linerate_ends::OwnHost;
use linerate_ends::socket::{Congestion, Network, check_own_congestion};
use linerate_link::{LinkSpec, random_bytes};
use linerate_wire::{IpCidr, VlanTag};
use std::net::IpAddr;

/// Returns random bytes, from which a host derives its secrets.
pub(crate) fn random_seed() -> Result<[u8; 32], Failure> {
    random_bytes()
        .map_err(|error| Failure::running(format!("the system gives no random numbers ({error})")))
}

/// The value of an option that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl From<Switch> for bool {
    fn from(switch: Switch) -> Self {
        switch == Switch::On
    }
}

/// The options for the link of linerate's host.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LinkArgs {
    /// The VLAN of linerate's host on tap:NAME or packet:NAME, with the priority of its frames if
    /// needed: 100, or 100:5
    #[arg(long, value_name = "ID")]
    pub(crate) vlan: Option<VlanTag>,

    /// Compress TCP/IP headers on a serial line (RFC 1144); both ends must do the same
    /// [default: on]
    #[arg(long, value_enum, value_name = "SWITCH")]
    pub(crate) header_compression: Option<Switch>,
}

/// The options for the addresses of linerate's host.
#[derive(Clone, Debug, Args)]
pub(crate) struct AddressArgs {
    /// The address of linerate's host on an interface, with the prefix length of its network
    #[arg(long, value_name = "ADDR/LENGTH", value_parser = cidr)]
    pub(crate) address: Option<IpCidr>,

    /// The router to hosts outside the network of --address
    #[arg(long, value_name = "ADDR")]
    pub(crate) gateway: Option<IpAddr>,

    #[command(flatten)]
    pub(crate) link: LinkArgs,
}

impl AddressArgs {
    /// Returns the configuration of linerate's host on `link`, or an error if no address was given.
    pub(crate) fn on(&self, link: &LinkSpec) -> Result<OwnHost, Failure> {
        let address = self.address.ok_or_else(|| needs_address(link))?;
        check_gateway(address, self.gateway)?;
        Ok(OwnHost {
            gateway: self.gateway,
            vlan: self.link.vlan,
            header_compression: self.link.header_compression.map(bool::from),
            ..OwnHost::new(link.clone(), address)
        })
    }

    /// Returns an error if an option for the address or link of linerate's host is given. Commands
    /// call this method if they use no linerate host on an interface. The option would then have no
    /// effect, which the user should know.
    pub(crate) fn need_none(&self) -> Result<(), Failure> {
        let given = [
            ("--address", self.address.is_some()),
            ("--gateway", self.gateway.is_some()),
            ("--vlan", self.link.vlan.is_some()),
            ("--header-compression", self.link.header_compression.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((flag, _)) => Err(Failure::input(format!(
                "{flag} is for linerate's host on an interface: leave it out, or name one, --on \
                 packet:NAME"
            ))),
        }
    }
}

/// The options of a command that can use the kernel's TCP, or linerate's on an interface.
#[derive(Clone, Debug, Args)]
pub(crate) struct OwnHostArgs {
    /// Use linerate's TCP on an interface: through a packet socket (packet:NAME), AF_XDP (xdp:NAME,
    /// or xdp:NAME:QUEUE), a TAP or TUN device (tap:NAME, tun:NAME), or on a serial line
    /// (serial:DEVICE, or serial:DEVICE@BAUD)
    /// [default: the kernel's TCP]
    #[arg(long, value_name = "LINK")]
    on: Option<LinkSpec>,

    #[command(flatten)]
    address: AddressArgs,

    /// Largest IP packet on a serial line, in bytes [default: 296, or 1280 with IPv6]
    #[arg(long, value_name = "BYTES", value_parser = mtu, requires = "on")]
    mtu: Option<u16>,

    /// The congestion control: one of the kernel's; with --on: tahoe, reno, new-reno, cubic, bbr or
    /// a fixed window (fixed:SEGMENTS) [default: the kernel's, or cubic]
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
}

impl OwnHostArgs {
    /// Returns the name of the requested congestion control; `None` if none was requested. Returns
    /// an error if the TCP in use does not have it. This is the kernel's TCP without `--on`, and
    /// linerate's TCP with it.
    pub(crate) fn congestion(&self) -> Result<Option<String>, Failure> {
        let Some(name) = &self.congestion else { return Ok(None) };
        let checked = match self.on {
            None => Congestion::of_this_machine().choose(Some(name)).map(drop),
            Some(_) => check_own_congestion(name),
        };
        checked.map_err(|error| Failure::input(error.to_string()))?;
        Ok(Some(name.clone()))
    }

    /// Returns the network that the command uses. Without `--on`, it is the kernel's. With `--on`,
    /// it is a new linerate host on that interface.
    pub(crate) fn network(&self) -> Result<Network, Failure> {
        match &self.on {
            None => self.address.need_none().map(|()| Network::Kernel),
            Some(link) => {
                let host = OwnHost { mtu: self.mtu, ..self.address.on(link)? };
                Network::begin(&host).map_err(|error| Failure::input(error.to_string()))
            }
        }
    }
}

/// Returns the text of the baud rate in `serial:BAUD`. This value of `--on` requests a serial line
/// whose two ends the command itself creates. Returns `None` for any other text, such as
/// `serial:DEVICE`.
pub(crate) fn line_of_this_command(text: &str) -> Option<&str> {
    let baud = text.strip_prefix("serial:")?;
    baud.bytes().all(|byte| byte.is_ascii_digit()).then_some(baud)
}

/// Returns the error for an interface on which linerate's host has no address.
pub(crate) fn needs_address(link: &LinkSpec) -> Failure {
    let name = link.interface();
    Failure::input(format!(
        "linerate's host needs an address on {name}: give --address ADDR/LENGTH"
    ))
}

/// Returns an error if `gateway`, the router of linerate's host, has another IP version than the
/// host's address `own`.
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

/// Parses the address of a host with the prefix length of its network, such as `10.0.0.2/24`.
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

/// Can a host on an interface have this address? It must be a unicast address, and not a loopback
/// address.
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
