//! The architecture as a table: the responsibility of each crate, and the crates on which it may
//! depend.

/// A crate in the architecture. It may depend on the crates in `uses`. It may also depend on all
/// crates on which these may depend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The name of the crate's package.
    pub(crate) name: &'static str,
    /// The crates on which this crate may depend. A crate is left out if another crate in this list
    /// may depend on it. The rows of all these crates must precede the row of this crate.
    pub(crate) uses: &'static [&'static str],
    /// Must the crate be `no_std`?
    pub(crate) is_no_std: bool,
    /// May the crate contain unsafe code, in the module that its lint allows?
    pub(crate) may_be_unsafe: bool,
    /// A sentence for error messages, which says what the crate deals with, and what it must not
    /// deal with.
    pub(crate) sentence: &'static str,
}

const ROW: Row = Row { name: "", uses: &[], is_no_std: false, may_be_unsafe: false, sentence: "" };

/// The crate with helpers for tests. Every crate may use it, but only as a dev-dependency.
pub(crate) const TESTKIT: &str = "linerate-testkit";

/// All crates of the workspace, in such an order that each crate comes after the crates that it may
/// use.
pub(crate) const ARROW: [Row; 21] = [
    Row {
        name: "linerate-units",
        is_no_std: true,
        sentence: "units knows points in time, rates and amounts of bytes, and never packets or \
                   the operating system",
        ..ROW
    },
    Row {
        name: "linerate-wire",
        is_no_std: true,
        may_be_unsafe: true,
        sentence: "wire knows the layout of bytes, checksums and serial-number arithmetic, and \
                   never time, connections, hosts, or allocation",
        ..ROW
    },
    Row {
        name: "linerate-tcp",
        uses: &["linerate-units", "linerate-wire"],
        is_no_std: true,
        sentence: "tcp knows one connection, and never IP addresses, ports, links, sockets, \
                   threads, clocks, or randomness",
        ..ROW
    },
    Row {
        name: "linerate-stack",
        uses: &["linerate-tcp"],
        is_no_std: true,
        sentence: "stack knows addresses, neighbours, routes, ports and the trait Link, and never \
                   file descriptors, threads, any particular link, or that a simulator exists",
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
        sentence: "link knows the kernel's interfaces, rings and bytes on a serial line, and \
                   never TCP, sockets, or the simulator",
        ..ROW
    },
    Row {
        name: "linerate-script",
        uses: &["linerate-link"],
        sentence: "script knows packet scripts and the hosts that they examine, and never \
                   measurements, flags, terminals, or protocol internals",
        ..ROW
    },
    Row {
        name: "linerate-sim",
        uses: &["linerate-stack"],
        sentence: "sim knows bit times, cables, collisions, rings, DMA, interrupts and CPU cost, \
                   and never the real clock, files, threads, or the inside of a connection",
        ..ROW
    },
    Row {
        name: "linerate-sockets",
        uses: &["linerate-link"],
        sentence: "sockets knows reactor threads, wake-ups and std's errors, and never tokio, \
                   measurements, or which congestion controller runs",
        ..ROW
    },
    Row {
        name: "linerate-tokio",
        uses: &["linerate-link"],
        sentence: "tokio knows the shapes of tokio::net, tasks and tokio's clock, and never \
                   measurements, or which congestion controller runs",
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
        name: "linerate-evidence",
        uses: &["linerate-units"],
        sentence: "evidence knows the design of a sweep, the records of its runs and their \
                   statistics, and never sockets, links, files, or the engine that carried the \
                   bytes",
        ..ROW
    },
    Row {
        name: "linerate-verdict",
        uses: &["linerate-evidence"],
        sentence: "verdict knows rules that turn records of runs into findings, and never an \
                   engine, a file, or a clock",
        ..ROW
    },
    Row {
        name: "linerate-report",
        uses: &["linerate-verdict"],
        sentence: "report knows text, HTML, SVG, CSV and JSON, and never an engine, a file, a \
                   socket, or a terminal",
        ..ROW
    },
    Row {
        name: "linerate-ends",
        uses: &["linerate-sockets", "linerate-evidence"],
        sentence: "ends knows the source and the sink of a transfer and the control connection \
                   between them, and never plans, findings, reports, flags, or terminals",
        ..ROW
    },
    Row {
        name: "linerate-sim-tools",
        uses: &["linerate-sim", "linerate-link", "linerate-evidence"],
        sentence: "sim-tools knows scenario files, captures and descriptions of simulated runs, \
                   and the night of 1988, and never sockets, flags, or terminals",
        ..ROW
    },
    Row {
        name: "linerate-measure",
        uses: &["linerate-ends", "linerate-sim-tools"],
        sentence: "measure knows plans, engines, runs and the folder that keeps them, and never \
                   findings, reports, flags, or terminals",
        ..ROW
    },
    Row {
        name: "linerate-gateway",
        uses: &["linerate-link"],
        sentence: "gateway knows flows and the kernel's sockets that carry them on, and never \
                   measurements, flags, terminals, or the inside of a connection",
        ..ROW
    },
    Row {
        name: "linerate-tools",
        uses: &["linerate-ends"],
        sentence: "tools knows echo requests and the examination of this machine, and never \
                   sweeps, flags, or terminals",
        ..ROW
    },
    Row {
        name: "linerate",
        uses: &[
            "linerate-measure",
            "linerate-report",
            "linerate-tools",
            "linerate-script",
            "linerate-gateway",
        ],
        sentence: "cli knows commands, options and output, and never how anything is measured or \
                   sent",
        ..ROW
    },
    Row {
        name: "xtask",
        sentence: "xtask knows the workspace from outside, and uses no crate of ours",
        ..ROW
    },
];

/// Returns the row of a package; `None` if the architecture does not contain it.
pub(crate) fn row(name: &str) -> Option<&'static Row> {
    ARROW.iter().find(|row| row.name == name)
}

impl Row {
    /// May the crate depend on the package, directly or through other crates?
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
    fn crates_use_only_earlier_rows() {
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
    fn link_and_sim_are_independent_and_measure_uses_both() {
        let may_use = |from: &str, to: &str| row(from).unwrap().may_use(to);
        assert!(
            !may_use("linerate-link", "linerate-sim") && !may_use("linerate-sim", "linerate-link")
        );
        let measure = |name: &str| may_use("linerate-measure", name);
        assert!(measure("linerate-link") && measure("linerate-sim"));
        assert!(may_use("linerate", "linerate-units") && !may_use("linerate-units", "linerate"));
        assert!(!measure("linerate-tokio") && !may_use("linerate-stack", TESTKIT));
    }

    #[test]
    fn verdict_and_report_know_no_engine() {
        for name in ["linerate-verdict", "linerate-report"] {
            let row = row(name).unwrap();
            for engine in [
                "linerate-measure",
                "linerate-ends",
                "linerate-sim",
                "linerate-link",
                "linerate-tcp",
            ] {
                assert!(!row.may_use(engine), "{name} → {engine}");
            }
        }
    }
}
