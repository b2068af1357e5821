//! What the process knows of the grid: read once, on the first call that needs it, then immutable.
//!
//! Lazily, so that the many processes that never open a connection pay nothing and say nothing; and without a
//! lock, which a fork in another thread could leave locked for ever in the child.

use crate::address::in_family_of;
use crate::report::{self, Matter};
use crate::{ask, interfaces};
use causeway_wire::{Grid, Site, Token, env};
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The grid as seen from this process.
#[derive(Debug)]
pub struct Context {
    /// All sites.
    pub grid: Grid,
    /// The own one.
    pub here: Site,
    /// The job's.
    pub token: Token,
    /// The node's own addresses, with the names of their interfaces.
    pub addresses: Vec<(Vec<u8>, IpAddr)>,
    /// Whether to tell of each decision.
    pub debug: bool,
}

static STATE: AtomicPtr<Option<Context>> = AtomicPtr::new(std::ptr::null_mut());

/// The context; `None` when the process is not part of a job or not at a site.
pub fn context() -> Option<&'static Context> {
    let mut state = STATE.load(Ordering::Acquire);
    if state.is_null() {
        let new = Box::into_raw(Box::new(read()));
        state = match STATE.compare_exchange(state, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            // The one that lost the race stays allocated: this happens once or twice in a process's life.
            Err(first) => first,
        };
    }
    // SAFETY: it came from Box::into_raw and is never freed.
    unsafe { &*state }.as_ref()
}

fn read() -> Option<Context> {
    let debug = std::env::var_os(env::DEBUG).is_some_and(|value| value == "1");
    let (grid, token) = match settings(std::env::var_os(env::GRID), std::env::var_os(env::TOKEN)) {
        Ok(settings) => settings?,
        Err(line) => {
            report::once(
                Matter::Environment,
                0,
                format_args!("{line}; connections stay native"),
            );
            return None;
        }
    };
    let addresses = interfaces::own_addresses();
    let ips: Vec<IpAddr> = addresses.iter().map(|(_, ip)| *ip).collect();
    let here = match find_site(&grid, &ips, token) {
        Ok(here) => here.clone(),
        Err(line) => {
            report::once(Matter::NoSite, 0, format_args!("{line}; connections stay native"));
            return None;
        }
    };
    if debug {
        report::debug(format_args!("at site {}", here.name));
    }
    Some(Context {
        grid,
        here,
        token,
        addresses,
        debug,
    })
}

/// Where the node is, by its addresses or, where several sites have these, by the gateway that answers.
fn find_site<'a>(grid: &'a Grid, addresses: &[IpAddr], token: Token) -> Result<&'a Site, String> {
    let names = |sites: &mut dyn Iterator<Item = &Site>| -> String {
        let names: Vec<&str> = sites.map(|site| site.name.as_str()).collect();
        names.join(", ")
    };
    match grid.sites_of(addresses).as_slice() {
        [] => Err(format!(
            "no address of this node lies in a site of {} ({})",
            env::GRID,
            names(&mut grid.sites.iter())
        )),
        [here] => Ok(here),
        several => ask::which(several, token).ok_or_else(|| {
            let gateways: Vec<String> = several
                .iter()
                .flat_map(|site| site.gateways.iter().map(SocketAddr::to_string))
                .collect();
            format!(
                "this node may be at any of {}, which have the same addresses, and none of their gateways ({}) answers here",
                names(&mut several.iter().copied()),
                gateways.join(", ")
            )
        }),
    }
}

impl Context {
    /// The address by which the grid knows one of this site's; `None` where that is the same.
    pub fn shown(&self, real: SocketAddr) -> Option<SocketAddr> {
        self.translated(real, |ip| self.here.in_grid(ip))
    }

    /// What an address of this site, as the grid knows it, really is; `None` where that is the same.
    pub fn real(&self, in_grid: SocketAddr) -> Option<SocketAddr> {
        self.translated(in_grid, |ip| self.here.real(ip))
    }

    fn translated(&self, address: SocketAddr, with: impl Fn(IpAddr) -> IpAddr) -> Option<SocketAddr> {
        if !self.here.is_virtual() {
            return None;
        }
        let ip = address.ip().to_canonical();
        let other = with(ip);
        let translated = SocketAddr::new(other, address.port());
        (other != ip).then(|| in_family_of(translated, address)).flatten()
    }
}

/// Grid and token from the values of their variables; `None` when neither is set.
fn settings(grid: Option<OsString>, token: Option<OsString>) -> Result<Option<(Grid, Token)>, String> {
    let (grid, token) = match (grid, token) {
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(format!("{} is set but {} is not", env::GRID, env::TOKEN)),
        (None, Some(_)) => return Err(format!("{} is set but {} is not", env::TOKEN, env::GRID)),
        (Some(grid), Some(token)) => (
            grid.to_string_lossy().into_owned(),
            token.to_string_lossy().into_owned(),
        ),
    };
    let grid = grid.parse().map_err(|error| format!("{}: {error}", env::GRID))?;
    let token = token
        .parse()
        .map_err(|error| format!("{}: {error}", env::TOKEN))?;
    Ok(Some((grid, token)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: &str = "1|rennes;10.1.0.0/24;10.1.0.253:7000;20000-32767";

    fn outcome(grid: Option<&str>, token: Option<&str>) -> String {
        match settings(grid.map(OsString::from), token.map(OsString::from)) {
            Ok(None) => "off".to_owned(),
            Ok(Some((grid, _))) => grid.to_string(),
            Err(line) => line,
        }
    }

    #[test]
    fn without_either_variable_there_is_nothing_to_say() {
        assert_eq!(outcome(None, None), "off");
    }

    #[test]
    fn both_variables_make_a_grid() {
        assert_eq!(outcome(Some(GRID), Some(&"0f".repeat(16))), GRID);
    }

    #[test]
    fn half_an_environment_and_nonsense_are_named() {
        assert_eq!(
            outcome(Some(GRID), None),
            "CAUSEWAY_GRID is set but CAUSEWAY_TOKEN is not"
        );
        assert_eq!(
            outcome(None, Some("")),
            "CAUSEWAY_TOKEN is set but CAUSEWAY_GRID is not"
        );
        let token = "0f".repeat(16);
        assert!(outcome(Some("9|x"), Some(&token)).starts_with("CAUSEWAY_GRID: grid map version"));
        assert!(outcome(Some(GRID), Some("short")).starts_with("CAUSEWAY_TOKEN: a job token is"));
    }
}
