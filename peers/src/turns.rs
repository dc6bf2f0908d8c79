//! Rounds in which all contenders run one after the other, so that a disturbance of the machine
//! affects all of them instead of a single one.

use crate::contender::{Contender, Run, Taken};
use crate::work::Work;

/// The results of all contenders for one workload, in several rounds.
pub struct Rounds {
    pub work: Work,
    /// Names of the contenders that can perform the workload.
    pub names: Vec<&'static str>,
    /// Results by round and contender: `taken[r][c]` is that of contender `c` in round `r`.
    pub taken: Vec<Vec<Taken>>,
}

/// Runs every contender that can perform the workload once per round. Each round begins with a
/// different contender. Before the first round, a warm-up round verifies the received data; its
/// times are not used.
///
/// # Errors
/// A message with the contender whose run failed, and the cause.
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
    fn every_contender_in_this_process_does_each_work_and_data_arrives_intact() {
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
                // The number of frames can be below the number of units of work: two writes that
                // are shorter than a segment can leave in one segment.
                assert!(taken.frames_out >= 450, "{}, {work}: {taken:?}", contender.name());
            }
        }
    }
}
