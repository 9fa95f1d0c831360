//! A client of VICE's binary monitor: VICE manual, chapter "Binary monitor", protocol version 2.

pub mod contract;
