//! `nds_list_overlays`: code that is loaded over other code.

use super::prelude::*;
use ::nds::Overlay;

/// The tool.
#[derive(Debug)]
pub struct NdsListOverlays;

/// Which overlays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    rom: String,
    /// Whose overlays; default `all`.
    #[serde(default)]
    processor: Whose,
    /// Overlays to skip.
    #[serde(default)]
    offset: Skip,
    /// Overlays at most.
    #[serde(default)]
    limit: ListMost,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Whose {
    Arm9,
    Arm7,
    #[default]
    All,
}

/// The overlays.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overlays {
    /// Overlays that fit.
    total: usize,
    /// Overlays that were skipped.
    offset: usize,
    /// Overlays at most, as asked.
    limit: usize,
    /// `offset` of the next part.
    next_offset: Option<usize>,
    /// Overlays in this answer.
    returned: usize,
    /// Why there are fewer than fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<String>,
    /// The overlays, those of the ARM9 first, in the order of the tables.
    overlays: Vec<OverlayShown>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OverlayShown {
    processor: &'static str,
    overlay_id: u32,
    ram_address: u32,
    /// Bytes of the initialised image, decompressed.
    ram_size: u32,
    ram_end: u64,
    bss_size: u32,
    bss_end: u64,
    /// List of static initialisers.
    static_init_start: u32,
    static_init_end: u32,
    /// The file that holds it.
    file_id: u32,
    /// Where its file is; `null` when the ROM does not have it.
    rom_offset: Option<u32>,
    rom_size: Option<u32>,
    /// Low 24 bits of the entry's last word.
    compressed_size: u32,
    /// High 8 bits of it; bit 0: compressed.
    flags: u8,
    compressed: bool,
}

impl Tool for NdsListOverlays {
    const NAME: &'static str = "nds_list_overlays";
    const DESCRIPTION: &'static str = "List the overlays of a Nintendo DS ROM with addresses, file and whether they are \
         compressed. Overlays may share addresses; which one is loaded cannot be told from the ROM.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Overlays>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let Params { rom, processor, offset, limit } = params;
        let offset = offset.count("offset", ErrorCode::InvalidArguments)?;
        let limit = limit.count("limit", ErrorCode::InvalidArguments)?;
        on_rom(context, rom, move |context, _, rom| list(context, processor, offset, limit, rom).map(Shown)).await
    }
}

fn list(context: &Context, whose: Whose, offset: usize, limit: usize, rom: &Rom) -> Result<Overlays, ToolError> {
    let fits = |overlay: &&Overlay| match whose {
        Whose::All => true,
        Whose::Arm9 => overlay.processor == Processor::Arm9,
        Whose::Arm7 => overlay.processor == Processor::Arm7,
    };
    let all: Vec<&Overlay> = rom.overlays().iter().filter(fits).collect();
    // By the contract a part behind the end is empty.
    let wanted = Wanted { offset: offset.min(all.len()), limit: Some(limit) };
    let part =
        part(context, wanted, all.len(), &json!({}), |at| to_value(&all.get(at).map(|entry| shown(rom, entry))))?;
    Ok(Overlays {
        total: all.len(),
        offset,
        limit,
        next_offset: part.next,
        returned: part.returned,
        truncated: part.truncated,
        overlays: all.get(part.range).unwrap_or_default().iter().map(|entry| shown(rom, entry)).collect(),
    })
}

fn shown(rom: &Rom, overlay: &Overlay) -> OverlayShown {
    let stored = rom.file(overlay.file_id).and_then(::nds::File::range);
    OverlayShown {
        processor: overlay.processor.word(),
        overlay_id: overlay.id,
        ram_address: overlay.ram_address,
        ram_size: overlay.ram_size,
        ram_end: overlay.ram_end(),
        bss_size: overlay.bss_size,
        bss_end: overlay.bss_end(),
        static_init_start: overlay.static_init_start,
        static_init_end: overlay.static_init_end,
        file_id: overlay.file_id,
        rom_offset: stored.as_ref().map(|range| range.start),
        rom_size: stored.map(|range| range.end - range.start),
        compressed_size: overlay.compressed_size,
        flags: overlay.flags,
        compressed: overlay.is_compressed(),
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::nds::tests::{built, code};
    use ::nds::testing::RomBuilder;
    use serde_json::json;

    #[tokio::test]
    async fn overlays_are_those_that_were_built() {
        let (_folder, call) = built(&RomBuilder::everything());
        let all = call("nds_list_overlays", json!({"rom": "rom.nds"})).await.unwrap();
        assert_eq!((&all["total"], &all["limit"], &all["nextOffset"]), (&json!(4), &json!(100), &json!(null)));
        let first = &all["overlays"][0];
        // As built: 0x200 bytes at 0x02100000 and 0x40 of BSS.
        for (key, value) in [
            ("processor", json!("arm9")),
            ("overlayId", json!(0)),
            ("ramAddress", json!(0x0210_0000)),
            ("ramEnd", json!(0x0210_0200)),
            ("bssEnd", json!(0x0210_0240)),
            ("romSize", json!(0x200)),
            ("compressed", json!(false)),
        ] {
            assert_eq!(first[key], value, "{key}");
        }
        assert_eq!(all["overlays"][1]["compressed"], true);
        let arm7 = call("nds_list_overlays", json!({"rom": "rom.nds", "processor": "arm7"})).await.unwrap();
        assert_eq!((&arm7["total"], &arm7["overlays"][0]["ramAddress"]), (&json!(1), &json!(0x0381_0000)));
        let part = call("nds_list_overlays", json!({"rom": "rom.nds", "limit": 1, "offset": 2})).await.unwrap();
        assert_eq!((&part["overlays"][0]["overlayId"], &part["nextOffset"]), (&json!(7), &json!(3)));
        assert_eq!(
            code(call("nds_list_overlays", json!({"rom": "rom.nds", "processor": "arm8"})).await),
            "invalid_arguments"
        );
        assert_eq!(code(call("nds_list_overlays", json!({"rom": "rom.nds", "limit": 201})).await), "invalid_arguments");
    }
}
