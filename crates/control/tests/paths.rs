//! Paths are decoded as they were encoded.

use subak_control::{BigSwitch, Ecmp, Paths, Turns};
use subak_core::LinkId;
use subak_core::route::{Router, Routing};

#[test]
fn every_path_of_a_leaf_spine_and_of_a_fat_tree_comes_back_from_its_turns() {
    for value in [
        serde_json::json!({"kind": "leaf-spine", "leaves": 9, "hosts_per_leaf": 16, "spines": 4}),
        serde_json::json!({"kind": "fat-tree", "k": 8}),
    ] {
        let (network, _) = subak_core::generate::network(&value).unwrap();
        let hosts: Vec<_> = network.hosts().collect();
        let (mut router, mut turns) = (Router::by(&network, Routing::default()), Turns::new(&network));
        let mut ecmp = Ecmp::new(&network, Routing::default());
        let mut switch = BigSwitch(Turns::new(&network));
        for key in 0..2000u32 {
            let (from, to) = (hosts[key as usize % hosts.len()], hosts[(key as usize * 7 + 1) % hosts.len()]);
            if from == to {
                continue;
            }
            let links = router.path(from, to, key.into()).unwrap();
            let (from, to) = (from.0, to.0);
            let code = Turns::code(&network, &links).unwrap();
            assert_eq!(turns.path(from, to, code).as_ref(), Some(&links));
            assert_eq!(ecmp.path(from, to, key).as_ref(), Some(&links), "the hash is the switches'");
            let (out, into) = (links[0], links[links.len() - 1]);
            assert_eq!(switch.path(from, to, code), Some(vec![out, into]));
            assert_eq!((turns.access(from).unwrap().0, turns.access(to).unwrap().1), (out, into));
        }
        // Codes that any sender may choose: unknown nodes, cycles, dead ends.
        for code in 0..10_000 {
            if let Some(links) = turns.path(hosts[0].0, hosts[1].0, code * 429_496) {
                assert_eq!(network.links()[links[links.len() - 1]].to, Some(hosts[1]));
            }
        }
        assert_eq!(turns.path(u32::MAX, 0, 0), None);
        assert_eq!(turns.path(hosts[0].0, u32::MAX, 0), None);
        assert_eq!(Turns::code(&network, &[LinkId::NONE]), None);
    }
}
