//! What `ping --on packet:NAME` and `--on xdp:NAME` need: to share an interface with the kernel.
//! Ordinary users may not, which is as it should be.

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
            "packet sockets open",
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
            "programs are taken",
            "ping --on xdp:NAME can go past the kernel",
        ),
        Err(error) => Finding {
            subject: SUBJECT,
            good: true,
            found: "no programs".to_owned(),
            meaning: "ping --on xdp:NAME cannot go past the kernel".to_owned(),
            remedy: Some(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_share_an_interface_is_told_how() {
        let finding = judge_packet_sockets(Err(PacketError::Forbidden));
        assert!(finding.good && finding.remedy.unwrap().contains("cap_net_raw"));
        assert!(judge_packet_sockets(Ok(())).remedy.is_none());
        let finding = judge_xdp(Err(XdpError::NoXdp));
        assert!(finding.good && finding.remedy.unwrap().contains("CONFIG_XDP_SOCKETS"));
        assert!(judge_xdp(Ok(())).remedy.is_none());
    }
}
