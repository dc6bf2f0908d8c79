//! Causal experiments: one thing about the machines of 1988 is taken away or changed, both columns are measured anew,
//! and what that does to them says what caused what in the model.

use crate::load::{ScenarioError, load};
use crate::published::COLUMNS;
use crate::transfers::{Job, make};
use std::num::NonZeroUsize;

/// The buffers, in packets, at which columns are looked at.
pub const PACKETS: [u32; 9] = [1, 2, 3, 4, 5, 6, 8, 12, 17];
/// The smallest buffers of the plateau.
pub(crate) const PLATEAU: usize = 6;

/// One thing that is different.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// What is different, in a few words.
    pub title: &'static str,
    /// What it would show.
    pub asks: &'static str,
    /// The changes; one that a column does not know leaves it as it is.
    pub changes: &'static [&'static str],
}

/// The model as it is, and then each control.
pub const CONTROLS: [Control; 12] = [
    Control { title: "as it was", asks: "the model, with nothing changed", changes: &[] },
    Control {
        title: "no collisions",
        asks: "do collisions make the notch, as the mail suspects?",
        changes: &["ethernet-10.collisions=off"],
    },
    Control {
        title: "window update at 33 %",
        asks: "does the rule of window updates? At 33 % one packet of three is enough for one",
        changes: &["tahoe.window_update=33"],
    },
    Control {
        title: "window update at 50 % (Reno)",
        asks: "where is the notch with the rule of 1990?",
        changes: &["tahoe.window_update=50"],
    },
    Control {
        title: "NICs take nothing of the bus",
        asks: "does contention on the bus limit the columns?",
        changes: &["lance.dma.cycle=0", "82586.dma.cycle=0"],
    },
    Control {
        title: "a LANCE that turns round at once",
        asks: "does its turnaround let acknowledgements in?",
        changes: &["lance.transmit.chained=2", "lance.transmit.start=5"],
    },
    Control {
        title: "a LANCE with a FIFO for each half",
        asks: "what does it do to the column that the chip turns round slowly after receiving?",
        changes: &["lance.transmit.after_receive=0"],
    },
    Control {
        title: "an 82586 that starts at once",
        asks: "does the time of a command make the plateau?",
        changes: &["82586.transmit.start=50", "82586.transmit.done=0"],
    },
    Control {
        title: "an 82586 with chained commands",
        asks: "would a driver have helped that gives commands ahead?",
        changes: &["82586.transmit.ring=32"],
    },
    Control {
        title: "a LANCE in the 3/280",
        asks: "is it the chip, or its machine?",
        changes: &["sender.nic=lance"],
    },
    Control {
        title: "nobody else on the cable",
        asks: "what does the background traffic take?",
        changes: &["noise.rate=0"],
    },
    Control {
        title: "processors at 0.8 of the table",
        asks: "do processors limit the columns?",
        changes: &["sun-3-60.scale=0.8", "sun-3-280.scale=0.8"],
    },
];

/// What a control does to a column.
#[derive(Clone, Debug)]
pub struct ControlColumn {
    /// KB/s at [`PACKETS`].
    pub kilobytes: Vec<f64>,
    /// The part of the time that the sender's processor had nothing to do, at [`PACKETS`].
    pub sender_idle: Vec<f64>,
    /// Collisions for each frame, at [`PACKETS`].
    pub collisions: Vec<f64>,
    /// Did the control change anything about this column's scenario?
    pub changed: bool,
}

/// What a control does to both columns.
#[derive(Clone, Debug)]
pub struct ControlOutcome {
    /// The control.
    pub control: Control,
    /// Both columns.
    pub columns: Vec<ControlColumn>,
}

impl ControlOutcome {
    /// Carries all controls out, with `repeat` transfers of `bytes` each; `None` if somebody asked to stop.
    ///
    /// # Errors
    /// If a change is refused.
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
        // What one of the columns does not have cannot be changed there.
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
