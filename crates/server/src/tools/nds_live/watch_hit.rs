//! What accessed a watched address: the instruction before pc, judged by its text, and where the ROM has it.

use super::session::soon;
use code::arm::{self, Arch};
use debug::gdb_remote::{Debugger, Mode, Processor, Stop};
use nds::Rom;
use schemars::JsonSchema;
use serde::Serialize;

/// A watchpoint's stop.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct WatchHit {
    id: Option<String>,
    accessed_address: Option<u32>,
    /// The instruction just before `pc`.
    instruction_address: u32,
    /// Its text, when it makes such an access; `null` when not: what did it has jumped.
    instruction: Option<String>,
    /// Where the ROM has it; several when overlays share the address.
    places: Vec<PlaceShown>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct PlaceShown {
    kind: &'static str,
    overlay_id: Option<u32>,
    rom_offset: Option<u32>,
    /// Whether the ROM has the same bytes there as the memory.
    equal: bool,
}

impl WatchHit {
    /// What there is to say of a stop; `None` when no watchpoint caused it.
    pub fn of(debugger: &mut Debugger, processor: Processor, rom: &Rom, stop: &Stop) -> Option<Self> {
        let (field, _) = stop.reply.watch()?;
        let mode = stop.registers.mode();
        let at = stop.registers.pc().wrapping_sub(mode.size());
        let (arch, side) = match processor {
            Processor::Arm9 => (Arch::V5TE, nds::Processor::Arm9),
            Processor::Arm7 => (Arch::V4T, nds::Processor::Arm7),
        };
        let set = if mode == Mode::Thumb { arm::Mode::Thumb } else { arm::Mode::Arm };
        // What cannot be read has no text and is nowhere.
        let bytes = debugger.read_memory(at, mode.size(), soon()).unwrap_or_default();
        let decoded = arm::decode(arch, set, at, &bytes).ok();
        let instruction = decoded.filter(|insn| accesses(&insn.mnemonic(), field));
        let places = rom.resolve_address(side, at).candidates;
        let places = places.iter().map(|candidate| {
            let image = rom.component(candidate.component).and_then(|component| component.image(rom));
            let stored =
                candidate.runtime_image_offset.and_then(|from| image?.get(from as usize..)?.get(..bytes.len()));
            PlaceShown {
                kind: candidate.kind,
                overlay_id: candidate.component.overlay_id(),
                rom_offset: candidate.rom_offset,
                equal: !bytes.is_empty() && stored == Some(bytes.as_slice()),
            }
        });
        Some(Self {
            id: stop.watchpoint.clone(),
            accessed_address: stop.accessed,
            instruction_address: at,
            instruction: instruction
                .map(|insn| format!("{} {}", insn.mnemonic(), insn.operands()).trim_end().to_owned()),
            places: places.collect(),
        })
    }
}

/// Whether an instruction of this name can make the access that a stop's field tells of.
fn accesses(mnemonic: &str, field: &str) -> bool {
    let begins = |names: &[&str]| names.iter().any(|name| mnemonic.starts_with(name));
    let (reads, writes) = (begins(&["ldr", "ldm", "pop", "swp", "ldc"]), begins(&["str", "stm", "push", "swp", "stc"]));
    match field {
        "watch" => writes,
        "rwatch" => reads,
        _ => reads || writes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_such_an_access_is_named() {
        for (mnemonic, field, wanted) in [
            ("str", "watch", true),
            ("strheq", "watch", true),
            ("stmdb", "watch", true),
            ("push", "watch", true),
            ("ldr", "watch", false),
            ("ldrd", "rwatch", true),
            ("pop", "rwatch", true),
            ("str", "rwatch", false),
            ("swpb", "rwatch", true),
            ("swp", "watch", true),
            ("ldmia", "awatch", true),
            ("strb", "awatch", true),
            ("b", "awatch", false),
            ("add", "watch", false),
        ] {
            assert_eq!(accesses(mnemonic, field), wanted, "{mnemonic} {field}");
        }
    }
}
