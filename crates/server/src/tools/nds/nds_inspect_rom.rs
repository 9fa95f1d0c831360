//! `nds_inspect_rom`: what a ROM is made of, and what is wrong with it.

use super::prelude::*;
use ::nds::{Component, ComponentId, Program, Representation, Table};

/// The tool.
#[derive(Debug)]
pub struct NdsInspectRom;

/// Which ROM.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Path below the workspace.
    #[schemars(length(min = 1))]
    rom: String,
    /// Problems, then executable ranges, to skip.
    #[serde(default)]
    offset: Skip,
    /// How many of these at most.
    #[serde(default)]
    limit: Option<Most>,
}

/// What it is made of.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inspected {
    rom: String,
    /// SHA-256 of the whole file: the ROM's identity.
    sha256: String,
    /// Its first 16 digits, which name the folder of what is extracted.
    sha256_prefix: String,
    file_size: usize,
    game: Game,
    arm9: ProgramShown,
    arm7: ProgramShown,
    /// File name table.
    fnt: TableShown,
    /// File allocation table.
    fat: TableShown,
    arm9_overlay_table: TableShown,
    arm7_overlay_table: TableShown,
    /// Where icon and titles are; 0 for none.
    banner_offset: u32,
    /// Files of the file system, those of overlays not counted.
    nitro_fs_file_count: usize,
    arm9_overlay_count: usize,
    arm7_overlay_count: usize,
    /// `absent`, `decrypted`, `encrypted` or `unknown`.
    secure_area: &'static str,
    checksums: Checksums,
    /// The DSi's part, when the unit code says that there is one.
    dsi: Option<Dsi>,
    /// What is wrong with the ROM; what is not named here was understood.
    problems: Vec<ProblemShown>,
    /// What a processor can execute, BSS included up to `end`.
    executable_ranges: Vec<ExecutableRange>,
    #[serde(flatten)]
    part: Part,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Game {
    /// Title.
    title: String,
    /// Game code, four characters.
    code: String,
    /// Maker, two characters.
    maker_code: String,
    /// 0 DS, 2 DS and DSi, 3 DSi only.
    unit_code: u8,
    /// The card holds 128 KiB shifted left by this.
    device_capacity: u8,
    /// Version of the game.
    rom_version: u8,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProgramShown {
    /// Where it is stored.
    rom_offset: u32,
    /// Where execution begins.
    entry_address: u32,
    /// Where it is loaded.
    ram_address: u32,
    /// Bytes stored.
    size: u32,
    /// End of the stored bytes.
    rom_end: u64,
    /// End of them in memory.
    ram_end: u64,
    /// Whether they are a BLZ stream, as the SDK's module parameters say.
    compressed: bool,
    /// Module parameters, in a program made with the SDK.
    module_params: Option<ModuleParams>,
    /// Blocks that start-up code copies elsewhere, ITCM and DTCM for instance.
    autoload: Vec<AutoloadShown>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ModuleParams {
    /// Bytes from the start of the program.
    offset: u32,
    autoload_list_start: u32,
    autoload_list_end: u32,
    autoload_start: u32,
    bss_start: u32,
    bss_end: u32,
    /// End of the compressed program as loaded; 0 when it is not compressed.
    compressed_end: u32,
    sdk_version: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AutoloadShown {
    /// Where it runs.
    ram_address: u32,
    /// Bytes copied.
    size: u32,
    /// Bytes of BSS behind them.
    bss_size: u32,
    /// Where it is in the decompressed program.
    image_offset: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TableShown {
    /// Where it is.
    offset: u32,
    /// Bytes.
    size: u32,
    /// Its end.
    end: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Checksums {
    /// Of the header, as stored.
    header_crc16: u16,
    /// Of the logo, as stored.
    logo_crc16: u16,
    /// Whether that of the header is right.
    header_valid: bool,
    /// Whether that of the logo is right.
    logo_valid: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Dsi {
    /// The ARM9's second program.
    arm9i: TwlShown,
    /// The ARM7's second program.
    arm7i: TwlShown,
    /// Bytes used, these parts included.
    used_size: u32,
    /// Parts that are encrypted when the header's flags say so.
    modcrypt: Vec<TableShown>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TwlShown {
    /// Where it is stored.
    rom_offset: u32,
    /// Where it is loaded.
    ram_address: u32,
    /// Bytes.
    size: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ProblemShown {
    /// A word for the kind.
    code: &'static str,
    /// Where it stands in the file.
    offset: Option<u64>,
    /// What is wrong.
    message: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ExecutableRange {
    /// `arm9-main`, `arm9-overlay`, `arm9-autoload`, `arm9i`, the same for the ARM7.
    kind: &'static str,
    processor: &'static str,
    /// First address.
    start: u32,
    /// End of the initialised bytes.
    initialized_end: u64,
    /// End with BSS.
    end: u64,
    /// A name that no other range has.
    source_id: String,
    overlay_id: Option<u32>,
    /// Whether the stored bytes are compressed.
    compressed: bool,
    /// `rom-file-backed`, `derived-blz`, or `undecodable` (a problem says why).
    representation: &'static str,
}

impl Tool for NdsInspectRom {
    const NAME: &'static str = "nds_inspect_rom";
    const DESCRIPTION: &'static str = "Inspect a Nintendo DS ROM: header, programs, tables, overlays, autoload blocks, \
         secure area, DSi part, executable ranges, and what is wrong with it. Begin here. Damage is listed in `problems` and \
         refuses nothing that could be understood.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Shown<Inspected>;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        let Params { rom: path, offset, limit } = params;
        let wanted = Wanted::new(offset, limit)?;
        on_rom(context, path.clone(), move |context, _, rom| inspect(context, path, wanted, rom).map(Shown)).await
    }
}

fn inspect(context: &Context, path: String, wanted: Wanted, rom: &Rom) -> Result<Inspected, ToolError> {
    let header = rom.header();
    let overlays = |processor| rom.overlays().iter().filter(|overlay| overlay.processor == processor).count();
    let has = |code: &str| rom.problems().iter().any(|problem| problem.code == code);
    let mut inspected = Inspected {
        rom: path,
        sha256: rom.sha256().to_owned(),
        sha256_prefix: rom.sha256().chars().take(16).collect(),
        file_size: rom.bytes().len(),
        game: Game {
            title: header.title_text(),
            code: header.code_text(),
            maker_code: header.maker_text(),
            unit_code: header.unit_code,
            device_capacity: header.device_capacity,
            rom_version: header.version,
        },
        arm9: program(rom, Processor::Arm9, &header.arm9),
        arm7: program(rom, Processor::Arm7, &header.arm7),
        fnt: table(header.fnt),
        fat: table(header.fat),
        arm9_overlay_table: table(header.arm9_overlays),
        arm7_overlay_table: table(header.arm7_overlays),
        banner_offset: header.banner_offset,
        nitro_fs_file_count: rom.files().iter().filter(|file| rom.is_nitrofs(file)).count(),
        arm9_overlay_count: overlays(Processor::Arm9),
        arm7_overlay_count: overlays(Processor::Arm7),
        secure_area: rom.secure_area().word(),
        checksums: Checksums {
            header_crc16: header.header_crc,
            logo_crc16: header.logo_crc,
            header_valid: !has("header-crc"),
            logo_valid: !has("logo-crc"),
        },
        dsi: rom.dsi().map(|dsi| {
            let twl = |program: ::nds::TwlProgram| TwlShown {
                rom_offset: program.rom_offset,
                ram_address: program.ram_address,
                size: program.size,
            };
            let areas = dsi.modcrypt.iter().filter(|area| area.size > 0);
            Dsi {
                arm9i: twl(dsi.arm9i),
                arm7i: twl(dsi.arm7i),
                used_size: dsi.used_size,
                modcrypt: areas.map(|area| table(Table { offset: area.offset, size: area.size })).collect(),
            }
        }),
        problems: Vec::new(),
        executable_ranges: Vec::new(),
        part: Part::default(),
    };
    let (problems, components) = (rom.problems(), rom.components());
    let total = problems.len() + components.len();
    let chosen = part(context, wanted, total, &inspected, |at| match problems.get(at) {
        Some(found) => to_value(&problem(found)),
        None => to_value(&components.get(at - problems.len()).map(executable_range)),
    })?;
    let range = &chosen.range;
    inspected.problems = within(problems, range, 0).iter().map(problem).collect();
    inspected.executable_ranges = within(components, range, problems.len()).iter().map(executable_range).collect();
    inspected.part = chosen;
    Ok(inspected)
}

fn program(rom: &Rom, processor: Processor, program: &Program) -> ProgramShown {
    let params = rom.module_params(processor);
    ProgramShown {
        rom_offset: program.rom_offset,
        entry_address: program.entry,
        ram_address: program.ram_address,
        size: program.size,
        rom_end: program.rom().end,
        ram_end: program.ram_end(),
        compressed: rom.component(ComponentId::main(processor)).is_some_and(|main| main.compressed),
        module_params: params.map(|params| ModuleParams {
            offset: params.offset,
            autoload_list_start: params.autoload_list_start,
            autoload_list_end: params.autoload_list_end,
            autoload_start: params.autoload_start,
            bss_start: params.bss_start,
            bss_end: params.bss_end,
            compressed_end: params.compressed_end,
            sdk_version: params.sdk_version,
        }),
        autoload: rom
            .autoloads(processor)
            .iter()
            .map(|block| AutoloadShown {
                ram_address: block.address,
                size: block.size,
                bss_size: block.bss_size,
                image_offset: block.image_offset,
            })
            .collect(),
    }
}

fn table(table: Table) -> TableShown {
    TableShown { offset: table.offset, size: table.size, end: table.rom().end }
}

fn problem(problem: &base::Problem) -> ProblemShown {
    ProblemShown { code: problem.code, offset: problem.offset, message: problem.message.clone() }
}

fn executable_range(component: &Component) -> ExecutableRange {
    ExecutableRange {
        kind: component.id.kind(),
        processor: component.id.processor.word(),
        start: component.start,
        initialized_end: component.initialized_end,
        end: component.end,
        source_id: component.id.name(),
        overlay_id: component.id.overlay_id(),
        compressed: component.compressed,
        representation: match component.representation {
            Representation::RomFileBacked => "rom-file-backed",
            Representation::DerivedBlz => "derived-blz",
            Representation::Undecodable { .. } => "undecodable",
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::nds::tests::{built, code, files};
    use ::nds::testing::{RomBuilder, put32};
    use serde_json::json;

    #[tokio::test]
    async fn header_and_ranges_are_those_that_were_built() {
        let (_folder, call) = built(&RomBuilder::everything());
        let told = call("nds_inspect_rom", json!({"rom": "rom.nds"})).await.unwrap();
        assert_eq!(told["game"]["title"], "EVERYTHING");
        assert_eq!(
            (&told["arm9"]["ramAddress"], &told["arm9"]["ramAddressHex"]),
            (&json!(0x0200_4000), &json!("0x02004000"))
        );
        assert_eq!(told["arm9"]["compressed"], true);
        assert_eq!(told["arm9"]["autoload"][0]["ramAddress"], 0x01ff_8000);
        assert_eq!(
            (&told["arm9OverlayCount"], &told["arm7OverlayCount"], &told["nitroFsFileCount"]),
            (&json!(3), &json!(1), &json!(5))
        );
        let names: Vec<_> =
            told["executableRanges"].as_array().unwrap().iter().map(|range| range["sourceId"].clone()).collect();
        for name in [
            "arm9-main",
            "arm9-overlay-7",
            "arm9-autoload-0",
            "arm9-autoload-1",
            "arm9i",
            "arm7-main",
            "arm7-overlay-0",
            "arm7i",
        ] {
            assert!(names.contains(&json!(name)), "{name} is not in {names:?}");
        }
        assert_eq!(told["total"], told["returned"]);
    }

    #[tokio::test]
    async fn damage_is_told_and_a_file_without_a_model_refused() {
        let mut rom = RomBuilder::default().build();
        // The size of the FAT: past the end of the file.
        put32(&mut rom, 0x4c, 0x7fff_0000);
        let (_folder, call) = files(&[("rom.nds", &rom), ("text.nds", b"not a ROM")]);
        let told = call("nds_inspect_rom", json!({"rom": "rom.nds"})).await.unwrap();
        let problem = &told["problems"][0];
        assert_eq!(told["problems"].as_array().unwrap().iter().filter(|problem| problem["message"] == "").count(), 0);
        assert!(problem["code"].is_string() && problem["message"].is_string(), "{told}");
        assert_eq!(told["checksums"]["headerValid"], false);
        assert_eq!(code(call("nds_inspect_rom", json!({"rom": "text.nds"})).await), "invalid-rom");
    }

    #[tokio::test]
    async fn what_does_not_fit_is_continued() {
        let (_folder, call) = built(&RomBuilder::everything());
        let first = call("nds_inspect_rom", json!({"rom": "rom.nds", "limit": 2})).await.unwrap();
        assert_eq!((&first["returned"], &first["next"]), (&json!(2), &json!(2)));
        let rest = call("nds_inspect_rom", json!({"rom": "rom.nds", "offset": 2})).await.unwrap();
        let count = |told: &serde_json::Value| {
            told["problems"].as_array().unwrap().len() + told["executableRanges"].as_array().unwrap().len()
        };
        assert_eq!(count(&first) + count(&rest), first["total"].as_u64().unwrap() as usize);
    }
}
