//! What a node has, as Linux reports it, and how fast its cores are, by a benchmark.
//!
//! Every core computes at the same time, as the ranks of a job do: the first half of the time a product of
//! matrices that stay in the first cache, the other half a sum of vectors that no cache holds. A core's speed
//! is the geometric mean of both rates, each in multiples of a reference: what counts for a program lies
//! between them.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// The reference: floating-point operations a second of a core, with the instructions that each processor of
/// its kind has.
const REFERENCE_OPERATIONS: f64 = 4e9;

/// The reference: bytes a second that a core reads and writes while all others do.
const REFERENCE_BYTES: f64 = 4e9;

/// Rows of a matrix: three take 24 KiB of a first cache's 32.
const ROWS: usize = 32;

/// Numbers of a vector: three take 12 MiB, which is more than a core's share of the last cache.
const LENGTH: usize = 1 << 19;

/// Numbers of a vector between two readings of the clock.
const CHUNK: usize = 1 << 15;

/// Products of matrices between two readings of the clock.
const PRODUCTS: usize = 8;

/// What a node has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Cores that a process of this user may use; two hardware threads of a core are one.
    pub cores: u32,
    /// Its memory; `None` if Linux does not say.
    pub memory_bytes: Option<u64>,
    /// Its processor, by its maker's name or its architecture.
    pub processor: String,
    /// Processes that ran or were about to, in thousandths, as a mean of the last minute.
    pub load_thousandths: u32,
}

impl Node {
    /// Inspects this host.
    ///
    /// # Errors
    /// Linux does not say which processors this process may use.
    pub fn here() -> Result<Node, nix::Error> {
        let set = sched_getaffinity(Pid::from_raw(0))?;
        let own = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false));
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Ok(Node {
            cores: cores(own, |cpu| {
                let topology = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
                let siblings = ["core_cpus_list", "thread_siblings_list"];
                let siblings = siblings
                    .iter()
                    .map(|name| fs::read_to_string(format!("{topology}/{name}")));
                siblings.flatten().next()
            }),
            memory_bytes: memory_bytes(&read("/proc/meminfo")),
            processor: processor(&read("/proc/cpuinfo")),
            load_thousandths: load_thousandths(&read("/proc/loadavg")),
        })
    }
}

