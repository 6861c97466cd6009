//! Values of glTF accessors.
//!
//! A file may be loaded without validation, and its numbers may be anything. So nothing is taken
//! for granted, and memory is asked for only after a count is known to fit the file's buffers.

use gltf::json::{
    Index, Root,
    accessor::{ComponentType, Type, sparse::Sparse},
    buffer::View,
    validation::Checked,
};

/// The largest value, in bytes: four `f32`.
const MAX_SIZE: usize = 16;

/// The values of an accessor, as bytes.
pub(super) struct Values<'a> {
    kind: Type,
    component: ComponentType,
    normalized: bool,
    count: usize,
    /// All of them; `None` if those that are not in `sparse` are 0.
    dense: Option<Run<'a>>,
    /// Indices, which rise, and what is there instead.
    sparse: Vec<(usize, &'a [u8])>,
}

impl<'a> Values<'a> {
    /// The values of an accessor. An accessor without a value is refused, and so is one that has
    /// more values than the file's buffers have bytes.
    pub fn new(root: &'a Root, buffers: &'a [Vec<u8>], index: usize) -> Result<Self, String> {
        let accessor = root
            .accessors
            .get(index)
            .ok_or_else(|| format!("is accessor {index}, which the file does not have"))?;
        let (Checked::Valid(kind), Checked::Valid(component)) =
            (accessor.type_, accessor.component_type)
        else {
            return Err("has values of an unknown type".to_owned());
        };
        let (component, count) = (component.0, accessor.count.0);
        if matches!(kind, Type::Mat2 | Type::Mat3 | Type::Mat4) {
            return Err("has matrices".to_owned());
        }
        let max: u64 = buffers.iter().map(|buffer| buffer.len() as u64).sum();
        let count = match usize::try_from(count) {
            Ok(count) if count > 0 && count as u64 <= max => count,
            _ => {
                return Err(format!(
                    "has {count} values, and must have from 1 to {max}: one byte of the file's buffers or more per value"
                ));
            }
        };
        let size = kind.multiplicity() * component.size();
        let dense = match accessor.buffer_view {
            None => None,
            Some(view) => {
                let offset = accessor.byte_offset.unwrap_or_default().0;
                Some(Run::new(root, buffers, (view, offset), size, count)?)
            }
        };
        let sparse = match &accessor.sparse {
            None => Vec::new(),
            Some(sparse) => replaced(root, buffers, sparse, size, count)
                .map_err(|problem| format!("has sparse values, but {problem}"))?,
        };
        Ok(Self {
            kind,
            component,
            normalized: accessor.normalized,
            count,
            dense,
            sparse,
        })
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The bytes of each value.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        const ZEROS: [u8; MAX_SIZE] = [0; MAX_SIZE];
        let size = self.kind.multiplicity() * self.component.size();
        let mut sparse = self.sparse.iter().peekable();
        (0..self.count).map(move |at| {
            let replaced = sparse.next_if(|(index, _)| *index == at);
            match (replaced, &self.dense) {
                (Some((_, value)), _) => value,
                (None, Some(dense)) => dense.get(at),
                (None, None) => &ZEROS[..size],
            }
        })
    }

    /// The values as numbers of this kind: floats, or normalized integers if `normalized` says so.
    pub fn numbers<const N: usize>(
        &self,
        kind: Type,
        normalized: bool,
    ) -> Result<Vec<[f32; N]>, String> {
        use ComponentType::{F32, U32};
        let is_number = match self.component {
            F32 => true,
            U32 => false,
            _ => self.normalized && normalized,
        };
        if self.kind != kind || !is_number {
            let or = if normalized {
                " or of normalized integers of 8 or 16 bits"
            } else {
                ""
            };
            return Err(format!("has {self}, and must have {kind:?} of F32{or}"));
        }
        let size = self.component.size();
        let number = |bytes: &[u8], at: usize| number(self.component, &bytes[at * size..]);
        let values = self.iter();
        Ok(values
            .map(|bytes| core::array::from_fn(|at| number(bytes, at)))
            .collect())
    }

    /// The values as whole numbers; `None` if they are anything else.
    pub fn whole_numbers(&self) -> Option<Vec<u32>> {
        let is_index = self.kind == Type::Scalar && !self.normalized;
        let values = self.iter().map(|bytes| match self.component {
            ComponentType::F32 => {
                let value = f32::from_le_bytes(first(bytes));
                let is_exact = (0.0..=16_777_216.0).contains(&value) && value.fract() == 0.0;
                is_exact.then_some(value as u32)
            }
            ComponentType::U8 | ComponentType::U16 | ComponentType::U32 => Some(unsigned(bytes)),
            ComponentType::I8 | ComponentType::I16 => None,
        });
        if is_index { values.collect() } else { None }
    }

