//! The gateways under comparison. Each has code that finds, starts and measures it.

use super::network::TestNetwork;
use crate::build::{finish, program as output_of};
use crate::gvisor;
use linerate_link::namespace::Network;
use linerate_link::{KernelInterface, Tap, TapConfig};
use linerate_stack::Medium;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::env;
use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Address of the client on the TUN device that this program creates for a gateway.
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// ID of the user and of the group as which pasta is started, because it refuses to run as root.
const UNPRIVILEGED: u32 = 65_534;
/// Address of the default router on the TUN device that this program creates for a gateway.
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// A gateway under comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Linerate,
    Pasta,
    Slirp4netns,
    Ipstack,
    NetstackSmoltcp,
    Gvisor,
}

impl Subject {
    pub const ALL: [Self; 6] = [
        Self::Linerate,
        Self::Pasta,
        Self::Slirp4netns,
        Self::Ipstack,
        Self::NetstackSmoltcp,
        Self::Gvisor,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Linerate => "linerate",
            Self::Pasta => "pasta",
            Self::Slirp4netns => "slirp4netns",
            Self::Ipstack => "ipstack",
            Self::NetstackSmoltcp => "netstack-smoltcp",
            Self::Gvisor => "gvisor",
        }
    }

    /// Finds or builds the gateway's program, and returns its path.
    ///
    /// # Errors
    /// The reason why there is no program, with the remedy.
    pub fn program(self) -> Result<PathBuf, String> {
        match self {
            Self::Linerate => {
                let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
                let mut cargo = Command::new("cargo");
                finish(cargo.args(["build", "--release", "-p", "linerate"]).current_dir(&root))?;
                Ok(root.join("target/release/linerate"))
            }
            Self::Pasta => installed("pasta", "passt"),
            Self::Slirp4netns => installed("slirp4netns", "slirp4netns"),
            Self::Ipstack | Self::NetstackSmoltcp => {
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("gateways");
                let name = format!("{}-gateway", self.name());
                let mut cargo = Command::new("cargo");
                let build = cargo.args(["build", "--release", "--bin", &name]);
                finish(build.current_dir(&folder))
                    .map_err(|reason| format!("{reason}; its crates come from the registry"))?;
                Ok(folder.join("target/release").join(name))
            }
            Self::Gvisor => gvisor::gateway(),
        }
    }

    /// Returns the version of the gateway. A minimal gateway, which this project has written around
    /// a stack, has the version of the stack.
    pub fn version(self, program: &Path) -> String {
        match self {
            Self::Linerate | Self::Pasta | Self::Slirp4netns => {
                let text = output_of(&program.to_string_lossy(), &["--version"]);
                text.unwrap_or_default().lines().next().unwrap_or_default().to_owned()
            }
            Self::Ipstack | Self::NetstackSmoltcp => {
                let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("gateways/Cargo.lock");
                let lock = fs::read_to_string(lock).unwrap_or_default();
                let wanted = format!("name = \"{}\"", self.name());
                let mut lines = lock.lines().skip_while(|line| *line != wanted).skip(1);
                lines.next().unwrap_or_default().trim_start_matches("version = ").to_owned()
            }
            Self::Gvisor => gvisor::version(),
        }
    }

    /// Returns the known defect by which the gateway loses a half-close; `None` if there is none.
    pub const fn half_close_defect(self) -> Option<&'static str> {
        match self {
            Self::Ipstack => Some(
                "ipstack 1.0.1 ignores a segment with data, PSH and FIN, answers a FIN with its \
                 own at once, and sends no FIN if data is in flight when the application closes",
            ),
            _ => None,
        }
    }

    /// Starts the gateway for the clients in `network`. The MTU of the clients' device is `mtu`
    /// bytes.
    ///
    /// # Errors
    /// A message about the failure.
    pub fn start(
        self,
        program: &Path,
        network: &TestNetwork,
        mtu: usize,
    ) -> Result<Gateway, String> {
        let mut command = Command::new(program);
        let process = network.client.id();
        let namespace = format!("/proc/{process}/ns/net");
        let mtu_text = mtu.to_string();
        let mut device = None;
        match self {
            Self::Linerate => {
                command.args(["gateway", "--into", &process.to_string(), "--mtu", &mtu_text]);
            }
            Self::Pasta => {
                if !geteuid().is_root() {
                    return Err(
                        "it needs users that a user namespace lacks: run as root".to_owned()
                    );
                }
                check_tun_access()?;
                // pasta refuses to run as root. It starts the client's program itself, in a network
                // namespace that pasta creates.
                command.uid(UNPRIVILEGED).gid(UNPRIVILEGED).args(["--config-net", "--no-map-gw"]);
                command.args(["--mtu", &mtu_text, "-t", "none", "-u", "none"]);
                command.args(["-T", "none", "-U", "none", "--", "sleep", "infinity"]);
            }
            Self::Slirp4netns => {
                command.args(["--configure", "--mtu", &mtu_text, "--netns-type=path", &namespace]);
                command.arg("tap0");
            }
            Self::Ipstack | Self::NetstackSmoltcp | Self::Gvisor => {
                let tun = tun_inside(&network.client, mtu)?;
                // The program inherits the device, and gets the number of its descriptor as an
                // argument.
                fcntl_setfd(&tun, FdFlags::empty()).map_err(|error| error.to_string())?;
                command.arg(tun.as_raw_fd().to_string()).arg(&mtu_text);
                device = Some(tun);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(|error| format!("it does not start: {error}"))?;
        drop(device);
        let has_own_client = self == Self::Pasta;
        let mut gateway = Gateway { process, client: network.client.id(), has_own_client };
        if has_own_client {
            gateway.client = gateway.child_in_its_network()?;
        }
        Ok(gateway)
    }
}

/// Checks that an unprivileged user may open TUN devices.
fn check_tun_access() -> Result<(), String> {
    const DEVICE: &str = "/dev/net/tun";
    const READ_AND_WRITE: u32 = 0o006;
    let metadata = fs::metadata(DEVICE).map_err(|error| format!("{DEVICE}: {error}"))?;
    if metadata.permissions().mode() & READ_AND_WRITE != READ_AND_WRITE {
        return Err(format!(
            "it may not open {DEVICE} as user {UNPRIVILEGED}: chmod 0666 {DEVICE}"
        ));
    }
    Ok(())
}

/// Returns the path of the program `name`, if it is in a folder of `PATH`. Otherwise the error
/// names the Debian `package` that contains it.
fn installed(name: &str, package: &str) -> Result<PathBuf, String> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let found =
        env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.exists());
    found.ok_or_else(|| format!("`{name}` is not installed: `apt install {package}`"))
}

