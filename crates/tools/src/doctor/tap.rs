//! Checks what `--on tap` and `ping` need: a network namespace, and a TAP device in it.

use super::finding::Finding;
use linerate_link::namespace::{self, Isolation, NamespaceError};
use std::fs::File;
use std::io;

const DEVICE: &str = "/dev/net/tun";

pub(super) fn namespaces() -> Finding {
    let probed = namespace::probe(Isolation::UserAndNetwork)
        .or_else(|_| namespace::probe(Isolation::Network));
    judge_namespaces(probed)
}

fn judge_namespaces(probed: Result<(), NamespaceError>) -> Finding {
    match probed {
        Ok(()) => Finding::good(
            "namespaces",
            "allowed",
            "sweep --on tap and ping can create private networks",
        ),
        Err(error) => {
            let meaning =
                "sweep --on tap and ping cannot create private networks; tests are skipped";
            Finding::bad("namespaces", "forbidden", meaning, error.to_string())
        }
    }
}

pub(super) fn device() -> Finding {
    judge_device(File::options().read(true).write(true).open(DEVICE).map(|_| ()))
}

fn judge_device(opened: io::Result<()>) -> Finding {
    let without = "sweep --on tap and ping cannot create a device";
    let Err(error) = opened else {
        return Finding::good(
            "TAP",
            format!("{DEVICE} opens"),
            "sweep --on tap and ping can create their device",
        );
    };
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "`modprobe tun`, and in a container --device /dev/net/tun",
        io::ErrorKind::PermissionDenied => {
            "run as root, or `chmod 666 /dev/net/tun`, the mode on most systems"
        }
        _ => "`modprobe tun`: the kernel has no such device",
    };
    Finding::bad("TAP", format!("{DEVICE}: {error}"), without, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_permission_is_reported_with_a_remedy() {
        let finding = judge_namespaces(Err(NamespaceError::TooMany));
        assert!(!finding.good && finding.remedy.unwrap().contains("max_user_namespaces"));
        assert!(judge_namespaces(Ok(())).good);
    }

    #[test]
    fn a_missing_and_a_forbidden_device_have_different_remedies() {
        let remedy = |kind: io::ErrorKind| judge_device(Err(kind.into())).remedy.unwrap();
        assert!(remedy(io::ErrorKind::NotFound).contains("modprobe"));
        assert!(remedy(io::ErrorKind::PermissionDenied).contains("chmod"));
        assert!(judge_device(Ok(())).good);
    }
}
