//! What every crate of the project agrees on: address types, the bounded reader, and the numbers that bound its work.

mod addr;
mod budget;
pub mod limits;
mod problem;
mod reader;

pub use addr::{AddrParseError, Rva, VirtAddr};
pub use budget::{Budget, Exhausted};
pub use problem::Problem;
pub use reader::{OutOfRange, Reader};
