//! What the broker reports about the grid, and what follows from it: sites come, change and leave,
//! certificates are renewed and revoked.

use crate::driver::Driver;
use crate::keys::PairKey;
use crate::membership::Membership;
use crate::membership::claims::{self, Claims};
use crate::membership::event::MembershipEvent;
use crate::sys::addresses::is_of_this_host;
use crate::tunnels::Tunnels;
use crate::tunnels::lanes::lane::LaneEnd;
use crate::tunnels::message::GatewayToGateway;
use crate::tunnels::peers::reach::{Places, dialled};
use crate::tunnels::roster::Word;
use crate::tunnels::tls;
use causeway_broker::Credentials;
use causeway_broker::api::{ErrorKind, Member, Reached};
use causeway_broker::client::{Event, SKEW_SECONDS};
use causeway_broker::identity::Certified;
use causeway_control::SiteInfo;
use causeway_wire::TextError;
use std::net::SocketAddr;

impl Membership {
    /// Acts on what the session with the broker reports.
    pub(crate) fn on_ready(&mut self, driver: &mut Driver, tunnels: &mut Tunnels) {
        while let Some(event) = self.session.as_ref().and_then(|grid| grid.client.poll_event()) {
            self.on_grid_event(driver, tunnels, event);
        }
    }

    fn on_grid_event(&mut self, driver: &mut Driver, tunnels: &mut Tunnels, event: Event) {
        let Some(grid) = &mut self.session else {
            return;
        };
        match event {
            Event::Member(member) => self.on_member(driver, tunnels, *member),
            Event::Removed(site) => self.on_member_gone(driver, tunnels, &site),
            Event::Connected {
                observed,
                broker,
                ahead,
            } => self.on_connected(driver, tunnels, (observed, broker), ahead),
            Event::Away(why) => {
                driver.say(format_args!(
                    "the broker of grid {} does not answer ({why}); continuing with what is known",
                    grid.name
                ));
                grid.away = Some(why);
            }
            Event::Refused { kind, message } => {
                driver.say(format_args!("the broker refuses: {message}"));
                grid.away = Some(message.clone());
                if kind == ErrorKind::Revoked {
                    tunnels.roster().end_all(driver, &message);
                }
            }
            Event::ClockSkew { ahead } => self.on_clock(driver, ahead),
            Event::Revocations(_) => tunnels.roster().end_revoked(driver),
            Event::Records(records) => self.pass_on(driver, tunnels, &records),
            Event::Forged { from, reason } => {
                driver.log.refuse("records", format_args!("site {from}"), reason);
            }
            Event::Renewed(renewed) => {
                let (credentials, certified) = *renewed;
                self.on_renewed(driver, tunnels, &credentials, certified);
            }
            Event::Reached(results) => self.on_reached(driver, results),
            Event::Failed { what, reason } => driver.say(format_args!("{what}: {reason}")),
            Event::Trouble(what) => driver.say(format_args!("{what}")),
            Event::Message(message) => {
                let event = MembershipEvent::Message(message);
                self.events.push_back(event);
            }
            Event::Jobs(jobs) => self.on_registered(driver, &jobs),
            Event::Relays(_) => {}
        }
    }

    fn on_connected(
        &mut self,
        driver: &mut Driver,
        tunnels: &mut Tunnels,
        (observed, broker): (SocketAddr, SocketAddr),
        ahead: i64,
    ) {
        let Some(grid) = &mut self.session else {
            return;
        };
        tunnels.roster().is_member();
        grid.away = None;
        grid.observed = Some(observed);
        grid.broker = Some(broker);
        grid.clock_ahead_seconds = Some(ahead);
        driver.say(format_args!(
            "the broker of grid {} answers; it sees this gateway at {}",
            grid.name,
            observed.ip()
        ));
        // If the client is busy, the next connection asks again.
        let _ = grid.client.reach(driver.config.public.clone());
        // Finds out what has begun and ended while it was away; see `register`.
        let _ = grid.client.list_jobs();
        self.events.push_back(MembershipEvent::BrokerFound(broker));
    }

