#!/usr/bin/env python3
"""Measures a ping-pong of MPIs between two emulated sites over each technique of connecting them,
in turn, and adds a row for each message size of each run to a CSV file:

    techniques.py ROWS.csv RUNS [CAUSEWAY]

Techniques, over the same link of 11.6 ms and 1 Gbit/s: `direct` (the sites' networks have a route),
`port range` (they have, and firewalls that let in some ports, which the MPI is told), `gateways`
(one site lets its gateway be dialled), `punched` (neither lets anybody in, one is behind a NAT) and
`relay` (the same, but what crosses goes through a third site: 14 ms). Direct ones carry the MPI's
own connections."""

import csv
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The firewalls' ports, in which gateways and MPI have theirs.
PORTS = "7000-7099"
OPEN_MPI = {"OMPI_MCA_btl_tcp_port_min_v4": "7020", "OMPI_MCA_btl_tcp_port_range_v4": "20",
            "OMPI_MCA_oob_tcp_dynamic_ipv4_ports": "7041-7060"}
# MPICH connects through UCX.
MPICH = {"MPICH_PORT_RANGE": "7061:7080", "UCX_TCP_PORT_RANGE": "7081-7099"}
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
COLUMNS = ("mpi", "technique", "run", "size_bytes", "count", "median_us", "p99_us")
# How long a lane between sites may take to be there.
DEADLINE = 60


class Lab:
    """An emulated grid, in which commands run on rennes' head node."""

    def __init__(self, causeway: str, name: str, scenario: str, options: tuple[str, ...], environment: dict[str, str]):
        self.causeway, self.name, self.environment = causeway, name, AS_ROOT | environment
        self.left: list[subprocess.Popen] = []
        subprocess.run([causeway, "lab", "up", scenario, "--name", name, *options], check=True, stdout=subprocess.DEVNULL)

    def command(self, site: str, words: list[str], environment: dict[str, str]) -> list[str]:
        """A command of ours on a site's head node."""
        variables = [f"{name}={value}" for name, value in environment.items()]
        return [self.causeway, "lab", "exec", "--lab", self.name, f"{site}-head", "--", "env", *variables, self.causeway, *words]

    def says(self, site: str, *words: str) -> str:
        """What a command prints; it must end well."""
        command = self.command(site, list(words), self.environment_of(site))
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout.strip()

    def environment_of(self, site: str) -> dict[str, str]:
        """Sites that have their gateways from the lab need no more."""
        return self.environment

    def down(self) -> None:
        """Ends it, and what was left running there."""
        subprocess.run([self.causeway, "lab", "down", self.name], check=False, stdout=subprocess.DEVNULL)
        for process in self.left:
            process.wait()

    def wait_for(self, text: str) -> None:
        """Waits until rennes' status has this text."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if text in subprocess.run(self.command("rennes", ["status"], self.environment_of("rennes")), check=False,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout:
                return
            time.sleep(0.1)
        sys.exit(f"techniques: {self.name}: no status says {text!r} within {DEADLINE} s")


class Joined(Lab):
    """A grid with a broker at its third site, whose lanes are punched."""

    def __init__(self, causeway: str, name: str, scenario: str, place: pathlib.Path):
        self.place = place
        super().__init__(causeway, name, scenario, ("--no-gateways",), {})
        grid = str(place / "grid")
        self.says("lyon", "grid", "create", "g5k", "--broker", "198.51.100.9:7443", "--dir", grid)
        self.leave("lyon", "broker", "--config", f"{grid}/broker.toml")
        end = time.monotonic() + DEADLINE
        while not (place / "grid/broker.sock").exists() and time.monotonic() < end:
            time.sleep(0.1)
        for site, subnet in (("rennes", "10.1.0.0/24"), ("nancy", "10.2.0.0/24")):
            token = self.says("lyon", "grid", "token", "--site", site, "--dir", grid)
            self.leave(site, "gateway", "--join", token, "--subnet", subnet, "--node", f"{site}-1:4", "--accept-jobs", "all")
        self.wait_for("punched")

    def environment_of(self, site: str) -> dict[str, str]:
        return self.environment | {"XDG_RUNTIME_DIR": "/run", "XDG_CONFIG_HOME": str(self.place / site)}

    def leave(self, site: str, *words: str) -> None:
        """Leaves a command running, as in a terminal."""
        with open(self.place / f"{site}-{words[0]}.log", "w", encoding="utf-8") as log:
            command = self.command(site, list(words), self.environment_of(site))
            self.left.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log))


def measured(lab: Lab, way: str, out: pathlib.Path) -> list[dict]:
    """The rows of one run of each MPI."""
    shutil.rmtree(out, ignore_errors=True)
    command = lab.command("rennes", [
        "bench", "pingpong", "--ways", way, "--sizes", "1,4M", "--count", "100", "--seconds", "3", "--least", "1", "--most", "1",
        "--link", "11.6ms,1Gbit/s", "--sites", "rennes,nancy", "--mpi", "mpirun.openmpi", "--mpi", "mpirun.mpich",
        "--out", str(out)], lab.environment_of("rennes"))
    # 1: a cell has no value, which its row says.
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"techniques: {lab.name}: causeway bench ended with {done.returncode}: {done.stderr}")
    with open(out / "rows.csv", encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def main() -> int:
    rows, runs = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    causeway = sys.argv[3] if len(sys.argv) > 3 else str(ROOT / "target/release/causeway")
    two_sites = (ROOT / "scenarios/rennes-nancy.toml").read_text(encoding="utf-8")
    labs: list[Lab] = []
    # Not in /tmp: every node has one of its own.
    (ROOT / "target").mkdir(exist_ok=True)
    place = pathlib.Path(tempfile.mkdtemp(prefix="techniques-", dir=ROOT / "target"))
    try:
        ranged = place / "ports.toml"
        ranged.write_text(two_sites.replace('firewall = "open"', f'firewall = {{ ports = "{PORTS}" }}'), encoding="utf-8")
        routed = ("--routed", "true")
        plain = Lab(causeway, "techniques-routed", "rennes-nancy", routed, {})
        labs.append(plain)
        ports = Lab(causeway, "techniques-ports", str(ranged), routed, OPEN_MPI | MPICH)
        labs.append(ports)
        relay = Lab(causeway, "techniques-relay", "closed", (), {})
        labs.append(relay)
        punched = Joined(causeway, "techniques-punched", "closed", place)
        labs.append(punched)
        relay.wait_for("relay through lyon")
        techniques = (("direct", plain, "direct"), ("port range", ports, "direct"), ("gateways", plain, "causeway"),
                      ("punched", punched, "causeway"), ("relay", relay, "causeway"))
        with open(rows, "w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            for run in range(runs):
                for technique, lab, way in techniques:
                    print(f"techniques: {technique}, run {run}", flush=True)
                    for row in measured(lab, way, place / "bench"):
                        if row["result"] != "measured":
                            print(f"techniques: {technique}, {row['mpi']}: {row}", file=sys.stderr)
                            continue
                        table.writerow({"mpi": row["mpi"], "technique": technique, "run": run, "size_bytes": row["size_bytes"],
                                        "count": row["count"], "median_us": row["median"], "p99_us": row["p99"]})
                    file.flush()
    finally:
        for lab in labs:
            lab.down()
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
