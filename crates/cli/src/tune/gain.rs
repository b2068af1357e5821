//! Finds what `causeway bench` has measured of the effect of a change.

use super::item::Item;
use super::need::Carrier;
use causeway_bench::cell::{Settings, Traffic, Way};
use causeway_bench::store;
use causeway_bench::summary::{Entry, Summaries};
use causeway_bench::table::size;
use causeway_wire::TextError;
use std::path::PathBuf;

/// Replaces the expected gain by the measured one, for MPIs that were measured untuned and tuned: that of the
/// size that gained most.
///
/// # Errors
/// A directory cannot be read.
pub fn measured(items: &mut [Item], carrier: Carrier, directories: &[PathBuf]) -> Result<(), TextError> {
    let way = match carrier {
        Carrier::Ranks => Way::Direct,
        Carrier::Gateway => Way::Causeway,
    };
    for directory in directories {
        let (head, rows) = store::read(directory).map_err(TextError::of)?;
        let summary = Summaries::of(&head, &rows);
        for item in items
            .iter_mut()
            .filter(|item| item.name.starts_with("eager limit"))
        {
            if let Some((bytes, ratio)) = best(&summary.entries, &item.group, way) {
                item.gain = format!(
                    "measured: {} in {ratio:.2} of the time ({})",
                    size(bytes),
                    directory.display()
                );
            }
        }
    }
    Ok(())
}

/// The size whose time fell most from the default to the tuned settings, and the ratio.
fn best(entries: &[Entry], mpi: &str, way: Way) -> Option<(u64, f64)> {
    let times = |settings: Settings| {
        let own = entries.iter().filter(move |entry| {
            let cell = &entry.cell;
            let is_quiet = cell.traffic == Traffic::Quiet;
            cell.mpi == mpi && cell.way == way && is_quiet && cell.settings == settings
        });
        own.filter(|entry| entry.quantity.measure == "one way")
    };
    let ratios = times(Settings::Default).filter_map(|before| {
        let after = times(Settings::Tuned).find(|after| after.quantity == before.quantity)?;
        Some((
            before.quantity.size_bytes?,
            after.interval.median / before.interval.median,
        ))
    });
    ratios.min_by(|one, other| one.1.total_cmp(&other.1))
}
