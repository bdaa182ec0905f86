//! Google's wide-area network B4.
//!
//! With 12 sites: figure 1 of S. Jain et al., "B4: Experience with a globally-deployed software defined WAN",
//! SIGCOMM 2013. The figure is a map without distances, so every link has the same delay: 10 ms, light in fibre
//! over 2000 km, unless the user says otherwise.
//!
//! With 18 sites: the network of section 5.1 (table 5.1) of L. Jose's thesis on PERC, with its great-circle distances
//! in km. As in the thesis, a link's delay is its distance over 3e8 m/s.

use crate::Ns;

/// Sites and undirected links between them.
#[derive(Debug)]
pub(super) struct Map {
    /// Names of the sites.
    pub sites: Vec<String>,
    /// Index of both ends in `sites`, and the link's delay, ns.
    pub links: Vec<(usize, usize, Ns)>,
}

/// The map called `topology`: "b4-12", otherwise the one with 18 sites.
pub(super) fn map(topology: &str) -> Map {
    if topology == "b4-12" { twelve() } else { eighteen() }
}

fn twelve() -> Map {
    const DELAY_NS: Ns = 10_000_000;
    let links = NEIGHBOURS_12.iter().enumerate().flat_map(|(a, later)| later.iter().map(move |&b| (a, b, DELAY_NS)));
    Map { sites: (0..12).map(|i| format!("site{i}")).collect(), links: links.collect() }
}

fn eighteen() -> Map {
    let mut sites: Vec<&str> = DISTANCES_18.iter().flat_map(|(a, to)| to.iter().map(|(b, _)| *b).chain([*a])).collect();
    sites.sort_unstable();
    sites.dedup();
    let place = |name: &str| sites.binary_search(&name).expect("every name is in the list");
    // A kilometre takes 10000/3 ns at 3e8 m/s.
    let links = DISTANCES_18
        .iter()
        .flat_map(|(a, to)| to.iter().map(|(b, km)| (place(a), place(b), (km * 10_000 + 1) / 3)))
        .collect();
    Map { sites: sites.iter().map(|s| s.to_string()).collect(), links }
}

/// For each site the neighbours with a larger index.
const NEIGHBOURS_12: [&[usize]; 12] =
    [&[1, 2], &[4], &[3, 5], &[4, 6, 7], &[5], &[6, 7], &[7, 10], &[9], &[9, 10], &[10, 11], &[11], &[]];

/// Sites, each with the neighbours later in the alphabet and their distances in km.
#[rustfmt::skip]
const DISTANCES_18: &[(&str, &[(&str, Ns)])] = &[
    ("CouncilBluffs", &[("DouglasCounty", 1589), ("JacksonCounty", 1390), ("Lenoir", 1750), ("TheDalles", 2531)]),
    ("DouglasCounty", &[("JacksonCounty", 224), ("Paris", 7018), ("Quilicura", 7554), ("StGhislain", 7048)]),
    ("Dublin", &[("Eemshaven", 1311), ("Paris", 1057), ("StGhislain", 940)]),
    ("Eemshaven", &[("Hamina", 1891), ("StGhislain", 463)]),
    ("Guangzhou", &[("Osaka", 2507), ("Singapore", 2626), ("Taiwan", 787), ("TheDalles", 10598), ("Tokyo", 2901)]),
    ("Hamina", &[("StGhislain", 2574)]),
    ("JacksonCounty", &[("LosAngeles", 3280), ("MayesCounty", 1038), ("StGhislain", 7054), ("TheDalles", 3843)]),
    ("LosAngeles", &[
        ("MayesCounty", 2363), ("Osaka", 9184), ("Quilicura", 8981), ("TheDalles", 1518), ("Tokyo", 8810),
    ]),
    ("MayesCounty", &[("Quilicura", 8096), ("TheDalles", 3024)]),
    ("Osaka", &[("Singapore", 4948), ("TheDalles", 8233), ("Tokyo", 500)]),
    ("Paris", &[("StGhislain", 238)]),
    ("Singapore", &[("Taiwan", 3087), ("Tokyo", 5312)]),
    ("TheDalles", &[("Tokyo", 7883)]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_the_published_ones() {
        let (twelve, eighteen) = (twelve(), eighteen());
        assert_eq!((twelve.sites.len(), twelve.links.len()), (12, 19));
        assert_eq!((eighteen.sites.len(), eighteen.links.len()), (18, 37));
        let km: Ns = DISTANCES_18.iter().flat_map(|(_, to)| to.iter().map(|(_, km)| km)).sum();
        assert_eq!(km, 144151);
        let (a, b, delay_ns) = eighteen.links[0];
        assert_eq!((eighteen.sites[a].as_str(), eighteen.sites[b].as_str()), ("CouncilBluffs", "DouglasCounty"));
        assert_eq!(delay_ns, 5_296_667, "1589 km");
    }
}
