//! The data of a set: one array per channel, all of the same length, and their bounding box.

use std::borrow::Cow;
use std::ops::Range;

use glam::Vec3;

use super::data::Data;
use super::hidden::Hidden;
use super::ids::Ids;
use super::limits::check_len;
use super::scales::{ScaleKind, Scales, retain_values};
use super::transform::{check_position, check_rotation, check_scale};
use super::{InstanceBounds, InstanceError, InstanceTransform, PackedInstance, PackedQuat};
use crate::parallel;

/// The arrays of a set. An optional channel exists only if a value differs from the default or the
/// caller asked for the channel.
#[derive(Clone, Default)]
pub(super) struct Channels {
    pub(super) instances: Vec<PackedInstance>,
    pub(super) scales: Scales,
    pub(super) data: Data,
    /// The hidden instances. Unlike a channel, this stays on the CPU.
    pub(super) hidden: Hidden,
    /// The ids of instances, if the caller asked for them. They stay on the CPU, too.
    pub(super) ids: Option<Ids>,
    /// The bounds of all visible instances; never too small.
    pub(super) bounds: Option<InstanceBounds>,
    /// What was known when the arrays were given away; `None` while they are here.
    pub(super) released: Option<Released>,
}

/// What is known of the channels of a set whose arrays were given away.
#[derive(Clone, Copy)]
pub(super) struct Released {
    pub(super) len: usize,
    pub(super) scales: ScaleKind,
    /// Words per instance.
    pub(super) data: usize,
    /// Whether instances had ids.
    pub(super) had_ids: bool,
}

impl Channels {
    /// Packs instances that will get the indices from `first` on.
    pub(super) fn collect<T: Into<InstanceTransform>>(
        transforms: impl IntoIterator<Item = T>,
        first: usize,
    ) -> Result<Self, InstanceError> {
        let tagged = transforms.into_iter().map(|transform| (transform, 0));
        Self::collect_tagged(tagged, first, 0)
    }

    /// Packs instances that will get the indices from `first` on, with tags; `after` more will
    /// follow them.
    pub(super) fn collect_tagged<T: Into<InstanceTransform>>(
        instances: impl IntoIterator<Item = (T, u32)>,
        first: usize,
        after: usize,
    ) -> Result<Self, InstanceError> {
        let instances = instances.into_iter();
        let mut channels = Self::default();
        // Refuse a count that is known to be too large before allocating memory.
        let (min, _) = instances.size_hint();
        check_len(first.saturating_add(min).saturating_add(after))?;
        channels.instances.reserve(min);
        for (transform, tag) in instances {
            let at = first + channels.len();
            check_len(at.saturating_add(1).saturating_add(after))?;
            let (packed, scale) = transform.into().pack(at as u32)?;
            channels.push(packed, scale, tag);
        }
        Ok(channels)
    }

    /// Checks packed instances, which will get the indices from `first` on, in place. Normalizes
    /// rotations that are slightly off unit length.
    pub(super) fn from_packed(
        mut instances: Vec<PackedInstance>,
        first: usize,
    ) -> Result<Self, InstanceError> {
        check_len(first.saturating_add(instances.len()))?;
        parallel::try_each_part(&mut instances, |part_first, part| {
            let indices = (first + part_first) as u32..;
            for (instance, index) in part.iter_mut().zip(indices) {
                check_position(instance.position(), index)?;
                let rotation = instance.rotation();
                check_rotation(rotation, index)?;
                if !rotation.is_normalized() {
                    instance.rotation = PackedQuat::encode(rotation);
                }
            }
            Ok(())
        })?;
        let bounds = InstanceBounds::measure(&instances, &Scales::One);
        Ok(Self {
            instances,
            bounds,
            ..Self::default()
        })
    }

    pub(super) fn len(&self) -> usize {
        let released = self.released.map(|released| released.len);
        released.unwrap_or(self.instances.len())
    }

    /// Which optional channels exist: the kind of scales, and the words of data per instance.
    pub(super) fn shape(&self) -> (ScaleKind, usize) {
        match self.released {
            Some(released) => (released.scales, released.data),
            None => (self.scales.kind(), self.data.words()),
        }
    }

