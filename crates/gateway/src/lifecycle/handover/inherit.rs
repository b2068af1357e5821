//! The successor's part: becomes the gateway whose state it was given.
//!
//! Where it fails, the process ends, and with it the streams and jobs it was to go on with. So whatever can be refused is
//! refused by the predecessor; what is left are mistakes in these programs and damaged states.

use super::state::State;
use crate::base::base;
use crate::commands::below;
use crate::commands::starter::KeptStarter;
use crate::commands::starter::Starter;
use crate::config::Config;
use crate::error::GatewayError;
use crate::gateway::Gateway;
use crate::inherited::{InheritError, descriptor};
use crate::membership::jobs::Jobs;
use crate::site::deliver;
use crate::site::leg::KeptLeg;
use crate::site::leg::Leg;
use crate::sys::listeners::KeptListeners;
use crate::sys::listeners::Listeners;
use crate::sys::timers::Deadline;
use crate::sys::token::Class;
use crate::tunnels::message::GatewayToGateway;
use crate::tunnels::pair::KeptPair;
use crate::tunnels::pair::Pair;
use causeway_control::{HandedOver, Reply};
use causeway_wire::{Cidr, Token};
use mio::net::{TcpListener, UnixListener};
use nix::unistd::Pid;
use std::fs::File;
use std::os::fd::RawFd;
use std::time::Instant;

impl Gateway {
    /// The gateway whose state is in the file with this descriptor, as it was when its program gave it away. Nothing is
    /// dialled before [`Gateway::run`].
    ///
    /// # Errors
    /// [`GatewayError::Inherit`] when there is no going on from there.
    pub fn inherit(config: Config, state: RawFd) -> Result<Gateway, GatewayError> {
        let file = File::from(descriptor(state)?);
        let kept = State::read(&file).map_err(|error| InheritError::State(state, error))?;
        drop(file);
        if kept.site != config.site {
            let text = format!("is of site {}", config.site);
            return Err(InheritError::Configuration(text).into());
        }
        let listeners = inherit_listeners(kept.listeners, &config)?;
        let mut gateway = Gateway::listening(config, listeners)?;
        gateway.driver.births = kept.births;
        gateway.lifecycle.handed_over = kept.handed_over;
        gateway.site.streams_opened = kept.streams_opened;
        gateway.site.streams_peak = kept.streams_peak;
        gateway.site.ports.inherit(kept.next_delivery_port);
        gateway.driver.log.inherit(kept.refused);
        gateway.membership.jobs = Jobs::inherit(kept.jobs);
        // Those that jobs know, whatever the configuration wishes now.
        let ranges: Result<Vec<Cidr>, _> = kept.virtual_subnets.iter().map(|text| text.parse()).collect();
        let subnets = &gateway.driver.config.subnets;
        let fit = |ranges: &Vec<Cidr>| {
            let mut pairs = ranges.iter().zip(subnets);
            ranges.is_empty()
                || ranges.len() == subnets.len() && pairs.all(|(range, real)| range.is_of_size(real))
        };
        let Some(ranges) = ranges.ok().filter(fit) else {
            return Err(InheritError::Contradiction("virtual subnets are not of this site's size").into());
        };
        gateway
            .membership
            .directory
            .take_virtual_subnets(&gateway.driver.config, &ranges);
        for info in kept.others {
            let site = info.name.clone();
            if let Err(why) = gateway.membership.directory.learn(&site, info) {
                gateway.driver.log.say(format_args!("site {site} {why}"));
            }
        }
        for kept in kept.contacts {
            // A peer that is new has nothing to go on from, one that was taken out had no tunnel. The broker names those of a member.
            let peers = &gateway.tunnels.peers;
            let known = peers.iter().position(|peer| peer.site == kept.site);
            let is_member = gateway.membership.session.is_some();
            let index = known.or_else(|| {
                is_member.then(|| gateway.tunnels.add_peer(&mut gateway.driver, kept.site.clone()))
            });
            if let Some(index) = index {
                let contact = &mut gateway.tunnels.peers[index];
                contact.session = kept.session;
                contact.trouble = kept.trouble;
                contact.lanes = kept.lanes;
                gateway.tunnels.peers[index].totals = kept.totals;
            }
        }
        gateway.inherit_pairs(kept.pairs)?;
        gateway.inherit_legs(kept.legs)?;
        gateway.site.inherit_intakes(&mut base!(gateway), kept.intakes)?;
        gateway
            .commands
            .inherit_commands(&mut below!(gateway), kept.commands)?;
        gateway.inherit_starters(kept.starters);
        gateway.traversal.relay.carried_bytes = kept.carried_bytes;
        gateway
            .traversal
            .inherit_splices(&mut base!(gateway), kept.splices)?;
        gateway.driver.log.say(format_args!(
            "goes on as {} (process {}) with {} streams and {} jobs",
            gateway.driver.program.display(),
            std::process::id(),
            gateway.site.legs.len(),
            gateway.membership.jobs.len()
        ));
        let reply = Reply::HandedOver(HandedOver {
            site: gateway.driver.config.site.clone(),
            streams: gateway.site.legs.len(),
            jobs: gateway.membership.jobs.len(),
        });
        gateway.commands.answer_hand_over(&mut below!(gateway), &reply);

        Ok(gateway)
    }

