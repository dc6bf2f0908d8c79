//! The options of `linerate sweep`, and their conversion to a plan.

use crate::amounts::{count, mtu, rate, seed, size, small_size, some_time};
use crate::output::Failure;
use crate::own_host::{AddressArgs, LinkArgs, Switch, line_of_this_command};
use crate::result_files::ResultFiles;
use clap::{Args, ValueEnum};
use linerate_ends::{OwnHost, Peer};
use linerate_evidence::BufferList;
use linerate_link::serial::parse_baud;
use linerate_link::{LinkSpec, ParseLinkError, SerialConfig};
use linerate_measure::{BenchError, BenchKind, Direction, Draft, Family, Plan};
use linerate_units::Duration;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::str::FromStr;

const EXAMPLES: &str = "\
Examples:
  linerate sweep                                     the experiment of 1988 on linerate's own TCP
  linerate sweep --diagonal --repeat 10              equal buffers only, with tighter intervals
  linerate sweep --send-buffers 1..64/4 --receive-buffers 16KiB..256KiB/16KiB
  linerate sweep --on tap --direction from-kernel    the kernel sends, linerate receives
  linerate sweep --on serial:2400                    a serial line, in real time: takes minutes
  linerate sweep --diagonal --impair loss=1%,delay=5ms --max-seconds 2
  linerate sweep --on sim:sun-3-60-to-3-60 --diagonal --set lance.transmit.chained=60
  linerate sweep 192.0.2.7 --line-rate 1Gb/s         the kernel's TCP, to a `linerate sink` there
  linerate sweep 192.0.2.7 --on packet:eth1 --address 192.0.2.9/24
                                                     linerate's TCP on eth1, to that sink, as root
  linerate sweep --resume linerate-out/20261121T020000Z-1988";

