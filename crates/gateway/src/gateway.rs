//! The loop: what the gateway consists of, who is told what the kernel reports, and in which order.

use crate::base::base;
use crate::book::Book;
use crate::commands;
use crate::commands::Commands;
use crate::commands::command_context;
use crate::config::{Config, Transport};
use crate::driver::Driver;
use crate::error::GatewayError;
use crate::flow::flow;
use crate::inherited::InheritError;
use crate::lifecycle::Lifecycle;
use crate::lifecycle::follow::{follow, go_on, tell_of_taking_up};
use crate::lifecycle::handover::{self, answer};
use crate::lifecycle::record::write_down;
use crate::lifecycle::shutdown::shut_down;
use crate::lifecycle::takeup::{self, TakenUp};
use crate::link::{Before, KeeperLink};
use crate::listeners::Listeners;
use crate::membership::Membership;
use crate::membership::broker_session::BrokerSession;
use crate::membership::directory::Directory;
use crate::site::SiteSide;
use crate::sys::process;
use crate::sys::signals::Signals;
use crate::sys::socket;
use crate::sys::source::{Class, CommandsSource, LifecycleSource, Source};
use crate::sys::timers::Deadline;
use crate::telemetry::{Telemetry, view};
use crate::traversal::Traversal;
use crate::tunnels::Tunnels;
use crate::tunnels::peers::peer::Peer;
use crate::tunnels::tls;
use causeway_control::private;
use causeway_control::spawned::REMOTE_SHELL;
use mio::{Events, Poll};
use nix::sys::signal::Signal;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Most events handled between two checks of the deadlines.
const EVENTS: usize = 1024;

/// One site's gateway.
pub struct Gateway {
    pub(crate) driver: Driver,
    pub(crate) listeners: Listeners,
    pub(crate) tunnels: Tunnels,
    pub(crate) membership: Membership,
    pub(crate) site: SiteSide,
    pub(crate) traversal: Traversal,
    pub(crate) telemetry: Telemetry,
    pub(crate) commands: Commands,
    pub(crate) lifecycle: Lifecycle,
}

impl Gateway {
    /// Listens as configured. Nothing is dialled before [`Gateway::run`].
    ///
    /// # Errors
    /// [`GatewayError`] names the address at which it cannot listen.
    pub fn new(config: Config) -> Result<Gateway, GatewayError> {
        let listeners = Listeners::bind(&config)?;
        Gateway::listening(config, listeners, None, None)
    }

    /// Makes the gateway of a worker. It goes on from what the previous worker has written down, if that was
    /// killed or has handed this gateway over. If a killed worker's records cannot be used, it begins anew.
    /// Nothing is dialled before [`Gateway::run`].
    ///
    /// # Errors
    /// [`GatewayError::Inherit`] when what was handed over cannot be used; others when the memory or the
    /// listeners cannot be.
    pub(crate) fn for_worker(config: Config, mut link: KeeperLink) -> Result<Gateway, GatewayError> {
        let before = link.before.take();
        let takes_up = match &before {
            Some(Before::Killed(left)) => !left.begins_clean,
            Some(Before::HandedOver) => true,
            None => false,
        };
        let mut starters = Vec::new();
        if let Some(before) = before.as_ref().filter(|_| takes_up) {
            let (mut book, records, found) = Book::open(link.files()?).map_err(GatewayError::Memory)?;
            match takeup::take_up(&config, (&records, found), (&link.inherited, before.is_killed())) {
                Ok(Some((taken, queues))) => {
                    book.clear();
                    book.keep_until_written(queues);
                    return Gateway::go_on_with(config, link, book, taken, before);
                }
                Ok(None) => {}
                Err(error) if before.is_killed() => {
                    link.stayed = Some(format!("cannot go on where its worker was killed: {error}"));
                }
                Err(error) => return Err(InheritError::State(error).into()),
            }
            // The streams end here: closed now, they tell the processes at their other ends at once.
            link.inherited.iter().for_each(|number| process::close(*number));
            starters = commands::written::follow_starters(&records).unwrap_or_default();
        }
        let why = link.stayed.take();
        let book = Book::begin(link.files()?).map_err(GatewayError::Memory)?;
        let listeners = Listeners::duplicate(&link.kept().listeners)?;
        let mut gateway = Gateway::listening(config, listeners, Some(link), Some(book))?;
        why.inspect(|why| gateway.driver.say(why));
        if let Some(Before::Killed(left)) = before {
            gateway.step(|gateway| follow(&mut flow!(gateway), &left, starters));
        }
        Ok(gateway)
    }