    fn on_renewed(
        &mut self,
        driver: &mut Driver,
        tunnels: &mut Tunnels,
        credentials: &Credentials,
        certified: Certified,
    ) {
        let Some(grid) = &mut self.session else {
            return;
        };

        grid.certified = certified;
        let renewed = tls::Context::for_member(credentials, grid.client.trust());
        match renewed.and_then(|context| tunnels.roster().renew(context)) {
            Ok(()) => {
                driver.say(format_args!(
                    "this site's certificate was renewed; new lanes show it"
                ));
            }
            Err(error) => driver.say(format_args!("the renewed certificate cannot be used: {error}")),
        }
    }

    fn on_clock(&mut self, driver: &mut Driver, ahead: i64) {
        let Some(grid) = &mut self.session else {
            return;
        };

        grid.clock_ahead_seconds = Some(ahead);
        driver.say(match ahead.unsigned_abs() > SKEW_SECONDS {
            true => format!(
                "this host's clock is {} s {} the broker's; set both by NTP, or certificates will be refused",
                ahead.unsigned_abs(),
                if ahead > 0 { "ahead of" } else { "behind" }
            ),
            false => "this host's clock and the broker's agree again".to_owned(),
        });
    }

    fn on_reached(&mut self, driver: &mut Driver, results: Vec<Reached>) {
        let Some(grid) = &mut self.session else {
            return;
        };
        let unreached = results.into_iter().filter(|result| !result.reached);
        let unreached = unreached.map(|result| (result.address, result.reason.unwrap_or_default()));
        grid.unreached = unreached.collect();
        for (address, reason) in &grid.unreached {
            driver.say(format_args!(
                "the broker cannot dial {address} ({reason}), so other sites cannot either; open the port, or leave out 'public' in \
                 [listen], so that this gateway dials them"
            ));
        }
    }

    /// Takes what a site's gateway says about its site. It counts as far as the broker, if there is one, has
    /// recorded it: claiming something first does not make it one's own.
    fn learn(&mut self, driver: &mut Driver, site: &str, info: SiteInfo) -> Result<(), TextError> {
        self.directory.has_changed = true;
        self.directory.unrecorded.remove(site);
        let claims = match &self.session {
            None => Claims::Recorded,
            Some(grid) => claims::judge(&grid.members, site, &info)?,
        };
        match claims {
            Claims::Recorded => {
                self.directory.learn(site, info)?;
                for overlap in self.directory.overlaps(site) {
                    driver.log.refuse("overlap", format_args!("site {site}"), overlap);
                }
                Ok(())
            }
            Claims::Unrecorded(what) => {
                driver.log.refuse(
                    "unrecorded",
                    format_args!("site {site}"),
                    format_args!("announces {what}, which the broker has not recorded of it (yet)"),
                );
                self.directory.unrecorded.insert(site.to_owned(), (info, what));
                Ok(())
            }
        }
    }

    /// A far gateway describes its site; that it has done so counts for its tunnel.
    fn introduce(
        &mut self,
        driver: &mut Driver,
        tunnels: &mut Tunnels,
        pair: PairKey,
        info: SiteInfo,
    ) -> Result<(), LaneEnd> {
        let site = tunnels.pairs().site_of(pair).to_owned();
        self.learn(driver, &site, info)
            .map_err(|why| LaneEnd::Refused(format!("site {site} {why}")))?;
        tunnels.roster().hear(driver, pair, Word::Introduced);
        Ok(())
    }

