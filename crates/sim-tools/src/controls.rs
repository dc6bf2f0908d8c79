//! Causal experiments about the throughput table of 1988. Each experiment removes or changes one
//! property of the simulated machines, and simulates both columns of the table again. If the
//! throughput changes much, the property causes what the table shows, at least in the model.

use crate::load::{ScenarioError, load};
use crate::published::COLUMNS;
use crate::transfers::{Job, make};
use std::num::NonZeroUsize;

/// Sizes of both socket buffers, in packets, for which each experiment is run.
pub const PACKETS: [u32; 9] = [1, 2, 3, 4, 5, 6, 8, 12, 17];
/// Index in [`PACKETS`] where the plateau begins: from this buffer size on, larger buffers hardly
/// increase the throughput.
pub(crate) const PLATEAU: usize = 6;

/// Name of a rule of 4.3BSD Tahoe: the receiver sends a window update when the window can grow by
/// two segments, or by 35 % of the buffer.
pub(crate) const WINDOW_UPDATE_RULE: &str = "the 35 % rule";

/// An experiment that changes one property of the model.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Name of the experiment, in a few words.
    pub title: &'static str,
    /// The question that the experiment answers.
    pub asks: &'static str,
    /// The change, in words that begin the sentence about its effect: "without collisions".
    pub condition: &'static str,
    /// The property that the change removes, if it may be the cause of the notch or the limit of
    /// the plateau. `None` if the experiment tests no cause.
    pub cause: Option<&'static str>,
    /// Changes of parameters, as KEY=VALUE. The experiment does not change a column whose machines
    /// lack the parameter.
    pub changes: &'static [&'static str],
}

/// All experiments. The first entry is the unchanged model.
pub const CONTROLS: [Control; 12] = [
    Control {
        title: "as it was",
        asks: "the model, with nothing changed",
        condition: "as it was",
        cause: None,
        changes: &[],
    },
    Control {
        title: "no collisions",
        asks: "do collisions cause the notch, as the mail suspects?",
        condition: "without collisions",
        cause: Some("collisions"),
        changes: &["ethernet-10.collisions=off"],
    },
    Control {
        title: "window update at 33 %",
        asks: "is the rule of window updates the cause? At 33 % one packet of three is enough",
        condition: "without the 35 % rule (window updates at 33 %)",
        cause: Some(WINDOW_UPDATE_RULE),
        changes: &["tahoe.window_update=33"],
    },
    Control {
        title: "window update at 50 % (Reno)",
        asks: "where is the notch with the rule of 1990?",
        condition: "with window updates at 50 %, as in Reno,",
        cause: None,
        changes: &["tahoe.window_update=50"],
    },
    Control {
        title: "NICs take nothing of the bus",
        asks: "does contention on the bus limit the columns?",
        condition: "without contention on the bus",
        cause: Some("contention on the bus"),
        changes: &["lance.dma.cycle=0", "82586.dma.cycle=0"],
    },
    Control {
        title: "a LANCE that turns round at once",
        asks: "does its turnaround let acknowledgements in?",
        condition: "without the LANCE's turnaround between frames",
        cause: Some("the LANCE's turnaround between frames"),
        changes: &["lance.transmit.chained=2", "lance.transmit.start=5"],
    },
    Control {
        title: "a LANCE with a FIFO for each half",
        asks: "what is the effect of the slow turnaround after receiving?",
        condition: "without the LANCE's turnaround after receiving",
        cause: Some("the LANCE's turnaround after receiving"),
        changes: &["lance.transmit.after_receive=0"],
    },
    Control {
        title: "an 82586 that starts at once",
        asks: "does the time of a command limit the plateau?",
        condition: "without the 82586's time for a command",
        cause: Some("the 82586's time for a command"),
        changes: &["82586.transmit.start=50", "82586.transmit.done=0"],
    },
    Control {
        title: "an 82586 with chained commands",
        asks: "would a driver that prepares commands have helped?",
        condition: "with commands prepared in a chain",
        cause: None,
        changes: &["82586.transmit.ring=32"],
    },
    Control {
        title: "a LANCE in the 3/280",
        asks: "is it the chip, or its machine?",
        condition: "without the 82586 (a LANCE in the 3/280)",
        cause: Some("the 82586"),
        changes: &["sender.nic=lance"],
    },
    Control {
        title: "no background traffic",
        asks: "how much does the background traffic take?",
        condition: "without background traffic",
        cause: Some("background traffic"),
        changes: &["noise.rate=0"],
    },
    Control {
        title: "processors at 0.8 of the table",
        asks: "do processors limit the columns?",
        condition: "with processors that take 0.8 of the time",
        cause: None,
        changes: &["sun-3-60.scale=0.8", "sun-3-280.scale=0.8"],
    },
];