    fn go_on_with(
        config: Config,
        mut link: KeeperLink,
        book: Book,
        TakenUp { state, owners }: TakenUp,
        before: &Before,
    ) -> Result<Gateway, GatewayError> {
        let listeners = Listeners::duplicate(&link.kept().listeners)?;
        let stayed = link.stayed.take();
        let mut gateway = Gateway::listening(config, listeners, Some(link), Some(book))?;
        // If the other program could not be executed, the hand-over does not count.
        let handed_over = state.handed_over - u64::from(stayed.is_some());
        gateway.lifecycle.inherit(handed_over);
        gateway.step(|gateway| go_on(&mut flow!(gateway), state, owners))?;
        match before {
            Before::Killed(left) => tell_of_taking_up(&flow!(gateway), left),
            Before::HandedOver => gateway.step(|gateway| answer(&mut flow!(gateway), stayed)),
        }
        Ok(gateway)
    }

    /// Makes a gateway that does not know any other gateway yet.
    pub(crate) fn listening(
        mut config: Config,
        mut listeners: Listeners,
        link: Option<KeeperLink>,
        book: Option<Book>,
    ) -> Result<Gateway, GatewayError> {
        let files = usize::try_from(process::raise_file_limit()).unwrap_or(usize::MAX);
        // Nothing that is started on nodes needs the privilege that the listener needed.
        socket::pass_net_admin_on(false);
        crate::sys::priority::ask_for_short_slices();
        let steers = socket::may_begin_anew(&config.congestion_control);
        let poll = Poll::new()?;
        let uses_tls = !config.insecure || config.transport != Transport::Tcp;
        let (session, tls) = match config.membership.clone() {
            Some(directory) => {
                let (grid, tls) = BrokerSession::begin(&mut config, &directory, &poll)?;
                (Some(grid), Some(tls))
            }
            None => (None, uses_tls.then(tls::Context::new).transpose()?),
        };
        let signals = Signals::take()?;
        signals.register(poll.registry(), Class::Signals.token(0))?;
        listeners.register(poll.registry())?;
        let peers = config.peers.iter();
        let peers = peers.map(|peer| Peer::new(peer.site.clone(), peer.address, peer.rate));
        let peers = peers.collect();
        let directory = Directory::new(
            &config,
            session
                .as_ref()
                .map_or(&config.virtual_subnets[..], BrokerSession::given),
        );
        let site = SiteSide::new(config.delivery_ports.clone(), files);
        let driver = Driver::new(config, poll, files, link, book)?;
        let mut gateway = Gateway {
            listeners,
            tunnels: Tunnels::new(peers, tls, session.as_ref().map(BrokerSession::trust), steers),
            membership: Membership::new(directory, session),
            site,
            traversal: Traversal::default(),
            telemetry: Telemetry::default(),
            commands: Commands::new(&driver)?,
            lifecycle: Lifecycle::new(signals),
            driver,
        };
        if let Some(session) = gateway.membership.session() {
            gateway.driver.audit.name_grid(&session.name);
        }
        gateway.tunnels.connecting().open(&mut gateway.driver)?;
        Ok(gateway)
    }

