//! All edits of a set, in random order, against a `Vec` of the same instances.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use glam::Vec3;
use proptest::prelude::*;

use super::{InstanceId, InstanceSet, InstanceTransform, PackedInstance, SetChanges};

/// What an instance is: x, scale, data, whether it is hidden, and its id.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Value {
    x: f32,
    scale: Vec3,
    data: [u32; 4],
    is_hidden: bool,
    id: Option<InstanceId>,
}

impl Value {
    fn new(x: f32, scale: Vec3, tag: u32) -> Self {
        Self {
            x,
            scale,
            data: [tag, 0, 0, 0],
            is_hidden: false,
            id: None,
        }
    }

    fn transform(self) -> InstanceTransform {
        InstanceTransform {
            scale: self.scale,
            ..InstanceTransform::from(Vec3::new(self.x, 0.0, 0.0))
        }
    }
}

/// The instances of a set.
fn values(set: &InstanceSet) -> Vec<Value> {
    let value = |(index, got): (u32, InstanceTransform)| Value {
        x: got.translation.x,
        scale: got.scale,
        data: set.data(index).unwrap(),
        is_hidden: set.is_hidden(index),
        id: set.id_of(index),
    };
    (0u32..).zip(set.iter()).map(value).collect()
}

#[derive(Clone, Debug)]
enum Edit {
    Splice {
        start: usize,
        len: usize,
        new: usize,
        scale: Vec3,
        tag: u32,
    },
    Set(usize),
    SetPosition(usize),
    SetRange(usize, usize),
    Push,
    PushWithData(u32),
    ExtendTagged(usize),
    Insert(usize),
    Remove(usize),
    SwapRemove(usize),
    Pop,
    Retain(usize),
    Hide(usize, usize),
    Show(usize, usize),
    SetData(usize, usize, u32),
    Truncate(usize),
    Clear,
    Sort,
    Read,
}

fn edits() -> impl Strategy<Value = Edit> {
    let rarely = || prop::bool::weighted(0.1);
    let scales = prop_oneof![
        18 => Just(Vec3::ONE),
        1 => Just(Vec3::splat(2.0)),
        1 => Just(Vec3::new(2.0, 1.0, 0.5)),
    ];
    let tags = prop_oneof![9 => Just(0u32), 1 => 1..4u32];
    let at = || 0..3000usize;
    prop_oneof![
        6 => (at(), 0..900usize, 0..900usize, scales, tags)
            .prop_map(|(start, len, new, scale, tag)| Edit::Splice { start, len, new, scale, tag }),
        2 => at().prop_map(Edit::Set),
        1 => at().prop_map(Edit::SetPosition),
        1 => (at(), 0..300usize).prop_map(|(first, len)| Edit::SetRange(first, len)),
        1 => Just(Edit::Push),
        1 => (0..4u32).prop_map(Edit::PushWithData),
        1 => (0..300usize).prop_map(Edit::ExtendTagged),
        1 => at().prop_map(Edit::Insert),
        1 => at().prop_map(Edit::Remove),
        3 => at().prop_map(Edit::SwapRemove),
        1 => Just(Edit::Pop),
        1 => (2..400usize).prop_map(Edit::Retain),
        3 => (at(), 0..40usize).prop_map(|(first, len)| Edit::Hide(first, len)),
        2 => (at(), 0..40usize).prop_map(|(first, len)| Edit::Show(first, len)),
        1 => (at(), 0..300usize, 0..4u32).prop_map(|(first, len, words)| Edit::SetData(first, len, words)),
        1 => at().prop_map(Edit::Truncate),
        1 => rarely().prop_map(|clears| if clears { Edit::Clear } else { Edit::Read }),
        1 => rarely().prop_map(|sorts| if sorts { Edit::Sort } else { Edit::Read }),
        3 => Just(Edit::Read),
    ]
}

/// What a renderer has: a copy of the packed instances, their scales and their data, brought up to
/// date by what changed.
#[derive(Default)]
struct Reader {
    seen: u64,
    copy: Vec<PackedInstance>,
    scales: Vec<f32>,
    data: Vec<u32>,
    /// Which instance was at which index.
    known: Vec<Option<InstanceId>>,
}

