//! Random worlds, one after the other: two connections or two hosts, any configuration, any network,
//! applications of any habit. Whatever happens in them follows from a seed and a number, so a failure is
//! repeated by naming both.

mod application;
mod coverage;
mod stage;
mod world;

pub use coverage::Coverage;
pub use world::{Habit, Hosts, World};

use stage::Stage;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The name of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// What everything in a row of worlds is drawn from.
    pub seed: u64,
    /// Which of the row.
    pub number: u64,
    /// What is left out of it: a bit for each of [`World::SIMPLIFICATIONS`].
    pub simpler: u64,
}

/// The arguments that repeat the case.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--seed {} --case {}", self.seed, self.number)?;
        if self.simpler > 0 { write!(f, " --simpler {}", self.simpler) } else { Ok(()) }
    }
}

impl Case {
    /// The world of this name.
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

    /// Lets the world live until everything is over in it, and says what was seen.
    ///
    /// # Panics
    /// If an invariant is broken, a byte is wrong or missing, or nothing goes on any more.
    #[must_use]
    pub fn run(&self) -> Coverage {
        Stage::new(&self.world()).play()
    }

    /// The same, with the cause of a failure as a value.
    ///
    /// # Errors
    /// What the panic said.
    pub fn judge(&self) -> Result<Coverage, String> {
        catch_unwind(AssertUnwindSafe(|| self.run())).map_err(|cause| {
            let text = cause.downcast_ref::<String>().cloned();
            text.or_else(|| cause.downcast_ref::<&str>().map(|&text| text.to_owned()))
                .unwrap_or_default()
        })
    }

    /// A case that fails, too, and of which less is left: whatever can be left out without mending it is.
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
