//! `retroscope vice-connector`: the only owner of VICE's monitor socket. It serves the contract `c64.vice/1` over two HTTP
//! endpoints on loopback, so that clients can come and go without VICE noticing.

mod arguments;
mod calls;
mod connector;
mod http;
mod present;
mod request;
mod start;

pub use connector::Connector;
pub use request::{Refusal, Request};
pub use start::{Source, ViceConnectorOptions, run};
