"""What README.md says, computed from curve.csv and predicted.csv."""

from figures import groups, line, median, read, where

FORMS = ("vanilla", "grid", "hierarchical")
PHASES = {"broadcast_s": 3, "rays_s": 2, "exchange_s": 3, "output_s": 2, "messages": 0, "messages_far": 0}


def texts():
    curve = read("curve.csv")
    counts = set()
    for (sites, ranks), own in sorted(groups(curve, "sites", "ranks").items(), key=lambda item: tuple(map(int, item[0]))):
        for form in FORMS:
            runs = where(own, form=form)
            counts.add(len(runs))
            yield line(f"{sites}, {ranks}", form, *(f"{median(runs, key):.{digits}f}" for key, digits in PHASES.items()))
    least, most = min(counts), max(counts)
    yield f"{least if least == most else f'{least} or {most}'} runs of each, in turn, {len(curve)} in all"

    rows = read("predicted.csv")
    for (rays, sites), own in groups((row for row in rows if row["kind"] != "check" and row["sites"] != "1"), "rays", "sites").items():
        times = {row["form"]: sum(float(row[key]) for key in ("broadcast_s", "rays_s", "exchange_s")) for row in own}
        far = [next(row["messages_far"] for row in own if row["form"] == form) for form in ("grid", "hierarchical")]
        digits = 1 if int(rays) == 10_000_000 else 2
        gains = [f"{times[form]:.{digits}f} ({1 - times[form] / times['vanilla']:.0%})".replace("%", " %") for form in FORMS[1:]]
        yield line(f"{int(rays):,}".replace(",", " "), sites, f"{times['vanilla']:.{digits}f}", *gains, ", ".join(far))
    for row in where(rows, kind="check"):
        if row["sites"] != "1":
            pairs = (("broadcast_s", 3), ("exchange_s", 3), ("messages", 0), ("messages_far", 0))
            cells = (f"{float(row[key]):.{digits}f}, {float(row['measured_' + key]):.{digits}f}" for key, digits in pairs)
            yield line(f"{row['sites']}, {row['ranks']}", row["form"], *cells)
