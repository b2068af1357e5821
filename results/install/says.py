"""What README.md says, computed from its rows."""

from figures import groups, read, values

SYSTEMS = {"bullseye": "Debian 11", "bookworm": "Debian 12", "trixie": "Debian 13", "forky": "Debian 14"}
PACKAGES = {"tar": "tar", "deb": "`.deb`", "wheel": "wheel"}


def texts():
    rows = read("install.csv")
    yield f"None of the {len(rows)} took longer than {max(values(rows, 'together_s')):.1f} s."
    for (system, package), both in groups(rows, "system", "package").items():
        jobs = {row["mpi"]: float(row["job_s"]) for row in both}
        cells = [f"{float(both[0][column]):.1f}" for column in ("install_s", "up_s")]
        cells += [f"{jobs[mpi]:.1f}" for mpi in ("openmpi", "mpich")]
        yield f"| {SYSTEMS[system]} | {PACKAGES[package]} | {' | '.join(cells)} |"
