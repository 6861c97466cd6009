//! A CPU twin of each stage: pure functions on slices, in the shader's argument order.
//!
//! The tests compare the stages with these twins, and the [`Cpu`](crate::cull::CullingTier::Cpu)
//! tier runs them.

mod args;
mod classify;
mod compact;
#[cfg(feature = "testing")]
pub mod expand;
mod far_first;
#[cfg(feature = "testing")]
mod footprint;
#[cfg(feature = "testing")]
mod meshlet;
#[cfg(feature = "testing")]
mod occlude;
mod order;
#[cfg(feature = "testing")]
mod pyramid;
mod scan;
#[cfg(any(feature = "bevy", feature = "testing"))]
mod scatter;
#[cfg(feature = "testing")]
mod span;
mod thin;
mod vote;

pub use args::write_args;
pub use classify::bound;
#[cfg(feature = "testing")]
pub use classify::{BoundState, block_state, bound_state, word_bound, word_state};
pub use compact::compact;
#[cfg(feature = "testing")]
pub use far_first::depth_key;
pub use far_first::far_first;
#[cfg(feature = "testing")]
pub use footprint::{
    Footprint, footprint, is_between_diagonals, is_hidden, occlusion_of, occlusion_of_span,
};
#[cfg(feature = "testing")]
pub use meshlet::{
    Depth, MeshletVote, Survivor, distance_behind, items_of, load_survivor, meshlet_args,
    meshlet_compact, meshlet_expand, meshlet_place, meshlet_scan, meshlet_vote, nearest_border,
    place_sphere, row_of_source, vote_item, vote_meshlet,
};
#[cfg(feature = "testing")]
pub use occlude::{
    BlockWords, Occluded, Within, bound_of_block, bound_of_word, is_large, occlude, recall,
};
pub use order::{first_word_at, order};
#[cfg(feature = "testing")]
pub use order::{flip_of, ring_of, unit_center};
#[cfg(feature = "testing")]
pub use pyramid::pyramid;
#[cfg(feature = "testing")]
pub use scan::count;
pub use scan::scan;
#[cfg(feature = "testing")]
pub use scatter::Plant;
#[cfg(any(feature = "bevy", feature = "testing"))]
pub use scatter::{ScatterMap, ScatterMaps, scatter, texel_value};
#[cfg(feature = "testing")]
pub use span::{Span, span};
#[cfg(feature = "testing")]
pub use thin::{thinned_growth, thinned_scale, threshold_of};
pub use vote::vote;
#[cfg(feature = "testing")]
pub use vote::{Placed, is_visible, kept_share, load_sphere, min_distance};
