//! Processor time: jobs at three priority levels with preemption, on a bus shared with NICs and
//! other processors.

use linerate_units::{Span, Tick};
use std::collections::VecDeque;

/// Priority levels, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Interrupt handlers of NIC drivers.
    Driver = 0,
    /// Software interrupts: IP, TCP and their timers.
    Network = 1,
    /// Tasks and their system calls.
    Task = 2,
}

/// All levels, the most urgent first.
const LEVELS: [Level; Level::COUNT] = [Level::Driver, Level::Network, Level::Task];

impl Level {
    const COUNT: usize = 3;
}

/// A processor that executes jobs of type `J` by priority.
#[derive(Debug)]
pub(crate) struct Cpu<J> {
    jobs: [VecDeque<(Span, J)>; Level::COUNT],
    /// Index of the level whose first job is running, and the time up to which this job's work is
    /// accounted for; `None` if the processor is idle.
    running: Option<(usize, Tick)>,
    /// Version of the running job's scheduled end. A [`Due`] with an older version is stale.
    plan: u32,
    /// Shares of the bus, in 65,536ths. `others` is the share of bus masters that are not NICs,
    /// such as a disk controller. `taken` is the share of NICs and these other bus masters
    /// together.
    taken: u64,
    others: u64,
    /// Number of other processors that are running on this bus.
    competitors: u64,
    /// Share of its running time in which this processor accesses the bus, in 65,536ths.
    bus_demand: u64,
    /// Present speed in 65,536ths of full speed.
    speed: u64,
    /// Time that the processor has spent at each priority level.
    busy: [Span; Level::COUNT],
}

/// The scheduled end of the running job. It changes if the bus load or the jobs change before this
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// Time at which the job ends.
    pub(crate) at: Tick,
    /// Version of the schedule. If the processor has a newer version when the job ends, this end is
    /// stale.
    pub(crate) plan: u32,
}

const FULL: u64 = 1 << 16;
/// Lower limit of the speed, as a share of `FULL`: a processor gets some bus cycles even if NICs
/// use the whole bus.
const SLOWEST: u64 = FULL / 20;

impl<J> Cpu<J> {
    /// Creates an idle processor that accesses the bus during the share `bus_demand` of its time.
    /// Bus masters that are not NICs use the share `others` of the bus. Both are in 65,536ths.
    pub(crate) fn new(bus_demand: u64, others: u64) -> Self {
        let jobs = std::array::from_fn(|_| VecDeque::with_capacity(16));
        let mut cpu = Self {
            jobs,
            running: None,
            plan: 0,
            taken: others,
            others,
            competitors: 0,
            bus_demand,
            speed: FULL,
            busy: [Span::ZERO; Level::COUNT],
        };
        cpu.speed = cpu.share();
        cpu
    }

    /// Returns the total busy time, and the busy time of each level.
    pub(crate) fn busy(&self) -> (Span, [Span; Level::COUNT]) {
        (self.busy.iter().fold(Span::ZERO, |sum, &busy| sum + busy), self.busy)
    }

    /// Returns the priority level of the running job; `None` if the processor is idle.
    pub(crate) fn running_level(&self) -> Option<Level> {
        self.running.map(|(level, _)| LEVELS[level])
    }

    /// Returns the share of the bus that NICs use, in per cent.
    pub(crate) const fn bus_taken(&self) -> u64 {
        (self.taken - self.others) * 100 / FULL
    }

    /// Queues a job that takes `work` at full speed. [`Cpu::resume`] starts it.
    pub(crate) fn add(&mut self, level: Level, work: Span, job: J) {
        self.jobs[level as usize].push_back((work, job));
    }

    /// Moves the jobs of level `from` that satisfy `wanted` to the end of the queue of level `to`.
    /// The jobs keep their order, and the work that was done on them. No job may be running.
    pub(crate) fn promote(&mut self, from: Level, to: Level, wanted: impl Fn(&J) -> bool) {
        debug_assert_eq!(self.running, None, "no job runs");
        let (promoted, left) =
            self.jobs[from as usize].drain(..).partition::<VecDeque<_>, _>(|(_, job)| wanted(job));
        self.jobs[from as usize] = left;
        self.jobs[to as usize].extend(promoted);
    }

