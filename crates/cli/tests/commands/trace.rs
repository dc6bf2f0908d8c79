//! Tests of `linerate trace`: linerate's host, the kernel as a router, and a host behind the
//! router.

use super::support::run;
use linerate_link::KernelInterface;
use linerate_link::namespace::{Network, isolated_test, skip_test};
use std::fs;
use std::net::IpAddr;
use std::process::Command;

/// For each IP version: the router's address on the side of linerate's host, its address on the far
/// side, and the address of the destination. `--address` and `--gateway` of linerate's host follow.
const PATHS: [([&str; 3], [&str; 2]); 2] = [
    (["10.5.0.1", "10.6.0.1", "10.6.0.2"], ["10.5.0.9/24", "10.5.0.1"]),
    (["2001:db8:5::1", "2001:db8:6::1", "2001:db8:6::2"], ["2001:db8:5::9/64", "2001:db8:5::1"]),
];

/// Turns off duplicate address detection. The kernel does not use a new IPv6 address until the
/// detection has ended, for which the test would have to wait.
fn use_addresses_at_once(interface: &KernelInterface) {
    let setting = format!("/proc/sys/net/ipv6/conf/{}/dad_transmits", interface.name());
    fs::write(setting, "0").unwrap();
}

/// Creates a TAP device `lab0` for linerate's host, and a destination host in another namespace.
/// The kernel behind the device is the router between them. Returns `None` if this machine cannot
/// create the device.
fn networks() -> Option<Network> {
    let mut ip = Command::new("ip");
    let created = ip.args(["tuntap", "add", "mode", "tap", "name", "lab0"]).status();
    if !created.is_ok_and(|status| status.success()) {
        skip_test(&"no TAP device can be made with `ip tuntap`");
        return None;
    }
    let parsed = |text: &str| text.parse::<IpAddr>().unwrap();
    let length = |address: IpAddr| if address.is_ipv4() { 24 } else { 64 };
    let behind = Network::new().unwrap();
    let tap = KernelInterface::named("lab0").unwrap();
    let (near, far) = KernelInterface::create_veth("near", "far").unwrap();
    far.move_to_process(behind.id()).unwrap();
    [&tap, &near].into_iter().for_each(use_addresses_at_once);
    for ([towards_us, towards_host, _], _) in PATHS {
        let [ours, theirs] = [towards_us, towards_host].map(parsed);
        tap.add_address(ours, length(ours)).unwrap();
        near.add_address(theirs, length(theirs)).unwrap();
    }
    tap.set_up().unwrap();
    near.set_up().unwrap();
    for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        fs::write(format!("/proc/sys/net/{setting}"), "1").unwrap();
    }
    behind.run(move || {
        let far = KernelInterface::named("far").unwrap();
        use_addresses_at_once(&far);
        for ([_, _, host], _) in PATHS {
            far.add_address(parsed(host), length(parsed(host))).unwrap();
        }
        far.set_up().unwrap();
        for (([_, router, _], _), network) in PATHS.into_iter().zip(["10.5.0.0", "2001:db8:5::"]) {
            let network = parsed(network);
            far.add_route(network, length(network), Some(parsed(router))).unwrap();
        }
    });
    Some(behind)
}

#[test]
fn each_router_on_the_path_is_a_line_with_the_times_of_its_answers() {
    isolated_test(|| {
        let Some(_behind) = networks() else { return };
        for ([router, _, host], [address, gateway]) in PATHS {
            for probes in [&[][..], &["--icmp"]] {
                let words =
                    ["trace", host, "--on", "tap:lab0", "--address", address, "--gateway", gateway];
                let (code, stdout, stderr) = run(&[&words, probes].concat());
                assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
                let hops: Vec<_> = stdout.lines().skip(1).collect();
                assert_eq!(hops.len(), 2, "{stdout}");
                assert!(hops[0].starts_with(&format!(" 1  {router}  ")), "{stdout}");
                assert!(hops[1].starts_with(&format!(" 2  {host}  ")), "{stdout}");
                assert_eq!(hops[0].matches(" ms").count(), 3, "{stdout}");
            }
        }
        // The router has no route to 192.0.2.1, so it answers "network unreachable" (`!N`).
        let words = ["trace", "192.0.2.1", "--on", "tap:lab0", "--address", "10.5.0.9/24"];
        let (code, stdout, stderr) = run(&[&words[..], &["--gateway", "10.5.0.1"]].concat());
        assert_eq!((code, stderr.as_str()), (1, "error: the destination has not answered\n"));
        assert!(stdout.contains("!N"), "{stdout}");
    });
}

#[test]
fn what_prevents_a_trace_is_one_line_and_exit_code_2() {
    for (words, expected) in [
        (&["no-such-host.invalid"][..], "check its spelling"),
        (&["10.0.0.1", "--max-hops", "0"], "0 is not in 1..=255"),
        (&["10.0.0.1", "--on", "serial:2400"], "the only hop"),
        (&["10.0.0.1", "--on", "tap:no-such"], "no-such"),
    ] {
        let (code, stdout, stderr) = run(&[&["trace"], words].concat());
        assert_eq!((code, stdout.as_str(), stderr.lines().count()), (2, "", 1), "{stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(expected), "{words:?}: {stderr}");
    }
}
