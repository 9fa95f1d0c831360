//! The tools that watch a running program. Each hands its arguments to the debug agent, which holds all the state.

mod attach;
mod backtrace;
mod continue_execution;
mod detach;
mod disassemble;
mod get_registers;
mod get_status;
mod launch;
mod list_breakpoints;
mod list_modules;
mod list_threads;
mod list_watchpoints;
mod pause;
mod read_memory;
mod remove_breakpoint;
mod remove_watchpoint;
mod screenshot;
mod set_breakpoint;
mod set_registers;
mod set_watchpoint;
mod step;
mod terminate;
mod write_memory;

use super::{Entry, Group};

/// What the files of this group need.
mod prelude {
    pub use crate::context::Context;
    pub use crate::errors::{ErrorCode, ToolError};
    pub(crate) use crate::picture;
    pub use crate::tools::page::{Page, Paged, keep_first, keep_last, reason};
    pub use crate::tools::{Effect, Picture, Tool};
    pub use base::limits;
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
    pub use wire::commands;
}

/// The group.
pub const GROUP: Group = Group {
    name: "debug",
    purpose: "Watches a running x86 program: breakpoints, watchpoints (what writes this?), memory, registers, screenshots.",
    files: false,
    tools: &[
        Entry::of::<launch::Launch>(),
        Entry::of::<attach::Attach>(),
        Entry::of::<detach::Detach>(),
        Entry::of::<terminate::Terminate>(),
        Entry::of::<get_status::GetStatus>(),
        Entry::of::<set_breakpoint::SetBreakpoint>(),
        Entry::of::<remove_breakpoint::RemoveBreakpoint>(),
        Entry::of::<list_breakpoints::ListBreakpoints>(),
        Entry::of::<set_watchpoint::SetWatchpoint>(),
        Entry::of::<remove_watchpoint::RemoveWatchpoint>(),
        Entry::of::<list_watchpoints::ListWatchpoints>(),
        Entry::of::<continue_execution::ContinueExecution>(),
        Entry::of::<pause::Pause>(),
        Entry::of::<step::Step>(),
        Entry::of::<read_memory::ReadMemory>(),
        Entry::of::<write_memory::WriteMemory>(),
        Entry::of::<get_registers::GetRegisters>(),
        Entry::of::<set_registers::SetRegisters>(),
        Entry::of::<list_threads::ListThreads>(),
        Entry::of::<list_modules::ListModules>(),
        Entry::of::<disassemble::Disassemble>(),
        Entry::of::<backtrace::Backtrace>(),
        Entry::of::<screenshot::Screenshot>(),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_are_the_operations_of_the_protocol_except_hello() {
        let tools: Vec<&str> = GROUP.tools.iter().map(|tool| tool.name).collect();
        let mut operations: Vec<&str> = wire::commands::OPERATIONS.to_vec();
        assert_eq!(operations.remove(0), "hello");
        assert_eq!(tools, operations);
    }
}
