//! How much of two real programs discovery finds, by a count that is not ours: the targets of the calls in objdump's sweep.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use code::arm::Mode;
use nds::analysis::{
    CfgBudget, DiscoveryBudget, DiscoveryRequest, EvidenceKinds, Page, Root, Scope, discover_functions,
};
use nds::{ComponentId, Part, Processor, Rom};

/// Bytes that are taken to be of one instruction set.
const REGION: u32 = 512;

/// A call as objdump lists it: where it is, where it goes, and in which instruction set the target is.
struct Call {
    site: u32,
    target: u32,
    target_mode: Mode,
}

/// Every `bl` and `blx` of a known address in one sweep, from the first byte to the last, whatever the bytes are.
fn calls(program: &Path, start: u32, mode: Mode) -> Vec<Call> {
    let mut objdump = Command::new("arm-none-eabi-objdump");
    objdump.args(["-D", "-z", "-b", "binary", "-m", "armv5te", &format!("--adjust-vma={start}")]);
    if mode == Mode::Thumb {
        objdump.args(["-M", "force-thumb"]);
    }
    let output =
        objdump.arg(program).output().expect("arm-none-eabi-objdump starts; `cargo xtask install` installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listing = String::from_utf8(output.stdout).unwrap();
    let call = |line: &str| {
        let mut columns = line.split('\t');
        let site = u32::from_str_radix(columns.next()?.trim().strip_suffix(':')?, 16).ok()?;
        let mnemonic = columns.nth(1)?.trim();
        let target = u32::from_str_radix(columns.next()?.trim().strip_prefix("0x")?, 16).ok()?;
        // `bl` with a condition; `ble` and its like are branches.
        let is_bl = mnemonic.strip_prefix("bl").is_some_and(|condition| {
            condition.is_empty()
                || ["eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le"]
                    .contains(&condition)
        });
        let target_mode = match (is_bl, mnemonic, mode) {
            (true, ..) => mode,
            (false, "blx", Mode::Arm) => Mode::Thumb,
            (false, "blx", Mode::Thumb) => Mode::Arm,
            _ => return None,
        };
        Some(Call { site, target, target_mode })
    };
    listing.lines().filter_map(call).collect()
}

/// The distinct targets of the calls that stand in code, each with those calls.
///
/// Which bytes are code, and of which instruction set, is decided by the sweeps alone. Read in the wrong instruction set, or
/// where there is data, a call goes anywhere within 32 or 4 MiB, nearly always out of the program. So a region is code of one
/// instruction set when more calls in it go into the program than out, and more than in the other sweep.
fn called(program: &Path, start: u32, size: u32) -> BTreeMap<(u32, Mode), Vec<u32>> {
    let sweeps = [calls(program, start, Mode::Arm), calls(program, start, Mode::Thumb)];
    let inside = |call: &Call| call.target.checked_sub(start).is_some_and(|offset| offset < size);
    let mut regions: BTreeMap<u32, [[u32; 2]; 2]> = BTreeMap::new();
    for (sweep, calls) in sweeps.iter().enumerate() {
        for call in calls {
            regions.entry(call.site / REGION).or_default()[sweep][usize::from(inside(call))] += 1;
        }
    }
    let is_code = |sweep: usize, call: &Call| {
        let region = &regions[&(call.site / REGION)];
        region[sweep][1] > region[sweep][0] && region[sweep][1] > region[1 - sweep][1]
    };
    let mut targets: BTreeMap<(u32, Mode), Vec<u32>> = BTreeMap::new();
    for (sweep, calls) in sweeps.iter().enumerate() {
        for call in calls.iter().filter(|call| inside(call) && is_code(sweep, call)) {
            targets.entry((call.target, call.target_mode)).or_default().push(call.site);
        }
    }
    targets
}

/// Functions with what they rest on, and the places of the calls between them.
fn found(rom: &Rom, evidence: EvidenceKinds) -> (BTreeMap<(u32, Mode), Root>, BTreeSet<u32>) {
    let much = 1 << 22;
    let all = Page { offset: 0, limit: usize::MAX };
    let request = DiscoveryRequest {
        processor: Processor::Arm9,
        scope: Scope::AllExecutableComponents,
        seeds: Vec::new(),
        evidence,
        budget: DiscoveryBudget {
            max_components: much,
            max_functions: much,
            max_call_sites: much,
            max_total_blocks: much,
            max_total_instructions: much,
            max_total_bytes: much * 4,
            max_total_edges: much,
            per_function: CfgBudget { blocks: much, instructions: much, bytes: much * 4, edges: much },
        },
        functions: all,
        calls: all,
        sites: all,
        candidates: all,
    };
    let found = discover_functions(rom, &request, nds::UNWATCHED).unwrap();
    assert!(found.truncation_reasons.is_empty(), "{:?}", found.truncation_reasons);
    // Code that only pointers lead to is never passed over in silence.
    assert!(found.unresolved_indirect_calls.count > 0);
    let functions = found.functions.items.iter().map(|it| ((it.entry.id.address, it.entry.id.mode), it.root)).collect();
    (functions, found.calls.items.iter().map(|call| call.instruction_address).collect())
}

/// Discovery of one ROM. `proven` is the least share, in percent, that proofs alone must reach; start-up code, C++ tables of
/// methods and callbacks reach the rest through pointers, which prove nothing.
fn compare(name: &str, proven: usize) {
    let folder = std::env::var_os("RETROSCOPE_ROMS")
        .expect("RETROSCOPE_ROMS must name the folder with Nintendo DS ROMs; `cargo xtask test` sets it");
    let path = PathBuf::from(folder).join(name);
    let rom = Rom::parse(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).unwrap();
    let main = rom.component(ComponentId { processor: Processor::Arm9, part: Part::Main }).unwrap();
    let image = main.image(&rom).unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.arm9"));
    std::fs::write(&program, image).unwrap();

    let wanted = called(&program, main.start, u32::try_from(image.len()).unwrap());
    assert!(wanted.len() > 500, "{name}: {} targets", wanted.len());
    let (with_candidates, call_sites) = found(&rom, EvidenceKinds::ALL);
    let missed: Vec<_> = wanted.iter().filter(|(target, _)| !with_candidates.contains_key(target)).collect();
    let hit = wanted.len() - missed.len();
    println!("{name}: {hit} of {} targets are functions", wanted.len());
    // The others: constants that read as calls, and what only code calls to which nothing leads. No call that was seen is lost.
    for ((target, mode), sites) in missed {
        println!("{name}: no function at {target:#x} ({}), called at {sites:x?}", mode.word());
        assert!(sites.iter().all(|site| !call_sites.contains(site)), "{name}: a call of {target:#x} was seen");
    }
    assert!(hit * 100 >= wanted.len() * 90, "{name}: {hit} of {}", wanted.len());

    let (by_proof, _) = found(&rom, EvidenceKinds::PROOFS);
    assert!(by_proof.values().all(|root| *root == Root::Proof), "without candidates everything rests on proof");
    let hit = wanted.keys().filter(|target| by_proof.contains_key(target)).count();
    println!("{name}: {hit} of them by proof alone");
    assert!(hit * 100 >= wanted.len() * proven, "{name}: {hit} of {} by proof", wanted.len());
    // A proof does not depend on whether candidates are looked at.
    for (entry, root) in &with_candidates {
        assert_eq!(*root == Root::Proof, by_proof.contains_key(entry), "{name}: {entry:x?}");
    }
}

#[test]
fn nine_of_ten_called_functions_of_gameyob_are_found() {
    compare("gameyob.nds", 48);
}

#[test]
fn nine_of_ten_called_functions_of_basic_rts_are_found() {
    compare("basic-rts2.nds", 62);
}