    /// Removes and returns the running job, unless `plan` is stale.
    pub(crate) fn take_done(&mut self, now: Tick, plan: u32) -> Option<(Level, J)> {
        if plan != self.plan {
            return None;
        }
        self.pause(now);
        let (index, _) = self.running.take()?;
        let (_, job) = self.jobs[index].pop_front()?;
        Some((LEVELS[index], job))
    }

    /// Starts the most urgent job, and returns its scheduled end. Returns `None` if this job is
    /// running already or there is no job.
    #[must_use]
    pub(crate) fn resume(&mut self, now: Tick) -> Option<Due> {
        let level = self.jobs.iter().position(|jobs| !jobs.is_empty())?;
        match self.running {
            Some((running, _)) if running == level => None,
            Some(_) | None => self.run(now, level),
        }
    }

    fn run(&mut self, now: Tick, level: usize) -> Option<Due> {
        self.pause(now);
        let (left, _) = self.jobs[level].front()?;
        let at = now + Span::from_picos(left.as_picos().saturating_mul(FULL) / self.speed);
        self.running = Some((level, now));
        self.plan = self.plan.wrapping_add(1);
        Some(Due { at, plan: self.plan })
    }

    /// Changes the share of the bus that NICs and other bus masters use, in 65,536ths: `taken`
    /// computes the new share from the present one. Returns the new end of the running job if it
    /// has changed.
    #[must_use]
    pub(crate) fn change_bus(&mut self, now: Tick, taken: impl FnOnce(u64) -> u64) -> Option<Due> {
        self.change(now, |cpu| cpu.taken = taken(cpu.taken))
    }

    /// Changes the number of other processors that are running. Returns the new end of the running
    /// job if it has changed.
    #[must_use]
    pub(crate) fn change_competitors(&mut self, now: Tick, competitors: u64) -> Option<Due> {
        if competitors == self.competitors {
            None
        } else {
            self.change(now, |cpu| cpu.competitors = competitors)
        }
    }

    fn change(&mut self, now: Tick, what: impl FnOnce(&mut Self)) -> Option<Due> {
        self.pause(now);
        what(self);
        let before = self.speed;
        self.speed = self.share();
        let (level, _) = self.running?;
        if self.speed == before { None } else { self.run(now, level) }
    }

    /// Returns the present speed in 65,536ths of full speed. Use of the bus by NICs slows the
    /// processor down in proportion to `bus_demand`. Competing processors, which run at this speed
    /// too, slow it down further: s = a − competitors · w² · s. Here `s` is the speed, `a` the
    /// speed without competitors and `w` the bus demand of each processor.
    const fn share(&self) -> u64 {
        let lost = (if self.taken > FULL { FULL } else { self.taken }) * self.bus_demand / FULL;
        let alone = if FULL - lost < SLOWEST { SLOWEST } else { FULL - lost };
        if self.competitors == 0 {
            return alone;
        }
        alone * FULL * FULL / (FULL * FULL + self.competitors * self.bus_demand * self.bus_demand)
    }

    /// Deducts the work done since the last call from the running job's remaining work.
    fn pause(&mut self, now: Tick) {
        let Some((level, since)) = self.running else { return };
        let passed = now.since(since);
        self.busy[level] += passed;
        let speed = self.speed;
        if let Some((left, _)) = self.jobs[level].front_mut() {
            *left = *left - Span::from_picos(passed.as_picos().saturating_mul(speed) / FULL);
        }
        self.running = Some((level, now));
    }

    /// Returns the jobs of a level in their order.
    pub(crate) fn jobs(&self, level: Level) -> impl Iterator<Item = &J> {
        self.jobs[level as usize].iter().map(|(_, job)| job)
    }

