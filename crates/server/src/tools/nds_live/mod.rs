//! The tools that run a Nintendo DS ROM under an emulator's GDB stub, and tie a stop back to what the ROM proves.

mod desmume_breakpoint_add;
mod desmume_breakpoint_list;
mod desmume_breakpoint_remove;
mod desmume_capture_runtime_evidence;
mod desmume_capture_stop_context;
mod desmume_continue;
mod desmume_executable_ranges_replace;
mod desmume_pause;
mod desmume_probe_gdb;
mod desmume_read_memory;
mod desmume_read_register_packet;
mod desmume_start;
mod desmume_status;
mod desmume_step_instruction;
mod desmume_stop;
mod desmume_wait_for_gdb;
mod desmume_wait_for_stop;
mod desmume_watchpoint_add;
mod desmume_watchpoint_list;
mod desmume_watchpoint_remove;
mod nds_correlate_stop_context;
mod residency;
pub mod session;
mod shapes;
mod watch_hit;

use super::{Entry, Group};

/// What the files of this group need.
mod prelude {
    pub use super::session::{self, soon};
    pub use super::shapes::*;
    pub use crate::context::Context;
    pub use crate::errors::{ErrorCode, ToolError};
    pub use crate::tools::nds::shared::params::{Address, AnyMode, Bounded, OneMode};
    pub use crate::tools::nds::shared::present::Shown;
    pub use crate::tools::nds::shared::shapes::hex;
    pub use crate::tools::{Effect, Tool};
    pub use base::limits;
    pub use debug::gdb_remote::Processor;
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
    pub use std::time::{Duration, Instant};

    /// Time to wait for a program.
    pub type Wait =
        Bounded<{ limits::MIN_LIVE_TIMEOUT_MS }, { limits::MAX_LIVE_TIMEOUT_MS }, { limits::DEFAULT_LIVE_TIMEOUT_MS }>;
    /// Time for what is done at once.
    pub type Moment = Bounded<
        { limits::MIN_LIVE_TIMEOUT_MS },
        { limits::MAX_LIVE_SHORT_TIMEOUT_MS },
        { limits::DEFAULT_LIVE_STEP_MS },
    >;

    /// An argument that is `true` when it is left out.
    pub const fn yes() -> bool {
        true
    }

    /// When a time that was asked for is over.
    ///
    /// # Errors
    /// `invalid_arguments` out of range.
    pub fn until<const LEAST: u64, const MOST: u64, const DEFAULT: u64>(
        time: Bounded<LEAST, MOST, DEFAULT>,
        name: &str,
    ) -> Result<Instant, ToolError> {
        time.get(name, ErrorCode::InvalidArguments).map(|ms| Instant::now() + Duration::from_millis(ms))
    }
}

/// The group.
pub const GROUP: Group = Group {
    name: "nds-live",
    purpose: "Runs a Nintendo DS ROM under DeSmuME's debugger: breakpoints, steps, memory, and which overlay is loaded.",
    files: true,
    tools: &[
        Entry::of::<desmume_start::DesmumeStart>(),
        Entry::of::<desmume_status::DesmumeStatus>(),
        Entry::of::<desmume_stop::DesmumeStop>(),
        Entry::of::<desmume_probe_gdb::DesmumeProbeGdb>(),
        Entry::of::<desmume_wait_for_gdb::DesmumeWaitForGdb>(),
        Entry::of::<desmume_read_register_packet::DesmumeReadRegisterPacket>(),
        Entry::of::<desmume_read_memory::DesmumeReadMemory>(),
        Entry::of::<desmume_breakpoint_add::DesmumeBreakpointAdd>(),
        Entry::of::<desmume_breakpoint_remove::DesmumeBreakpointRemove>(),
        Entry::of::<desmume_breakpoint_list::DesmumeBreakpointList>(),
        Entry::of::<desmume_watchpoint_add::DesmumeWatchpointAdd>(),
        Entry::of::<desmume_watchpoint_remove::DesmumeWatchpointRemove>(),
        Entry::of::<desmume_watchpoint_list::DesmumeWatchpointList>(),
        Entry::of::<desmume_continue::DesmumeContinue>(),
        Entry::of::<desmume_step_instruction::DesmumeStepInstruction>(),
        Entry::of::<desmume_pause::DesmumePause>(),
        Entry::of::<desmume_wait_for_stop::DesmumeWaitForStop>(),
        Entry::of::<desmume_capture_stop_context::DesmumeCaptureStopContext>(),
        Entry::of::<desmume_executable_ranges_replace::DesmumeExecutableRangesReplace>(),
        Entry::of::<desmume_capture_runtime_evidence::DesmumeCaptureRuntimeEvidence>(),
        Entry::of::<nds_correlate_stop_context::NdsCorrelateStopContext>(),
    ],
};
