//! The architecture's arrow: what each crate knows, what it never knows, and so what it may use.

/// A crate's place. It may use what its arrows point to, and through them everything above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The package's name.
    pub(crate) name: &'static str,
    /// What its own arrows point to; only names of rows above.
    pub(crate) uses: &'static [&'static str],
    /// Must it do without the standard library?
    pub(crate) is_no_std: bool,
    /// May it hold unsafe code, in the one module that its lint allows?
    pub(crate) may_be_unsafe: bool,
    /// What it knows and what it must never know.
    pub(crate) sentence: &'static str,
}

const ROW: Row = Row { name: "", uses: &[], is_no_std: false, may_be_unsafe: false, sentence: "" };

/// The crate that only tests may use.
pub(crate) const TESTKIT: &str = "linerate-testkit";

/// From the top down.
pub(crate) const ARROW: [Row; 14] = [
    Row {
        name: "linerate-units",
        is_no_std: true,
        sentence: "units knows points in time, rates and amounts of bytes, and never packets or the operating system",
        ..ROW
    },
    Row {
        name: "linerate-wire",
        is_no_std: true,
        may_be_unsafe: true,
        sentence: "wire knows the layout of bytes, checksums and serial-number arithmetic, and never time, \
                   connections, who is talking, or allocation",
        ..ROW
    },
    Row {
        name: "linerate-tcp",
        uses: &["linerate-units", "linerate-wire"],
        is_no_std: true,
        sentence: "tcp knows one connection, and never IP addresses, ports, links, sockets, threads, clocks, \
                   or randomness",
        ..ROW
    },
    Row {
        name: "linerate-stack",
        uses: &["linerate-tcp"],
        is_no_std: true,
        sentence: "stack knows addresses, neighbours, routes, ports and the trait Link, and never file \
                   descriptors, threads, any particular link, or that a simulator exists",
        ..ROW
    },
    Row {
        name: TESTKIT,
        uses: &["linerate-stack"],
        sentence: "testkit knows tcp and stack, and is never more than a dev-dependency",
        ..ROW
    },
    Row {
        name: "linerate-link",
        uses: &["linerate-stack"],
        may_be_unsafe: true,
        sentence: "link knows the kernel's interfaces, rings and bytes on a serial line, and never TCP, \
                   sockets, or the simulator",
        ..ROW
    },
    Row {
        name: "linerate-script",
        uses: &["linerate-link"],
        sentence: "script knows packet scripts and the hosts that they examine, and never the lab, flags, \
                   terminals, or protocol internals",
        ..ROW
    },
    Row {
        name: "linerate-sim",
        uses: &["linerate-stack"],
        sentence: "sim knows bit times, cables, collisions, rings, DMA, interrupts and CPU cost, and never the \
                   real clock, files, threads, or the inside of a connection",
        ..ROW
    },
    Row {
        name: "linerate-sockets",
        uses: &["linerate-link"],
        sentence: "sockets knows reactor threads, wake-ups and std's errors, and never tokio, the lab, or which \
                   congestion controller runs",
        ..ROW
    },
    Row {
        name: "linerate-tokio",
        uses: &["linerate-sockets"],
        sentence: "tokio knows its caller's calling convention, and never protocol details",
        ..ROW
    },
    Row {
        name: "linerate-capi",
        uses: &["linerate-sockets"],
        may_be_unsafe: true,
        sentence: "capi knows its caller's calling convention, and never protocol details",
        ..ROW
    },
    Row {
        name: "linerate-lab",
        uses: &["linerate-sockets", "linerate-sim"],
        sentence: "lab knows plans, runs, samples, statistics, diagnosis and reports, and never flags, \
                   terminals, or protocol internals",
        ..ROW
    },
    Row {
        name: "linerate",
        uses: &["linerate-lab", "linerate-script"],
        sentence: "cli knows words that people type and what they mean, and never how anything is measured or sent",
        ..ROW
    },
    Row {
        name: "xtask",
        sentence: "xtask knows the workspace from outside, and uses no crate of ours",
        ..ROW
    },
];

/// The row of a package, if the architecture knows it.
pub(crate) fn row(name: &str) -> Option<&'static Row> {
    ARROW.iter().find(|row| row.name == name)
}

impl Row {
    /// May this crate use the package, by an arrow of its own or through others?
    pub(crate) fn may_use(&self, package: &str) -> bool {
        self.uses
            .iter()
            .any(|&above| above == package || row(above).is_some_and(|row| row.may_use(package)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arrow_points_up_to_a_row() {
        for (place, below) in ARROW.iter().enumerate() {
            for used in below.uses {
                assert!(
                    ARROW[..place].iter().any(|above| above.name == *used),
                    "{} → {used}",
                    below.name
                );
            }
        }
    }

    #[test]
    fn link_and_sim_never_see_each_other_and_lab_sees_both() {
        let may_use = |from: &str, to: &str| row(from).unwrap().may_use(to);
        assert!(
            !may_use("linerate-link", "linerate-sim") && !may_use("linerate-sim", "linerate-link")
        );
        assert!(
            may_use("linerate-lab", "linerate-link") && may_use("linerate-lab", "linerate-sim")
        );
        assert!(may_use("linerate", "linerate-units") && !may_use("linerate-units", "linerate"));
        assert!(!may_use("linerate-lab", "linerate-tokio") && !may_use("linerate-stack", TESTKIT));
    }
}
