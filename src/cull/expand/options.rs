//! How an expander is made, and what it expands.

use super::Expansion;
use crate::cull::CullingTier;
use wgpu::{BindGroupLayout, Buffer};

/// WGSL of the caller, and what it binds as group 1.
///
/// It may use every name of `shaders/expand/layout.wesl`, and must not declare `params`, `state`,
/// `arena`, `slice`, `counts` or a function of the expansion's kernels; a unique prefix keeps it
/// safe.
#[derive(Clone, Copy, Debug)]
pub struct ExpandCode<'a> {
    /// Functions and bindings of group 1.
    pub wgsl: &'a str,
    /// The layout of group 1. Storage buffers beyond four may be more than an adapter allows a
    /// kernel.
    pub layout: Option<&'a BindGroupLayout>,
}

/// How pass 2 gets its workgroups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ExpandDispatch {
    /// As many as fill a large GPU; they stride over the work that pass 1 counted. Nothing is read
    /// from the GPU by the command, so wgpu has nothing to validate before it.
    #[default]
    Persistent,
    /// As many as pass 1 wrote for the command. wgpu runs a small pass before each that validates
    /// it.
    Indirect,
}

impl ExpandDispatch {
    /// The name on command lines and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Persistent => "persistent",
            Self::Indirect => "indirect",
        }
    }
}

/// How an [`Expander`](super::Expander) is made.
#[derive(Clone, Copy, Debug)]
pub struct ExpanderOptions<'a> {
    /// The tier; not `Cpu`.
    pub tier: CullingTier,
    /// The expansion.
    pub expansion: Expansion,
    /// How pass 2 is dispatched.
    pub dispatch: ExpandDispatch,
    /// One dispatch for all buckets; else one for each. Of no meaning without buckets.
    pub merged: bool,
    /// Keeps the bounds checks of the kernels.
    pub shader_checks: bool,
    /// Declares `fn items_of(source: u32) -> u32`: the number of items of a source, the same in
    /// each call. Both passes call it; what it binds must be in the layouts of both. `None`: it is
    /// read from [`ExpandInput::counts`].
    pub counting: Option<ExpandCode<'a>>,
    /// Declares `fn expand_item(source: u32, item: u32)`, called once for every item of every
    /// source, by threads that run concurrently, in any order; and `fn expand_done()`, called once
    /// by every thread after its last item. `expand_item` is not called by all threads of a
    /// workgroup or subgroup at once; `expand_done` is.
    pub body: ExpandCode<'a>,
}

impl<'a> ExpanderOptions<'a> {
    /// The default expansion with this body, counts from a buffer.
    #[must_use]
    pub fn new(tier: CullingTier, body: ExpandCode<'a>) -> Self {
        Self {
            tier,
            expansion: Expansion::default(),
            dispatch: ExpandDispatch::default(),
            merged: true,
            shader_checks: false,
            counting: None,
            body,
        }
    }
}

/// How many sources there are.
#[derive(Clone, Copy, Debug)]
pub enum SourceCount<'a> {
    /// A number that the CPU knows.
    Known(u32),
    /// What a word of a buffer says when pass 1 runs, but at most `max`.
    Buffer {
        /// A storage buffer.
        buffer: &'a Buffer,
        /// Byte offset of the word: a multiple of 4, at least 4 below the end of the buffer.
        offset: u64,
        /// The most sources.
        max: u32,
    },
}

/// What is expanded.
#[derive(Clone, Copy, Debug)]
pub struct ExpandInput<'a> {
    /// The items of each source: one u32 per source, for the most sources that there can be. Not
    /// read with [`ExpanderOptions::counting`].
    pub counts: Option<&'a Buffer>,
    /// How many sources there are.
    pub sources: SourceCount<'a>,
}
