//! Order of a program's flows.

subak_core::id! {
    /// Index of a flow in the program.
    pub(super) struct ProgramIndex(u32);
}

/// Sorts `items` by key, stably.
pub(super) fn counting_sort(items: Vec<ProgramIndex>, key: impl Fn(usize) -> usize) -> Vec<ProgramIndex> {
    let mut place = Vec::new();
    for &i in &items {
        let key = key(i.index());
        place.resize(place.len().max(key + 1), 0);
        place[key] += 1;
    }
    let mut next = 0;
    for place in &mut place {
        next += std::mem::replace(place, next);
    }
    let mut sorted = vec![ProgramIndex(0); items.len()];
    for i in items {
        let place = &mut place[key(i.index())];
        sorted[*place] = i;
        *place += 1;
    }
    sorted
}
