//! Makes the status of a lane, as `causeway status` shows it.

use crate::tunnels::lanes::lane::Lane;
use crate::tunnels::origin::Way;
use causeway_control::LaneStatus;

pub(crate) fn lane_status(lane: &Lane) -> LaneStatus {
    let path = lane.path().unwrap_or_default();
    let rate = match lane.rate() {
        0 => path.delivery_rate,
        rate => rate,
    };
    LaneStatus {
        number: lane.number.0,
        peer: lane.peer,
        rtt_microseconds: path.rtt_microseconds,
        congestion_control: lane.congestion_control.clone(),
        carrier: lane.carrier.name().to_owned(),
        technique: technique(lane),
        sent_bytes: lane.sent_bytes,
        received_bytes: lane.received_bytes,
        least_rtt_microseconds: path.least_rtt_microseconds,
        rate_bits_per_second: rate * 8,
        // QUIC's own congestion control reports nothing before it knows the rate.
        rate_is_a_guess: lane.is_over_tcp() && lane.remembered.rate() == 0,
        window_bytes: path.window_bytes,
        segments: path.segments,
        retransmits: path.retransmits,
        timeouts: path.timeouts,
        out_of_order: path.out_of_order,
        repaired: path.repaired,
        mtu_bytes: path.mtu_bytes,
        trains: lane.training_turn.is_some() || lane.training.is_some(),
        idle_restarts: lane.idle_restarts,
    }
}

/// How the lane came about.
fn technique(lane: &Lane) -> String {
    match (&lane.through, lane.punched, lane.dialled) {
        (Some(through), ..) => format!("relay through {}", through.site),
        (None, Some(Way::Udp), _) => "punched".to_owned(),
        (None, Some(Way::Tcp), _) => "punched (TCP)".to_owned(),
        (None, None, true) => "direct".to_owned(),
        (None, None, false) => "dialled in".to_owned(),
    }
}
