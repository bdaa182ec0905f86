//! Documents of earlier versions can still be read. `tests/inputs/test_kept.py` says what to do if one cannot.

use subak_testbed::{Recording, Schedule};

#[test]
fn documents_that_an_earlier_version_wrote() {
    let why = "a document of an earlier version is not read any more: see tests/inputs/test_kept.py for what to do";
    let schedule: Schedule = serde_json::from_str(include_str!("../../../tests/data/kept/schedule.json")).expect(why);
    assert_eq!(schedule.check(), Ok(()));
    assert_eq!((schedule.flows[0].size_bytes, schedule.flows[0].weight), (Some(20_000), 1.0));
    assert_eq!((schedule.look_ns, schedule.flows_every_ns), (500_000, 0));
    let recording: Recording =
        serde_json::from_str(include_str!("../../../tests/data/kept/recording.json")).expect(why);
    assert_eq!((recording.schema, recording.end_ns), (1, 930_000));
    assert_eq!((recording.flows[0].received_bytes, recording.flows[0].arrivals[1]), (20_000, (812_000, 20_000)));
    assert_eq!(recording.links[1].links[0].sent_packets, 15);
}
