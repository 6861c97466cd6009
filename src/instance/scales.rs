//! The scale channel of a set: no numbers, one per instance, or one per instance and axis.

use core::ops::Range;

use glam::Vec3;

use crate::parallel;

/// What a set stores of its instances' scales.
#[cfg_attr(
    feature = "bevy",
    derive(bevy::reflect::Reflect),
    reflect(Clone, Debug, PartialEq, Hash)
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScaleKind {
    /// Nothing: every scale is 1.
    #[default]
    One,
    /// One number per instance, for all axes: 4 bytes.
    Uniform,
    /// One number per axis, along the axes of the mesh: 12 bytes.
    NonUniform,
}

impl ScaleKind {
    /// Number of `f32`s per instance.
    #[must_use]
    pub const fn floats(self) -> usize {
        match self {
            Self::One => 0,
            Self::Uniform => 1,
            Self::NonUniform => 3,
        }
    }

    /// The kind that stores `scale`.
    pub(super) fn of(scale: Vec3) -> Self {
        if scale == Vec3::ONE {
            Self::One
        } else if scale == Vec3::splat(scale.x) {
            Self::Uniform
        } else {
            Self::NonUniform
        }
    }
}

/// The scales of a set's instances. The kind only widens: to [`ScaleKind::Uniform`] with the first
/// scale that is not 1, to [`ScaleKind::NonUniform`] with the first that differs between axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Scales {
    #[default]
    One,
    Uniform(Vec<f32>),
    NonUniform(Vec<Vec3>),
}

impl Scales {
    pub fn kind(&self) -> ScaleKind {
        match self {
            Self::One => ScaleKind::One,
            Self::Uniform(_) => ScaleKind::Uniform,
            Self::NonUniform(_) => ScaleKind::NonUniform,
        }
    }

    pub fn get(&self, at: usize) -> Vec3 {
        match self {
            Self::One => Vec3::ONE,
            Self::Uniform(scales) => Vec3::splat(scales[at]),
            Self::NonUniform(scales) => scales[at],
        }
    }

    /// The numbers as the shaders read them, [`ScaleKind::floats`] per instance.
    pub fn floats(&self) -> &[f32] {
        match self {
            Self::One => &[],
            Self::Uniform(scales) => scales,
            Self::NonUniform(scales) => bytemuck::cast_slice(scales),
        }
    }

    /// The largest scale of any axis of any instance; 1 without numbers.
    pub fn largest(&self) -> f32 {
        let largest = |part: &[f32]| part.iter().copied().fold(0.0, f32::max);
        match self {
            Self::One => 1.0,
            _ => parallel::reduce(self.floats(), largest, f32::max).unwrap_or(0.0),
        }
    }

    /// Makes room for scales of this kind. `len` is the number of instances.
    pub fn widen(&mut self, kind: ScaleKind, len: usize) {
        if kind <= self.kind() {
            return;
        }
        *self = match (core::mem::take(self), kind) {
            (Self::Uniform(scales), _) => {
                Self::NonUniform(scales.into_iter().map(Vec3::splat).collect())
            }
            (_, ScaleKind::Uniform) => Self::Uniform(vec![1.0; len]),
            _ => Self::NonUniform(vec![Vec3::ONE; len]),
        };
    }

    /// Replaces the scale of an existing one of `len` instances.
    pub fn set(&mut self, at: usize, scale: Vec3, len: usize) {
        self.widen(ScaleKind::of(scale), len);
        match self {
            Self::One => {}
            Self::Uniform(scales) => scales[at] = scale.x,
            Self::NonUniform(scales) => scales[at] = scale,
        }
    }

    /// Adds the scale of an instance behind `len` others.
    pub fn push(&mut self, scale: Vec3, len: usize) {
        self.widen(ScaleKind::of(scale), len);
        match self {
            Self::One => {}
            Self::Uniform(scales) => scales.push(scale.x),
            Self::NonUniform(scales) => scales.push(scale),
        }
    }

    /// Replaces `range` of `len` scales by `added` others, as [`Vec::splice`] does. Returns what
    /// was there.
    pub fn splice(&mut self, range: Range<usize>, len: usize, mut new: Self, added: usize) -> Self {
        let before = self.kind();
        self.widen(new.kind(), len);
        new.widen(self.kind(), added);
        let mut removed = match (self, new) {
            (Self::Uniform(scales), Self::Uniform(new)) => {
                Self::Uniform(scales.splice(range, new).collect())
            }
            (Self::NonUniform(scales), Self::NonUniform(new)) => {
                Self::NonUniform(scales.splice(range, new).collect())
            }
            _ => Self::One,
        };
        // What is removed has the kind that the set had.
        match (&removed, before) {
            (_, ScaleKind::One) => removed = Self::One,
            (Self::NonUniform(scales), ScaleKind::Uniform) => {
                removed = Self::Uniform(scales.iter().map(|scale| scale.x).collect());
            }
            _ => {}
        }
        removed
    }

    /// Adds `added` scales behind `len` others.
    pub fn append(&mut self, len: usize, tail: Self, added: usize) {
        if len == 0 && self.kind() <= tail.kind() {
            *self = tail;
        } else {
            self.splice(len..len, len, tail, added);
        }
    }

    /// Replaces the scales from `first` on, of `len`, by `added` others.
    pub fn overwrite(&mut self, first: usize, len: usize, new: Self, added: usize) {
        self.splice(first..first + added, len, new, added);
    }

    pub fn truncate(&mut self, len: usize) {
        match self {
            Self::One => {}
            Self::Uniform(scales) => scales.truncate(len),
            Self::NonUniform(scales) => scales.truncate(len),
        }
    }

    /// Puts the last scale in the place of another one.
    pub fn swap_remove(&mut self, at: usize) {
        match self {
            Self::One => {}
            Self::Uniform(scales) => drop(scales.swap_remove(at)),
            Self::NonUniform(scales) => drop(scales.swap_remove(at)),
        }
    }

    /// Keeps the scales that are marked.
    pub fn retain(&mut self, kept: &[bool]) {
        match self {
            Self::One => {}
            Self::Uniform(scales) => retain_values(scales, kept),
            Self::NonUniform(scales) => retain_values(scales, kept),
        }
    }
}

/// Keeps the values that are marked.
pub(super) fn retain_values<T>(values: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    values.retain(|_| kept.next().is_none_or(|kept| *kept));
}
