//! Clients of emulators: sessions without sockets, and thin drivers.

pub mod emulator;
pub mod gdb_remote;
pub mod vice;
