//! One file for each command of the monitor, with what is sent, what is answered, and its place in the VICE manual
//! ("Binary monitor", "Commands"). All numbers are little-endian.

pub mod advance;
pub mod banks;
pub mod checkpoint;
pub mod condition;
pub mod display;
pub mod exit;
pub mod info;
pub mod keyboard;
pub mod memory_get;
pub mod memory_set;
pub mod palette;
pub mod ping;
pub mod registers;
pub mod registers_available;
pub mod reset;
pub mod snapshot;

pub use banks::Bank;
pub use checkpoint::{Checkpoint, NewCheckpoint};
pub use display::Display;
pub use info::Version;
pub use registers::RegisterValue;
pub use registers_available::Register;
pub use reset::ResetKind;
