use super::{seen::place_of_view, *};
use crate::render::views::view_order;

fn view(index: u32, subview: u32) -> FrameView {
    let mut view = FrameView::test(index);
    view.key.subview_index = subview;
    view
}

#[test]
fn a_view_is_found_among_those_of_any_request() {
    let mut views: Vec<_> = [(5, 0), (2, 1), (2, 0), (9, 3), (7, 0)]
        .map(|(index, subview)| view(index, subview))
        .into();
    views.sort_by_key(|view| view_order(&view.key));
    let distinct = views.len();
    let unknown = view(7, 1).key;
    for seen in 0..1u32 << distinct {
        for first in [0, distinct as u32] {
            let indices = (0..distinct as u32).filter(|index| seen >> index & 1 == 1);
            let request: Vec<u32> = indices.map(|index| first + index).collect();
            for (index, view) in (first..).zip(&views) {
                let expected = request.iter().position(|seen| *seen == index);
                assert_eq!(place_of_view(&views, &request, &view.key), expected);
            }
            assert_eq!(place_of_view(&views, &request, &unknown), None);
        }
    }
}
