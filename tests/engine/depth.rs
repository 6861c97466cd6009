//! Occlusion by depth: spans and footprints of spheres, and the depth pyramid, against their twins
//! and against brute force.

mod cases;
mod hidden;
mod near;
mod on_gpu;
pub mod picture;
mod pyramids;
mod spans;
mod views;
