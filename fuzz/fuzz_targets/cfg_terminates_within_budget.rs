//! Any bytes as a program, and any budget: a control flow graph, and a discovery of functions, that stay within it.
#![no_main]

use code::arm::Mode;
use libfuzzer_sys::fuzz_target;
use nds::analysis::{
    CfgBudget, ControlFlowRequest, DiscoveryBudget, DiscoveryRequest, EvidenceKinds, ModeChoice, Page, Place, Scope,
    Where, analyze_control_flow, discover_functions,
};
use nds::testing::{ProgramSpec, RomBuilder};
use nds::{Processor, Rom};

const BASE: u32 = 0x0200_0000;

fuzz_target!(|bytes: &[u8]| {
    let Some(([blocks, instructions, size, edges, start, thumb], program)) = bytes.split_first_chunk::<6>() else {
        return;
    };
    if program.len() < 4 {
        return;
    }
    let mode = if thumb & 1 == 1 { Mode::Thumb } else { Mode::Arm };
    let entry = BASE + u32::from(*start) * 4 % (program.len() as u32 & !3);
    let arm9 = ProgramSpec { ram_address: BASE, entry, bytes: program.to_vec() };
    let rom =
        Rom::parse(RomBuilder { arm9, ..RomBuilder::default() }.build()).expect("what the builder builds is legal");
    let per_function = CfgBudget {
        blocks: u64::from(*blocks),
        instructions: u64::from(*instructions) * 2,
        bytes: u64::from(*size) * 8,
        edges: u64::from(*edges),
    };

    let at = Place {
        processor: Processor::Arm9,
        at: Where::Address(entry),
        overlay_id: None,
        mode: ModeChoice::Fixed(mode),
    };
    if let Ok(graph) = analyze_control_flow(&rom, &ControlFlowRequest { place: at, budget: per_function }) {
        let totals = graph.totals;
        assert!(totals.blocks <= per_function.blocks && totals.instructions <= per_function.instructions);
        assert!(totals.bytes <= per_function.bytes && totals.edges <= per_function.edges);
        assert_eq!(graph.blocks.len() as u64, totals.blocks);
        assert_eq!(graph.status == "truncated", !graph.truncation_reasons.is_empty());
    }

    let page = Page { offset: 0, limit: usize::MAX };
    let budget = DiscoveryBudget {
        max_components: 4,
        max_functions: u64::from(*blocks),
        max_call_sites: u64::from(*edges),
        max_total_blocks: u64::from(*blocks) * 4,
        max_total_instructions: u64::from(*instructions) * 4,
        max_total_bytes: u64::from(*size) * 16,
        max_total_edges: u64::from(*edges) * 4,
        per_function,
    };
    let request = DiscoveryRequest {
        processor: Processor::Arm9,
        scope: Scope::AllExecutableComponents,
        seeds: Vec::new(),
        evidence: EvidenceKinds::ALL,
        budget,
        functions: page,
        calls: page,
        sites: page,
        candidates: page,
    };
    let Ok(found) = discover_functions(&rom, &request, nds::UNWATCHED) else { return };
    let totals = found.totals;
    assert!(totals.functions <= budget.max_functions && totals.call_sites <= budget.max_call_sites);
    assert!(
        totals.graphs.blocks <= budget.max_total_blocks && totals.graphs.instructions <= budget.max_total_instructions
    );
    assert!(totals.graphs.bytes <= budget.max_total_bytes && totals.graphs.edges <= budget.max_total_edges);
    assert_eq!(found.functions.total as u64, totals.functions);
    assert_eq!(found.status == "truncated", !found.truncation_reasons.is_empty());
});
