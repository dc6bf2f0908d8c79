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
    /// Index of the level whose first job is running, and the time of the most recent update of
    /// this job's remaining work. `None` if the processor is idle.
    running: Option<(usize, Tick)>,
    /// Version of the running job's scheduled end. A [`Due`] with an older version is stale.
    plan: u32,
    /// Fractions of the bus that are in use, in 65,536ths. `others` is used by bus masters that are
    /// not NICs, such as a disk controller. `taken` is used by these bus masters and by NICs
    /// together.
    taken: u64,
    others: u64,
    /// Number of other processors that are running on this bus.
    competitors: u64,
    /// Fraction of this processor's running time in which it accesses the bus, in 65,536ths.
    bus_demand: u64,
    /// Present speed in 65,536ths of full speed.
    speed: u64,
    /// Time that the processor has spent at each priority level.
    busy: [Span; Level::COUNT],
}

/// The scheduled end of the running job. It becomes stale if the processor's speed changes, or a
/// more urgent job interrupts this one, before that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// Time at which the job ends.
    pub(crate) at: Tick,
    /// Version of the schedule to which this end belongs. The end is stale if the processor has a
    /// newer version by then.
    pub(crate) plan: u32,
}

const FULL: u64 = 1 << 16;
/// Lower limit of the speed, in 65,536ths, to which NICs and other bus masters can slow a processor
/// down. It gets some bus cycles even if they use the whole bus. Other processors can slow it down
/// below this limit.
const SLOWEST: u64 = FULL / 20;

impl<J> Cpu<J> {
    /// Creates an idle processor. It accesses the bus in the fraction `bus_demand` of its running
    /// time. Bus masters that are not NICs use the fraction `others` of the bus. Both are in
    /// 65,536ths.
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

    /// Returns the percentage of the bus that NICs use.
    pub(crate) const fn bus_taken(&self) -> u64 {
        (self.taken - self.others) * 100 / FULL
    }

    /// Queues a job that takes `work` at full speed. [`Cpu::resume`] starts it.
    pub(crate) fn add(&mut self, level: Level, work: Span, job: J) {
        self.jobs[level as usize].push_back((work, job));
    }

    /// Moves the jobs of level `from` for which `wanted` returns true to the end of the queue of
    /// level `to`. Their order and their remaining work do not change. No job may be running.
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

    /// Starts the first job of the most urgent level that has jobs, and returns the job's scheduled
    /// end. Returns `None` if that job is already running, or there is no job.
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

    /// Changes the fraction of the bus that NICs and other bus masters use. `taken` computes the
    /// new fraction from the present one, both in 65,536ths. If the running job now ends at another
    /// time, returns its new end.
    #[must_use]
    pub(crate) fn change_bus(&mut self, now: Tick, taken: impl FnOnce(u64) -> u64) -> Option<Due> {
        self.change(now, |cpu| cpu.taken = taken(cpu.taken))
    }

    /// Changes the number of other processors that are running. If the running job now ends at
    /// another time, returns its new end.
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

    /// Returns the present speed in 65,536ths of full speed. The more NICs and other bus masters
    /// use the bus, the slower is the processor, in proportion to its bus demand. Other running
    /// processors slow it down further. All processors run at the same speed s, which follows from
    /// s = a − n · w² · s. Here a is the speed without other processors, n their number, and w the
    /// bus demand of each.
    const fn share(&self) -> u64 {
        let lost = (if self.taken > FULL { FULL } else { self.taken }) * self.bus_demand / FULL;
        let alone = if FULL - lost < SLOWEST { SLOWEST } else { FULL - lost };
        if self.competitors == 0 {
            return alone;
        }
        alone * FULL * FULL / (FULL * FULL + self.competitors * self.bus_demand * self.bus_demand)
    }

    /// Deducts the work done since the previous call from the running job's remaining work.
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

    /// Adds a job that takes `work` microseconds, at `now` microseconds. If the processor then
    /// starts a job, returns the scheduled end of that job.
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