    /// Words that a value takes.
    pub fn words(&self) -> usize {
        (self.kind.multiplicity() * self.component.size()).div_ceil(4)
    }
}

/// As in "normalized Vec4 of U16".
impl core::fmt::Display for Values<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let normalized = if self.normalized { "normalized " } else { "" };
        write!(f, "{normalized}{:?} of {:?}", self.kind, self.component)
    }
}

/// Values at equal distances in a buffer.
struct Run<'a> {
    bytes: &'a [u8],
    stride: usize,
    size: usize,
}

impl<'a> Run<'a> {
    /// `count` values of `size` bytes from a place in a buffer view on. Neither is 0.
    fn new(
        root: &Root,
        buffers: &'a [Vec<u8>],
        (view, offset): (Index<View>, u64),
        size: usize,
        count: usize,
    ) -> Result<Self, String> {
        let index = view.value();
        let found = root.buffer_views.get(index).and_then(|view| {
            let buffer = buffers.get(view.buffer.value())?;
            let first = usize::try_from(view.byte_offset.unwrap_or_default().0).ok()?;
            let end = first.checked_add(usize::try_from(view.byte_length.0).ok()?)?;
            Some((view, buffer.get(first..end)?))
        });
        let Some((view, bytes)) = found else {
            return Err(format!(
                "buffer view {index}, which holds its values, is not in the file's buffers"
            ));
        };
        let stride = view.byte_stride.map_or(size, |stride| stride.0);
        if stride < size {
            return Err(format!(
                "its values of {size} bytes are {stride} bytes apart in buffer view {index}"
            ));
        }
        // A stride is a number of the file, so it may be anything.
        let needed = (count as u64 - 1)
            .checked_mul(stride as u64)
            .and_then(|bytes| bytes.checked_add(size as u64)?.checked_add(offset));
        match usize::try_from(offset).ok().and_then(|at| bytes.get(at..)) {
            Some(rest) if needed.is_some_and(|needed| needed <= bytes.len() as u64) => Ok(Self {
                bytes: rest,
                stride,
                size,
            }),
            _ => Err(format!(
                "buffer view {index} has {} bytes, which are too few for {count} values of {size} bytes, {stride} bytes \
                 apart, from byte {offset} on",
                bytes.len()
            )),
        }
    }

    fn get(&self, at: usize) -> &'a [u8] {
        &self.bytes[at * self.stride..][..self.size]
    }
}

/// The values that a sparse accessor replaces.
fn replaced<'a>(
    root: &Root,
    buffers: &'a [Vec<u8>],
    sparse: &Sparse,
    size: usize,
    count: usize,
) -> Result<Vec<(usize, &'a [u8])>, String> {
    let (indices, values) = (&sparse.indices, &sparse.values);
    let Checked::Valid(component) = indices.component_type else {
        return Err("its indices have an unknown type".to_owned());
    };
    let replaced = match usize::try_from(sparse.count.0) {
        Ok(0) => return Ok(Vec::new()),
        Ok(replaced) if replaced <= count => replaced,
        _ => return Err(format!("{} of {count} are replaced", sparse.count.0)),
    };
    let place = (indices.buffer_view, indices.byte_offset.0);
    let indices = Run::new(root, buffers, place, component.0.size(), replaced)?;
    let place = (values.buffer_view, values.byte_offset.0);
    let values = Run::new(root, buffers, place, size, replaced)?;
    let mut min = 0;
    (0..replaced)
        .map(|at| {
            let index = unsigned(indices.get(at)) as usize;
            if index < min || index >= count {
                return Err(format!(
                    "index {at} of them is {index}; indices must rise and be less than {count}"
                ));
            }
            min = index + 1;
            Ok((index, values.get(at)))
        })
        .collect()
}

/// The first `N` bytes; zeros if there are fewer.
fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    core::array::from_fn(|at| bytes.get(at).copied().unwrap_or_default())
}

/// An unsigned number of one to four bytes.
fn unsigned(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(first(bytes))
}

/// A float, or a normalized integer. Codes of `N` bits mean multiples of `1 / (2^N - 1)`, signed
/// ones of `1 / (2^(N - 1) - 1)`.
fn number(component: ComponentType, bytes: &[u8]) -> f32 {
    match component {
        ComponentType::F32 | ComponentType::U32 => f32::from_le_bytes(first(bytes)),
        ComponentType::I8 => (f32::from(i8::from_le_bytes(first(bytes))) / 127.0).max(-1.0),
        ComponentType::U8 => f32::from(u8::from_le_bytes(first(bytes))) / 255.0,
        ComponentType::I16 => (f32::from(i16::from_le_bytes(first(bytes))) / 32767.0).max(-1.0),
        ComponentType::U16 => f32::from(u16::from_le_bytes(first(bytes))) / 65535.0,
    }
}
