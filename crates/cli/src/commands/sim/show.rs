//! `linerate sim list` and `linerate sim show`: the scenarios and their parameters.

use crate::output::{Failure, print};
use clap::Args;
use linerate_measure::BenchError;
use linerate_sim_tools::{Scenario, Setting, Settings, load};
use std::fmt::Write;

/// The options of `linerate sim show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The name of a scenario, or a file that ends in .toml
    #[arg(value_name = "NAME|FILE")]
    scenario: String,
    /// Change a parameter; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Prints the name and the question of every scenario, in groups.
pub(crate) fn list() -> Result<(), Failure> {
    let mut text = String::new();
    for name in Scenario::names() {
        let scenario = load(name, &[]).map_err(BenchError::from)?;
        // Errors are ignored, because writing to a string cannot fail.
        if let Some(heading) = Scenario::heading_before(name) {
            let space = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{space}{heading}:\n");
        }
        let _ = writeln!(text, "{name}\n    {}", scenario.question());
    }
    print(&text)
}

/// Prints every parameter of a scenario.
pub(crate) fn run(args: &ShowArgs) -> Result<(), Failure> {
    let scenario = load(&args.scenario, &args.set).map_err(BenchError::from)?;
    scenario.blueprint().map_err(|error| Failure::input(error.to_string()))?;
    let mut text = format!("# {}\n", scenario.question());
    for (key, setting) in scenario.settings().iter() {
        let key = Settings::short_key(key);
        let _ = match setting {
            Setting::Number(number) => {
                let [low, high] = number.range;
                let tuned = if number.tuned { " [tuned]" } else { "" };
                writeln!(
                    text,
                    "{key} = {} {}   # {low} to {high}; {}{tuned}",
                    number.value, number.unit, number.source
                )
            }
            Setting::Word(word) => writeln!(text, "{key} = {word}"),
        };
    }
    print(&text)
}
