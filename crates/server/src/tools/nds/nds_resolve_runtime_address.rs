//! `nds_resolve_runtime_address`: what a processor has at an address, every candidate.

use super::prelude::*;
use super::shared::shapes::CandidateShown;

/// The tool.
#[derive(Debug)]
pub struct NdsResolveRuntimeAddress;

/// Which address.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    rom: String,
    /// Address at run time.
    address: Address,
    /// Who has it.
    processor: ProcessorName,
    /// Candidates to skip.
    #[serde(default)]
    offset: Skip,
    /// Candidates at most.
    #[serde(default)]
    limit: Option<Most>,
}

/// What is there.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Resolved {
    /// `resolved`, `ambiguous-runtime-address`, `runtime-only-bss`, `compressed-no-direct-rom-mapping` or `unmapped`.
    status: &'static str,
    /// Every component that could be there.
    candidates: Vec<CandidateShown>,
    #[serde(flatten)]
    part: Part,
}

impl Tool for NdsResolveRuntimeAddress {
    const NAME: &'static str = "nds_resolve_runtime_address";
    const DESCRIPTION: &'static str = "Resolve a run-time address of a Nintendo DS ROM to components and ROM offsets. When \
         overlays overlap every candidate is given; BSS and compressed code have no ROM offset.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Resolved>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let Params { rom, address, processor, offset, limit } = params;
        let wanted = Wanted::new(offset, limit)?;
        on_rom(context, rom, move |context, _, rom| {
            let found = rom.resolve_address(processor.into(), address.0);
            let status = found.status.word();
            let all = found.candidates;
            let part = part(context, wanted, all.len(), &json!({"status": status}), |at| {
                to_value(&all.get(at).map(CandidateShown::of))
            })?;
            let listed = all.get(part.range.clone()).unwrap_or_default();
            Ok(Shown(Resolved { status, candidates: listed.iter().map(CandidateShown::of).collect(), part }))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::nds::tests::built;
    use ::nds::testing::RomBuilder;
    use serde_json::json;

    #[tokio::test]
    async fn every_candidate_of_an_address_is_given() {
        let (_folder, call) = built(&RomBuilder::everything());
        // Overlays 0 (0x200 bytes, plain) and 1 (0x400 bytes, compressed) are both built at 0x02100000.
        for (address, status, kinds) in [
            (json!("0x02100010"), "ambiguous-runtime-address", vec!["arm9-overlay", "arm9-overlay"]),
            (json!(0x0218_0000), "resolved", vec!["arm9-overlay"]),
            (json!(0x0210_0300), "compressed-no-direct-rom-mapping", vec!["arm9-overlay"]),
            (json!(0x0210_0410), "runtime-only-bss", vec!["overlay-bss"]),
            (json!(0x0900_0000), "unmapped", vec![]),
        ] {
            let arguments = json!({"rom": "rom.nds", "processor": "arm9", "address": address});
            let told = call("nds_resolve_runtime_address", arguments).await.unwrap();
            assert_eq!(told["status"], status, "{address}");
            let found: Vec<_> =
                told["candidates"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
            assert_eq!(found, kinds, "{address}");
        }
        let arguments = json!({"rom": "rom.nds", "processor": "arm9", "address": 0x0210_0010, "offset": 1});
        let second = call("nds_resolve_runtime_address", arguments).await.unwrap();
        assert_eq!((&second["total"], &second["returned"]), (&json!(2), &json!(1)));
        let candidate = &second["candidates"][0];
        assert_eq!(
            (&candidate["overlayId"], &candidate["romOffset"], &candidate["representation"]),
            (&json!(1), &json!(null), &json!("derived-blz"))
        );
        assert_eq!((&candidate["relativeOffset"], &candidate["runtimeAddressHex"]), (&json!(16), &json!("0x02100010")));
    }
}
