// What pass 2 does with an item: nothing. A caller's WGSL replaces it (`ExpanderOptions::body`).

// ---- What a caller replaces.

// Called once per item of every source, concurrently and in any order.
fn expand_item(source: u32, item: u32) {}

// Called once by every thread, after its last item.
fn expand_done() {}
