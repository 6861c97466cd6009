//! Tests of the draw slots.

use super::{
    room::{SELECTOR_HEAD, WINDOW_SLOTS},
    *,
};
use crate::render::lods::SlotFade;
use bevy::{
    math::Affine3Ext,
    pbr::{MeshInputUniform, MeshUniform},
    render::render_resource::ShaderType,
};
use core::ops::Range;
use proptest::prelude::*;

/// The test `layout` compares the WGSL with the same offsets.
#[test]
fn a_slot_is_a_mesh_uniform_and_what_follows_it() {
    assert_eq!(MeshUniform::min_size().get(), 176);
    assert_eq!(SlotInfo::min_size().get(), 304 - 176);
    assert_eq!(OFFSET_BEGIN + SlotOffset::min_size().get(), SLOT_BYTES);
    let offsets = [0, 1, 2].map(|field| SlotOffset::METADATA.offset(field));
    assert_eq!(offsets, [0, 48, 96]);
    let offsets = [0, 1, 2, 3, 4, 5, 6].map(|field| SlotInfo::METADATA.offset(field));
    assert_eq!(offsets, [0, 4, 8, 12, 16, 64, 80]);
    let offsets = [0, 1, 2, 3].map(|field| SlotFade::METADATA.offset(field));
    assert_eq!(offsets, [0, 16, 32, 44]);
}

/// An entity in a frame.
#[derive(Clone, Debug)]
struct InFrame {
    index: u32,
    at: i8,
    /// Number of regions of its set.
    regions: u32,
    /// Where they begin.
    first: u32,
    /// Its offset, 0 for none.
    offset: u8,
}

impl InFrame {
    fn offset(&self) -> Option<Affine3> {
        let at = Vec3::Z * f32::from(self.offset);
        (self.offset > 0).then(|| Affine3::from_translation(at))
    }
}

type Frame = Vec<InFrame>;

fn entity(index: u32) -> MainEntity {
    Entity::from_raw_u32(index)
        .unwrap_or(Entity::PLACEHOLDER)
        .into()
}

fn data(at: i8) -> EntityUniform {
    let at = Affine3::from_scale_rotation_translation(
        Vec3::splat(2.0),
        Quat::from_rotation_y(f32::from(at)),
        Vec3::X * f32::from(at),
    );
    EntityUniform::Input(MeshInputUniform {
        world_from_local: at.to_transpose(),
        ..Default::default()
    })
}

fn info(first: u32, region: u32) -> SlotInfo {
    SlotInfo {
        region_first: first * 100 + region,
        ..Default::default()
    }
}

/// The slots of an entity of a frame, built without the slots of the previous frame.
fn built_again(entity: &InFrame, before: &Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    let was = before.iter().find(|was| was.index == entity.index);
    let was = was.filter(|was| was.regions > 0).unwrap_or(entity);
    for region in 0..entity.regions {
        let mut uniform = data(entity.at).uniform();
        uniform.previous_world_from_local = data(was.at).uniform().world_from_local;
        let mut slot = vec![0; SLOT_STRIDE as usize];
        write(&uniform, &mut slot[..176]);
        write(
            &info(entity.first, region),
            &mut slot[176..OFFSET_BEGIN as usize],
        );
        if let Some(offset) = entity.offset() {
            let before = was.offset().unwrap_or(Affine3::IDENTITY);
            write(
                &SlotOffset::new(offset, before),
                &mut slot[OFFSET_BEGIN as usize..],
            );
        }
        bytes.extend(slot);
    }
    bytes
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let set = (0i8..2, 0u32..3, 0u32..2, 0u8..3);
    let frame = prop::collection::vec((any::<bool>(), set), 0..4).prop_map(|sets| {
        let sets = (0..).zip(sets);
        let present = sets.filter(|(_, (present, _))| *present);
        present
            .map(|(index, (_, (at, regions, first, offset)))| InFrame {
                index,
                at,
                regions,
                first,
                offset,
            })
            .collect::<Frame>()
    });
    // Most frames are like the previous one.
    let frame = prop_oneof![3 => Just(None), 2 => frame.prop_map(Some)];
    prop::collection::vec((frame, any::<bool>()), 1..12).prop_map(|frames| {
        let mut all: Vec<Frame> = Vec::new();
        for (frame, turned) in frames {
            let mut frame = frame.unwrap_or_else(|| all.last().cloned().unwrap_or_default());
            if turned {
                frame.reverse();
            }
            all.push(frame);
        }
        all
    })
}

/// Writes what changed to the GPU's bytes.
fn upload(held: &mut Vec<u8>, changed: &mut ChangedBytes, bytes: &[u8]) {
    if held.len() < bytes.len() {
        held.resize(bytes.len(), 0xff);
    }
    for range in changed.take_writes(bytes.len()) {
        held[range.clone()].copy_from_slice(&bytes[range]);
    }
}

