"""The tables of README.md, from what fuzz/run.sh printed (executions.csv)."""

from figures import line, read


def texts():
    for row in read("executions.csv"):
        yield line(row["target"], f"{int(row['executions']):,}".replace(",", " "), row["commit"])
