use super::*;
use linerate_units::Duration;
use proptest::prelude::*;

const TICK: u64 = 1 << TICK_BITS;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// Expires all timers that are due at `now`, and returns their numbers in ascending order.
fn expired(wheel: &mut TimerWheel, now: u64) -> Vec<u32> {
    let mut ids: Vec<_> = core::iter::from_fn(|| wheel.expire(at(now))).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_timer_is_never_early_and_less_than_a_tick_late() {
    let mut wheel = TimerWheel::new();
    wheel.arm(3, at(5_000_001));
    assert_eq!(expired(&mut wheel, 5_000_000), []);
    assert_eq!(expired(&mut wheel, 5_000_001 + TICK), [3]);
    assert_eq!(wheel.next(), Instant::NEVER);
}

#[test]
fn a_deadline_that_moves_later_leaves_the_timer_where_it_is() {
    let mut wheel = TimerWheel::new();
    wheel.arm(0, at(1_000_000));
    wheel.arm(0, at(9_000_000));
    assert_eq!(wheel.deadline(0), at(1_000_000));
    wheel.arm(0, at(500_000));
    assert_eq!(expired(&mut wheel, 600_000), [0]);
}

#[test]
fn the_first_and_the_last_instant_can_be_armed() {
    let mut wheel = TimerWheel::new();
    wheel.arm(0, at(0));
    wheel.arm(1, at(u64::MAX - 1));
    wheel.arm(2, Instant::NEVER);
    assert_eq!(expired(&mut wheel, 0), [0]);
    assert!(wheel.next() <= at(u64::MAX - 1));
    assert_eq!(expired(&mut wheel, u64::MAX), [1]);
}

#[test]
fn a_distant_deadline_is_reached_in_few_steps() {
    let mut wheel = TimerWheel::new();
    wheel.arm(0, at(3_600_000_000_000));
    let steps = (0..100).take_while(|_| wheel.expire(wheel.next()).is_none()).count();
    assert!(steps < LEVELS, "{steps}");
}

/// A timer is armed for a near deadline after a long idle time. `next` returns exactly the tick of
/// this deadline. If it returned an earlier time, an idle host would wake up repeatedly without a
/// timer to run.
#[test]
fn after_idle_time_a_near_deadline_is_exact_to_the_tick() {
    let mut wheel = TimerWheel::<u32>::new();
    let silence = 3_600_000_000_000 / TICK * TICK;
    assert_eq!(expired(&mut wheel, silence), []);
    wheel.arm(0, at(silence + 3 * TICK));
    assert_eq!(wheel.next(), at(silence + 3 * TICK));
}

/// Expires a million timers in order. The cost of a timer is constant, because the wheel moves each
/// timer at most once per level.
#[test]
fn a_million_timers_expire_in_order_at_constant_cost_each() {
    const MANY: u32 = 1_000_000;
    // Distinct deadlines between a millisecond and a minute, in random order.
    let deadline =
        |id: u32| at(1_000_000 + u64::from(id.wrapping_mul(2_654_435_761) % MANY) * 60_000);
    let mut wheel = TimerWheel::new();
    (0..MANY).for_each(|id| wheel.arm(id, deadline(id)));
    let mut last = Instant::ZERO;
    for _ in 0..MANY {
        let id = core::iter::repeat_with(|| wheel.expire(wheel.next())).flatten().next().unwrap();
        assert!(
            deadline(id) >= last - Duration::from_nanos(TICK),
            "timers expire in the order of their deadlines"
        );
        last = deadline(id);
    }
    assert_eq!(wheel.next(), Instant::NEVER);
    let touched = wheel.placed / u64::from(MANY);
    assert!((1..=LEVELS as u64).contains(&touched), "{touched}");
}

proptest! {
    /// In any sequence of operations, the wheel expires the timers that a reference model expires:
    /// an array of all deadlines. The wheel may expire a timer up to one tick after its deadline.
    #[test]
    fn the_wheel_agrees_with_a_list(
        steps in prop::collection::vec((0_u32..20, 0_u32..42, any::<u64>(), 0_u8..6), 1..300),
    ) {
        let mut wheel = TimerWheel::new();
        let mut list = [u64::MAX; 20];
        let mut now = 0_u64;
        for (id, magnitude, noise, step) in steps {
            let span = noise >> (63 - magnitude);
            match step {
                0 | 1 => {
                    let deadline = now.saturating_add(span);
                    wheel.arm(id, at(deadline));
                    list[id as usize] = list[id as usize].min(deadline);
                }
                2 => {
                    wheel.disarm(id);
                    list[id as usize] = u64::MAX;
                }
                3 => {

                    let deadline =
                        if magnitude == 0 { u64::MAX } else { now.saturating_add(span) };
                    wheel.set(id, at(deadline));
                    list[id as usize] = deadline;
                }
                _ => {
                    now = now.saturating_add(span);
                    for id in expired(&mut wheel, now) {
                        prop_assert!(list[id as usize] <= now, "early");
                        list[id as usize] = u64::MAX;
                    }

                    let earliest = now.saturating_sub(TICK);
                    prop_assert!(list.iter().all(|&deadline| deadline > earliest), "late");
                }
            }
            let first = list.iter().copied().min().unwrap_or(u64::MAX);
            prop_assert!(wheel.next().as_nanos() <= first.saturating_add(TICK));
            prop_assert_eq!(wheel.next() == Instant::NEVER, first == u64::MAX);
            let kept = wheel.next();
            wheel.find_next();
            prop_assert_eq!(wheel.next(), kept);
            for (id, &deadline) in (0..).zip(&list) {
                prop_assert_eq!(wheel.deadline(id), at(deadline));
            }
        }
    }
}
