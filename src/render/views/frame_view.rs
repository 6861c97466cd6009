//! The names of a frame's views, and their order.

use bevy::{
    prelude::*,
    render::{sync_world::MainEntity, view::RetainedViewEntity},
};

/// The kind of a view. It decides which planes are tested (see
/// [`CullView`](crate::cull::CullView)).
#[derive(Reflect, Clone, Copy, Debug, PartialEq, Eq)]
#[reflect(Clone, Debug, PartialEq)]
pub enum ViewKind {
    /// A camera.
    Camera,
    /// A cascade of a directional light.
    Cascade,
    /// A face of a point light's cube.
    PointFace,
    /// A spot light.
    Spot,
}

/// A view of a frame, as reports name it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::render) struct FrameView<Name = String> {
    /// Bevy's key of the view, the same in every frame.
    pub key: RetainedViewEntity,
    pub kind: ViewKind,
    /// The shadow pass's name; empty for a camera.
    pub name: Name,
    pub fades: ViewFades,
}

#[cfg(test)]
impl FrameView {
    /// A camera.
    pub fn test(index: u32) -> Self {
        let entity = Entity::from_raw_u32(index);
        let entity = entity.unwrap_or(Entity::PLACEHOLDER);
        Self {
            key: RetainedViewEntity::new(entity.into(), None, 0),
            kind: ViewKind::Camera,
            name: String::new(),
            fades: ViewFades::All,
        }
    }
}

/// Which instances a view draws in part, by dither, and as a camera thins them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::render) enum ViewFades {
    /// Between levels, below a size, and in ranges: a camera.
    All,
    /// In ranges alone: a camera with other levels or sizes than the settings.
    Ranges,
    /// None: shadow views, and cameras whose culling is frozen.
    Nothing,
}

impl FrameView<&str> {
    fn is(self, known: &FrameView) -> bool {
        (self.key, self.kind, self.fades) == (known.key, known.kind, known.fades)
            && self.name == known.name
    }

    fn to_owned(self) -> FrameView {
        FrameView {
            key: self.key,
            kind: self.kind,
            name: self.name.to_owned(),
            fades: self.fades,
        }
    }
}

/// Replaces the views of the previous frame by the views of this frame. Those that stay keep their
/// names, which are not copied again.
pub(in crate::render) fn follow_views<'a>(
    views: &mut Vec<FrameView>,
    now: impl ExactSizeIterator<Item = FrameView<&'a str>>,
) {
    views.truncate(now.len());
    for (index, view) in now.enumerate() {
        match views.get_mut(index) {
            Some(known) if view.is(known) => {}
            Some(known) => *known = view.to_owned(),
            None => views.push(view.to_owned()),
        }
    }
}

impl FrameView {
    /// The camera that the view belongs to; `None` if all cameras share it.
    pub fn camera(&self) -> Option<MainEntity> {
        match self.kind {
            ViewKind::Camera => Some(self.key.main_entity),
            ViewKind::Cascade => self.key.auxiliary_entity,
            ViewKind::PointFace | ViewKind::Spot => None,
        }
    }

    /// The name in reports and verdicts: `camera`, or the shadow pass's name.
    pub fn display_name(&self) -> &str {
        match self.kind {
            ViewKind::Camera => "camera",
            _ => &self.name,
        }
    }
}

/// The order of the views of a frame. Bevy's order of entities may change between frames; the
/// engine's tables should not.
pub(in crate::render) fn view_order(key: &RetainedViewEntity) -> impl Ord + use<> {
    (key.main_entity, key.auxiliary_entity, key.subview_index)
}

/// The view at an index of [`CullFrame::views`](crate::cull::CullFrame::views): the views of a
/// frame, and behind them, for sets that are not culled, all of them once more.
pub(in crate::render) fn view_at(views: &[FrameView], index: u32) -> Option<&FrameView> {
    views.get(index as usize % views.len().max(1))
}

/// The index of the view with this key in a frame's views.
pub(in crate::render) fn index_of_view(
    views: &[FrameView],
    key: &RetainedViewEntity,
) -> Option<u32> {
    let wanted = view_order(key);
    let found = views.binary_search_by_key(&wanted, |view| view_order(&view.key));
    found.ok().map(|index| index as u32)
}