/// The options of `linerate sweep`. An omitted option is `None`, so that a resumed plan can tell it
/// from an explicit default.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SweepArgs {
    /// The machine that runs `linerate sink`; without it both ends are on this machine
    #[arg(value_name = "HOST[:PORT]")]
    peer: Option<Peer>,

    /// The TCPs: linerate's at both ends (stack), or at both ends of a serial line in real time
    /// (serial:BAUD), linerate's against the kernel's (tap or tun), the kernel's (kernel),
    /// linerate's on the machines of a scenario in virtual time (sim:NAME or sim:FILE.toml, see
    /// `linerate sim list`), or linerate's on an interface to a HOST: through a packet socket
    /// (packet:NAME), AF_XDP (xdp:NAME or xdp:NAME:QUEUE), a TAP or TUN device (tap:NAME,
    /// tun:NAME), or on a serial line (serial:DEVICE@BAUD)
    /// [default: stack, or kernel with a HOST]
    #[arg(long, value_name = "BENCH", value_parser = on, help_heading = "What is measured")]
    on: Option<On>,

    #[command(flatten, next_help_heading = "What is measured")]
    address: AddressArgs,

    /// Change a parameter of the scenario --on sim; can be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = "What is measured")]
    set: Vec<String>,

    /// The direction of the data --on tap or tun [default: to-kernel]
    #[arg(long, value_enum, help_heading = "What is measured")]
    direction: Option<DirectionArg>,

    /// The IP version of the packets --on tap, tun or sim:NAME [default: ipv4]
    #[arg(long, value_enum, help_heading = "How it is sent")]
    family: Option<FamilyArg>,

    /// Use offloads of linerate's link: GSO frames, and frames without checksums; --on tap, tun,
    /// tap:NAME, tun:NAME or packet:NAME [default: off --on tap and tun, so that frames have the
    /// size of the plan; on elsewhere]
    #[arg(long, value_enum, help_heading = "How it is sent")]
    offloads: Option<Switch>,

    /// The sender's socket buffers, in packets of one MSS, or in bytes with a suffix: 1..17, 1,2,4,
    /// 1..64/4, 16KiB..256KiB/16KiB [default: 1..17]
    #[arg(long, value_name = "LIST", help_heading = "What is measured")]
    send_buffers: Option<BufferList>,

    /// The receiver's socket buffers, in the same notation [default: 1..17]
    #[arg(long, value_name = "LIST", help_heading = "What is measured")]
    receive_buffers: Option<BufferList>,

    /// Only the cells where both buffers are equal
    #[arg(long, help_heading = "What is measured")]
    diagonal: bool,

    /// Runs of each cell [default: 32 --on stack, 2 --on serial, 4 elsewhere]
    #[arg(long, value_name = "COUNT", value_parser = count, help_heading = "What is measured")]
    repeat: Option<NonZeroU32>,

    /// Bytes of each run [default: 8MiB; 4 seconds' worth --on serial]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "What is measured")]
    bytes: Option<NonZeroU64>,

    /// Maximum time of a run; a run that takes longer is cut short and marked [default: 10]
    #[arg(long, value_name = "SECONDS", help_heading = "What is measured")]
    max_seconds: Option<Duration>,

    /// Total time: the runs that tell the most are made, and the other cells are predicted; `none`
    /// makes all runs [default: 60 with a HOST, none elsewhere]
    #[arg(long, value_name = "SECONDS|none", help_heading = "What is measured")]
    budget: Option<Budget>,

    /// The seed of the order of the runs, and of everything random in them [default: 1988]
    #[arg(long, value_name = "NUMBER", value_parser = seed, help_heading = "What is measured")]
    seed: Option<u64>,

    /// Compare received with sent data, byte for byte
    #[arg(long, help_heading = "What is measured")]
    verify: bool,

    /// Bytes of each write of the source [default: 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = small_size, help_heading = "How it is sent")]
    write_size: Option<NonZeroU32>,

    /// Bytes of each read of the sink [default: 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = small_size, help_heading = "How it is sent")]
    read_size: Option<NonZeroU32>,

    /// Largest IP packet, in bytes [default: 1500; 296 on a serial line]
    #[arg(long, value_name = "BYTES", value_parser = mtu, help_heading = "How it is sent")]
    mtu: Option<u16>,

    /// The sender's congestion control: tahoe, reno, new-reno, cubic, bbr or a fixed window
    /// (fixed:SEGMENTS) of linerate's TCP, or one of the kernel's
    #[arg(long, value_name = "NAME", help_heading = "How it is sent")]
    congestion: Option<String>,

    /// The configuration of linerate's TCP: modern, bsd_tahoe, bsd_reno [default: modern]
    #[arg(long, value_name = "NAME", help_heading = "How it is sent")]
    profile: Option<String>,

    /// Impair the frames of linerate's host: loss=1%,loss-burst=5,mark=1%,duplicate=1%,reorder=1%,
    /// delay=10ms,jitter=2ms,corrupt=0.1%; a prefix `rx.` or `tx.` restricts it to received or sent
    /// frames
    #[arg(long, value_name = "LIST", help_heading = "How it is sent")]
    impair: Option<String>,

    /// The link's bit rate, if its driver does not report it: 10Mb/s, 25G
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "How it is sent")]
    line_rate: Option<NonZeroU64>,

    /// Save the runs in this new folder, each when it ends [default: linerate-out/TIME-SEED]
    #[arg(long, value_name = "DIR", conflicts_with = "resume", help_heading = "Results")]
    pub(super) out: Option<PathBuf>,

    /// Continue the interrupted sweep in this folder; a finished one is only reported
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub(super) resume: Option<PathBuf>,

    #[command(flatten)]
    pub(super) files: ResultFiles,

    /// Write every frame of every run to this pcapng file
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(super) pcap: Option<PathBuf>,

    /// Show the heat map while it is measured, if standard error is a terminal
    #[arg(long, conflicts_with = "quiet", help_heading = "Results")]
    pub(super) watch: bool,

    /// Print only the report, without progress
    #[arg(long, help_heading = "Results")]
    pub(super) quiet: bool,
}

/// Default time budget of a sweep to another machine.
const REMOTE_BUDGET: Duration = Duration::from_secs(60);

/// The value of `--budget`: a duration, or `none`.
#[derive(Clone, Copy, Debug)]
struct Budget(Option<Duration>);

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" { Ok(Self(None)) } else { some_time(text).map(|time| Self(Some(time))) }
    }
}

/// The value of `--on`: the engine, and the scenario, interface or baud rate that it needs.
#[derive(Clone, Debug)]
struct On {
    kind: BenchKind,
    scenario: Option<String>,
    link: Option<LinkSpec>,
    baud: Option<NonZeroU32>,
}

impl On {
    const fn engine(kind: BenchKind) -> Self {
        Self { kind, scenario: None, link: None, baud: None }
    }

