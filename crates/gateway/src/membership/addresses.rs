//! Settles by which addresses the grid knows this site, and tells the other sites about it.

use crate::driver::Driver;
use crate::keys::PairKey;
use crate::membership::Membership;
use crate::membership::broker_session::virtual_subnets;
use crate::membership::consent::acceptance;
use crate::tunnels::Tunnels;
use crate::tunnels::message::GatewayToGateway;
use causeway_broker::api::Member;
use causeway_wire::Cidr;

impl Membership {
    /// Sends the first messages on a new tunnel: what is accepted, and who we are. The running jobs are
    /// announced once the other side has said what it accepts.
    pub(crate) fn greet(&mut self, driver: &mut Driver, tunnels: &mut Tunnels, pair: PairKey) {
        if let Some(site) = tunnels.pairs().get(pair).map(|pair| pair.site().to_owned()) {
            let acceptance = acceptance(&driver.config, &site);
            tunnels
                .pairs_mut()
                .tell(driver, pair, GatewayToGateway::Accepts(acceptance));
        }
        if !self.awaits_addresses(driver) {
            let own = self.directory.own().clone();
            tunnels
                .pairs_mut()
                .tell(driver, pair, GatewayToGateway::Site(own));
        }
        self.greet_with_records(driver, tunnels, pair);
    }

    /// Whether other sites are told about this one only once the broker has said by which addresses the grid
    /// knows it.
    pub(crate) fn awaits_addresses(&self, driver: &Driver) -> bool {
        self.session.is_some() && driver.config.overlap_ok && !self.directory.own_site().is_virtual()
    }

    /// Takes the addresses that the broker gives, unless jobs are running that know others.
    pub(crate) fn adopt_addresses(&mut self, driver: &mut Driver, tunnels: &mut Tunnels) {
        let own = self.directory.own_site();
        let in_use = if own.is_virtual() {
            own.subnets.clone()
        } else {
            Vec::new()
        };
        let Some(grid) = &mut self.session else {
            return;
        };
        if grid.given == in_use {
            return;
        }
        let text = |subnets: &[Cidr]| subnets.iter().map(Cidr::to_string).collect::<Vec<_>>().join(", ");
        if !in_use.is_empty() && self.jobs.len() > 0 {
            // A broker that was restored from an old backup may not know that it gave them.
            grid.ask_for(&in_use);
            return driver.say(format_args!(
                "running jobs know this site as {}: not as {}, which the broker gives it now, before they have ended",
                text(&in_use),
                text(&grid.given)
            ));
        }
        let given = grid.given.clone();
        self.directory.take_virtual_subnets(&driver.config, &given);
        driver.say(format_args!(
            "the grid knows this site's {} as {}",
            text(&driver.config.subnets),
            text(if given.is_empty() {
                &driver.config.subnets
            } else {
                &given
            })
        ));
        let own = self.directory.own().clone();
        for pair in tunnels.pairs().keys() {
            tunnels
                .pairs_mut()
                .tell(driver, pair, GatewayToGateway::Site(own.clone()));
        }
    }

    /// What the grid knows about this site, including its addresses in the grid.
    pub(super) fn on_own_member(&mut self, driver: &mut Driver, tunnels: &mut Tunnels, member: &Member) {
        let given = virtual_subnets(&driver.config, member);
        let Some(grid) = &mut self.session else {
            return;
        };
        if !given.is_empty() {
            grid.ask_for(&given);
        }
        grid.given = given;
        self.adopt_addresses(driver, tunnels);
    }
}
