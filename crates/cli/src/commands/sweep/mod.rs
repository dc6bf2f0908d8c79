//! `linerate sweep`: the experiment from its first word to its report.

mod args;
mod files;
mod progress;

pub(crate) use args::SweepArgs;

use crate::output::{self, Failure};
use crate::versions::of_this_build;
use files::Files;
use linerate_ends::Interrupt;
use linerate_link::namespace::enter_private_network;
use linerate_measure::{
    Bench, BenchError, BenchKind, InterfaceBench, Invocation, KernelBench, NightError, Plan,
    SimBench, StackBench, Store, TapBench, make_runs,
};
use linerate_report::Report;
use progress::Watcher;

/// Makes the runs that are to be made, prints what they mean, and writes the files asked for.
pub(crate) fn run(args: &SweepArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut night = Night::begin(args)?;
    // Where the program lies is the machine's business, what it was asked for is the result's.
    let options = std::iter::once("linerate".to_owned()).chain(std::env::args().skip(1)).collect();
    let invocation = Invocation { options, versions: of_this_build() };
    let mut watcher = Watcher::new(args.quiet, night.store.folder());
    let result = match &mut night.bench {
        Some(bench) => {
            make_runs(&mut **bench, &mut night.store, &invocation, interrupt, &mut watcher)
        }
        None => Ok(()),
    };
    drop(watcher);
    result.map_err(|error| ended_early(error, &night.store))?;
    report(&night.store, &night.files)
}

/// What a night needs: where its runs are kept, what carries their bytes, and where its report
/// goes.
struct Night<'a> {
    store: Store,
    /// None if all runs are made.
    bench: Option<Box<dyn Bench>>,
    files: Files<'a>,
}

impl<'a> Night<'a> {
    /// Files and folder are made when the bench is there: a plan that is refused leaves nothing
    /// behind.
    fn begin(args: &'a SweepArgs) -> Result<Self, Failure> {
        if let Some(folder) = &args.resume {
            let store = Store::resume(folder)?;
            args.agree_with(store.plan(), folder)?;
            let is_over = store.remaining().is_empty();
            let bench = if is_over { None } else { Some(bench(store.plan(), args)?) };
            let files = Files::open(args, store.plan(), folder)?;
            return Ok(Self { bench, store, files });
        }
        let plan = args.plan()?;
        let bench = Some(bench(&plan, args)?);
        let folder = args.out.clone().unwrap_or_else(|| files::new_folder(&plan));
        let files = Files::open(args, &plan, &folder)?;
        Ok(Self { bench, store: Store::create(&folder, plan)?, files })
    }
}

/// What carries the plan's bytes, and writes down its frames if that is wanted.
fn bench(plan: &Plan, args: &SweepArgs) -> Result<Box<dyn Bench>, Failure> {
    match plan.on {
        BenchKind::Kernel if args.pcap.is_some() => Err(Failure::input(
            "--pcap sees frames of linerate's TCP, there are none --on kernel: leave it out, or use tcpdump",
        )),
        BenchKind::Kernel => Ok(Box::new(KernelBench::new(plan)?)),
        BenchKind::Stack => Ok(Box::new(StackBench::new(plan, files::capture(args)?)?)),
        BenchKind::Interface => Ok(Box::new(InterfaceBench::new(plan, files::capture(args)?)?)),
        BenchKind::Sim => Ok(Box::new(SimBench::new(plan, files::capture(args)?)?)),
        BenchKind::Tap => {
            enter_private_network().map_err(|error| Failure::input(error.to_string()))?;
            Ok(Box::new(TapBench::new(plan, files::capture(args)?)?))
        }
    }
}

/// The line about a night that did not reach its morning: what ended it, and how it goes on.
fn ended_early(error: NightError, store: &Store) -> Failure {
    let kept = format!(
        "{} of {} runs are kept, go on with `linerate sweep --resume {}`",
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

/// Prints the report and writes the files.
fn report(store: &Store, files: &Files<'_>) -> Result<(), Failure> {
    let Some(start) = store.start() else {
        return Err(Failure::running("no run has been made"));
    };
    let design = store.plan().design();
    let report = Report::new(&design, start, store.runs());
    output::print(&report.text(output::style()))?;
    files.write(&report, store.plan())?;
    match report.wrong_runs() {
        0 => Ok(()),
        wrong => Err(Failure::running(format!(
            "wrong bytes arrived in {wrong} of {} runs: see `verified` in {}",
            store.runs().len(),
            store.folder().display()
        ))),
    }
}