/// The byte offset of the slot of an instance in a granule, as the shader finds it.
fn found(buffer: &[u32], window: u64, granule: u32) -> u64 {
    let selector = &buffer[window as usize / 4..];
    let slot = selector[SELECTOR_HEAD / 4 + (granule & selector[0]) as usize];
    let index = slot.wrapping_add(selector[1]);
    window + WINDOW_SLOTS + u64::from(index) * SLOT_STRIDE
}

/// Each window begins with its selector, and finds its slots.
#[test]
fn a_window_finds_the_slots_that_it_selects() {
    for (slots, tables) in [(16, 0), (64, 2), (1024, 4)] {
        let capacity = SlotCapacity { slots, tables };
        let mut buffer = capacity.selectors();
        let mut table = SlotTable::default();
        assert!(table.put(0..2, 7) && table.put(2..3, 8) && table.put(8315..8316, 15));
        for index in 0..tables {
            assert_eq!(buffer.len() as u64 * 4, capacity.table(index));
            buffer.extend(capacity.selector_of(index, &table));
            buffer.resize(capacity.table(index + 1) as usize / 4, 0);
        }
        let place = |slot: u64| capacity.first_slot() + slot * SLOT_STRIDE;
        for slot in 0..slots {
            let window = u64::from(DrawSlots::selector_of(slot as u32));
            assert_eq!(found(&buffer, window, 700), place(slot));
        }
        for index in 0..tables {
            for (granule, slot) in [(0, 7), (1, 7), (2, 8), (8315, 15)] {
                assert_eq!(found(&buffer, capacity.table(index), granule), place(slot));
            }
            assert!(capacity.table(index) + capacity.window() <= capacity.bytes());
        }
    }
}

#[test]
fn a_table_keeps_the_first_slot_of_a_granule() {
    let mut table = SlotTable::default();
    assert!(table.put(3..5, 1));
    assert!(!table.put(4..6, 2));
    assert!(table.put(5..6, 2));
    assert!(!table.put(8315..8317, 3));
    assert!(table.put(7..8, 3));
    assert_eq!(table.slots, [0, 0, 0, 1, 1, 2, 0, 3]);
}

proptest! {
    /// Frames in which sets come and go, with the list of sets of the frame before or another one.
    #[test]
    fn kept_slots_are_those_made_anew(
        frames in frames(),
        lists in prop::collection::vec(0u64..2, 12),
        keeps in any::<bool>(),
    ) {
        let mut slots = DrawSlots::default();
        let mut before = Frame::new();
        // What the GPU has.
        let mut uploaded = Vec::new();
        let mut uploaded_uniforms = Vec::new();
        let mut known = std::collections::HashMap::new();
        for (frame, list) in frames.into_iter().zip(lists) {
            slots.start_frame(list);
            let mut firsts = Vec::new();
            for now in &frame {
                let (entity, data) = (entity(now.index), data(now.at));
                let place = now.index as usize;
                let set = |at: &InFrame| (at.regions, at.first);
                let was: Option<InFrame> = known.insert(place, now.clone());
                let was = was.filter(|was| set(was) == set(now));
                let offset = now.offset();
                let count = now.regions;
                let is_kept =
                    keeps && was.is_some() && slots.keep(place, count, entity, &data, offset);
                let first = slots.claim(place, now.regions);
                firsts.push(first);
                for region in (0..now.regions).filter(|_| !is_kept) {
                    let info = info(now.first, region);
                    slots.fill(first + region, entity, &data, info, offset);
                }
            }
            slots.finish();
            upload(&mut uploaded, &mut slots.changed, &slots.bytes);
            let changed = &mut slots.changed_uniforms;
            upload(&mut uploaded_uniforms, changed, &slots.uniforms);
            for (now, first) in frame.iter().zip(firsts) {
                let wanted = built_again(now, &before);
                let at = first as usize * SLOT_STRIDE as usize;
                prop_assert_eq!(&uploaded[at..at + wanted.len()], &*wanted);
                let each = wanted.chunks_exact(SLOT_STRIDE as usize);
                let uniforms: Vec<_> = each.flat_map(|slot| slot[..176].to_vec()).collect();
                let at = first as usize * 176;
                prop_assert_eq!(&uploaded_uniforms[at..at + uniforms.len()], &*uniforms);
            }
            prop_assert!(slots.slots.len() <= 64);
            before = frame;
        }
    }
}

