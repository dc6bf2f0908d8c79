//! Contenders that take turns at one work, so that whatever else happens to the machine happens to
//! all of them.

use crate::contender::{Contender, Run, Taken};
use crate::work::Work;

/// What the runs of one work took.
pub struct Rounds {
    pub work: Work,
    pub names: Vec<&'static str>,
    /// `taken[r][c]` is what contender `c` took in round `r`.
    pub taken: Vec<Vec<Taken>>,
}

/// Every contender that can do the work once a round, each round beginning with another one. A first
/// round warms up, compares what arrives with what was sent, and is not counted.
///
/// # Errors
/// Whose run failed, and how.
pub fn take(
    work: Work,
    contenders: &mut [Box<dyn Contender>],
    quick: bool,
) -> Result<Rounds, String> {
    let mut able: Vec<_> = contenders.iter_mut().filter(|contender| contender.can(work)).collect();
    let names: Vec<_> = able.iter().map(|contender| contender.name()).collect();
    let rounds = if quick { 5 } else { 15 };
    let mut taken = Vec::new();
    for round in 0..=rounds {
        let verify = round == 0;
        let mut row = vec![None; able.len()];
        for turn in 0..able.len() {
            let index = (turn + round) % able.len();
            let contender = &mut able[index];
            let amount = work.amount(quick) / contender.share() / if verify { 4 } else { 1 };
            let outcome = contender.run(Run { work, amount: amount.max(1), verify });
            row[index] =
                Some(outcome.map_err(|error| format!("{}, {work}: {error}", names[index]))?);
        }
        if !verify {
            taken.push(row.into_iter().flatten().collect());
        }
    }
    Ok(Rounds { work, names, taken })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floor::Floor;
    use crate::linerate::Linerate;
    use crate::smoltcp::Smoltcp;
    use clap::ValueEnum;

    #[test]
    fn everybody_in_this_process_does_every_work_that_it_says_it_can_and_what_arrives_is_what_was_sent()
     {
        let mut contenders: [Box<dyn Contender>; 4] = [
            Box::new(Linerate::as_shipped()),
            Box::new(Linerate::without_options()),
            Box::new(Smoltcp),
            Box::new(Floor),
        ];
        for &work in Work::value_variants() {
            for contender in contenders.iter_mut().filter(|contender| contender.can(work)) {
                let taken = contender.run(Run { work, amount: 500, verify: true });
                let taken =
                    taken.unwrap_or_else(|error| panic!("{}, {work}: {error}", contender.name()));
                assert_eq!(taken.units, 500);
                // Writes that are a little smaller than a segment share one now and then.
                assert!(taken.frames_out >= 450, "{}, {work}: {taken:?}", contender.name());
            }
        }
    }
}
