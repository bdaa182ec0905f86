//! Ids are as small as their numbers, and lists accept only their own type of id as index.

use subak_core::{FlowId, Id, IdVec, LinkId, NodeId, Offsets, SubflowId};

#[test]
fn an_id_is_its_number_in_memory_and_on_the_screen() {
    assert_eq!([size_of::<LinkId>(), size_of::<NodeId>(), size_of::<FlowId>(), size_of::<SubflowId>()], [4, 4, 4, 1]);
    assert_eq!(size_of::<IdVec<LinkId, f64>>(), size_of::<Vec<f64>>());
    assert_eq!(format!("{} {:?} {:?}", LinkId(7), LinkId(7), Some(SubflowId(1))), "7 7 Some(1)");
    assert_eq!((LinkId::from_index(3).index(), <LinkId as Id>::from_index(3), u64::from(LinkId(3))), (3, LinkId(3), 3));
    assert_eq!(LinkId::first(3).collect::<Vec<_>>(), LinkId::each([0, 1, 2]));
}

#[test]
fn a_list_gives_out_the_ids_that_open_it() {
    let mut names = IdVec::<NodeId, &str>::new();
    let (a, b) = (names.push("a"), names.push("b"));
    assert_eq!((a, b, names.next_id(), names.len()), (NodeId(0), NodeId(1), NodeId(2), 2));
    names[b] = "c";
    assert_eq!((names[a], names.get(b), names.get(NodeId(2))), ("a", Some(&"c"), None));
    assert!(names.iter_enumerated().map(|(node, _)| node).eq(names.ids()));
    assert_eq!(names, ["a", "c"]);
}

#[test]
fn offsets_bound_the_rows_of_a_table() {
    let mut rows = Offsets::<FlowId>::default();
    assert!(rows.is_empty());
    [2, 2, 5].into_iter().for_each(|end| rows.push(end));
    assert_eq!((0..3).map(|f| rows.row(FlowId(f))).collect::<Vec<_>>(), [0..2, 2..2, 2..5]);
    assert_eq!((rows.rows(FlowId(0)..FlowId(3)), rows.start(FlowId(2)), rows.raw()), (0..5, 2, &[0, 2, 2, 5][..]));
    rows.clear();
    assert_eq!((rows.len(), rows.raw()), (0, &[0][..]));
}
