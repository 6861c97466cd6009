// A workgroup a span of items: `workgroup-search`.

fn partial_count() -> u32 {
    return tile_count();
}

fn plan(total: u32, thread: u32) {
    if (thread == 0u) {
        let spans = total / EXPAND_SPAN + select(0u, 1u, total % EXPAND_SPAN != 0u);
        write_plan(total, 0u, total, spans, 0u);
    }
}
