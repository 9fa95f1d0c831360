//! What the bytes of a Commodore 64 mean: text (PETSCII and screen codes), pictures of the VIC-II, names of the platform's
//! addresses, and the forms of files. It computes only: bytes in, values out, no I/O.

mod bytes;
pub mod charset;
pub mod graphics;
pub mod keyboard;
pub mod picture_file;
mod problem;
pub mod symbols;
pub mod text;

pub use bytes::{from_hex, to_hex};
pub use problem::{Kind, Problem};