    /// Does `plan` use the engine that this value names, with an equal scenario, interface or baud
    /// rate?
    fn is_of(&self, plan: &Plan) -> bool {
        let link = plan.host.as_ref().map(|host| &host.link);
        (self.kind, self.baud) == (plan.on, plan.baud)
            && (&self.scenario, self.link.as_ref()) == (&plan.scenario, link)
    }
}

/// Parses the value of `--on`: the name of an engine, `sim:SCENARIO`, `serial:BAUD` or an
/// interface.
fn on(text: &str) -> Result<On, String> {
    match text {
        "stack" => return Ok(On::engine(BenchKind::Stack)),
        "tap" => return Ok(On::engine(BenchKind::Tap)),
        "tun" => return Ok(On::engine(BenchKind::Tun)),
        "kernel" => return Ok(On::engine(BenchKind::Kernel)),
        _ => {}
    }
    if let Some(scenario) = text.strip_prefix("sim:").filter(|name| !name.is_empty()) {
        return Ok(On { scenario: Some(scenario.to_owned()), ..On::engine(BenchKind::Sim) });
    }
    if let Some(baud) = line_of_this_command(text) {
        let baud = NonZeroU32::new(parse_baud(baud).map_err(|error| error.to_string())?);
        return Ok(On { baud, ..On::engine(BenchKind::Serial) });
    }
    let link = text.parse().map_err(|error| match error {
        ParseLinkError::NoLink => "write one of stack, tap, tun, kernel, sim:SCENARIO, \
                                   serial:BAUD, packet:NAME, xdp:NAME:QUEUE, tap:NAME, tun:NAME, \
                                   serial:DEVICE@BAUD"
            .to_owned(),
        error => error.to_string(),
    })?;
    Ok(On { link: Some(link), ..On::engine(BenchKind::Interface) })
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FamilyArg {
    Ipv4,
    Ipv6,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DirectionArg {
    ToKernel,
    FromKernel,
}

impl SweepArgs {
    /// Returns the plan that the options describe.
    pub(super) fn plan(&self) -> Result<Plan, Failure> {
        let mut base = match (&self.on, &self.peer) {
            (None, None) => Draft::of_1988(BenchKind::Stack),
            (None, Some(_)) => Draft::of_1988(BenchKind::Kernel),
            (Some(On { scenario: Some(scenario), .. }), _) => {
                Draft::of_scenario(scenario, &self.set).map_err(BenchError::from)?
            }
            (Some(On { baud: Some(baud), .. }), _) => Draft::of_serial(*baud),
            (Some(On { kind, .. }), _) => Draft::of_1988(*kind),
        };
        if let Some(On { link: Some(LinkSpec::Serial(..)), .. }) = &self.on {
            base.mtu = self.usual_mtu_of_a_line();
        }
        if self.max_seconds.is_none()
            && let Some(limit) = changed(base.clone(), self).serial_time_limit()
        {
            base.max_time = limit;
        }
        let budget = self.peer.as_ref().map(|_| REMOTE_BUDGET);
        self.plan_from(Draft { budget, ..base })
    }

    /// Returns the default MTU of a serial line in bytes.
    fn usual_mtu_of_a_line(&self) -> u16 {
        let is_ipv6 = self.address.address.is_some_and(|own| own.address().is_ipv6());
        let mtu = if is_ipv6 { SerialConfig::MTU_IPV6 } else { SerialConfig::MTU };
        u16::try_from(mtu).unwrap_or(u16::MAX)
    }

    /// Returns the plan that results if the options of the command line replace the values of
    /// `base`.
    fn plan_from(&self, base: Draft) -> Result<Plan, Failure> {
        let draft = Draft { host: self.host(base.host.as_ref())?, ..changed(base, self) };
        Plan::new(draft).map_err(|error| Failure::input(error.to_string()))
    }

    /// Returns the configuration of linerate's host for a sweep on an interface; `None` for other
    /// engines. `kept` is the host in the plan of a resumed sweep. Options that are given replace
    /// its values.
    fn host(&self, kept: Option<&OwnHost>) -> Result<Option<OwnHost>, Failure> {
        let link =
            self.on.as_ref().map_or_else(|| kept.map(|host| &host.link), |on| on.link.as_ref());
        let LinkArgs { vlan, header_compression } = self.address.link;
        let Some(link) = link else {
            // `need_none` refuses options that apply only to an interface. `--header-compression`
            // also applies to `serial:BAUD`, so it is removed before this check. `Plan::new` checks
            // it later.
            let link = LinkArgs { vlan, header_compression: None };
            return AddressArgs { link, ..self.address.clone() }.need_none().map(|()| None);
        };
        let kept_compression = || match kept?.header_compression? {
            true => Some(Switch::On),
            false => Some(Switch::Off),
        };
        let address = AddressArgs {
            address: self.address.address.or_else(|| kept.map(|host| host.address)),
            gateway: self.address.gateway.or_else(|| kept?.gateway),
            link: LinkArgs {
                vlan: vlan.or_else(|| kept?.vlan),
                header_compression: header_compression.or_else(kept_compression),
            },
        };
        address.on(link).map(Some)
    }

    /// Returns an error if an option contradicts `kept`, the saved plan of the sweep to resume.
    pub(super) fn agree_with(&self, kept: &Plan, folder: &Path) -> Result<(), Failure> {
        let differs = |flag: &str| {
            Failure::input(format!(
                "{flag} differs from the plan in {}: leave it out to continue that sweep, or start \
                 a new one",
                folder.display()
            ))
        };
        // The engine is compared first. If it differs, the error must name `--on`. Otherwise it
        // would name a saved option that has no meaning on the new engine, although the user did
        // not give it.
        if self.on.as_ref().is_some_and(|on| !on.is_of(kept)) {
            return Err(differs("--on"));
        }
        let asked = self.plan_from(kept.clone().into())?;
        kept.difference(&asked).map_or(Ok(()), |field| Err(differs(&flag_of(&field))))
    }
}

/// Returns the name of the option that sets a field of the plan, for error messages.
fn flag_of(field: &str) -> String {
    match field {
        "peer" => "the HOST".to_owned(),
        "host" => "--address, --gateway, --vlan or --header-compression".to_owned(),
        "budget_seconds" => "--budget".to_owned(),
        _ => format!("--{}", field.replace('_', "-")),
    }
}

/// Returns `base`, in which the options of the command line replace values. Options of linerate's
/// host are not applied; `SweepArgs::host` applies them.
fn changed(base: Draft, args: &SweepArgs) -> Draft {
    let compression = args.address.link.header_compression.map(bool::from);
    Draft {
        on: base.on,
        scenario: base.scenario,
        set: if args.set.is_empty() { base.set } else { args.set.clone() },
        baud: base.baud,
        // In a sweep on an interface, header compression is a setting in `host`, so the option does
        // not change this field.
        header_compression: compression
            .filter(|_| base.on != BenchKind::Interface)
            .or(base.header_compression),
        host: base.host,
        peer: args.peer.clone().or(base.peer),
        direction: args.direction.map(Direction::from).or(base.direction),
        family: args.family.map(Family::from).or(base.family),
        offloads: args.offloads.map(bool::from).or(base.offloads),
        send_buffers: args.send_buffers.clone().unwrap_or(base.send_buffers),
        receive_buffers: args.receive_buffers.clone().unwrap_or(base.receive_buffers),
        diagonal: args.diagonal || base.diagonal,
        repeat: args.repeat.unwrap_or(base.repeat),
        bytes: args.bytes.unwrap_or(base.bytes),
        max_time: args.max_seconds.unwrap_or(base.max_time),
        seed: args.seed.unwrap_or(base.seed),
        blocks: base.blocks,
        baseline_every: base.baseline_every,
        budget: args.budget.map_or(base.budget, |budget| budget.0),
        write_size: args.write_size.unwrap_or(base.write_size),
        read_size: args.read_size.unwrap_or(base.read_size),
        mtu: args.mtu.unwrap_or(base.mtu),
        congestion: args.congestion.clone().or(base.congestion),
        profile: args.profile.clone().or(base.profile),
        impair: args.impair.clone().or(base.impair),
        line_rate: args.line_rate.or(base.line_rate),
        verify: args.verify || base.verify,
    }
}

impl From<FamilyArg> for Family {
    fn from(family: FamilyArg) -> Self {
        match family {
            FamilyArg::Ipv4 => Self::Ipv4,
            FamilyArg::Ipv6 => Self::Ipv6,
        }
    }
}

impl From<DirectionArg> for Direction {
    fn from(direction: DirectionArg) -> Self {
        match direction {
            DirectionArg::ToKernel => Self::ToKernel,
            DirectionArg::FromKernel => Self::FromKernel,
        }
    }
}
