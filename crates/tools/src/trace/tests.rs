use super::*;
use linerate_link::namespace::{Network, isolated_test, skip_test};
use linerate_link::tap::TapError;
use linerate_link::{KernelInterface, Tap, TapConfig};
use linerate_stack::{Route, Stack, StackConfig};
use linerate_wire::MacAddress;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};

const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SECOND_ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

fn v6(network: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, network, 0, 0, 0, 0, host)
}

/// Creates two routers and a destination, as a chain of three network namespaces of the kernel.
/// linerate's host is connected to the first router, which is the current namespace. Returns
/// linerate's host and the other two namespaces. Returns `None` if the machine permits no TAP
/// device.
fn routed() -> Option<(Host<Tap>, [Network; 2])> {
    let tap = match Tap::open(&TapConfig { offloads: false, ..TapConfig::default() }) {
        Err(error @ (TapError::NoDevice | TapError::DeviceForbidden)) => {
            skip_test(&error);
            return None;
        }
        opened => opened.unwrap(),
    };
    let forward = || {
        fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
        // By default, the kernel sends at most one ICMP error per second to a destination. With
        // this limit, some probes would have no answer.
        fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0").unwrap();
        fs::write("/proc/sys/net/ipv6/icmp/ratelimit", "0").unwrap();
    };
    let prepare = |interface: &KernelInterface, network: u8, host: u8| {
        interface.set_up().unwrap();
        interface.add_address(Ipv4Addr::new(10, 0, network, host), 24).unwrap();
        interface.add_address(v6(network.into(), host.into()), 64).unwrap();
    };
    forward();
    prepare(tap.interface(), 0, 1);
    let (middle, far) = (Network::new().unwrap(), Network::new().unwrap());
    let (near, end) = KernelInterface::create_veth("first", "second").unwrap();
    end.move_to_process(middle.id()).unwrap();
    prepare(&near, 1, 1);
    let far_id = far.id();
    middle.run(move || {
        forward();
        let second = KernelInterface::named("second").unwrap();
        prepare(&second, 1, 2);
        let (third, fourth) = KernelInterface::create_veth("third", "fourth").unwrap();
        fourth.move_to_process(far_id).unwrap();
        prepare(&third, 2, 1);
        second
            .add_route(Ipv4Addr::UNSPECIFIED, 0, Some(Ipv4Addr::new(10, 0, 1, 1).into()))
            .unwrap();
        second.add_route(Ipv6Addr::UNSPECIFIED, 0, Some(v6(1, 1).into())).unwrap();
    });
    far.run(move || {
        fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0").unwrap();
        fs::write("/proc/sys/net/ipv6/icmp/ratelimit", "0").unwrap();
        let fourth = KernelInterface::named("fourth").unwrap();
        prepare(&fourth, 2, 2);
        fourth
            .add_route(Ipv4Addr::UNSPECIFIED, 0, Some(Ipv4Addr::new(10, 0, 2, 1).into()))
            .unwrap();
        fourth.add_route(Ipv6Addr::UNSPECIFIED, 0, Some(v6(2, 1).into())).unwrap();
    });
    near.add_route(Ipv4Addr::new(10, 0, 2, 0), 24, Some(SECOND_ROUTER.into())).unwrap();
    near.add_route(v6(2, 0), 64, Some(v6(1, 2).into())).unwrap();
    let mac = MacAddress::new([2, 0, 0, 0, 0, 2]);
    let mut config = StackConfig::new(mac, "10.0.0.2/24".parse().unwrap());
    config.addresses.push("2001:db8::2/64".parse().unwrap());
    config.routes.push(Route::default_via(ROUTER.into()));
    config.routes.push(Route::default_via(v6(0, 1).into()));
    Some((Host::new(Stack::new(config, [7; 32]), tap), [middle, far]))
}

fn parameters(destination: IpAddr, method: Method) -> TraceParameters {
    TraceParameters {
        destination,
        method,
        first_hop: 1,
        max_hops: 8,
        probes: 3,
        timeout: Duration::from_secs(60),
        size: 32,
        port: 33_434,
        identifier: 77,
    }
}

/// Returns, for each hop, the sources of its answers with their notes.
fn senders(report: &TraceReport) -> Vec<Vec<String>> {
    let of_answer = |answer: &Answer| match answer.note {
        Some(note) => format!("{} {note}", answer.from),
        None => answer.from.to_string(),
    };
    let of_hop = |hop: &Hop| hop.answers.iter().flatten().map(of_answer).collect();
    report.hops.iter().map(of_hop).collect()
}

#[test]
fn two_routers_and_the_destination_answer_every_kind_of_probe() {
    isolated_test(|| {
        let Some((mut host, _networks)) = routed() else { return };
        let ipv4 = [ROUTER, SECOND_ROUTER, FAR].map(IpAddr::from);
        let ipv6 = [v6(0, 1), v6(1, 2), v6(2, 2)].map(IpAddr::from);
        for hops in [ipv4, ipv6] {
            for method in [Method::Udp, Method::Icmp] {
                let parameters = parameters(hops[2], method);
                let interrupt = Interrupt::default();
                let mut told = 0;
                let report = trace(&mut host, &parameters, &interrupt, |_| told += 1).unwrap();
                let expected: Vec<_> = hops.iter().map(|hop| vec![hop.to_string(); 3]).collect();
                assert_eq!(senders(&report), expected, "{method:?}");
                assert!(report.reached && told == 3);
            }
        }
    });
}

#[test]
fn a_router_without_a_route_ends_the_trace() {
    isolated_test(|| {
        let Some((mut host, _networks)) = routed() else { return };
        // The first router has no route to this address, so it must answer each probe with "network
        // unreachable" (`!N`).
        let parameters = parameters(Ipv4Addr::new(198, 51, 100, 1).into(), Method::Udp);
        let report = trace(&mut host, &parameters, &Interrupt::default(), |_| {}).unwrap();
        assert_eq!(senders(&report), [vec![format!("{ROUTER} !N"); 3]]);
        assert!(!report.reached);
    });
}
