//! Checks properties of the kernel's TCP, which `--on kernel` and `--on tap` use.

use super::finding::Finding;
use linerate_ends::Peer;
use linerate_ends::machine::sysctl;
use linerate_ends::serve::{ListenAt, ListenError, Listener};
use linerate_ends::socket::{Congestion, Network, Options};
use linerate_units::Bytes;

/// Oldest Linux release that has every feature linerate uses; `SO_BUF_LOCK` is the newest of them.
const WANTED: (u32, u32) = (5, 14);
/// Size in bytes of the largest buffer in the experiment of 1988: 17 packets, each with the data of
/// a full segment at an MTU of 1,500 bytes.
const NEEDED: u64 = 17 * 1_460;

pub(super) fn kernel() -> Finding {
    judge_kernel(&sysctl("kernel.osrelease").unwrap_or_default())
}

fn judge_kernel(release: &str) -> Finding {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < WANTED {
        return Finding::bad(
            "kernel",
            if release.is_empty() { "unknown" } else { release },
            "plain peers of a sink keep the receive buffer of the last run, and some counters are \
             missing",
            format!("Linux {}.{} or later", WANTED.0, WANTED.1),
        );
    }
    Finding::good("kernel", release, "has all features that sweep --on kernel and sink use")
}

pub(super) fn congestion() -> Finding {
    judge_congestion(&Congestion::of_this_machine())
}

fn judge_congestion(congestion: &Congestion) -> Finding {
    let Some(default) = &congestion.default else {
        return Finding::bad(
            "congestion",
            "unknown",
            "sweep --on kernel cannot set the congestion control",
            "mount /proc with /proc/sys",
        );
    };
    let found = congestion.available.join(", ");
    let meaning = format!("sweep --on kernel uses {default} unless --congestion names another");
    Finding {
        remedy: Some("more with `modprobe tcp_NAME`".to_owned()),
        ..Finding::good("congestion", found, meaning)
    }
}

pub(super) fn buffers() -> Finding {
    let limit = |name| sysctl(name).and_then(|value| value.parse().ok());
    judge_buffers(limit("net.core.wmem_max"), limit("net.core.rmem_max"))
}

fn judge_buffers(send: Option<u64>, receive: Option<u64>) -> Finding {
    let (Some(send), Some(receive)) = (send, receive) else {
        // These limits of the initial network namespace apply in all namespaces, but many kernels
        // show them only in the initial one.
        return Finding::good(
            "buffers",
            "limits are not visible here",
            "sweep --on kernel tries them before its first run",
        );
    };
    let found = format!("up to {} to send, {} to receive", Bytes::new(send), Bytes::new(receive));
    let meaning = "sweep --on kernel refuses larger ones";
    let remedy = "`sysctl -w net.core.wmem_max=BYTES net.core.rmem_max=BYTES` for more";
    if send.min(receive) < NEEDED {
        return Finding::bad("buffers", found, format!("{meaning}: 17 packets do not fit"), remedy);
    }
    Finding { remedy: Some(remedy.to_owned()), ..Finding::good("buffers", found, meaning) }
}

pub(super) fn port() -> Finding {
    judge_port(
        Listener::bind(
            &Network::Kernel,
            ListenAt::Everywhere(Peer::DEFAULT_PORT),
            &Options::default(),
        )
        .map(|_| ()),
    )
}

fn judge_port(bound: Result<(), ListenError>) -> Finding {
    let port = Peer::DEFAULT_PORT;
    match bound {
        Ok(()) => Finding::good(
            "port",
            format!("{port} is free"),
            "sink can listen where a sweep looks for it",
        ),
        Err(error) => Finding::bad(
            "port",
            format!("{port} is not available"),
            error.to_string(),
            "sink --listen PORT, and sweep HOST:PORT",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    fn old_kernels_are_recognised() {
        for (release, good) in [
            ("6.18.4-custom", true),
            ("5.14.0", true),
            ("5.4.0-150-generic", false),
            ("4.19", false),
            ("", false),
        ] {
            assert_eq!(judge_kernel(release).good, good, "{release}");
        }
    }

    #[test]
    fn a_limit_below_seventeen_packets_is_bad() {
        assert!(judge_buffers(Some(212_992), Some(212_992)).good);
        assert!(!judge_buffers(Some(212_992), Some(16_384)).good);
        assert!(judge_buffers(None, Some(1)).good);
    }

    #[test]
    fn a_port_in_use_is_bad() {
        let taken: SocketAddr = "0.0.0.0:1988".parse().unwrap();
        assert!(judge_port(Ok(())).good);
        assert!(!judge_port(Err(ListenError::InUse(taken))).good);
    }

    #[test]
    fn the_default_congestion_control_is_reported() {
        let congestion = Congestion { default: Some("cubic".into()), ..Congestion::default() };
        assert!(judge_congestion(&congestion).meaning.contains("uses cubic"));
        assert!(!judge_congestion(&Congestion::default()).good);
    }
}
