//! Random worlds for testing: two connections or two hosts with random configurations, networks and
//! applications. A seed and a number determine everything in a world, so a world that has failed
//! can be run once more.

mod application;
mod coverage;
mod stage;
mod world;

pub use coverage::Coverage;
pub use world::{Habit, Hosts, World};

use stage::Stage;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The identity of a random world: the numbers that determine everything in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Seed of a sequence of random worlds.
    pub seed: u64,
    /// Number of the world in the sequence that `seed` determines.
    pub number: u64,
    /// The simplifications to apply to the world, as a set of bits. Bit n stands for entry n of
    /// [`World::SIMPLIFICATIONS`].
    pub simpler: u64,
}

/// Prints the command-line arguments that repeat this case.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--seed {} --case {}", self.seed, self.number)?;
        if self.simpler > 0 { write!(f, " --simpler {}", self.simpler) } else { Ok(()) }
    }
}

impl Case {
    /// Returns the description of the world with this identity.
    #[must_use]
    pub fn world(&self) -> World {
        let mut world = World::draw(self.seed, self.number);
        for (bit, simplify) in World::SIMPLIFICATIONS.iter().enumerate() {
            if self.simpler >> bit & 1 == 1 {
                simplify(&mut world);
            }
        }
        world
    }

    /// Runs the world to its end. Returns the events that occurred.
    ///
    /// # Panics
    /// If an invariant is violated, a byte is wrong or missing, or the world makes no progress.
    #[must_use]
    pub fn run(&self) -> Coverage {
        Stage::new(&self.world()).play()
    }

    /// Runs the world to its end. A panic during the run does not propagate, but is returned as an
    /// error.
    ///
    /// # Errors
    /// The message of the panic.
    pub fn judge(&self) -> Result<Coverage, String> {
        catch_unwind(AssertUnwindSafe(|| self.run())).map_err(|cause| {
            let text = cause.downcast_ref::<String>().cloned();
            text.or_else(|| cause.downcast_ref::<&str>().map(|&text| text.to_owned()))
                .unwrap_or_default()
        })
    }

    /// Simplifies a case that has failed. The simplifications are tried one by one, and each with
    /// which the case still fails remains applied.
    #[must_use]
    pub fn shrink(self) -> Self {
        let mut least = self;
        for bit in 0..World::SIMPLIFICATIONS.len() {
            let next = Self { simpler: least.simpler | 1 << bit, ..least };
            if next.world() != least.world() && next.judge().is_err() {
                least = next;
            }
        }
        least
    }
}
