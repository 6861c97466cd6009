//! Scatter: sets whose instances a kernel places around the cameras, where maps let them grow.
//!
//! 1. `component`: what users attach to sets. `maps`: which images can be maps.
//! 2. `layer`: the component as the kernel reads it. `twin`: what grows in a tile, on the CPU.
//! 3. `window`: the tiles around the cameras, and their slots in the set.
//! 4. `plan`, in the main world: makes the sets, and follows cameras and maps. `planned`: what is
//!    known of an entity.
//! 5. `fill`, in the render world: fills the tiles that are not as they should be, which `work`
//!    finds.

mod component;
mod fill;
mod layer;
mod maps;
mod plan;
mod planned;
mod twin;
mod window;
mod work;

pub use component::Scatter;
pub(super) use fill::{ScatterFills, build_render};
pub use maps::ScatterError;
pub(super) use plan::build;