/// The results of one experiment for one column of the table of 1988. Each figure is the mean over
/// the repeated transfers.
#[derive(Clone, Debug)]
pub struct ControlColumn {
    /// Throughput in KB/s for each buffer size of [`PACKETS`].
    pub kilobytes: Vec<f64>,
    /// Fraction of time in which the sender's processor was idle, for each buffer size of
    /// [`PACKETS`].
    pub sender_idle: Vec<f64>,
    /// Collisions per frame, for each buffer size of [`PACKETS`].
    pub collisions: Vec<f64>,
    /// Whether the experiment changed any parameter of this column's scenario.
    pub changed: bool,
}

/// The results of one experiment for both columns of the table of 1988.
#[derive(Clone, Debug)]
pub struct ControlOutcome {
    /// The experiment.
    pub control: Control,
    /// Results of each column.
    pub columns: Vec<ControlColumn>,
}

impl ControlOutcome {
    /// Runs all experiments. For each experiment, column and buffer size, it simulates `repeat`
    /// transfers of `bytes` bytes. Returns `None` if `is_stopped` has returned true.
    ///
    /// # Errors
    /// If a change of a parameter is refused.
    pub fn make_all(
        repeat: u32,
        bytes: u64,
        threads: NonZeroUsize,
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Vec<Self>>, ScenarioError> {
        let mut outcomes = Vec::new();
        for control in CONTROLS {
            let mut columns = Vec::new();
            for column in COLUMNS {
                let Some(made) =
                    measure(column.scenario, &control, (repeat, bytes), threads, is_stopped)?
                else {
                    return Ok(None);
                };
                columns.push(made);
            }
            outcomes.push(Self { control, columns });
        }
        Ok(Some(outcomes))
    }
}

fn measure(
    scenario: &str,
    control: &Control,
    (repeat, bytes): (u32, u64),
    threads: NonZeroUsize,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Option<ControlColumn>, ScenarioError> {
    let mut scenario = load(scenario, &[])?;
    let before = scenario.settings().clone();
    for change in control.changes {
        // A control experiment changes the parameters of several scenarios. A scenario that lacks
        // one of these parameters runs without the change, so the error is ignored.
        let _ = scenario.set(change);
    }
    let blueprint = scenario.blueprint()?;
    let runs = PACKETS.iter().flat_map(|&packets| (0..repeat).map(move |run| (packets, run)));
    let jobs: Vec<Job<'_>> = runs
        .map(|(packets, run)| {
            let seed = u64::from(packets) << 32 | u64::from(run);
            Job { blueprint: &blueprint, send: packets, receive: packets, bytes, seed }
        })
        .collect();
    let Some(made) = make(&jobs, threads, is_stopped, &|_| ()) else { return Ok(None) };
    let each = made.chunks(repeat.max(1) as usize);
    let mean = |what: fn(&crate::transfers::Made) -> f64| {
        each.clone()
            .map(|runs| runs.iter().map(what).sum::<f64>() / f64::from(repeat.max(1)))
            .collect()
    };
    Ok(Some(ControlColumn {
        kilobytes: mean(|made| made.kilobytes),
        sender_idle: mean(|made| made.sender_idle),
        #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
        collisions: mean(|made| made.collisions as f64 / made.frames.max(1) as f64),
        changed: !scenario.settings().iter().eq(before.iter()),
    }))
}
