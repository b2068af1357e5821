//! Hands the events of owners to the owners that they concern.

use crate::base::base;
use crate::commands::command_context;
use crate::commands::event::CommandsEvent;
use crate::gateway::Gateway;
use crate::tunnels::event::TunnelsEvent;
use causeway_control::Reply;
use causeway_wire::TextError;

impl Gateway {
    /// Runs one step of the loop, and hands on its consequences before anything else is done. Every step runs
    /// through this, so that no owner acts on a state that the others have not heard of yet.
    pub(crate) fn step<T>(&mut self, step: impl FnOnce(&mut Gateway) -> T) -> T {
        let result = step(self);
        self.handle_events();
        result
    }

    /// Acts on the owners' events until there are no more.
    fn handle_events(&mut self) {
        loop {
            if let Some(event) = self.tunnels.poll_event() {
                self.on_tunnels(event);
            } else if let Some(event) = self.membership.poll_event() {
                self.traversal.on_membership(&mut base!(self), event);
            } else if let Some(event) = self.commands.poll_event() {
                self.on_commands(event);
            } else {
                return;
            }
        }
    }

    fn on_commands(&mut self, event: CommandsEvent) {
        match event {
            CommandsEvent::HandOver {
                command,
                state_version,
                program,
                config,
            } => {
                let considered =
                    self.lifecycle
                        .consider_successor(&self.driver, state_version, program, config);
                let considered = considered.map_err(TextError::of);
                self.commands
                    .on_successor(&mut command_context!(self), command, considered);
            }
        }
    }

    /// Acts once a program that asked for the gateway has been vetted.
    pub(crate) fn on_vetted(&mut self) {
        if let Err(refusal) = self.lifecycle.on_vetted(&self.driver.config) {
            let reply = Reply::Error(refusal.to_string());
            self.commands
                .answer_hand_over(&mut command_context!(self), &reply);
        }
    }

    fn on_tunnels(&mut self, mut event: TunnelsEvent) {
        match &mut event {
            TunnelsEvent::Begun { pair } => self.membership.greet(&mut self.driver, &mut self.tunnels, *pair),
            // The streams that the tunnel carried are over, too.
            TunnelsEvent::Ended { site, legs, why, .. } => {
                self.site.abort(&mut base!(self), std::mem::take(legs));
                self.commands.on_site_gone(&mut command_context!(self), site, why);
            }
            _ => {}
        }
        self.traversal.on_tunnels(&mut base!(self), event);
    }
}
