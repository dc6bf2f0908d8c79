//! `linerate sweep`: measures the cells of a plan, and reports them.

mod args;
mod files;
mod progress;

pub(crate) use args::SweepArgs;

use crate::output::{self, Failure};
use crate::versions::of_this_build;
use linerate_ends::Interrupt;
use linerate_link::namespace::enter_private_network;
use linerate_measure::{
    Bench, BenchError, BenchKind, InterfaceBench, Invocation, KernelBench, NightError, Plan,
    SerialBench, SimBench, StackBench, Store, TapBench, make_runs,
};
use linerate_report::Report;
use progress::ProgressDisplay;
use std::io::{self, Write};

/// Executes the remaining runs of a sweep, prints the report, and writes the requested result
/// files.
pub(crate) fn run(args: &SweepArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut night = Night::begin(args)?;
    // The sweep saves its command line. The first word, the path of the program, does not affect
    // the result, so it is replaced by `linerate`.
    let options = std::iter::once("linerate".to_owned()).chain(std::env::args().skip(1)).collect();
    let invocation = Invocation { options, versions: of_this_build() };
    if !args.quiet {
        tell_serial_time(&night.store);
    }
    let mut watcher = ProgressDisplay::new(args.quiet, args.watch, &night.store);
    let result = match &mut night.bench {
        Some(bench) => {
            make_runs(&mut **bench, &mut night.store, &invocation, interrupt, &mut watcher)
        }
        None => Ok(()),
    };
    drop(watcher);
    result.map_err(|error| ended_early(error, &night.store))?;
    report(&night.store, args)
}

/// If the sweep uses a serial line, prints how long the remaining runs will take. The bit rate of
/// the line determines this duration in advance.
fn tell_serial_time(store: &Store) {
    let (plan, runs) = (store.plan(), store.remaining().len());
    if let (Some(baud), Some(time)) = (plan.baud, plan.serial_time()) {
        let seconds = time.as_secs_f64();
        #[allow(clippy::cast_precision_loss, reason = "the time is rounded")]
        let minutes = seconds * runs as f64 / 60.0;
        // Errors are ignored: the sweep continues if standard error is closed.
        let _ = writeln!(
            io::stderr(),
            "{runs} runs of {} bytes take about {seconds:.1} s each at {baud} baud, {minutes:.1} \
             minutes in all",
            plan.bytes
        );
    }
}

/// A sweep in progress: the store of its runs, and the engine (bench) that makes the remaining
/// runs.
struct Night {
    store: Store,
    /// The engine; `None` if all runs are complete.
    bench: Option<Box<dyn Bench>>,
}

impl Night {
    /// Begins a new sweep, or resumes an interrupted one. The engine is created before the folder,
    /// so that an invalid plan leaves no folder behind.
    fn begin(args: &SweepArgs) -> Result<Self, Failure> {
        if let Some(folder) = &args.resume {
            let store = Store::resume(folder)?;
            args.agree_with(store.plan(), folder)?;
            let is_over = store.next_run().is_none();
            let bench = if is_over { None } else { Some(bench(store.plan(), args)?) };
            args.files.check(args.pcap.as_deref(), store.plan(), folder)?;
            return Ok(Self { bench, store });
        }
        let plan = args.plan()?;
        let bench = Some(bench(&plan, args)?);
        let folder = args.out.clone().unwrap_or_else(|| files::new_folder(&plan));
        args.files.check(args.pcap.as_deref(), &plan, &folder)?;
        Ok(Self { bench, store: Store::create(&folder, plan)? })
    }
}

/// Creates the engine that the plan names, with a capture file if one was requested.
fn bench(plan: &Plan, args: &SweepArgs) -> Result<Box<dyn Bench>, Failure> {
    match plan.on {
        BenchKind::Kernel if args.pcap.is_some() => Err(Failure::input(
            "--pcap captures frames of linerate's TCP, which is not used --on kernel: leave it \
             out, or use tcpdump",
        )),
        BenchKind::Kernel => Ok(Box::new(KernelBench::new(plan)?)),
        BenchKind::Stack => Ok(Box::new(StackBench::new(plan, files::capture(args)?)?)),
        BenchKind::Interface => Ok(Box::new(InterfaceBench::new(plan, files::capture(args)?)?)),
        BenchKind::Sim => Ok(Box::new(SimBench::new(plan, files::capture(args)?)?)),
        BenchKind::Serial => Ok(Box::new(SerialBench::new(plan, files::capture(args)?)?)),
        BenchKind::Tap | BenchKind::Tun => {
            enter_private_network().map_err(|error| Failure::input(error.to_string()))?;
            Ok(Box::new(TapBench::new(plan, files::capture(args)?)?))
        }
    }
}

/// Converts the error that ended a sweep early to a failure. Its line gives the cause, and the
/// command that resumes the sweep.
fn ended_early(error: NightError, store: &Store) -> Failure {
    let kept = format!(
        "{} of {} runs are saved, continue with `linerate sweep --resume {}`",
        store.runs().len(),
        store.plan().design().run_count(),
        store.folder().display()
    );
    match error {
        NightError::Bench(BenchError::Interrupted) => {
            Failure::interrupted(format!("interrupted: {kept}"))
        }
        NightError::Bench(error) => Failure::from(error).and(&kept),
        NightError::Store(error) => Failure::from(error).and(&kept),
        error @ NightError::OtherConditions(_) => Failure::input(error.to_string()),
    }
}

/// Prints the report of the sweep, and writes the requested result files.
fn report(store: &Store, args: &SweepArgs) -> Result<(), Failure> {
    let Some(start) = store.start() else {
        return Err(Failure::running("no run is complete"));
    };
    let design = store.plan().design();
    let report = Report::new(&design, start, store.runs());
    output::print(&report.text(output::style()))?;
    args.files.write(&report, store.plan())?;
    match report.wrong_runs() {
        0 => Ok(()),
        wrong => Err(Failure::running(format!(
            "wrong data arrived in {wrong} of {} runs: see `verified` in {}",
            store.runs().len(),
            store.folder().display()
        ))),
    }
}
