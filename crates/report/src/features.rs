//! What MPIs offer for grids: Table I of Hablot et al. (2007), for the MPIs of today.

use causeway_bench::table::Table;

/// One row for each MPI, and one for what Causeway adds to each.
pub fn table() -> Table {
    let mut table = Table::new(&[
        "MPI",
        "for long distances",
        "networks of one job",
        "firewalls, NAT, equal private addresses",
        "encryption between sites",
    ]);
    let rows = [
        [
            "Open MPI 4.1, 5.0",
            "limits and buffers to be set by hand; collectives know nodes (han), no sites",
            "shared memory, TCP, UCX, libfabric; every rank must reach every other one",
            "none: each rank listens on ports of its own",
            "none",
        ],
        [
            "MPICH 4, 5",
            "limits to be set by hand; collectives know nodes, no sites",
            "shared memory and one of UCX and libfabric for the whole job",
            "none: each rank listens on ports of its own",
            "none",
        ],
        [
            "Intel MPI 2021",
            "limits to be set by hand; collectives know nodes, no sites",
            "shared memory and one provider of libfabric for the whole job",
            "none: each rank listens on ports of its own",
            "none",
        ],
        [
            "each of them with Causeway",
            "limits from the measured link; paced connections that stay warm; collectives cross between sites once",
            "as the MPI over TCP; between sites, the gateways' lanes",
            "one port of one host at one site; punched or relayed where none is open",
            "TLS 1.3 or QUIC, unless both ends say otherwise",
        ],
    ];
    table.rows = rows.map(|row| row.map(str::to_owned).into()).into();
    table
}
