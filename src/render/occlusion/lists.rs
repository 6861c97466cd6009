//! Which list of survivors the draws of a view take at present.

use super::views::HidingWay;
use crate::cull::DrawList;
use bevy::{platform::collections::HashMap, prelude::*, render::view::RetainedViewEntity};

/// The views of the frame that hide, and their present lists. Other views draw what the frustum
/// keeps.
#[derive(Resource, Default)]
pub(in crate::render) struct DrawnLists(HashMap<RetainedViewEntity, ViewLists>);

/// The lists of a view.
struct ViewLists {
    /// Index of the view in the frame.
    view: u32,
    way: HidingWay,
    list: DrawList,
}

impl DrawnLists {
    /// Starts a frame.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a view that hides.
    pub fn add(&mut self, key: RetainedViewEntity, view: u32, way: HidingWay) {
        let list = DrawList::Early;
        self.0.insert(key, ViewLists { view, way, list });
    }

    /// The list that draws in a view take.
    pub fn of(&self, view: &RetainedViewEntity) -> DrawList {
        let lists = self.0.get(view);
        lists.map_or(DrawList::Kept, |lists| lists.list)
    }

    /// The index of a view that hides in this way.
    pub fn view(&self, key: &RetainedViewEntity, way: HidingWay) -> Option<u32> {
        let lists = self.0.get(key)?;
        (lists.way == way).then_some(lists.view)
    }

    /// Changes the list of a view that hides in this way.
    pub fn set(&mut self, key: &RetainedViewEntity, way: HidingWay, list: DrawList) {
        if let Some(lists) = self.0.get_mut(key)
            && lists.way == way
        {
            lists.list = list;
        }
    }
}
