//! One expansion over buffers of the caller.

mod kernels;
mod read;
mod source;

use super::{
    ExpandDispatch, ExpandInput, ExpandReport, ExpanderOptions, Expansion,
    passes::{divide, max_entries, tiles},
};
use crate::cull::{
    CullError,
    gpu::{binding::uniform_at, guard::guarded, limits::binding_limit},
    layout::expand::{EXPAND_BUCKETS, ExpandParams, ExpandSlice, ExpandState, dispatch_offset},
    policy::{FEW_TILES, PERSISTENT_WORKGROUPS},
};
use kernels::Kernels;
use source::Source;
use std::sync::Arc;
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, Buffer, BufferDescriptor,
    BufferUsages, ComputePass, Device, Queue,
};

/// Runs an [`Expansion`]: pass 1 and pass 2 in compute passes of the caller.
///
/// ```text
/// Expander::new(device, options)      once: compiles
///   prepare(device, queue, input)     when the input's buffers or most sources change
///   record_sources(pass, ..)          each time: pass 1
///   record_items(pass, ..)            each time: pass 2
///   read(device, queue)               counts; or a copy of state(), some frames later
///   grow(device, &report)             room for what had none
/// ```
pub struct Expander {
    /// Expanders of other inputs may share them.
    kernels: Arc<Kernels>,
    params: Buffer,
    state: Buffer,
    packed: Buffer,
    arena: Buffer,
    /// Bound in place of absent inputs.
    nothing: Buffer,
    entry_capacity: u32,
    /// See [`Expander::reserve`].
    min_entries: u32,
    bound: Option<BoundSource>,
}

/// What [`Expander::prepare`] bound.
struct BoundSource {
    source: Source,
    params: ExpandParams,
    sources: BindGroup,
    /// All buckets, then each.
    items: Vec<BindGroup>,
}

impl Expander {
    /// Compiles the passes. An expansion that the device cannot run gives way to
    /// [`Expansion::OneBucket`], and [`Self::fallback`] says why.
    ///
    /// # Errors
    /// [`CullError::TierUnsupported`], [`CullError::Pipeline`], [`CullError::Gpu`].
    pub fn new(device: &Device, options: &ExpanderOptions<'_>) -> Result<Self, CullError> {
        Self::edited(device, options, |_, source| source)
    }

    /// An expander whose kernels `edit` changes, given a pass's name and WGSL: a test breaks them
    /// on purpose.
    ///
    /// # Errors
    /// As [`Self::new`], and [`CullError::Pipeline`] when a kernel does not build.
    #[cfg(feature = "testing")]
    pub fn with_sources(
        device: &Device,
        options: &ExpanderOptions<'_>,
        edit: impl Fn(&str, String) -> String,
    ) -> Result<Self, CullError> {
        Self::edited(device, options, edit)
    }

    pub(in crate::cull) fn edited(
        device: &Device,
        options: &ExpanderOptions<'_>,
        edit: impl Fn(&str, String) -> String,
    ) -> Result<Self, CullError> {
        let kernels = Arc::new(Kernels::build(device, options, &edit)?);
        guarded(device, "gpu_culling expansion", || {
            Self::of(device, kernels)
        })
    }

    /// Another expander with the same kernels, for another input. Its buffers are created
    /// unguarded.
    #[must_use]
    pub fn with_same_kernels(&self, device: &Device) -> Self {
        Self::of(device, Arc::clone(&self.kernels))
    }

    fn of(device: &Device, kernels: Arc<Kernels>) -> Self {
        let storage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
        Self {
            kernels,
            params: create(
                device,
                size_of::<ExpandParams>() as u64,
                BufferUsages::UNIFORM | BufferUsages::COPY_DST,
            ),
            state: create(
                device,
                size_of::<ExpandState>() as u64,
                storage | BufferUsages::INDIRECT,
            ),
            packed: create(device, 16, storage),
            arena: create(device, 16, storage),
            nothing: create(device, 16, storage),
            entry_capacity: 0,
            min_entries: 0,
            bound: None,
        }
    }

    /// The expansion that runs.
    #[must_use]
    pub fn expansion(&self) -> Expansion {
        self.kernels.expansion
    }