    /// Whether instances have ids, or had them when the arrays were given away.
    pub(super) fn has_ids(&self) -> bool {
        match self.released {
            Some(released) => released.had_ids,
            None => self.ids.is_some(),
        }
    }

    /// Gives the arrays away and keeps what is known of them.
    pub(super) fn release(&mut self) -> Self {
        let (scales, data) = self.shape();
        let released = Released {
            len: self.len(),
            scales,
            data,
            had_ids: self.has_ids(),
        };
        let bounds = self.bounds;
        let kept = Self {
            bounds,
            released: Some(released),
            ..Self::default()
        };
        core::mem::replace(self, kept)
    }

    /// Returns an error if the arrays were given away.
    pub(super) fn check_here(&self) -> Result<(), InstanceError> {
        match self.released {
            None => Ok(()),
            Some(_) => Err(InstanceError::Released),
        }
    }

    /// The scale of an existing instance.
    pub(super) fn scale(&self, at: usize) -> Vec3 {
        self.scales.get(at)
    }

    /// The tag of an existing instance.
    pub(super) fn tag(&self, at: usize) -> u32 {
        self.data.get(at)[0]
    }

    /// Adds one instance. The optional channels appear with the first value that needs them.
    pub(super) fn push(&mut self, packed: PackedInstance, scale: Vec3, tag: u32) {
        self.scales.push(scale, self.instances.len());
        self.data.push(tag, self.instances.len());
        self.instances.push(packed);
        if let Some(ids) = &mut self.ids {
            ids.extend(1);
        }
        self.cover(InstanceBounds::of(packed.position(), scale));
    }

    /// Adds all of `tail`.
    pub(super) fn append(&mut self, tail: Self) {
        let (before, added) = (self.len(), tail.len());
        self.scales.append(before, tail.scales, added);
        self.data.append(before, tail.data, added);
        if let Some(ids) = &mut self.ids {
            ids.extend(added);
        }
        if before == 0 {
            self.instances = tail.instances;
        } else {
            self.instances.extend(tail.instances);
        }
        if let Some(bounds) = tail.bounds {
            self.cover(bounds);
        }
    }

    /// Replaces `range` by `new`, and returns what was there.
    pub(super) fn splice(&mut self, range: Range<usize>, new: Self) -> Self {
        let (before, added) = (self.len(), new.len());
        let scales = (self.scales).splice(range.clone(), before, new.scales, added);
        let data = (self.data).splice(range.clone(), before, new.data, added);
        if let Some(ids) = &mut self.ids {
            ids.splice(range.clone(), added);
        }
        let hidden = self.hidden.splice(range.clone(), added);
        let mut removed = Self {
            instances: self.instances.splice(range, new.instances).collect(),
            scales,
            data,
            hidden,
            ..Self::default()
        };
        removed.measure();
        match new.bounds {
            _ if self.len() == 0 => self.bounds = None,
            Some(bounds) => self.cover(bounds),
            None => {}
        }
        removed
    }

    pub(super) fn truncate(&mut self, len: usize) {
        if let Some(released) = &mut self.released {
            // The box stays large: it can no longer be measured.
            released.len = len;
            self.bounds = self.bounds.filter(|_| len > 0);
            return;
        }
        self.instances.truncate(len);
        self.scales.truncate(len);
        self.data.truncate(len);
        if let Some(ids) = &mut self.ids {
            ids.truncate(len);
        }
        self.hidden.truncate(len);
        self.measure();
    }

    /// Puts the last instance in the place of another one.
    pub(super) fn swap_remove(&mut self, at: usize) {
        self.hidden.swap_remove(at, self.len());
        self.instances.swap_remove(at);
        self.scales.swap_remove(at);
        self.data.swap_remove(at);
        if let Some(ids) = &mut self.ids {
            ids.swap_remove(at);
        }
        self.bounds = self.bounds.filter(|_| self.len() > 0);
    }