    /// Checks the invariants.
    pub(crate) fn check(&self) {
        let most_urgent = self.jobs.iter().position(|jobs| !jobs.is_empty());
        assert_eq!(
            self.running.map(|(level, _)| level),
            most_urgent,
            "the most urgent level with a job runs"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICRO: u64 = 1_000_000;

    fn at(micros: u64) -> Tick {
        Tick::from_picos(micros * MICRO)
    }

    fn micros(count: u64) -> Span {
        Span::from_picos(count * MICRO)
    }

    /// Adds a job that takes `work` microseconds, at `now` microseconds. If this changes which job
    /// runs, returns the end of the job that now runs.
    fn add<J>(cpu: &mut Cpu<J>, now: u64, level: Level, work: u64, job: J) -> Option<Due> {
        cpu.add(level, micros(work), job);
        cpu.resume(at(now))
    }

    #[test]
    fn a_preempted_task_resumes_with_its_remaining_work() {
        let mut cpu = Cpu::new(0, 0);
        assert_eq!(add(&mut cpu, 0, Level::Task, 100, "task").unwrap().at, at(100));
        let interrupt = add(&mut cpu, 30, Level::Driver, 50, "interrupt").unwrap();
        assert_eq!(interrupt.at, at(80));
        assert_eq!(cpu.take_done(at(80), interrupt.plan), Some((Level::Driver, "interrupt")));
        let task = cpu.resume(at(80)).unwrap();
        assert_eq!(task.at, at(150));
        assert_eq!(cpu.take_done(at(150), task.plan), Some((Level::Task, "task")));
        assert_eq!(cpu.busy().0, micros(150));
    }

    #[test]
    fn promoted_jobs_keep_their_order_and_progress() {
        let mut cpu = Cpu::new(0, 0);
        add(&mut cpu, 0, Level::Task, 10, "made");
        add(&mut cpu, 0, Level::Task, 10, "task");
        add(&mut cpu, 0, Level::Task, 10, "made after");
        let input = add(&mut cpu, 4, Level::Network, 1, "input").unwrap();
        assert_eq!(cpu.take_done(at(5), input.plan), Some((Level::Network, "input")));
        cpu.promote(Level::Task, Level::Network, |job| job.starts_with("made"));
        cpu.add(Level::Network, micros(10), "made then");
        let mut now = at(5);
        let order = [(11, "made"), (21, "made after"), (31, "made then"), (41, "task")];
        for (time, job) in order {
            let due = cpu.resume(now).unwrap();
            assert_eq!(due.at, at(time), "{job}");
            now = due.at;
            assert_eq!(cpu.take_done(now, due.plan).unwrap().1, job);
        }
    }

    #[test]
    fn a_less_urgent_job_waits_and_stale_plans_are_ignored() {
        let mut cpu = Cpu::new(0, 0);
        let first = add(&mut cpu, 0, Level::Network, 10, 1).unwrap();
        assert_eq!(add(&mut cpu, 1, Level::Task, 10, 2), None);
        assert_eq!(cpu.take_done(at(10), first.plan.wrapping_sub(1)), None);
        assert_eq!(cpu.take_done(at(10), first.plan), Some((Level::Network, 1)));
        assert_eq!(cpu.resume(at(10)).unwrap().at, at(20));
    }

    #[test]
    fn a_nic_with_half_of_the_bus_halves_the_speed_of_a_processor_that_needs_it() {
        let mut cpu = Cpu::new(FULL, 0);
        assert_eq!(add(&mut cpu, 0, Level::Task, 100, ()).unwrap().at, at(100));
        let slower = cpu.change_bus(at(20), |taken| taken + FULL / 2).unwrap();
        assert_eq!(slower.at, at(180));
        let faster = cpu.change_bus(at(40), |taken| taken - FULL / 2).unwrap();
        assert_eq!(faster.at, at(110));
    }

    #[test]
    fn processors_that_always_need_the_bus_share_it_equally() {
        let mut cpu = Cpu::new(FULL, 0);
        assert_eq!(add(&mut cpu, 0, Level::Task, 100, ()).unwrap().at, at(100));
        assert_eq!(cpu.change_competitors(at(40), 1).unwrap().at, at(160));
        assert_eq!(cpu.change_competitors(at(70), 1), None);
        assert_eq!(cpu.change_competitors(at(70), 3).unwrap().at, at(250));
        assert_eq!(cpu.change_competitors(at(110), 0).unwrap().at, at(145));
    }

    #[test]
    fn a_processor_that_does_not_need_the_bus_keeps_its_speed() {
        let mut cpu = Cpu::new(0, 0);
        assert_eq!(add(&mut cpu, 0, Level::Task, 100, ()).unwrap().at, at(100));
        assert_eq!(cpu.change_bus(at(20), |taken| taken + FULL), None);
        assert_eq!(cpu.change_competitors(at(20), 3), None);
    }
}
