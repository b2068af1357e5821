//! What commands of this host ask, and what gateways tell each other.

use crate::base::{Base, Bundle, base};
use crate::driver::Driver;
use crate::inherited::InheritError;
use crate::keys::{CommandKey, Table};
use crate::membership::Membership;
use crate::site::SiteSide;
use crate::sys::source::CommandsSource;
use crate::sys::timers::CommandsDeadline;
use crate::telemetry::View;
use crate::traversal::Traversal;
use crate::tunnels::Tunnels;
use allocations::Allocations;
use command::{Command, KeptCommand};
use event::CommandsEvent;
use recording::Unrecorded;
use slab::Slab;
use spawner::Spawner;
use starter::{Helper, KeptStarter, Start, Starter};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

mod allocations;
mod batch_words;
mod carrying;
mod choice;
pub(crate) mod command;
pub(crate) mod event;
mod holding;
mod job_life;
mod local;
mod peer_messages;
mod ping;
mod recording;
mod running;
mod spawn;
mod spawner;
pub(crate) mod starter;
mod starting;
pub(crate) mod written;

/// Carries commands, with their keys, and starters through a hand-over.
pub(crate) struct KeptCommands {
    pub(crate) starters: Vec<KeptStarter>,
    pub(crate) commands: Vec<(usize, KeptCommand)>,
}

/// The commands of this host that are being served, and the processes that were started for them and for
/// other sites.
pub(crate) struct Commands {
    connections: Table<CommandKey, Command>,
    /// Commands whose answer waits until the next worker would know what it says.
    unanswered: Vec<CommandKey>,
    starters: Vec<Starter>,
    starts: Slab<Start>,
    /// Processes whose start is being written to the audit, by the number of the line.
    unrecorded: HashMap<u64, Unrecorded>,
    spawner: Spawner,
    /// The allocations that are known, of this site's batch system and of other sites'.
    allocations: Allocations,
    /// Short-lived processes that have submitted jobs carried.
    carriers: Vec<Helper>,
    /// Directories in which commands have submitted jobs.
    submitted: BTreeSet<PathBuf>,
    /// Reports what has happened, for other owners.
    events: VecDeque<CommandsEvent>,
    /// Whether the next worker would find these processes if this one were killed.
    are_starters_noted: bool,
}

impl Commands {
    /// Acts on what the kernel reports of a command or of processes.
    pub(crate) fn on_ready(&mut self, context: &mut CommandContext<'_>, source: CommandsSource) {
        match source {
            CommandsSource::Command(key) => self.on_command(context, key),
            CommandsSource::Spawner => self.on_spawner(context),
            CommandsSource::Audit => self.on_words(context),
            CommandsSource::Children => self.look_after_starters(context.driver),
        }
    }

    /// Acts on a deadline that has passed.
    pub(crate) fn on_deadline(&mut self, context: &mut CommandContext<'_>, deadline: CommandsDeadline) {
        match deadline {
            CommandsDeadline::Command(key, generation) => self.on_command_deadline(context, key, generation),
            CommandsDeadline::Starters => self.look_after_starters(context.driver),
            CommandsDeadline::Records => self.on_records_deadline(context),
            CommandsDeadline::Looks => self.on_looks_deadline(context),
            CommandsDeadline::Submitted => self.on_submitted_deadline(context),
        }
    }

    /// Begins without commands, and starts the thread that starts programs. Call this after the gateway has
    /// taken its signals.
    ///
    /// # Errors
    /// Those of starting the thread that starts programs.
    pub(crate) fn new(driver: &Driver) -> io::Result<Commands> {
        Ok(Commands {
            connections: Table::new(),
            unanswered: Vec::new(),
            starters: Vec::new(),
            starts: Slab::new(),
            unrecorded: HashMap::new(),
            spawner: Spawner::begin(driver)?,
            allocations: Allocations::default(),
            carriers: Vec::new(),
            submitted: BTreeSet::new(),
            events: VecDeque::new(),
            are_starters_noted: true,
        })
    }

    /// Takes the next event for other owners.
    pub(crate) fn poll_event(&mut self) -> Option<CommandsEvent> {
        self.events.pop_front()
    }

    /// Goes on serving the commands of a predecessor, and takes over the processes that it had started.
    ///
    /// # Errors
    /// A descriptor is invalid, or cannot be registered.
    pub(crate) fn inherit(
        &mut self,
        context: &mut CommandContext<'_>,
        kept: KeptCommands,
    ) -> Result<(), InheritError> {
        self.inherit_commands(context, kept.commands)?;
        self.inherit_starters(context, kept.starters);
        Ok(())
    }

    /// Lists the descriptors that the state names by number.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.connections.iter().map(|(_, command)| command.as_fd())
    }
}

/// What commands, and messages from other gateways, act on.
pub(crate) struct CommandContext<'a> {
    pub(crate) driver: &'a mut Driver,
    pub(crate) tunnels: &'a mut Tunnels,
    pub(crate) membership: &'a mut Membership,
    pub(crate) site: &'a mut SiteSide,
    pub(crate) traversal: &'a mut Traversal,
    /// How many programs had this gateway before.
    pub(crate) handed_over: u64,
}

impl Bundle for CommandContext<'_> {
    fn owners(&self) -> (&Driver, &Membership) {
        (self.driver, self.membership)
    }

    fn owners_mut(&mut self) -> (&mut Driver, &mut Tunnels, &mut Membership) {
        (self.driver, self.tunnels, self.membership)
    }
}

impl CommandContext<'_> {
    /// Lends the connections of this site, and what their methods act on.
    pub(crate) fn site_and_base(&mut self) -> (&mut SiteSide, Base<'_>) {
        (&mut *self.site, base!(self))
    }

    /// Lends the paths between gateways, and what their methods act on.
    pub(crate) fn traversal_and_base(&mut self) -> (&mut Traversal, Base<'_>) {
        (&mut *self.traversal, base!(self))
    }

    /// Lends what status and metrics show.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            tunnels: self.tunnels,
            membership: self.membership,
            site: self.site,
            traversal: self.traversal,
            handed_over: self.handed_over,
        }
    }
}

/// Borrows exactly these fields of a Gateway.
macro_rules! command_context {
    ($gateway:ident) => {
        $crate::commands::CommandContext {
            driver: &mut $gateway.driver,
            tunnels: &mut $gateway.tunnels,
            membership: &mut $gateway.membership,
            site: &mut $gateway.site,
            traversal: &mut $gateway.traversal,
            handed_over: $gateway.lifecycle.handed_over(),
        }
    };
}
pub(crate) use command_context;
