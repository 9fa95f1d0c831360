//! What several of these tools share: arguments, shapes, and how long answers are shown in parts.

pub mod graph;
pub mod params;
pub mod present;
pub mod references;
pub mod scans;
pub mod shapes;