    /// Keeps the instances that are marked, in their order.
    pub(super) fn retain(&mut self, kept: &[bool]) {
        if !self.hidden.is_empty() {
            let mut next = 0;
            let new_indices = kept.iter().map(|&kept| {
                next += u32::from(kept);
                kept.then(|| next - 1)
            });
            let new_indices: Vec<_> = new_indices.collect();
            self.hidden.retain(|at| new_indices[at]);
        }
        retain_values(&mut self.instances, kept);
        self.scales.retain(kept);
        self.data.retain(kept);
        if let Some(ids) = &mut self.ids {
            ids.retain(kept);
        }
        self.measure();
    }

    /// Replaces positions, rotations and scales from `first` on; data, ids and what is hidden stay.
    pub(super) fn set_range(&mut self, first: usize, mut new: Self) {
        let (len, added) = (self.len(), new.len());
        self.scales
            .overwrite(first, len, core::mem::take(&mut new.scales), added);
        self.set_packed_range(first, new);
    }

    /// Replaces positions and rotations from `first` on; all else stays.
    pub(super) fn set_packed_range(&mut self, first: usize, new: Self) {
        let range = first..first + new.len();
        if let Some(bounds) = new.bounds {
            self.cover(bounds);
        }
        if self.hidden.is_empty() {
            self.instances[range].copy_from_slice(&new.instances);
            return;
        }
        for (at, instance) in range.zip(new.instances) {
            self.place(at, instance);
        }
    }

    /// Puts an instance in the place of one that may be hidden, and stays so.
    pub(super) fn place(&mut self, at: usize, instance: PackedInstance) {
        let was_hidden = self.hidden.show(at, &mut self.instances[at]);
        self.instances[at] = instance;
        if was_hidden {
            self.hidden.hide(at, &mut self.instances[at]);
        }
    }

    /// The packed instances as they are when all are shown.
    pub(super) fn shown(&self) -> Cow<'_, [PackedInstance]> {
        if self.hidden.is_empty() {
            return Cow::Borrowed(&self.instances);
        }
        let mut shown = self.instances.clone();
        self.hidden.clone().show_all(&mut shown);
        Cow::Owned(shown)
    }

    /// Hides an instance. Returns false if it was hidden.
    pub(super) fn hide(&mut self, at: usize) -> bool {
        self.hidden.hide(at, &mut self.instances[at])
    }

    /// Shows an instance. Returns false if it was not hidden.
    pub(super) fn show(&mut self, at: usize) -> bool {
        let instance = &mut self.instances[at];
        let was_hidden = self.hidden.show(at, instance);
        if was_hidden {
            let position = instance.position();
            self.cover(InstanceBounds::of(position, self.scale(at)));
        }
        was_hidden
    }

    /// Gives every instance a scale.
    pub(super) fn set_scales(&mut self, scales: Scales) -> Result<(), InstanceError> {
        self.check_here()?;
        let floats = scales.kind().floats();
        self.check_channel("scale", scales.floats().len() / floats.max(1))?;
        for (&scale, at) in scales.floats().iter().zip(0..) {
            check_scale(scale, (at / floats) as u32)?;
        }
        self.scales = scales;
        self.measure();
        Ok(())
    }

    /// Gives every instance data.
    pub(super) fn set_data(&mut self, data: Data) -> Result<(), InstanceError> {
        self.check_here()?;
        let name = if data.words() == 1 { "tag" } else { "data" };
        self.check_channel(name, data.len())?;
        self.data = data;
        Ok(())
    }

    /// Extends the box.
    pub(super) fn cover(&mut self, other: InstanceBounds) {
        self.bounds = Some(self.bounds.map_or(other, |bounds| bounds.union(other)));
    }

    /// Makes the box tight.
    pub(super) fn measure(&mut self) {
        if self.released.is_none() {
            self.bounds = InstanceBounds::measure(&self.instances, &self.scales);
        }
    }

    fn check_channel(&self, channel: &'static str, len: usize) -> Result<(), InstanceError> {
        let expected = self.len();
        if len == expected {
            Ok(())
        } else {
            Err(InstanceError::ChannelLength {
                channel,
                len,
                expected,
            })
        }
    }
}