    /// Why it is not the one that was asked for: a line for the log.
    #[must_use]
    pub fn fallback(&self) -> Option<&str> {
        self.kernels.fallback.as_deref()
    }

    /// From the next [`Self::prepare`] on, an expansion whose list grows has room for at least
    /// `entries` entries. If no counts can need more, no item is lost, and nothing has to be read
    /// back. The expansions by buckets ignore it.
    pub fn reserve(&mut self, entries: u32) {
        self.min_entries = entries;
    }

    /// Binds the input and makes room. It does nothing if all is as it was, so it may be called
    /// each frame. By buckets, there is room for any N. A list (feature `study`) starts with one
    /// entry per source, or with [more](Self::reserve), and [grows](Self::grow) to what is needed.
    ///
    /// # Errors
    /// [`CullError::ExpansionTooLarge`]. [`CullError::NoCounts`], [`CullError::TooFewCounts`] and
    /// [`CullError::SourceCountOffset`], if a buffer does not hold what the kernels read from it.
    /// What was prepared before is then gone.
    pub fn prepare(
        &mut self,
        device: &Device,
        queue: &Queue,
        input: &ExpandInput<'_>,
    ) -> Result<(), CullError> {
        let prepared =
            Source::check(input, self.kernels.has_counts, &self.nothing).and_then(|source| {
                let strategy = self.kernels.expansion.strategy();
                let entries = match strategy.arena.max_entries {
                    Some(entries) => entries(source.max),
                    // A list that has grown stays long, if these sources leave room for it.
                    None => {
                        let room = max_entries(strategy, source.max, arena_limit(device));
                        let kept = self.entry_capacity.min(room);
                        kept.max(source.max).max(self.min_entries).max(1)
                    }
                };
                self.bind((device, queue), source, entries)
            });
        if prepared.is_err() {
            self.bound = None;
        }
        prepared
    }

    /// Makes room for what `report` says is needed, and for an eighth more if one binding holds it;
    /// true if that room was not there. What pass 1 wrote before is then gone.
    ///
    /// # Errors
    /// [`CullError::ExpansionTooLarge`]. What was prepared before stays, with the room that it had.
    pub fn grow(
        &mut self,
        device: &Device,
        queue: &Queue,
        report: &ExpandReport,
    ) -> Result<bool, CullError> {
        if report.needed <= self.entry_capacity {
            return Ok(false);
        }
        let Some(source) = self.bound.as_ref().map(|bound| bound.source.clone()) else {
            return Ok(false);
        };
        let room = max_entries(
            self.kernels.expansion.strategy(),
            source.max,
            arena_limit(device),
        );
        let wanted = report.needed.saturating_add(report.needed / 8);
        // If what is needed does not fit, `bind` refuses it.
        let entries = wanted.min(room).max(report.needed);
        self.bind((device, queue), source, entries)?;
        Ok(true)
    }

    /// Gives the room back. Nothing is then prepared.
    pub fn shrink(&mut self, device: &Device) {
        self.bound = None;
        self.entry_capacity = 0;
        self.arena = create(device, 16, BufferUsages::STORAGE | BufferUsages::COPY_SRC);
    }

