//! Property tests: parsing any text returns a script or a one-line error, and every script runs to
//! an end.

use linerate_script::{Family, Options, Script, run_on_stack};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_oneof, proptest};

/// Generates words and separators of the script language.
fn word() -> impl Strategy<Value = String> {
    let fixed = [
        "0",
        "+.1",
        "*",
        "0~+.1",
        "0...0.2",
        "<",
        ">",
        "S",
        "P.",
        "S.",
        "F.",
        "R",
        "0:0(0)",
        "1:1001(1000)",
        "ack 1",
        "win 100",
        "<mss 1460,sackOK>",
        "<...>",
        "<sack 1:2 3:4>",
        "<TS val 1 ecr 2>",
        "[ect0]",
        "icmp unreachable frag_needed mtu 1200 [1:1001(1000)]",
        "icmp packet_too_big [udp (100)]",
        "icmp echo_request id 1 seq 2 (100)",
        "udp (100)",
        "[frag 1 0:64]",
        "[hopopts 0x9e]",
        "[routing 0 1]",
        "[flowlabel 1]",
        "[from ::1]",
        "[compressed 3]",
        "[lost]",
        "--ip_version=ipv6",
        "--line=cslip",
        "socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
        "bind(3, ..., ...) = 0",
        "listen(3, 1) = 0",
        "accept(3, ..., ...) = 4",
        "write(4, ..., 1000) = 1000",
        "read(4, ..., 1000) = 1000",
        "close(4) = 0",
        "connect(3, ..., ...) = -1 EINPROGRESS (…)",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        "=",
        "...",
        "%{ assert tcpi_rtt == 1 }%",
        "`sysctl net.ipv4.tcp_sack=0`",
        "%{",
        "`",
        "//",
        "/*",
        "\n",
        "--mtu=576",
        "SOL_SOCKET",
        "SO_ERROR",
        "|",
    ];
    prop_oneof![
        proptest::sample::select(fixed.to_vec()).prop_map(str::to_owned),
        any::<u32>().prop_map(|number| number.to_string()),
        any::<String>(),
    ]
}

/// Lines that establish a connection. They precede the generated lines, which can refer to the
/// connection.
const HANDSHAKE: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = \
                         0\n+0 listen(3, 1) = 0\n\
    +0 < S 0:0(0) win 1000 <mss 1000>\n+0 > S. 0:0(0) ack 1 <...>\n+0 < . 1:1(0) ack 1 win 1000\n\
    +0 accept(3, ..., ...) = 4\n";

fn line() -> impl Strategy<Value = String> {
    let when = prop_oneof![Just("+0"), Just("+.3"), Just("+3")];
    let flags =
        proptest::sample::select(vec!["S", "S.", ".", "P.", "F.", "R", "R.", "FP.", "U.", "-"]);
    let length = prop_oneof![3 => 0_u16..1_400, 1 => 0_u16..=65_495];
    let segment = (flags, any::<u16>(), length, any::<u16>(), any::<u16>()).prop_map(
        |(flags, seq, length, ack, win)| {
            let seq = u32::from(seq);
            format!("{flags} {seq}:{}({length}) ack {ack} win {win}", seq + u32::from(length))
        },
    );
    let call = proptest::sample::select(vec![
        "write(4, ..., 5000) = ...",
        "read(4, ..., 5000) = ...",
        "close(4) = ...",
        "close(3) = ...",
        "shutdown(4, SHUT_WR) = ...",
        "setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = ...",
        "setsockopt(4, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = ...",
        "poll([{fd=4, events=POLLIN|POLLOUT}], 1, 10) = ...",
        "ioctl(4, SIOCOUTQ, ...) = ...",
        "accept(3, ..., ...) = 5",
    ]);
    // Text that may precede a packet in a script: nothing (most often), a fragment, extension
    // headers, damage on a serial line, or another source address.
    let marks = prop_oneof![
        3 => Just(String::new()),
        1 => (0_u32..8_192, 0_u32..2_000).prop_map(|(first, length)| {
            format!("[frag 1 {}:{}] ", first * 8, first * 8 + length)
        }),
        1 => any::<(u8, u8)>().prop_map(|(option, left)| {
            format!("[dstopts {}][routing 0 {}] ", option.max(2), left / 2)
        }),
        1 => Just("[damaged] ".to_owned()),
        1 => Just("[from 192.0.2.9] ".to_owned()),
    ];
    let other = (0_u16..=65_507).prop_map(|length| format!("udp ({length})"));
    let echo = (0_u16..=65_507).prop_map(|length| format!("icmp echo_request ({length})"));
    let error = any::<u32>().prop_map(|mtu| format!("icmp packet_too_big mtu {mtu} [1:9(8)]"));
    let packet = (marks, prop_oneof![4 => segment, 1 => other, 1 => echo, 1 => error])
        .prop_map(|(marks, packet)| format!("< {marks}{packet}"));
    (when, prop_oneof![packet, call.prop_map(str::to_owned)])
        .prop_map(|(when, what)| format!("{when} {what}\n"))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Script::parse(&String::from_utf8_lossy(&bytes), None);
    }

    #[test]
    fn no_words_make_the_parser_panic(words in proptest::collection::vec(word(), 0..24)) {
        let text = words.join(" ");
        if let Err(error) = Script::parse(&text, None) {
            prop_assert!(error.line >= 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_script_runs_to_an_end(
        mtu in prop_oneof![88_u16..200, 88_u16..=65_535],
        is_line in any::<bool>(),
        lines in proptest::collection::vec(line(), 0..20),
    ) {
        let head = if is_line {
            format!("--mtu={}\n--line=cslip\n", mtu.min(1_500))
        } else {
            format!("--mtu={mtu}\n")
        };
        let text = format!("{head}{HANDSHAKE}{}", lines.concat());
        let script = Script::parse(&text, None);
        prop_assert!(script.is_ok(), "{script:?}");
        if let Ok(script) = script {
            for family in [Family::Own, Family::Ipv6] {
                let _ = run_on_stack(&script, &Options { family, ..Options::default() });
            }
        }
    }
}
