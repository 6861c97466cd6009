//! A CPU twin of each stage: pure functions on slices, in the shader's argument order.
//!
//! The tests compare the stages with these twins, and the [`Cpu`](crate::cull::CullingTier::Cpu)
//! tier runs them.

mod args;
mod classify;
mod compact;
pub mod expand;
mod far_first;
mod footprint;
mod meshlet;
mod occlude;
mod order;
mod pyramid;
mod scan;
mod span;
mod thin;
mod vote;

pub use args::write_args;
pub use classify::{BoundState, block_state, bound, bound_state, word_bound, word_state};
pub use compact::compact;
pub use far_first::{depth_key, far_first};
pub use footprint::{
    Footprint, footprint, is_between_diagonals, is_hidden, occlusion_of, occlusion_of_span,
};
pub use meshlet::{
    Depth, MeshletVote, Survivor, distance_behind, items_of, load_survivor, meshlet_args,
    meshlet_compact, meshlet_expand, meshlet_place, meshlet_scan, meshlet_vote, nearest_border,
    place_sphere, row_of_source, vote_item, vote_meshlet,
};
pub use occlude::{
    BlockWords, Occluded, Within, bound_of_block, bound_of_word, is_large, occlude, recall,
};
pub use order::{first_word_at, flip_of, order, ring_of, unit_center};
pub use pyramid::pyramid;
pub use scan::{count, scan};
pub use span::{Span, span};
pub use thin::{thinned_growth, thinned_scale, threshold_of};
pub use vote::{Placed, is_visible, kept_share, least_distance, load_sphere, vote};
