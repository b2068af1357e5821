//! Hands over what this gateway knows about sites and jobs.

use crate::driver::Driver;
use crate::inherited::InheritError;
use crate::membership::Membership;
use crate::membership::jobs::{Jobs, KeptJob};
use causeway_control::SiteInfo;
use causeway_wire::Cidr;

/// Carries what is known of sites and jobs through a hand-over.
pub(crate) struct KeptMembership {
    pub(crate) virtual_subnets: Vec<String>,
    pub(crate) others: Vec<SiteInfo>,
    pub(crate) unrecorded: Vec<SiteInfo>,
    pub(crate) jobs: Vec<KeptJob>,
}

impl Membership {
    /// Goes on with what a predecessor knew.
    ///
    /// # Errors
    /// The kept membership says something impossible.
    pub(crate) fn inherit(&mut self, driver: &Driver, kept: KeptMembership) -> Result<(), InheritError> {
        self.jobs = Jobs::inherit(kept.jobs);
        for info in kept.unrecorded {
            // The site's claims are judged again when the broker next reports about it.
            let waits = (info.clone(), "itself".to_owned());
            self.directory.unrecorded.insert(info.name, waits);
        }
        // The ranges that jobs know, whatever the configuration says now.
        let ranges: Result<Vec<Cidr>, _> = kept.virtual_subnets.iter().map(|text| text.parse()).collect();
        let subnets = &driver.config.subnets;
        let fit = |ranges: &Vec<Cidr>| {
            let mut pairs = ranges.iter().zip(subnets);
            ranges.is_empty()
                || ranges.len() == subnets.len() && pairs.all(|(range, real)| range.is_of_size(real))
        };
        let Some(ranges) = ranges.ok().filter(fit) else {
            return Err(InheritError::Contradiction(
                "virtual subnets are not of this site's size",
            ));
        };
        self.directory.take_virtual_subnets(&driver.config, &ranges);
        for info in kept.others {
            let site = info.name.clone();
            if let Err(why) = self.directory.learn(&site, info) {
                driver.say(format_args!("site {site} {why}"));
            }
        }
        Ok(())
    }
}
