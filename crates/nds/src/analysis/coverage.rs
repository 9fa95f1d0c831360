//! Scans of a scope, with what they covered: the common ground of references, function discovery and function proof.

use code::arm::Insn;

use super::candidates;
use super::scan::{EvidenceKinds, Scan, ScanBudget};
use super::source::{At, Code, Scope};
use crate::watch::{Failure, Watcher};
use crate::{ComponentId, Rom};

/// What became of one component of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// The component.
    pub component: ComponentId,
    /// `scanned`: what is reached from proven places was looked at; `no-proven-seed`: nothing in it is proven;
    /// `compressed-overlay-not-decodable`; `out-of-limit`: more components than allowed.
    pub status: &'static str,
}

/// Which components, and how many.
pub(crate) struct CoverageRequest<'a> {
    pub scope: &'a Scope,
    pub max_components: u64,
}

/// A scan that has run.
pub(crate) struct Covered<'c, 'r> {
    pub scan: Scan<'c, 'r>,
    pub coverage: Vec<Coverage>,
    pub requested: u64,
    pub reasons: Vec<&'static str>,
}

impl Covered<'_, '_> {
    /// `complete`, `partial-coverage` or `truncated`.
    pub fn status(&self) -> &'static str {
        if !self.reasons.is_empty() {
            "truncated"
        } else if self.scan.unfollowed_calls() > 0
            || self.coverage.is_empty()
            || self.coverage.iter().any(|part| part.status != "scanned")
        {
            // What was called and could not be looked at counts, and so does a ROM that lacks its program.
            "partial-coverage"
        } else {
            "complete"
        }
    }
}

/// Scans the components of a scope from the program entry and the seeds.
#[expect(clippy::too_many_arguments, reason = "each is a part of one request")]
pub(crate) fn cover<'c, 'r>(
    rom: &Rom,
    code: &'c Code<'r>,
    request: &CoverageRequest<'_>,
    evidence: EvidenceKinds,
    budget: ScanBudget,
    seeds: &[At],
    watcher: Watcher<'_>,
    visit: &mut dyn FnMut(&Insn, At),
) -> Result<Covered<'c, 'r>, Failure> {
    let parts = request.scope.parts(code)?;
    let most = usize::try_from(request.max_components).unwrap_or(usize::MAX).min(parts.len());
    let (within, beyond) = parts.split_at_checked(most).unwrap_or((&parts, &[]));
    let mut scan = Scan::new(code, within, evidence, budget);
    // What the ROM alone proves comes first, so that it is known of every function whether it rests on more.
    scan.start_at_entry(rom);
    scan.run(watcher, visit)?;
    for seed in seeds {
        scan.start_at_seed(*seed);
    }
    scan.run(watcher, visit)?;
    let mut fresh = evidence.candidates;
    while fresh {
        fresh = false;
        for (at, kind, pointer) in candidates::of(code, &scan) {
            fresh |= scan.start_at_candidate(at, kind, pointer);
        }
        scan.run(watcher, visit)?;
    }
    let status = |part: u32| {
        if scan.reached(part) {
            "scanned"
        } else if code.part(part).is_none_or(|part| part.bytes.is_none()) {
            "compressed-overlay-not-decodable"
        } else {
            "no-proven-seed"
        }
    };
    let mut coverage: Vec<Coverage> =
        within.iter().map(|part| Coverage { component: code.id(*part), status: status(*part) }).collect();
    coverage.extend(beyond.iter().map(|part| Coverage { component: code.id(*part), status: "out-of-limit" }));
    let mut reasons: Vec<&'static str> = scan.exhausted.into_iter().collect();
    if !beyond.is_empty() {
        reasons.push("component-limit");
    }
    Ok(Covered { scan, coverage, requested: parts.len() as u64, reasons })
}
