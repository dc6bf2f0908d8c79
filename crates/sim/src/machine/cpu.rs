//! A processor's time: jobs at three levels, of which a higher one preempts a lower one, on a bus that cards and other
//! processors take from it.

use linerate_units::{Span, Tick};
use std::collections::VecDeque;

/// Who works, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Interrupts of cards: the drivers.
    Card = 0,
    /// What interrupts ask for: IP and TCP, and their timers.
    Network = 1,
    /// Tasks, and what the kernel does for them.
    Task = 2,
}

/// All of them, in that order.
const LEVELS: [Level; Level::COUNT] = [Level::Card, Level::Network, Level::Task];

impl Level {
    const COUNT: usize = 3;
}

/// The processor.
#[derive(Debug)]
pub(crate) struct Cpu<J> {
    jobs: [VecDeque<(Span, J)>; Level::COUNT],
    /// The level whose first job is worked on, and since when.
    running: Option<(usize, Tick)>,
    /// Changes when the end of the running job does, so that what was announced before is known to be void.
    plan: u32,
    /// What others hold of the bus, and of that what is no card's, in 65,536ths.
    taken: u64,
    others: u64,
    /// Other processors that work on this bus.
    rivals: u64,
    /// The part of its time that the processor wants the bus, in 65,536ths.
    wants_bus: u64,
    /// How fast it works, in 65,536ths.
    speed: u64,
    /// Time during which a level worked.
    busy: [Span; Level::COUNT],
}

/// When the running job will be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// When.
    pub(crate) at: Tick,
    /// Of which plan.
    pub(crate) plan: u32,
}

const WHOLE: u64 = 1 << 16;
/// However many cards hold the bus, the processor gets a cycle now and then.
const SLOWEST: u64 = WHOLE / 20;

impl<J> Cpu<J> {
    /// A processor with nothing to do, which wants the bus for this part of its time, and of which others than cards
    /// take this part for themselves.
    pub(crate) fn new(wants_bus: u64, others: u64) -> Self {
        let jobs = std::array::from_fn(|_| VecDeque::with_capacity(16));
        let mut cpu = Self {
            jobs,
            running: None,
            plan: 0,
            taken: others,
            others,
            rivals: 0,
            wants_bus,
            speed: WHOLE,
            busy: [Span::ZERO; Level::COUNT],
        };
        cpu.speed = cpu.share();
        cpu
    }

    /// Time during which anything was worked on, and of that at the levels of cards, network and tasks.
    pub(crate) fn busy(&self) -> (Span, [Span; Level::COUNT]) {
        (self.busy.iter().fold(Span::ZERO, |sum, &busy| sum + busy), self.busy)
    }

    /// What it works on.
    pub(crate) fn works(&self) -> Option<Level> {
        self.running.map(|(level, _)| LEVELS[level])
    }

    /// What cards hold of the bus, in per cent.
    pub(crate) const fn bus_taken(&self) -> u64 {
        (self.taken - self.others) * 100 / WHOLE
    }

    /// Adds a job that takes `work` with the bus to itself; [`Cpu::resume`] takes notice of it.
    pub(crate) fn add(&mut self, level: Level, work: Span, job: J) {
        self.jobs[level as usize].push_back((work, job));
    }

    /// Makes the `wanted` jobs of the level `from` as urgent as those of `to`, behind them: in the order in which they are,
    /// and with what has been done of them. Only while nothing runs.
    pub(crate) fn hurry(&mut self, from: Level, to: Level, wanted: impl Fn(&J) -> bool) {
        debug_assert_eq!(self.running, None, "no job runs");
        let (hurried, left) =
            self.jobs[from as usize].drain(..).partition::<VecDeque<_>, _>(|(_, job)| wanted(job));
        self.jobs[from as usize] = left;
        self.jobs[to as usize].extend(hurried);
    }

    /// The plan's time has come: the job that is done, unless the plan is void.
    pub(crate) fn take_done(&mut self, now: Tick, plan: u32) -> Option<(Level, J)> {
        if plan != self.plan {
            return None;
        }
        self.pause(now);
        let (index, _) = self.running.take()?;
        let (_, job) = self.jobs[index].pop_front()?;
        Some((LEVELS[index], job))
    }

