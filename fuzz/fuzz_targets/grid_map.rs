//! The grid map as it stands in every process's environment.
#![no_main]

use causeway_wire::Grid;
use causeway_wire::grid::MAX_BYTES;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(grid) = text.parse::<Grid>() else { return };
    let again = grid.to_string();
    // An address may be written longer than it was typed.
    if again.len() <= MAX_BYTES {
        assert_eq!(again.parse::<Grid>().as_ref(), Ok(&grid));
    }
    for site in &grid.sites {
        for subnet in &site.subnets {
            assert!(subnet.contains(subnet.address()) && site.contains(subnet.address()));
            grid.place(site, &site.subnets, subnet.address());
            site.subnets
                .iter()
                .for_each(|other| assert_eq!(subnet.overlaps(other), other.overlaps(subnet)));
        }
    }
});
