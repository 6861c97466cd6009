//! Two-phase occlusion: what is hidden behind the depth that a view has drawn is not drawn.
//!
//! ```text
//! frame      recall    of what the frustum keeps, what the frame before has seen  -> early
//! the view draws `early`, which leaves depth
//! late       pyramid   depth -> the farthest depth of squares of pixels
//!            occlude   what the frustum keeps against the pyramid                 -> visible, late
//! the view draws `late` into the same depth, then all that is `visible` in its main pass
//! ```
//!
//! What was hidden and appears is late for one frame; nothing is missing. A *record* per block, row
//! and view keeps what a view has seen (`run/history.rs`). The late lists are separate batches
//! (`late`).

mod late;
mod motion;
pub(super) mod occluder;
mod projection;
mod pyramid;
mod rows;

#[cfg(feature = "testing")]
pub use pyramid::{Pyramid, PyramidBuilder};
