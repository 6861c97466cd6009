// The command of a row by the table of the rows' draws. Comes after draw.wgsl.

@group(0) @binding(3) var<storage, read> row_draws: array<RowDraw>;

fn write_draw(row: u32, first_place: u32, end_place: u32) {
    let draw = row_draws[row];
    write_command(
        row,
        draw.element_count,
        draw.first_element,
        draw.base_vertex,
        draw.indexed,
        first_place,
        end_place);
}