    fn inherit_pairs(&mut self, kept: Vec<(usize, KeptPair<'static>)>) -> Result<(), InheritError> {
        let now = self.driver.now;
        let mut pairs = Vec::new();
        for (key, kept) in kept {
            let index = self.tunnels.peers.iter().position(|peer| peer.site == kept.site);
            let Some(index) = index else {
                return Err(InheritError::Configuration(format!(
                    "has no [[peer]] for {}",
                    kept.site
                )));
            };
            self.tunnels.by_site.insert(kept.site.clone(), key);
            pairs.push((key, Pair::inherit(kept, index, self.driver.config.tunnel, now)?));
        }
        self.tunnels.pairs = pairs.into_iter().collect();
        if self.membership.awaits_addresses(&mut self.driver) {
            return Ok(());
        }
        let own = self.membership.directory.own().clone();
        for key in self.tunnels.pairs.iter().map(|(key, _)| key).collect::<Vec<_>>() {
            // Its nodes may have changed with the configuration.
            self.tunnels
                .tell(&mut self.driver, key, GatewayToGateway::Site(own.clone()));
        }
        Ok(())
    }

    fn inherit_legs(&mut self, kept: Vec<(usize, KeptLeg<'static>)>) -> Result<(), InheritError> {
        let inherit = |(key, kept)| Ok::<_, InheritError>((key, Leg::inherit(kept)?));
        self.site.legs = kept.into_iter().map(inherit).collect::<Result<_, _>>()?;
        for (key, leg) in &mut self.site.legs {
            leg.socket
                .register(self.driver.registry(), Class::Leg.token(key))?;
            if let Some(pair) = self.tunnels.pairs.get_mut(leg.pair) {
                pair.legs.insert(leg.id, key);
            }
            if leg.is_connecting() {
                self.driver
                    .timers
                    .set(deliver::CONNECT_DEADLINE, Deadline::Delivery(key, leg.born));
            }
        }
        for key in self.site.legs.iter().map(|(key, _)| key).collect::<Vec<_>>() {
            self.site.schedule(&mut base!(self), key);
        }
        Ok(())
    }

    /// The children of the predecessor are those of this process, which is the same.
    fn inherit_starters(&mut self, kept: Vec<KeptStarter>) {
        let now = Instant::now();
        for kept in kept {
            if let Some(left) = kept.doomed {
                self.driver.timers.set(left, Deadline::Starters);
            }
            self.commands.starters.push(Starter {
                process: Pid::from_raw(kept.process),
                token: Token(kept.token),
                doomed: kept.doomed.and_then(|left| now.checked_add(left)),
            });
        }
        self.commands.look_after_starters();
    }
}

fn inherit_listeners(kept: KeptListeners, config: &Config) -> Result<Listeners, InheritError> {
    let same = (kept.lan.len(), kept.wan.is_some());
    let same_local = (kept.metrics.is_some(), kept.transparent.is_some());
    if same != (config.lan.len(), config.wan.is_some())
        || same_local != (config.metrics.is_some(), config.transparent.is_some())
    {
        let text = "listens elsewhere".to_owned();
        return Err(InheritError::Configuration(text));
    }
    let tcp = |number| Ok::<_, InheritError>(TcpListener::from_std(descriptor(number)?.into()));
    Ok(Listeners {
        lan: kept.lan.into_iter().map(tcp).collect::<Result<_, _>>()?,
        wan: kept.wan.map(tcp).transpose()?,
        control: UnixListener::from_std(descriptor(kept.control)?.into()),
        metrics: kept.metrics.map(tcp).transpose()?,
        transparent: kept.transparent.map(tcp).transpose()?,
        pending: false,
    })
}