    /// Acts on what a far gateway says about its site; ignores other messages.
    ///
    /// # Errors
    /// The message says something impossible.
    pub(crate) fn on_message(
        &mut self,
        driver: &mut Driver,
        tunnels: &mut Tunnels,
        pair: PairKey,
        message: GatewayToGateway,
    ) -> Result<(), LaneEnd> {
        match message {
            GatewayToGateway::Accepts(acceptance) => self.on_accepts(driver, tunnels, pair, acceptance),
            GatewayToGateway::Site(info) => self.introduce(driver, tunnels, pair, info)?,
            GatewayToGateway::Records { records } => {
                let site = tunnels.pairs().site_of(pair).to_owned();
                self.on_brought(driver, &site, records);
            }
            _ => {}
        }
        Ok(())
    }

    /// The broker now reports more, or less, about a site: what the site said about itself is judged again.
    fn judge_again(&mut self, driver: &mut Driver, tunnels: &mut Tunnels, site: &str) {
        if let (Some(grid), Some(info)) = (&self.session, self.directory.other(site))
            && claims::judge(&grid.members, site, info) != Ok(Claims::Recorded)
        {
            let (info, what) = (info.clone(), "what it no longer is".to_owned());
            self.directory
                .unrecorded
                .entry(site.to_owned())
                .or_insert((info, what));
            self.directory.forget(site);
        }
        let Some((info, _)) = self.directory.unrecorded.remove(site) else {
            return;
        };
        let learnt = self.learn(driver, site, info);
        if let (Err(why), Some(pair)) = (learnt, tunnels.pairs().key_of(site)) {
            let why = format!("site {site} {why}");
            tunnels.roster().refuse(driver, pair, why);
        }
    }

    /// A site is new, or has changed.
    fn on_member(&mut self, driver: &mut Driver, tunnels: &mut Tunnels, member: Member) {
        if let Some(grid) = &mut self.session {
            grid.members.put(member.clone());
        }
        if member.site == driver.config.site {
            return self.on_own_member(driver, tunnels, &member);
        }
        self.judge_again(driver, tunnels, &member.site);
        let Member {
            site,
            record,
            observed,
            ..
        } = member;
        let addresses = match record.reach.outbound_only {
            true => Vec::new(),
            // The broker's record is what the site's gateway said, so it may lead only to that gateway.
            false => {
                let config = &driver.config;
                let on_loopback = config.is_on_loopback();
                let own = self.session.as_ref().and_then(|grid| grid.observed);
                let places = Places {
                    member: observed.map(|seen| seen.ip()),
                    own: own.map(|seen| seen.ip()),
                };
                let named = record.reach.public;
                dialled(named, &places, is_of_this_host, on_loopback, &config.subnets)
            }
        };
        let Some((peer, is_new)) = tunnels.roster().learn(driver, site.clone(), addresses) else {
            let why = "this gateway has heard of too many sites that came and went; if it is to know this one, start it again";
            return driver.log.refuse("peers", format_args!("site {site}"), why);
        };
        let event = MembershipEvent::PeerKnown { peer, is_new };
        self.events.push_back(event);
    }

    fn on_member_gone(&mut self, driver: &mut Driver, tunnels: &mut Tunnels, site: &str) {
        if let Some(grid) = &mut self.session {
            grid.members.remove(site);
        }
        let Some(index) = tunnels.peers().of(site) else {
            return;
        };
        let revoked = self.session.as_ref().is_some_and(|grid| {
            let trust = grid.trust();
            let is_listed = trust.revocations().now().before(site).is_some();
            is_listed || trust.with_records(|records| records.revoked_until(site).is_some())
        });
        let (end, what) = match revoked {
            // The site's gateway may have closed its lanes before this one checked the certificates that they
            // had shown.
            true => (
                LaneEnd::Revoked,
                "its certificate was revoked, and it is no longer a member of the grid",
            ),
            false => (LaneEnd::NoMember, "it is no longer a member of the grid"),
        };
        driver.say(format_args!("site {site}: {what}"));
        self.events.push_back(MembershipEvent::PeerGone { peer: index });
        tunnels.roster().forget(driver, index, &end, what);
        self.directory.forget(site);
        self.directory.unrecorded.remove(site);
    }
}
