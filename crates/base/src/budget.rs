//! A bound on what hostile input may cost: work and memory are paid for before they are spent.

/// What may still be spent, in whatever unit its owner counts: bytes, entries, steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    left: u64,
}

/// A charge was larger than what was left; nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{wanted} are more than the {left} that are left")]
pub struct Exhausted {
    /// What was asked for.
    pub wanted: u64,
    /// What was there.
    pub left: u64,
}

impl Budget {
    /// A budget of `total`.
    pub const fn new(total: u64) -> Self {
        Self { left: total }
    }

    /// What is left.
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Takes `cost`, or nothing and says so. Call it before allocating or working, not after.
    pub fn charge(&mut self, cost: u64) -> Result<(), Exhausted> {
        match self.left.checked_sub(cost) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Exhausted { wanted: cost, left: self.left }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_that_is_too_large_takes_nothing() {
        let mut budget = Budget::new(10);
        assert_eq!(budget.charge(4), Ok(()));
        assert_eq!(budget.charge(7), Err(Exhausted { wanted: 7, left: 6 }));
        assert_eq!(budget.charge(6), Ok(()));
        assert_eq!((budget.left(), budget.charge(0)), (0, Ok(())));
    }
}
