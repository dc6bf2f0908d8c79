//! Checks whether `ping --on packet:NAME` can share an interface with the kernel, and whether `ping
//! --on xdp:NAME` can bypass the kernel. Both need permissions that ordinary users should not have,
//! so a missing permission is not reported as bad.

use super::finding::Finding;
use linerate_link::packet::PacketError;
use linerate_link::xdp::XdpError;
use linerate_link::{PacketLink, XdpLink};

pub(super) fn packet_sockets() -> Finding {
    judge_packet_sockets(PacketLink::probe())
}

fn judge_packet_sockets(probed: Result<(), PacketError>) -> Finding {
    const SUBJECT: &str = "packets";
    match probed {
        Ok(()) => Finding::good(
            SUBJECT,
            "packet sockets can be opened",
            "ping --on packet:NAME can share an interface",
        ),
        Err(error) => Finding {
            subject: SUBJECT,
            good: true,
            found: "no packet sockets".to_owned(),
            meaning: "ping --on packet:NAME cannot share an interface with the kernel".to_owned(),
            remedy: Some(error.to_string()),
        },
    }
}

pub(super) fn xdp() -> Finding {
    judge_xdp(XdpLink::probe())
}

fn judge_xdp(probed: Result<(), XdpError>) -> Finding {
    const SUBJECT: &str = "AF_XDP";
    match probed {
        Ok(()) => Finding::good(
            SUBJECT,
            "programs can be loaded",
            "ping --on xdp:NAME can bypass the kernel",
        ),
        Err(error) => Finding {
            subject: SUBJECT,
            good: true,
            found: "no programs".to_owned(),
            meaning: "ping --on xdp:NAME cannot bypass the kernel".to_owned(),
            remedy: Some(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_permissions_are_reported_with_a_remedy() {
        let finding = judge_packet_sockets(Err(PacketError::Forbidden));
        assert!(finding.good && finding.remedy.unwrap().contains("cap_net_raw"));
        assert!(judge_packet_sockets(Ok(())).remedy.is_none());
        let finding = judge_xdp(Err(XdpError::NoXdp));
        assert!(finding.good && finding.remedy.unwrap().contains("CONFIG_XDP_SOCKETS"));
        assert!(judge_xdp(Ok(())).remedy.is_none());
    }
}
