//! One model with two users: the lane, which asks it, and QUIC, which tells it what happens.

use super::model::{MIN_WINDOW, Model};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory};
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// One model, for the lane, which asks it, and QUIC, which tells it what happens.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Mutex<Model>>);

impl Shared {
    pub(crate) fn new(model: Model) -> Shared {
        Shared(Arc::new(Mutex::new(model)))
    }

    pub(crate) fn get(&self) -> MutexGuard<'_, Model> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Controller for Shared {
    fn on_sent(&mut self, now: Instant, bytes: u64, _: u64) {
        self.get().on_sent(bytes, now);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        let mut model = self.get();
        model.on_round(rtt.get());
        model.on_ack(bytes, sent, now);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _: bool, _: Option<u64>) {
        let mut model = self.get();
        model.on_under_way(in_flight);
        model.look(now);
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, lost: u64) {
        self.get().on_loss(lost);
    }

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.get().window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        MIN_WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl ControllerFactory for Shared {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new((*self).clone())
    }
}