/// How many cores these processors are. If Linux does not say which belong together, each counts as one.
fn cores(own: impl Iterator<Item = usize>, siblings: impl Fn(usize) -> Option<String>) -> u32 {
    let cores = own.map(|cpu| siblings(cpu).unwrap_or_else(|| cpu.to_string()).trim().to_owned());
    let cores: BTreeSet<String> = cores.collect();
    u32::try_from(cores.len()).unwrap_or(u32::MAX)
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Longest name of a processor that is reported.
pub const MAX_NAME: usize = 80;

fn processor(cpuinfo: &str) -> String {
    let mut names = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let name = names
        .find(|(key, _)| key.trim() == "model name")
        .map(|(_, name)| name.trim());
    let name = name.unwrap_or(std::env::consts::ARCH);
    name.chars()
        .filter(|letter| !letter.is_control())
        .take(MAX_NAME)
        .collect()
}

fn load_thousandths(loadavg: &str) -> u32 {
    let first = loadavg
        .split(' ')
        .next()
        .and_then(|first| first.parse::<f64>().ok());
    (first.unwrap_or_default() * 1000.0) as u32
}

/// How fast a core is while all of them compute, in thousandths of the reference: the mean of the cores.
pub fn speed_thousandths(cores: u32, time: Duration) -> u32 {
    let together = Barrier::new(cores as usize);
    let rates: Vec<f64> = thread::scope(|scope| {
        let all = (0..cores).map(|_| scope.spawn(|| rate_of_core(&together, time)));
        let all: Vec<_> = all.collect();
        all.into_iter().filter_map(|core| core.join().ok()).collect()
    });
    let mean = rates.iter().sum::<f64>() / f64::from(cores.max(1));
    (mean * 1000.0).round().clamp(1.0, f64::from(u32::MAX)) as u32
}

/// The geometric mean of both rates, in multiples of the reference.
fn rate_of_core(together: &Barrier, time: Duration) -> f64 {
    let mut matrices = Matrices::new();
    let mut vectors = Vectors::new();
    together.wait();
    let operations = rate(time / 2, || matrices.multiply());
    together.wait();
    let bytes = rate(time / 2, || vectors.add());
    (operations / REFERENCE_OPERATIONS * bytes / REFERENCE_BYTES).sqrt()
}

/// How much `work` does in a second; it returns how much it has done each time.
fn rate(time: Duration, mut work: impl FnMut() -> usize) -> f64 {
    let began = Instant::now();
    let mut done = 0;
    loop {
        done += work();
        let took = began.elapsed();
        if took >= time {
            return done as f64 / took.as_secs_f64().max(1e-9);
        }
    }
}

struct Matrices {
    left: Vec<[f64; ROWS]>,
    right: Vec<[f64; ROWS]>,
    product: Vec<[f64; ROWS]>,
}

impl Matrices {
    fn new() -> Matrices {
        let filled = |value: f64| vec![[value; ROWS]; ROWS];
        Matrices {
            left: filled(0.5),
            right: filled(0.25),
            product: filled(0.0),
        }
    }

    /// Returns the number of floating-point operations.
    fn multiply(&mut self) -> usize {
        for _ in 0..PRODUCTS {
            for (sums, left) in self.product.iter_mut().zip(&self.left) {
                // It begins at zero, so that no number grows without bound.
                *sums = [0.0; ROWS];
                for (factor, right) in left.iter().zip(&self.right) {
                    for (sum, value) in sums.iter_mut().zip(right) {
                        *sum += factor * value;
                    }
                }
            }
            black_box(&mut self.product);
        }
        2 * PRODUCTS * ROWS * ROWS * ROWS
    }
}

struct Vectors {
    one: Vec<f64>,
    other: Vec<f64>,
    sum: Vec<f64>,
    at: usize,
}

impl Vectors {
    fn new() -> Vectors {
        Vectors {
            one: vec![0.5; LENGTH],
            other: vec![0.25; LENGTH],
            sum: vec![0.0; LENGTH],
            at: 0,
        }
    }

    /// Adds the next part. Returns how many bytes the program reads and writes.
    fn add(&mut self) -> usize {
        let part = self.at..self.at + CHUNK;
        let terms = self.one[part.clone()].iter().zip(&self.other[part.clone()]);
        for (sum, (one, other)) in self.sum[part].iter_mut().zip(terms) {
            *sum = one + 3.0 * other;
        }
        black_box(&mut self.sum);
        self.at = (self.at + CHUNK) % LENGTH;
        3 * size_of::<f64>() * CHUNK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_of_a_core_count_once_and_those_of_whom_nobody_says_anything_each() {
        let siblings = |cpu: usize| Some(format!("{},{}\n", cpu % 4, cpu % 4 + 4));
        assert_eq!(cores(0..8, siblings), 4);
        assert_eq!(cores([1, 5, 2].into_iter(), siblings), 2);
        assert_eq!(cores(0..8, |_| None), 8);
    }

    #[test]
    fn linux_is_understood() {
        assert_eq!(
            memory_bytes("MemTotal:       16309132 kB\nMemFree: 1 kB\n"),
            Some(16_309_132 << 10)
        );
        assert_eq!(memory_bytes("MemTotal: many kB"), None);
        assert_eq!(
            processor("processor\t: 0\nmodel name\t: Some CPU\t@ 2 GHz\n"),
            "Some CPU@ 2 GHz"
        );
        assert_eq!(processor("CPU part : 0xd0c\n"), std::env::consts::ARCH);
        assert_eq!(load_thousandths("1.25 0.50 0.10 1/100 4242\n"), 1250);
        let here = Node::here().unwrap();
        assert!(here.cores > 0 && here.memory_bytes > Some(1 << 20), "{here:?}");
    }

    #[test]
    fn all_of_a_matrix_and_of_a_vector_is_computed() {
        let mut matrices = Matrices::new();
        assert_eq!(matrices.multiply(), 2 * PRODUCTS * ROWS.pow(3));
        let expected = 0.5 * 0.25 * ROWS as f64;
        assert!(matrices.product.iter().flatten().all(|value| *value == expected));
        let mut vectors = Vectors::new();
        let bytes: usize = (0..LENGTH / CHUNK).map(|_| vectors.add()).sum();
        assert_eq!((bytes, vectors.at), (3 * 8 * LENGTH, 0));
        assert!(vectors.sum.iter().all(|sum| *sum == 1.25));
    }

    #[test]
    fn every_core_computes_and_their_mean_is_told() {
        assert!(speed_thousandths(2, Duration::from_millis(20)) > 1);
    }
}
