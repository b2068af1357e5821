//! The steps on the head nodes, each with the command line that does the same by hand.

use super::Site;
use super::host::{Host, PATIENCE};
use causeway_control::Status;
use causeway_host::{quoted, say};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long tunnels may take to come up.
const MEETS_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A command of Causeway on the head node of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub site: String,
    words: Vec<String>,
    /// The site whose broker makes a token for this step, which reads the token from its input.
    token_of: Option<String>,
    /// What a user would do instead, if the command is not for users.
    by_hand: Option<String>,
}

impl Step {
    fn new(site: &str, words: &[&str]) -> Step {
        Step {
            site: site.to_owned(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            token_of: None,
            by_hand: None,
        }
    }

    pub fn grid(site: &str, grid: &str, at: SocketAddr) -> Step {
        Step::new(site, &["grid", "create", grid, "--broker", &at.to_string()])
    }

    pub fn broker(site: &str) -> Step {
        Step::new(site, &["broker", "--background"])
    }

    pub fn gateway(site: &str) -> Step {
        Step::new(site, &["gateway", "--background"])
    }

    pub fn join(site: &str, broker: &str, words: Vec<String>) -> Step {
        Step {
            site: site.to_owned(),
            words,
            token_of: Some(broker.to_owned()),
            by_hand: None,
        }
    }

    /// Lets jobs of these sites run at a site that was set up before.
    pub fn accept(site: &str, sites: &[String]) -> Step {
        let mut words = vec!["up-part", "accept"];
        words.extend(sites.iter().map(String::as_str));
        let lists = format!(
            "# adds {} to jobs in [accept] and from in [batch] of ~/.config/causeway/gateway.toml",
            sites.join(", ")
        );
        Step {
            by_hand: Some(lists),
            ..Step::new(site, &words)
        }
    }

    /// Has a gateway read its configuration anew.
    pub fn drain(site: &str) -> Step {
        Step::new(site, &["gateway", "--drain"])
    }

    /// The command line, as a user would type it.
    pub fn shown(&self) -> String {
        if let Some(by_hand) = &self.by_hand {
            return by_hand.clone();
        }
        let words: Vec<String> = self.words.iter().map(quoted).collect();
        let shown = format!("causeway {}", words.join(" "));
        match &self.token_of {
            Some(broker) => format!(
                "{shown}   # reads what {broker} prints: causeway grid token --site {}",
                self.site
            ),
            None => shown,
        }
    }
}

/// Runs steps, and prints them.
pub struct Work {
    pub is_dry: bool,
    /// Directories that are removed when this ends.
    passing: Vec<(Host, String)>,
}

impl Drop for Work {
    fn drop(&mut self) {
        for (host, directory) in &self.passing {
            let _ = host.run(&format!("rm -rf {}", quoted(directory)), b"", PATIENCE);
        }
    }
}

impl Work {
    pub fn new(is_dry: bool) -> Work {
        Work {
            is_dry,
            passing: Vec::new(),
        }
    }

    /// Makes a directory on a host for as long as this value lasts, and returns the path of one in it that
    /// does not exist yet.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn passing_directory(&mut self, host: &Host) -> Result<String, String> {
        let line = r#"mktemp -d "$HOME/.causeway-XXXXXX""#;
        let directory = host.run(line, b"", PATIENCE)?.trim().to_owned();
        if !directory.contains("/.causeway-") {
            return Err(format!("{}: mktemp says {directory:?}", host.site));
        }
        self.passing.push((host.clone(), directory.clone()));
        Ok(format!("{directory}/causeway"))
    }

    /// Prints what is done at a site.
    ///
    /// # Errors
    /// Nobody reads the output any more.
    pub fn say(&self, site: &str, line: &str) -> Result<(), String> {
        say::output(format_args!("{site}$ {line}")).map_err(|_| "standard output has gone".to_owned())
    }

    /// Prints a step and runs it.
    ///
    /// # Errors
    /// The step fails; the error ends with what it printed last.
    pub fn carry_out(&self, step: &Step, sites: &[Site]) -> Result<(), String> {
        let site = named(sites, &step.site)?;
        let token = match &step.token_of {
            Some(broker) => Some(token(named(sites, broker)?, &step.site)?),
            None => None,
        };
        let words: Vec<&str> = step.words.iter().map(String::as_str).collect();
        self.say(&step.site, &step.shown())?;
        let said = causeway(site, &words, token.as_deref().unwrap_or_default(), PATIENCE)?;
        tell(&said)
    }
}

fn named<'a>(sites: &'a [Site], name: &str) -> Result<&'a Site, String> {
    let found = sites.iter().find(|site| site.host.site == name);
    found.ok_or_else(|| format!("{name} is not one of the sites given"))
}

fn token(broker: &Site, site: &str) -> Result<String, String> {
    causeway(broker, &["grid", "token", "--site", site], "", PATIENCE)
}

/// Runs a command of Causeway at a site.
///
/// # Errors
/// The command fails; the error ends with what it printed last.
pub fn causeway(site: &Site, words: &[&str], input: &str, patience: Duration) -> Result<String, String> {
    let words: Vec<String> = words.iter().map(quoted).collect();
    // Open MPI runs for root only if it is told to.
    let root = match site.facts.is_root {
        true => "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ",
        false => "",
    };
    let line = format!("{root}{} {}", quoted(&site.causeway), words.join(" "));
    site.host.run(&line, input.as_bytes(), patience)
}

/// Prints the output of a command, indented below it.
///
/// # Errors
/// Nobody reads the output any more.
pub fn tell(said: &str) -> Result<(), String> {
    let lines: Vec<String> = said.lines().map(|line| format!("    {line}")).collect();
    match lines.is_empty() {
        true => Ok(()),
        false => say::output(lines.join("\n")).map_err(|_| "standard output has gone".to_owned()),
    }
}

/// Asks a site's gateway for its status.
///
/// # Errors
/// The gateway does not answer.
pub fn status(site: &Site) -> Result<Status, String> {
    let said = causeway(site, &["status", "--json"], "", PATIENCE)?;
    serde_json::from_str(&said).map_err(|error| {
        format!(
            "{}: its gateway's answer is not understood: {error}",
            site.host.site
        )
    })
}

/// Waits until the first site has a tunnel to each other one.
///
/// # Errors
/// One is missing; the error says what its gateway reports.
pub fn wait_for_tunnels(work: &Work, sites: &[Site]) -> Result<(), String> {
    let Some((first, others)) = sites.split_first() else {
        return Ok(());
    };
    let until = Instant::now() + MEETS_WITHIN;
    loop {
        let status = status(first)?;
        let has_tunnel = |site: &&Site| {
            let mut all = status.sites.iter().filter(|known| known.name == site.host.site);
            all.any(|known| known.unreachable.is_none() && known.info.is_some())
        };
        let missing: Vec<&str> = { others.iter() }
            .filter(|site| !has_tunnel(site))
            .map(|site| site.host.site.as_str())
            .collect();
        if missing.is_empty() {
            work.say(&first.host.site, "causeway status")?;
            return tell(&causeway(first, &["status"], "", PATIENCE)?);
        }
        if Instant::now() > until {
            return Err(format!(
                "{} has no tunnel to {} after {MEETS_WITHIN:?}; 'causeway check' and 'causeway status' say more there",
                first.host.site,
                missing.join(", ")
            ));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
