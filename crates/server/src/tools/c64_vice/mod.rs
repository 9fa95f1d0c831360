//! The tools that run a Commodore 64 program under VICE, through a connector that owns its monitor.

mod copy_vice_memory_to_ghidra;
mod frame;
pub mod shared;
mod snapshot_file;
mod vice_capture_screen;
mod vice_connect;
mod vice_delete_checkpoint;
mod vice_disassemble;
mod vice_disconnect;
mod vice_feed_keyboard;
mod vice_finish;
mod vice_get_registers;
mod vice_interrupt;
mod vice_list_banks;
mod vice_list_checkpoints;
mod vice_load_prg;
mod vice_load_snapshot;
mod vice_next;
mod vice_read_memory;
mod vice_read_screen;
mod vice_reset;
mod vice_resume;
mod vice_save_snapshot;
mod vice_search_memory;
mod vice_set_checkpoint;
mod vice_set_registers;
mod vice_status;
mod vice_step;
mod vice_toggle_checkpoint;
mod vice_wait_for_stop;
mod vice_write_memory;

use super::{Entry, Group};

/// What the files of this group need.
mod prelude {
    pub use super::shared::{self, Bytes, Count, Data, Envelope, Operations, ResetKind, Row, Time, yes};
    pub use crate::context::Context;
    pub use crate::errors::ToolError;
    pub use crate::tools::{Effect, Tool};
    pub use schemars::JsonSchema;
    pub use serde::Deserialize;
    pub use serde_json::json;
    pub use std::collections::BTreeMap;
}

/// The group.
pub const GROUP: Group = Group {
    name: "c64-vice",
    purpose: "Runs a Commodore 64 program under VICE: checkpoints, steps, registers, memory.",
    files: false,
    tools: &[
        Entry::of::<vice_connect::ViceConnect>(),
        Entry::of::<vice_disconnect::ViceDisconnect>(),
        Entry::of::<vice_status::ViceStatus>(),
        Entry::of::<vice_get_registers::ViceGetRegisters>(),
        Entry::of::<vice_set_registers::ViceSetRegisters>(),
        Entry::of::<vice_list_banks::ViceListBanks>(),
        Entry::of::<vice_read_memory::ViceReadMemory>(),
        Entry::of::<vice_write_memory::ViceWriteMemory>(),
        Entry::of::<vice_list_checkpoints::ViceListCheckpoints>(),
        Entry::of::<vice_set_checkpoint::ViceSetCheckpoint>(),
        Entry::of::<vice_delete_checkpoint::ViceDeleteCheckpoint>(),
        Entry::of::<vice_toggle_checkpoint::ViceToggleCheckpoint>(),
        Entry::of::<vice_step::ViceStep>(),
        Entry::of::<vice_next::ViceNext>(),
        Entry::of::<vice_finish::ViceFinish>(),
        Entry::of::<vice_resume::ViceResume>(),
        Entry::of::<vice_interrupt::ViceInterrupt>(),
        Entry::of::<vice_wait_for_stop::ViceWaitForStop>(),
        Entry::of::<vice_reset::ViceReset>(),
        Entry::of::<vice_capture_screen::ViceCaptureScreen>(),
        Entry::of::<copy_vice_memory_to_ghidra::CopyViceMemoryToGhidra>(),
        Entry::of::<vice_read_screen::ViceReadScreen>(),
        Entry::of::<vice_disassemble::ViceDisassemble>(),
        Entry::of::<vice_search_memory::ViceSearchMemory>(),
        Entry::of::<vice_load_prg::ViceLoadPrg>(),
        Entry::of::<vice_feed_keyboard::ViceFeedKeyboard>(),
        Entry::of::<vice_save_snapshot::ViceSaveSnapshot>(),
        Entry::of::<vice_load_snapshot::ViceLoadSnapshot>(),
    ],
};