impl Reader {
    /// Reads only what changed. It must never mistake a new instance for a known one.
    fn catch_up(&mut self, set: &InstanceSet) -> Result<(), TestCaseError> {
        let ids: Vec<_> = (0..set.len() as u32)
            .map(|index| set.id_of(index))
            .collect();
        match set.changes_since(self.seen) {
            SetChanges::Nothing => {}
            SetChanges::Everything => {
                self.copy = set.packed().to_vec();
                self.scales = set.scale_floats().to_vec();
                self.data = set.data_words().to_vec();
            }
            SetChanges::Ranges(changed) => {
                let before = self.copy.len();
                self.copy.resize(set.len(), PackedInstance::default());
                for range in changed.instances {
                    self.copy[range.clone()].copy_from_slice(&set.packed()[range]);
                }
                let floats = set.scale_kind().floats();
                self.scales.resize(set.len() * floats, 0.0);
                for range in changed.scales {
                    let range = range.start * floats..range.end * floats;
                    self.scales[range.clone()].copy_from_slice(&set.scale_floats()[range]);
                }
                let words = set.data_size() / 4;
                self.data.resize(set.len() * words, 0);
                for range in changed.data {
                    let range = range.start * words..range.end * words;
                    self.data[range.clone()].copy_from_slice(&set.data_words()[range]);
                }
                let pairs = self.known.iter().zip(&ids).enumerate();
                for (index, (old, new)) in pairs.take(before) {
                    let is_told = (changed.renumbered.iter()).any(|range| range.contains(&index));
                    prop_assert!(
                        old == new || is_told,
                        "instance {} is a different one",
                        index
                    );
                }
            }
        }
        self.seen = set.revision();
        self.known = ids;
        // As bytes, because a hidden instance has a NaN.
        let bytes =
            |instances: &[PackedInstance]| bytemuck::cast_slice::<_, u8>(instances).to_vec();
        prop_assert_eq!(bytes(&self.copy), bytes(set.packed()));
        prop_assert_eq!(&self.scales[..], set.scale_floats());
        prop_assert_eq!(&self.data[..], set.data_words());
        Ok(())
    }
}

