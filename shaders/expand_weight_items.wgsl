// An entry an item: the sum of the weights is the number of items.

fn weight_of(items: u32) -> u32 {
    return items;
}

fn note_items(items: u32) {}

fn store_sums(slot: u32, thread: u32) {}