    /// Binds the input to an arena of `entry_capacity` entries. An error leaves all as it was.
    fn bind(
        &mut self,
        (device, queue): (&Device, &Queue),
        source: Source,
        entry_capacity: u32,
    ) -> Result<(), CullError> {
        let (params, words) = divide(
            self.kernels.expansion.strategy(),
            source.max,
            entry_capacity,
        );
        let params = ExpandParams {
            source_word: source.word,
            ..params
        };
        let same = |bound: &BoundSource| (&bound.source, bound.params) == (&source, params);
        if self.bound.as_ref().is_some_and(same) {
            return Ok(());
        }
        let limit = arena_limit(device);
        let bytes = (words * 4).max(16);
        if bytes > limit {
            return Err(CullError::ExpansionTooLarge {
                expansion: self.kernels.expansion.name(),
                sources: source.max,
                bytes,
                limit,
            });
        }
        self.bound = None;
        self.entry_capacity = entry_capacity;
        if bytes > self.arena.size() {
            // The old one first: both may not fit.
            self.arena = self.nothing.clone();
            let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
            self.arena = guarded(device, "gpu_culling expansion", || {
                create(device, bytes, usage)
            })?;
        }
        queue.write_buffer(&self.params, 0, bytemuck::bytes_of(&params));
        let group = |layout: &BindGroupLayout, slice: Option<u64>, has_counts: bool| {
            let mut entries = vec![
                entry(0, &self.params),
                entry(3, &self.state),
                entry(4, &self.arena),
            ];
            if has_counts {
                entries.push(entry(2, &source.counts));
            }
            match slice {
                Some(index) => entries.push(BindGroupEntry {
                    binding: 5,
                    resource: uniform_at::<ExpandSlice>(&self.kernels.slices, index),
                }),
                None => {
                    entries.push(entry(1, &source.words));
                    if self.kernels.expansion.strategy().is_packed() {
                        entries.push(entry(5, &self.packed));
                    }
                }
            }
            device.create_bind_group(&BindGroupDescriptor {
                label: Some(self.kernels.expansion.name()),
                layout,
                entries: &entries,
            })
        };
        let has_counts = self.kernels.has_counts;
        let Some(first) = self.kernels.passes.first() else {
            return Ok(());
        };
        let slices = if self.kernels.is_merged {
            1
        } else {
            EXPAND_BUCKETS + 1
        };
        let (sources, items) = guarded(device, "bind groups of an expansion", || {
            let items = (0..u64::from(slices))
                .map(|index| group(&self.kernels.items.layout, Some(index), has_counts));
            let sources = group(&first.layout, None, has_counts);
            (sources, items.collect())
        })?;
        self.bound = Some(BoundSource {
            source,
            params,
            sources,
            items,
        });
        Ok(())
    }

    /// Records pass 1. `group` is what [`ExpanderOptions::counting`] binds.
    pub fn record_sources(&self, pass: &mut ComputePass<'_>, group: Option<&BindGroup>) {
        let Some(bound) = &self.bound else { return };
        let is_few = tiles(bound.params.source_capacity) <= u64::from(FEW_TILES);
        let kernels = match is_few && !self.kernels.few.is_empty() {
            true => &self.kernels.few,
            false => &self.kernels.passes,
        };
        for kernel in kernels {
            pass.set_pipeline(&kernel.pipeline);
            pass.set_bind_group(0, &bound.sources, &[]);
            if let Some(group) = group {
                pass.set_bind_group(1, group, &[]);
            }
            let workgroups = kernel.pass.groups.count(bound.params.source_capacity);
            pass.dispatch_workgroups(workgroups, 1, 1);
        }
    }

    /// Records pass 2, which follows pass 1. `group` is what [`ExpanderOptions::body`] binds.
    pub fn record_items(&self, pass: &mut ComputePass<'_>, group: Option<&BindGroup>) {
        let Some(bound) = &self.bound else { return };
        pass.set_pipeline(&self.kernels.items.pipeline);
        if let Some(group) = group {
            pass.set_bind_group(1, group, &[]);
        }
        let slices = if self.kernels.is_merged {
            0..1
        } else {
            1..EXPAND_BUCKETS + 1
        };
        for slice in slices {
            let Some(items) = bound.items.get(slice as usize) else {
                continue;
            };
            pass.set_bind_group(0, items, &[]);
            match self.kernels.dispatch {
                ExpandDispatch::Persistent => pass.dispatch_workgroups(PERSISTENT_WORKGROUPS, 1, 1),
                ExpandDispatch::Indirect => {
                    pass.dispatch_workgroups_indirect(&self.state, dispatch_offset(slice));
                }
            }
        }
    }
}

/// The most bytes of an arena: one binding, whose places a u32 counts.
fn arena_limit(device: &Device) -> u64 {
    binding_limit(&device.limits()).min(4 * u64::from(u32::MAX))
}

fn create(device: &Device, size: u64, usage: BufferUsages) -> Buffer {
    device.create_buffer(&BufferDescriptor {
        label: Some("gpu_culling expansion"),
        size,
        usage,
        mapped_at_creation: false,
    })
}

fn entry(binding: u32, buffer: &Buffer) -> BindGroupEntry<'_> {
    BindGroupEntry {
        binding,
        resource: buffer.as_entire_binding(),
    }
}