/// Does the same to a set and to its model; the model's new instances have no id yet.
fn edit(set: &mut InstanceSet, model: &mut Vec<Value>, edit: &Edit) -> Result<(), TestCaseError> {
    match *edit {
        Edit::Splice {
            start,
            len,
            new,
            scale,
            tag,
        } => {
            let start = start.min(model.len());
            let range = start..(start + len).min(model.len());
            let new = (0..new).map(|k| Value::new((model.len() + k) as f32, scale, tag));
            let new: Vec<_> = new.collect();
            let instances = new.iter().map(|value| (value.transform(), value.data[0]));
            let indices = range.start as u32..range.end as u32;
            let removed = set.splice_tagged(indices, instances).unwrap();
            let expected = model
                .splice(range, new)
                .map(|value| Value { id: None, ..value });
            prop_assert_eq!(values(&removed), expected.collect::<Vec<_>>());
        }
        Edit::Set(at) if at < model.len() => {
            model[at].x = -(at as f32);
            model[at].scale = Vec3::ONE;
            set.set(at as u32, model[at].transform()).unwrap();
        }
        Edit::SetPosition(at) if at < model.len() => {
            model[at].x = 0.25 - at as f32;
            set.set_position(at as u32, Vec3::X * model[at].x).unwrap();
            let bad = set.set_position(at as u32, Vec3::INFINITY);
            prop_assert!(bad.is_err());
        }
        Edit::SetRange(first, len) => {
            let first = first.min(model.len());
            let range = first..(first + len).min(model.len());
            for value in &mut model[range.clone()] {
                value.x += 0.5;
            }
            let new = model[range].iter().map(|value| value.transform());
            set.set_range(first as u32, new).unwrap();
            let beyond = std::iter::repeat_n(Vec3::ZERO, model.len() + 1 - first);
            prop_assert!(set.set_range(first as u32, beyond).is_err());
        }
        Edit::SetData(first, len, words) => {
            let first = first.min(model.len());
            let range = first..(first + len).min(model.len());
            let new = (range.clone()).map(|at| [at as u32 % 5, at as u32, 1, !(at as u32)]);
            let new: Vec<[u32; 4]> = new.collect();
            for (value, new) in model[range].iter_mut().zip(&new) {
                let words = words as usize + 1;
                value.data[..words].copy_from_slice(&new[..words]);
            }
            let first = first as u32;
            let done = match words {
                0 => set.set_data_range(first, &new.iter().map(|new| new[0]).collect::<Vec<_>>()),
                1 => {
                    let new = new.iter().map(|new| [new[0], new[1]]);
                    set.set_data_range(first, &new.collect::<Vec<_>>())
                }
                2 => {
                    let new = new.iter().map(|new| [new[0], new[1], new[2]]);
                    set.set_data_range(first, &new.collect::<Vec<_>>())
                }
                _ => set.set_data_range(first, &new),
            };
            done.unwrap();
        }
        Edit::Push => {
            let index = set.push(Vec3::X * 7.5).unwrap();
            prop_assert_eq!(index as usize, model.len());
            model.push(Value::new(7.5, Vec3::ONE, 0));
        }
        Edit::PushWithData(word) => {
            let mut value = Value::new(3.5, Vec3::ONE, 0);
            value.data = [word, 1, word, 2];
            set.push_with_data(value.transform(), value.data).unwrap();
            model.push(value);
            set.extend_with_data([(value.transform(), value.data)])
                .unwrap();
            model.push(value);
            prop_assert!(set.push_with_data(Vec3::X, [0u8; 3]).is_err());
            prop_assert_eq!(set.len(), model.len());
        }
        Edit::ExtendTagged(count) => {
            let new = (0..count).map(|k| Value::new(k as f32, Vec3::ONE, 3));
            set.extend_tagged(new.clone().map(|value| (value.transform(), 3)))
                .unwrap();
            model.extend(new);
        }
        Edit::Insert(at) if at <= model.len() => {
            set.insert(at as u32, Vec3::X * 0.25).unwrap();
            model.insert(at, Value::new(0.25, Vec3::ONE, 0));
        }
        Edit::Remove(at) if at < model.len() => {
            let removed = set.remove(at as u32).unwrap();
            prop_assert_eq!(removed.translation.x, model.remove(at).x);
        }
        Edit::SwapRemove(at) if at < model.len() => {
            let moved = set.swap_remove(at as u32).unwrap();
            model.swap_remove(at);
            prop_assert_eq!(moved, (at < model.len()).then_some(model.len() as u32));
        }
        Edit::Insert(at)
        | Edit::Remove(at)
        | Edit::SwapRemove(at)
        | Edit::Set(at)
        | Edit::SetPosition(at) => {
            let (before, at) = (set.revision(), at.max(model.len() + 1) as u32);
            prop_assert!(set.remove(at).is_err() && set.swap_remove(at).is_err());
            prop_assert!(set.insert(at, Vec3::ZERO).is_err() && set.hide(at).is_err());
            prop_assert!(set.set(at, Vec3::ZERO).is_err() && set.show(at).is_err());
            prop_assert!(set.set_position(at, Vec3::ZERO).is_err());
            prop_assert_eq!(set.revision(), before);
        }
        Edit::Pop => {
            let popped = set.pop().map(|popped| popped.translation.x);
            prop_assert_eq!(popped, model.pop().map(|value| value.x));
        }
        Edit::Retain(step) => {
            set.retain(|index, _| !(index as usize).is_multiple_of(step))
                .unwrap();
            let mut index = 0;
            model.retain(|_| {
                index += 1;
                !(index - 1usize).is_multiple_of(step)
            });
        }
        Edit::Hide(first, len) => {
            for at in first..(first + len).min(model.len()) {
                set.hide(at as u32).unwrap();
                model[at].is_hidden = true;
            }
        }
        Edit::Show(first, len) => {
            let range = first.min(model.len())..(first + len).min(model.len());
            set.show_range(range.start as u32..range.end as u32)
                .unwrap();
            for value in &mut model[range] {
                value.is_hidden = false;
            }
        }
        Edit::Truncate(len) => {
            model.truncate(len);
            set.truncate(len);
        }
        Edit::Clear => {
            model.clear();
            set.clear();
        }
        Edit::Sort => {
            let order = set.sort();
            *model = (order.as_slice().iter())
                .map(|&old| model[old as usize])
                .collect();
        }
        Edit::Read => {}
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_set_is_edited_as_a_vec_is(all in prop::collection::vec(edits(), 1..40)) {
        let mut set = InstanceSet::new().with_ids();
        let (mut model, mut reader) = (Vec::<Value>::new(), Reader::default());
        let mut gone: Vec<InstanceId> = Vec::new();
        for one in all {
            let before: Vec<_> = model.iter().filter_map(|value| value.id).collect();
            edit(&mut set, &mut model, &one)?;
            if matches!(one, Edit::Read) {
                reader.catch_up(&set)?;
            }
            // New instances have new ids; the others keep theirs.
            let mut got = values(&set);
            for (got, expected) in got.iter_mut().zip(&model) {
                prop_assert!(got.id.is_some() && expected.id.is_none_or(|id| got.id == Some(id)));
            }
            for (got, expected) in got.iter_mut().zip(&mut model) {
                expected.id = got.id;
            }
            prop_assert_eq!(&got, &model);
            for (index, value) in (0u32..).zip(&model) {
                prop_assert_eq!(value.id.and_then(|id| set.index_of(id)), Some(index));
            }
            gone.extend(before.into_iter().filter(|id| !model.iter().any(|value| value.id == Some(*id))));
            prop_assert!(gone.iter().all(|id| set.index_of(*id).is_none()));

            let hidden = (0u32..).zip(&model).filter(|(_, value)| value.is_hidden);
            prop_assert!(set.hidden().eq(hidden.map(|(index, _)| index)));
            let bounds = set.bounds();
            for value in model.iter().filter(|value| !value.is_hidden) {
                let is_inside = bounds.is_some_and(|b| b.min.x <= value.x && value.x <= b.max.x && value.scale.max_element() <= b.max_scale);
                prop_assert!(is_inside, "{:?} is outside {:?}", value, bounds);
            }
            prop_assert!(!model.is_empty() || bounds.is_none());
        }
    }
}
