"""What README.md says, computed from chaos.csv and gaps.csv."""

from figures import median, read, values


def texts():
    chaos, gaps = read("chaos.csv"), read("gaps.csv")
    longest = [row for row in chaos if row["seconds"] == "600"][0]
    yield f"In ten minutes {longest['kills']} workers were killed"
    times = values(gaps, "longest_ms")
    yield (f"the longest was {median(gaps, 'longest_ms'):.1f} ms (median of {len(times)} runs, "
           f"{min(times):.1f} to {max(times):.1f} ms).")
