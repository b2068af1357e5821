//! What the gateways cost on loopback, where nothing else limits: a table, no thresholds.
//! `cargo test --release -p causeway-gateway --test speed -- --ignored --nocapture`
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Grid, wait_for};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

const BULK: usize = 2_000_000_000;
const ROUNDS: usize = 20_000;

#[test]
#[ignore = "prints figures; run it by name"]
fn one_stream_of_bulk_and_a_small_pingpong() {
    let grids = [1, 2, 4].map(|lanes| (lanes, Grid::with_settings(&format!("lanes = {lanes}"))));
    let mut table = Vec::new();
    let listeners: Vec<_> = grids.iter().map(|(_, grid)| grid.listen()).collect();
    for ((lanes, grid), listener) in grids.iter().zip(&listeners) {
        wait_for("all lanes", || grid.status(1).tunnels[0].lanes.len() == *lanes);
        table.push((lanes, grid.pair(listener)));
    }
    for (round, (lanes, (near, far))) in (0..3).flat_map(|round| table.iter().map(move |row| (round, row))) {
        let before = cpu_seconds();
        let rate = bulk(near, far);
        let cpu = (cpu_seconds() - before) / BULK as f64 * 1e9;
        let time = pingpong(near, far);
        println!(
            "round {round}, {lanes} lanes: bulk {rate:.2} Gbit/s, {cpu:.2} CPU s/GB with its ends; one-way 1 B {time:.1} us"
        );
    }
}

fn cpu_seconds() -> f64 {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).unwrap();
    [usage.user_time(), usage.system_time()]
        .iter()
        .map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6)
        .sum()
}

fn bulk(mut from: &TcpStream, mut to: &TcpStream) -> f64 {
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let chunk = vec![7; 1 << 20];
            let mut left = BULK;
            while left > 0 {
                let some = left.min(chunk.len());
                from.write_all(&chunk[..some]).unwrap();
                left -= some;
            }
        });
        let mut buffer = vec![0; 1 << 20];
        let mut left = BULK;
        while left > 0 {
            left -= to.read(&mut buffer).unwrap();
        }
    });
    BULK as f64 * 8.0 / began.elapsed().as_secs_f64() / 1e9
}

fn pingpong(mut near: &TcpStream, mut far: &TcpStream) -> f64 {
    far.set_nodelay(true).unwrap();
    let mut times: Vec<f64> = Vec::with_capacity(ROUNDS);
    let mut byte = [0];
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut byte = [0];
            for _ in 0..ROUNDS {
                far.read_exact(&mut byte).unwrap();
                far.write_all(&byte).unwrap();
            }
        });
        for _ in 0..ROUNDS {
            let began = Instant::now();
            near.write_all(&byte).unwrap();
            near.read_exact(&mut byte).unwrap();
            times.push(began.elapsed().as_secs_f64() * 1e6 / 2.0);
        }
    });
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}
