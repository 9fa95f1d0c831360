//! `nds_resolve_rom_offset`: everything that a byte of a ROM belongs to.

use super::prelude::*;
use super::shared::shapes::OwnerShown;

/// The tool.
#[derive(Debug)]
pub struct NdsResolveRomOffset;

/// Which byte.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    rom: String,
    /// Bytes from the start of the ROM.
    offset: Address,
    /// Matches to skip.
    #[serde(default)]
    skip: Skip,
    /// Matches at most.
    #[serde(default)]
    limit: Option<Most>,
}

/// What it belongs to.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Resolved {
    /// The offset.
    offset: u32,
    /// Everything it belongs to; nothing for padding and past the end.
    matches: Vec<OwnerShown>,
    #[serde(flatten)]
    part: Part,
}

impl Tool for NdsResolveRomOffset {
    const NAME: &'static str = "nds_resolve_rom_offset";
    const DESCRIPTION: &'static str = "Resolve a ROM offset of a Nintendo DS ROM to its owners: header, tables, programs, \
         overlays, files, with the run-time address where there is one.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Resolved>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let Params { rom, offset: Address(offset), skip, limit } = params;
        let wanted = Wanted::new(skip, limit)?;
        on_rom(context, rom, move |context, _, rom| {
            let all = rom.resolve_offset(offset);
            let part = part(context, wanted, all.len(), &json!({}), |at| to_value(&all.get(at).map(OwnerShown::of)))?;
            let listed = all.get(part.range.clone()).unwrap_or_default();
            Ok(Shown(Resolved { offset, matches: listed.iter().map(OwnerShown::of).collect(), part }))
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
    async fn every_owner_of_a_byte_is_given() {
        let (_folder, call) = built(&RomBuilder::default());
        // Built with the ARM9 program, 0x80 bytes for 0x02000000, at 0x4000.
        for (offset, kinds, address) in [
            (json!(0), vec!["header"], json!(null)),
            (json!("0x4010"), vec!["arm9-main"], json!(0x0200_0010)),
            (json!(0xffff_ffff_u32), vec![], json!(null)),
        ] {
            let told = call("nds_resolve_rom_offset", json!({"rom": "rom.nds", "offset": offset})).await.unwrap();
            let found: Vec<_> =
                told["matches"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
            assert_eq!(found, kinds, "{offset}");
            assert_eq!(told["matches"][0]["runtimeAddress"], address, "{offset}");
        }
    }
}