    /// Turns to the most urgent job, if it is not the one that runs: when that will be done.
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
        let at = now + Span::from_picos(left.as_picos().saturating_mul(WHOLE) / self.speed);
        self.running = Some((level, now));
        self.plan = self.plan.wrapping_add(1);
        Some(Due { at, plan: self.plan })
    }

    /// Cards hold so much more of the bus, or less.
    #[must_use]
    pub(crate) fn change_bus(&mut self, now: Tick, taken: impl FnOnce(u64) -> u64) -> Option<Due> {
        self.change(now, |cpu| cpu.taken = taken(cpu.taken))
    }

    /// So many other processors work now.
    #[must_use]
    pub(crate) fn change_rivals(&mut self, now: Tick, rivals: u64) -> Option<Due> {
        if rivals == self.rivals { None } else { self.change(now, |cpu| cpu.rivals = rivals) }
    }

    fn change(&mut self, now: Tick, what: impl FnOnce(&mut Self)) -> Option<Due> {
        self.pause(now);
        what(self);
        let before = self.speed;
        self.speed = self.share();
        let (level, _) = self.running?;
        if self.speed == before { None } else { self.run(now, level) }
    }

    /// How fast it can work, in 65,536ths. What it loses to cards is their share of the bus, as far as it wants that. To
    /// each of its rivals, which are as fast as it is, it loses what that takes: with `s` the speed, `a` that without
    /// rivals, and `w` the part that all of them want, s = a − rivals · w² · s.
    const fn share(&self) -> u64 {
        let lost = (if self.taken > WHOLE { WHOLE } else { self.taken }) * self.wants_bus / WHOLE;
        let alone = if WHOLE - lost < SLOWEST { SLOWEST } else { WHOLE - lost };
        if self.rivals == 0 {
            return alone;
        }
        alone * WHOLE * WHOLE / (WHOLE * WHOLE + self.rivals * self.wants_bus * self.wants_bus)
    }

    /// Notes what of the running job has been done until now.
    fn pause(&mut self, now: Tick) {
        let Some((level, since)) = self.running else { return };
        let passed = now.since(since);
        self.busy[level] += passed;
        let speed = self.speed;
        if let Some((left, _)) = self.jobs[level].front_mut() {
            *left = *left - Span::from_picos(passed.as_picos().saturating_mul(speed) / WHOLE);
        }
        self.running = Some((level, now));
    }

    /// The jobs of a level, the next one first.
    pub(crate) fn jobs(&self, level: Level) -> impl Iterator<Item = &J> {
        self.jobs[level as usize].iter().map(|(_, job)| job)
    }

    /// Judges what must hold after every event.
    pub(crate) fn check(&self) {
        let most_urgent = self.jobs.iter().position(|jobs| !jobs.is_empty());
        assert_eq!(
            self.running.map(|(level, _)| level),
            most_urgent,
            "the most urgent level works"
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

    /// Adds a job, and says when the one that runs then is done.
    fn add<J>(cpu: &mut Cpu<J>, now: u64, level: Level, work: u64, job: J) -> Option<Due> {
        cpu.add(level, micros(work), job);
        cpu.resume(at(now))
    }

    #[test]
    fn an_interrupt_preempts_a_task_which_goes_on_where_it_was() {
        let mut cpu = Cpu::new(0, 0);
        assert_eq!(add(&mut cpu, 0, Level::Task, 100, "task").unwrap().at, at(100));
        let interrupt = add(&mut cpu, 30, Level::Card, 50, "interrupt").unwrap();
        assert_eq!(interrupt.at, at(80));
        assert_eq!(cpu.take_done(at(80), interrupt.plan), Some((Level::Card, "interrupt")));
        let task = cpu.resume(at(80)).unwrap();
        assert_eq!(task.at, at(150));
        assert_eq!(cpu.take_done(at(150), task.plan), Some((Level::Task, "task")));
        assert_eq!(cpu.busy().0, micros(150));
    }

    #[test]
    fn who_is_hurried_keeps_the_order_and_what_has_been_done() {
        let mut cpu = Cpu::new(0, 0);
        add(&mut cpu, 0, Level::Task, 10, "made");
        add(&mut cpu, 0, Level::Task, 10, "task");
        add(&mut cpu, 0, Level::Task, 10, "made after");
        let input = add(&mut cpu, 4, Level::Network, 1, "input").unwrap();
        assert_eq!(cpu.take_done(at(5), input.plan), Some((Level::Network, "input")));
        cpu.hurry(Level::Task, Level::Network, |job| job.starts_with("made"));
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
    fn whoever_is_less_urgent_waits_and_void_plans_do_nothing() {
        let mut cpu = Cpu::new(0, 0);
        let first = add(&mut cpu, 0, Level::Network, 10, 1).unwrap();
        assert_eq!(add(&mut cpu, 1, Level::Task, 10, 2), None);
        assert_eq!(cpu.take_done(at(10), first.plan.wrapping_sub(1)), None);
        assert_eq!(cpu.take_done(at(10), first.plan), Some((Level::Network, 1)));
        assert_eq!(cpu.resume(at(10)).unwrap().at, at(20));
    }

    #[test]
    fn while_a_card_holds_half_of_the_bus_a_processor_that_always_wants_it_is_half_as_fast() {
        let mut cpu = Cpu::new(WHOLE, 0);
        assert_eq!(add(&mut cpu, 0, Level::Task, 100, ()).unwrap().at, at(100));
        let slower = cpu.change_bus(at(20), |taken| taken + WHOLE / 2).unwrap();
        assert_eq!(slower.at, at(180));
        let faster = cpu.change_bus(at(40), |taken| taken - WHOLE / 2).unwrap();
        assert_eq!(faster.at, at(110));
    }

    #[test]
    fn processors_that_always_want_the_bus_get_equal_parts_of_it() {
        let mut cpu = Cpu::new(WHOLE, 0);
        assert_eq!(add(&mut cpu, 0, Level::Task, 100, ()).unwrap().at, at(100));
        assert_eq!(cpu.change_rivals(at(40), 1).unwrap().at, at(160));
        assert_eq!(cpu.change_rivals(at(70), 1), None);
        assert_eq!(cpu.change_rivals(at(70), 3).unwrap().at, at(250));
        assert_eq!(cpu.change_rivals(at(110), 0).unwrap().at, at(145));
    }

    #[test]
    fn a_processor_that_does_not_want_the_bus_does_not_notice() {
        let mut cpu = Cpu::new(0, 0);
        assert_eq!(add(&mut cpu, 0, Level::Task, 100, ()).unwrap().at, at(100));
        assert_eq!(cpu.change_bus(at(20), |taken| taken + WHOLE), None);
        assert_eq!(cpu.change_rivals(at(20), 3), None);
    }
}