/// Creates a TUN device in the client's network namespace, with a default route through it. Returns
/// the device's descriptor.
fn tun_inside(client: &Network, mtu: usize) -> Result<std::os::fd::OwnedFd, String> {
    client.run(move || {
        let explain = |error: &dyn std::error::Error| error.to_string();
        let config =
            TapConfig { name: "tun0".to_owned(), medium: Medium::Ip, mtu, offloads: false };
        let tun = Tap::open(&config).map_err(|error| explain(&error))?;
        let configure = |interface: &KernelInterface| {
            interface.disable_ipv6()?;
            interface.add_address(CLIENT, 24)?;
            interface.set_up()?;
            interface.add_route(Ipv4Addr::UNSPECIFIED, 0, Some(GATEWAY.into()))
        };
        configure(tun.interface()).map_err(|error| explain(&error))?;
        Ok(tun.into_fd())
    })
}

/// A running gateway, which is killed when this value is dropped.
#[derive(Debug)]
pub struct Gateway {
    process: Child,
    /// ID of the process or thread whose network namespace the client enters.
    pub client: u32,
    /// Whether the process `client` was started by the gateway, and not by this program.
    has_own_client: bool,
}

impl Gateway {
    /// Waits until the gateway has started a process in a network namespace of its own. Returns the
    /// ID of this process.
    fn child_in_its_network(&self) -> Result<u32, String> {
        let path = format!("/proc/{0}/task/{0}/children", self.process.id());
        let own = fs::read_link("/proc/self/ns/net").map_err(|error| error.to_string())?;
        for _ in 0..200 {
            let children = fs::read_to_string(&path).unwrap_or_default();
            let child = children.split(' ').next().and_then(|child| child.parse().ok());
            let is_there = |child: &u32| {
                fs::read_link(format!("/proc/{child}/ns/net")).is_ok_and(|its| its != own)
            };
            if let Some(child) = child.filter(is_there) {
                return Ok(child);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err("it starts no program".to_owned())
    }

    /// Returns the processor time that all threads of the gateway have used, in seconds.
    ///
    /// # Errors
    /// A message that the gateway has ended.
    pub fn processor_time(&self) -> Result<f64, String> {
        let path = format!("/proc/{}/stat", self.process.id());
        let text = fs::read_to_string(path).map_err(|_| "it has ended".to_owned())?;
        // The fields follow the name of the program, which is in parentheses and may contain
        // spaces.
        let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let ticks: u64 =
            fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        if fields.starts_with('Z') {
            return Err("it has ended".to_owned());
        }
        Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Returns the resident memory of the gateway in bytes; zero if the kernel does not report it.
    ///
    /// # Errors
    /// A message that the gateway has ended.
    pub fn memory(&self) -> Result<f64, String> {
        let path = format!("/proc/{}/status", self.process.id());
        let text = fs::read_to_string(path).map_err(|_| "it has ended".to_owned())?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
        Ok(kilobytes.unwrap_or(0.0) * 1_024.0)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // pasta has started the process `client`. It may survive pasta, so it is killed separately.
        if let Some(client) = Pid::from_raw(i32::try_from(self.client).unwrap_or(0))
            && self.has_own_client
        {
            let _ = kill_process(client, Signal::KILL);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
