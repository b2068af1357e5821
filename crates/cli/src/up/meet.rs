//! Which head nodes can dial which: each listens in turn, while the others try.

use super::choose::Reached;
use super::host::PATIENCE;
use super::ports::Ports;
use super::reach::WORD;
use super::{Args, Site};
use causeway_host::first_line::first_line;
use causeway_host::{quoted, say};
use std::net::{IpAddr, ToSocketAddrs};

/// Most addresses at which other hosts try to reach a host.
const MOST_ADDRESSES: usize = 8;

/// Which hosts can reach which, each at a port of its own. If something on a host already has the port,
/// nobody reaches that host.
///
/// # Errors
/// A host cannot be asked.
pub fn reached(args: &Args, sites: &[Site], port: fn(&Ports) -> u16) -> Result<Reached, String> {
    let mut all = Reached::new();
    for site in sites {
        let (word, port) = (word()?, port(&site.facts.ports));
        let line = format!("{} up-part listen --word {word} {port}", quoted(&site.causeway));
        let mut listener = site.host.start(&line)?;
        let ready = first_line(listener.stdout.take()).recv_timeout(PATIENCE);
        if ready.unwrap_or_default().trim() == "listens" {
            let addresses = addresses_of(site);
            let by = std::thread::scope(|scope| {
                let others = sites.iter().filter(|other| other.host.site != site.host.site);
                let dialling = others.map(|other| {
                    let (addresses, word) = (&addresses, &word);
                    scope.spawn(move || (other, dial(args, other, addresses, (port, word))))
                });
                let dialling: Vec<_> = dialling.collect();
                let found = dialling.into_iter().filter_map(|thread| thread.join().ok());
                found
                    .filter_map(|(other, ip)| Some((other.host.site.clone(), ip?)))
                    .collect()
            });
            all.insert(site.host.site.clone(), by);
        }
        drop(listener.stdin.take());
        let _ = listener.wait();
    }
    Ok(all)
}

fn dial(args: &Args, from: &Site, addresses: &[IpAddr], (port, word): (u16, &str)) -> Option<IpAddr> {
    let all: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    let proxy: Vec<String> = proxy_words(args, &from.host.site).iter().map(quoted).collect();
    let line = format!(
        "{} up-part dial --word {word} --port {port} {} {}",
        quoted(&from.causeway),
        proxy.join(" "),
        all.join(" ")
    );
    let said = from.host.run(&line, b"", PATIENCE);
    if let Err(why) = &said
        && !proxy.is_empty()
    {
        say::error(format_args!("causeway up: by the way of its proxy, {why}"));
    }
    let reached = said.ok()?.trim().parse().ok()?;
    // No host can send the others elsewhere.
    addresses.contains(&reached).then_some(reached)
}

/// Addresses at which others may reach a host, first those at which this host does.
fn addresses_of(site: &Site) -> Vec<IpAddr> {
    let dialled = site.host.dialled_name();
    let resolved = dialled.and_then(|name| (name.as_str(), 0).to_socket_addrs().ok());
    let resolved = resolved.into_iter().flatten().map(|address| address.ip());
    let own = site.facts.addresses.iter().map(|address| address.ip);
    let mut all: Vec<IpAddr> = Vec::new();
    for ip in resolved.chain(own) {
        if !all.contains(&ip) && !ip.is_loopback() {
            all.push(ip);
        }
    }
    all.truncate(MOST_ADDRESSES);
    all
}

/// A word that nobody else would say.
fn word() -> Result<String, String> {
    let mut bytes = [0; WORD / 2];
    getrandom::fill(&mut bytes).map_err(|error| format!("random bytes: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The options of `causeway gateway --join` for a site's web proxy.
pub fn proxy_words(args: &Args, site: &str) -> Vec<String> {
    let all = [
        ("--proxy", &args.proxy),
        ("--proxy-credentials", &args.proxy_credentials),
    ];
    let words = all.into_iter().flat_map(|(option, values)| {
        let own = values.iter().filter(move |(name, _)| name == site);
        own.flat_map(move |(_, value)| [option.to_owned(), value.clone()])
    });
    words.collect()
}
