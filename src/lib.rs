//! GPU-driven culling.
pub mod cull;
pub mod instance;
