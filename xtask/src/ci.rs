//! `cargo xtask ci`: what must be green before a change lands, cheapest first, with the time of each step.

use std::time::{Duration, Instant};

use crate::{Outcome, check, deny, fuzz, no_arguments, test, tidy};

/// How long everything may take from nothing on two cores. Longer is not a failure of the tree but is said aloud.
const BUDGET: Duration = Duration::from_secs(30 * 60);

/// A step: its name, the task, and the arguments for it.
type Step = (&'static str, fn(&[String]) -> Outcome, &'static [&'static str]);

const STEPS: &[Step] = &[
    ("tidy", tidy::run, &[]),
    ("fmt", check::fmt, &["--check"]),
    ("deny", deny::run_if_installed, &[]),
    ("clippy", check::clippy, &[]),
    ("docs", check::docs, &[]),
    ("fuzz", fuzz::smoke, &[]),
    ("test", test::run, &[]),
];

/// Runs every step and stops at the first that fails.
pub fn run(arguments: &[String]) -> Outcome {
    no_arguments(arguments)?;
    let start = Instant::now();
    let mut times = Vec::new();
    for (name, step, arguments) in STEPS {
        println!("== {name}");
        let begin = Instant::now();
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        step(&arguments).map_err(|error| format!("{name}: {error}"))?;
        times.push(format!("{name} {} s", begin.elapsed().as_secs()));
    }
    let total = start.elapsed();
    println!("ci: {}; {} s in all", times.join(", "), total.as_secs());
    if total > BUDGET {
        println!("note: that is more than the {} minutes that CI may take", BUDGET.as_secs() / 60);
    }
    Ok(())
}
