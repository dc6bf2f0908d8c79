//! Tests of characters that are typed over a pseudo-terminal.

use super::*;
use linerate_link::SerialConfig;
use linerate_stack::{Stack, StackConfig};
use linerate_tcp::AckRule;
use linerate_wire::{IpCidr, MacAddress};
use std::net::{IpAddr, Ipv4Addr};
use std::thread;

const TYPING: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const ECHOING: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

fn host(address: Ipv4Addr, link: SerialLink) -> Host<SerialLink> {
    let address = IpCidr::new(IpAddr::V4(address), 24).unwrap();
    let mut config = StackConfig::new(MacAddress::ZERO, address);
    config.count_packets = true;
    config.tcp.timestamps = false;
    // All ACKs are delayed, so each is sent with the echo or the next character. There is then one
    // packet per character in each direction.
    config.tcp.acks = AckRule::Modern { quick: 0 };
    Host::new(Stack::new(config, [7; 32]), link)
}

fn parameters(port: u16, count: u64) -> TypedParameters {
    TypedParameters {
        destination: (ECHOING, port).into(),
        count,
        interval: Duration::ZERO,
        timeout: Duration::from_secs(60),
    }
}

/// Types characters to a second host at the other end of a line, which has an echo service.
fn typed(header_compression: bool, parameters: &TypedParameters) -> Result<TypedTally, TypedError> {
    let config = SerialConfig { header_compression, ..SerialConfig::new(115_200) };
    let [near, far] = SerialLink::pair(&config).unwrap();
    let stop = Interrupt::default();
    let (mut near, mut far) = (host(TYPING, near), host(ECHOING, far));
    thread::scope(|scope| {
        let echoing = scope.spawn(|| serve_echo(&mut far, (ECHOING, 7).into(), &stop));
        let tally = type_characters(&mut near, parameters, &Interrupt::default());
        stop.raise();
        echoing.join().unwrap().unwrap();
        tally
    })
}

#[test]
fn a_character_and_its_echo_take_four_bytes_each_instead_of_forty_one() {
    for header_compression in [true, false] {
        let tally = typed(header_compression, &parameters(7, 20)).unwrap();
        assert_eq!(tally.echoed, 20);
        for direction in [tally.sent, tally.received] {
            // At least 20 packets of 41 bytes are expected. There may be more: on a busy machine,
            // data may come later than the delay of an ACK, which is then sent alone.
            assert!(direction.packet_bytes >= 20 * 41, "{direction:?}");
            if header_compression {
                let bytes = direction.compressed_bytes;
                assert!((20 * 4..=direction.packets * 10).contains(&bytes), "{direction:?}");
            } else {
                assert_eq!(direction.compressed_bytes, direction.packet_bytes);
            }
        }
    }
}

#[test]
fn without_an_echo_service_nothing_is_typed() {
    let error = typed(true, &parameters(9, 1)).unwrap_err();
    assert!(matches!(error, TypedError::NoConnection(_)), "{error}");
}