    /// Serves until SIGINT, SIGTERM or SIGHUP.
    ///
    /// # Errors
    /// [`GatewayError::Loop`] when the kernel refuses to report events.
    pub fn run(&mut self) -> Result<(), GatewayError> {
        if self.driver.book.is_some() {
            self.site.note_changes();
            self.tunnels.note_changes();
            self.commands.note_changes();
            self.write_down();
        }
        let link = self.driver.link.as_ref();
        link.inspect(|link| link.serves());
        if self.lifecycle.handed_over() == 0 && link.is_none_or(|link| link.kept().ends.count == 0) {
            self.announce();
        }
        self.step(|gateway| gateway.seek_peers());
        self.look_after_control();
        let mut events = Events::with_capacity(EVENTS);
        loop {
            let wait = self.wait();
            match self.driver.poll.poll(&mut events, wait) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
                _ => {}
            }
            self.driver.now = Instant::now();
            for event in &events {
                if self.step(|gateway| gateway.dispatch(event)).is_break() {
                    self.driver.link.iter().for_each(KeeperLink::announce_end);
                    match self.driver.link.as_ref().is_some_and(KeeperLink::is_orphan) {
                        true => self.leave_listeners(),
                        false => self.driver.say("stopping"),
                    }
                    shut_down(&mut flow!(self));
                    return Ok(());
                }
            }
            self.go_on();
            if let Some(successor) = self.lifecycle.take_successor() {
                // Streams of tunnels that end because of this have no owner any more.
                self.step(|gateway| handover::let_go(&mut flow!(gateway)));
                self.telemetry.end_scrapes();
                self.step(|gateway| handover::hand_over(&successor, &mut flow!(gateway)));
            }
        }
    }

    /// The keeper was killed, and with it the gateway: the next gateway listens here at once, while this
    /// worker sends its last messages to the others.
    fn leave_listeners(&mut self) {
        self.driver.say("its first process was killed; stopping");
        if let Some(link) = &self.driver.link {
            link.close_listeners();
        }
        self.listeners.close();
    }

    /// Begins to bring up lanes to all peers.
    fn seek_peers(&mut self) {
        for index in self.tunnels.peers().indexes() {
            self.tunnels
                .connecting()
                .dial_all(&mut self.driver, index, Duration::ZERO);
            self.traversal.seek_first(&mut base!(self), index);
        }
    }

    /// Does what follows the events of a turn.
    fn go_on(&mut self) {
        self.step(|gateway| gateway.tunnels.chores().look_after_quic(&mut gateway.driver));
        for lane in self.tunnels.chores().take_unread() {
            self.step(|gateway| flow!(gateway).receive(lane));
        }
        self.step(|gateway| flow!(gateway).look_after_tunnels());
        self.step(|gateway| gateway.traversal.look_after(&mut base!(gateway)));
        // What follows tells others what was done: by then, the next worker must know it, too.
        self.write_down();
        if self.commands.has_answers() {
            self.step(|gateway| gateway.commands.send_answers(&mut command_context!(gateway)));
            self.write_down();
        }
        for pair in self.tunnels.chores().take_dirty() {
            if self.tunnels.chores().untouch(pair) {
                self.step(|gateway| flow!(gateway).pump(pair));
            }
        }
        while let Some(deadline) = self.driver.timers.pop_due(self.driver.now) {
            self.step(|gateway| gateway.on_deadline(deadline));
        }
        self.step(|gateway| gateway.tunnels.chores().drive_quic(&mut gateway.driver));
        if !self.driver.closing.is_empty() {
            self.write_down();
        }
        if let Some(link) = &self.driver.link {
            link.count(self.site.legs().len(), self.membership.jobs().len());
        }
    }

    fn write_down(&mut self) {
        write_down(&mut flow!(self));
    }

    fn announce(&self) {
        let lan: Vec<String> = self.driver.config.lan.iter().map(SocketAddr::to_string).collect();
        let wan = self.driver.config.wan.map_or_else(
            || "nothing (dials out only)".to_owned(),
            |address| address.to_string(),
        );
        let metrics = self
            .driver
            .config
            .metrics
            .map(|address| format!(", {address} for metrics"));
        let transparent = self.driver.config.transparent;
        let transparent = transparent.map(|address| format!(", {address} for what nft hands over"));
        self.driver.say(format_args!(
            "listening on {} for this site, {wan} for other gateways, {} for commands{}{}",
            lan.join(" and "),
            self.driver.config.control.display(),
            metrics.unwrap_or_default(),
            transparent.unwrap_or_default()
        ));
        let config = &self.driver.config;
        let starters = config.accept.starters();
        if !starters.is_empty() && config.batch.is_some() {
            self.driver.say(format_args!(
                "jobs that {} take part in run in allocations as this gateway's own user, and can act as this site \
                 (docs/security-officer.md)",
                starters.join(", ")
            ));
        } else if !starters.is_empty() && config.remote_shell == REMOTE_SHELL {
            self.driver.say(format_args!(
                "jobs that {} take part in run as this gateway's own user, and can act as this site; a remote_shell that logs in \
                 as another user prevents this (docs/security-officer.md)",
                starters.join(", ")
            ));
        }
    }

    fn dispatch(&mut self, event: &mio::event::Event) -> ControlFlow<()> {
        match Source::of(event.token()) {
            Source::Listener(listener) => self.accept_from(listener),
            Source::Lane(key) => flow!(self).on_lane(key, event),
            Source::Tunnels(source) => self.tunnels.on_ready(&mut self.driver, source, event),
            Source::Broker => self.membership.on_ready(&mut self.driver, &mut self.tunnels),
            Source::Site(source) => self.site.on_ready(&mut base!(self), source, event),
            Source::Traversal(source) => self.traversal.on_ready(&mut base!(self), source),
            Source::Telemetry(key) => self.telemetry.on_ready(&mut self.driver, &view!(self), key),
            Source::Commands(source) => self.commands.on_ready(&mut command_context!(self), source),
            Source::Lifecycle(LifecycleSource::Signals) => return self.on_signals(),
            Source::Lifecycle(LifecycleSource::Vetting) => self.on_vetted(),
        }
        ControlFlow::Continue(())
    }

    fn on_signals(&mut self) -> ControlFlow<()> {
        while let Some(signal) = self.lifecycle.next_signal() {
            if signal != Signal::SIGCHLD {
                return ControlFlow::Break(());
            }
            let children = CommandsSource::Children;
            self.commands.on_ready(&mut command_context!(self), children);
        }
        ControlFlow::Continue(())
    }

    fn on_deadline(&mut self, deadline: Deadline) {
        match deadline {
            Deadline::Tunnels(deadline) => self.tunnels.on_deadline(&mut self.driver, deadline),
            Deadline::Site(deadline) => self.site.on_deadline(&mut base!(self), deadline),
            Deadline::Traversal(deadline) => self.traversal.on_deadline(&mut base!(self), deadline),
            Deadline::Telemetry(deadline) => self.telemetry.on_deadline(&mut self.driver, deadline),
            Deadline::Commands(deadline) => self.commands.on_deadline(&mut command_context!(self), deadline),
            Deadline::Accept => self.on_accept_deadline(),
            Deadline::Control => self.look_after_control(),
        }
    }

    /// How long the loop may sleep.
    fn wait(&mut self) -> Option<Duration> {
        let tunnels = self.tunnels.chores().wait();
        if tunnels == Some(Duration::ZERO) || self.commands.has_answers() {
            return Some(Duration::ZERO);
        }
        let others = [self.traversal.wait(), self.driver.timers.wait()];
        others.into_iter().chain([tunnels]).flatten().min()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Otherwise the socket's file would outlive its process, and the next start would have to guess. If
        // there is a keeper, the file is the keeper's.
        if self.driver.link.is_none() {
            let _ = private::remove_socket(&self.driver.config.control);
        }
        self.driver.flush();
    }
}
