//! The tools that change a Nintendo DS ROM by a manifest: never the ROM itself, always a result beside it that was judged first.

mod build;
mod nds_mutation_build;
mod nds_mutation_validate;
mod nds_mutation_verify;
#[cfg(test)]
mod tests;

use super::{Entry, Group};

/// The group.
pub const GROUP: Group = Group {
    name: "nds-build",
    purpose: "Rebuilds a Nintendo DS ROM by a manifest of guarded changes, deterministic and verified.",
    files: true,
    tools: &[
        Entry::of::<nds_mutation_validate::NdsMutationValidate>(),
        Entry::of::<nds_mutation_build::NdsMutationBuild>(),
        Entry::of::<nds_mutation_verify::NdsMutationVerify>(),
    ],
};