/// Slots that no view needs make the buffer no larger than one binding of 128 MiB.
#[test]
fn slots_of_unseen_sets_fit_the_binding_of_those_that_are_seen() {
    for used in [0, 1, 1000, 1025, 8000, 20_000, 32_768, 40_000, 65_536] {
        let kept = kept_slots(used);
        assert!(kept >= used && kept >= MANY_SLOTS, "{used}: {kept}");
        let capacity = SlotCapacity::with(kept as u64, 4);
        assert!(capacity.slots >= kept as u64 && capacity.slots <= kept as u64 * 9 / 8);
        assert!(capacity.window() <= 1 << 27, "{used}: {kept}");
    }
}

/// A camera on its way through a world of a hundred thousand sets, of which it sees a hundred.
#[test]
fn sets_that_no_view_sees_any_more_lose_their_slots() {
    let mut slots = DrawSlots::default();
    let mut max = 0;
    for first in (0..100_000).step_by(50) {
        slots.start_frame(3);
        for index in first..first + 100 {
            let (entity, data) = (entity(index), data((index % 100) as i8));
            if !slots.keep(index as usize, 1, entity, &data, None) {
                let slot = slots.claim(index as usize, 1);
                slots.fill(slot, entity, &data, info(index, 0), None);
            }
        }
        slots.finish();
        max = max.max(slots.slots.len());
        let last = slots.claim(first as usize + 99, 1) as usize;
        assert!(slots.slots[last].info == info(first + 99, 0));
    }
    assert!(max > MANY_SLOTS && max < MANY_SLOTS + 200, "{max}");
    // A frame in which nothing is drawn takes no slots away.
    slots.start_frame(3);
    let before = slots.slots.len();
    slots.start_frame(3);
    assert_eq!(slots.slots.len(), before);
}

#[test]
fn one_entity_of_two_thousand_that_moves_uploads_its_own_slots_only() {
    let mut slots = DrawSlots::default();
    let mut frame = |moved_by: i8, seen: Range<u32>| {
        slots.start_frame(7);
        for index in seen {
            let at = if index == 1000 { moved_by } else { 0 };
            let (entity, data) = (entity(index), data(at));
            if !slots.keep(index as usize, 1, entity, &data, None) {
                let slot = slots.claim(index as usize, 1);
                slots.fill(slot, entity, &data, info(index, 0), None);
            }
        }
        slots.finish();
        slots.changed.take_writes(slots.bytes.len())
    };
    let all = 2000 * SLOT_STRIDE as usize;
    let vec_of = |range: Range<usize>| core::iter::once(range).collect::<Vec<_>>();
    let nothing = Vec::<Range<usize>>::new();
    assert_eq!(frame(0, 0..2000), vec_of(0..all));
    assert_eq!(frame(0, 0..2000), nothing);
    // Others that leave a view, and come back, move no slot.
    assert_eq!(frame(0, 500..2000), nothing);
    assert_eq!(frame(0, 0..2000), nothing);
    let own = || vec_of(1000 * SLOT_STRIDE as usize..1001 * SLOT_STRIDE as usize);
    assert_eq!(frame(1, 0..2000), own());
    assert_eq!(frame(2, 0..2000), own());
    // Its place of the frame before is the same as its place now.
    assert_eq!(frame(2, 0..2000), own());
    assert_eq!(frame(2, 0..2000), nothing);
}

#[test]
fn the_slots_of_a_set_that_went_are_anothers() {
    let mut slots = DrawSlots::default();
    slots.start_frame(1);
    let first = [(0, 1), (1, 2), (2, 1), (3, 2)].map(|(place, count)| slots.claim(place, count));
    assert_eq!(first, [0, 1, 3, 4]);
    for place in [0, 1, 1, 7] {
        slots.release(place);
    }
    assert_eq!(slots.holes, 3, "the slots of two sets");
    // One of each length is free.
    let next = [(4, 2), (5, 2), (6, 1), (7, 3)].map(|(place, count)| slots.claim(place, count));
    assert_eq!(next, [1, 6, 0, 8]);
    assert_eq!(slots.holes, 0);
    // Other lists of sets: nothing is free.
    slots.release(7);
    slots.start_frame(2);
    assert_eq!((slots.claim(0, 3), slots.holes), (0, 0));
}

#[test]
fn granules_are_taken_from_the_slot_that_has_them_only() {
    let mut table = SlotTable::default();
    assert!(table.put(2..4, 5) && table.put(4..5, 6) && !table.put(3..6, 7));
    table.remove(3..5, 5);
    table.remove(2..4, 6);
    table.remove(2..9, 5);
    assert!(!table.put(2..3, 7) && !table.put(4..5, 7), "none was taken");
    table.remove(2..4, 5);
    assert!(table.put(2..4, 7) && !table.put(4..5, 7));
    assert_eq!(table.slots, [0, 0, 7, 7, 6, 0]);
}
