"""collatz.c in Python: how many steps each number takes to come down to 1, and which takes most.

The last line is that of collatz.c."""

import sys

import causeway_workers


def steps_of(item: int) -> tuple[int, tuple[int, int]]:
    n, steps = item + 1, 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps, (item + 1, steps)


def longer(earlier: tuple[int, int], later: tuple[int, int]) -> tuple[int, int]:
    return later if later[1] > earlier[1] else earlier


def main() -> None:
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
    found = causeway_workers.run(items, steps_of, result="i", sum="2q", combine=longer)
    if found:
        check = 0
        for steps in found.results:
            check = (check * 31 + steps) % 2**32
        number, steps = found.sum
        print(f"of {items} numbers {number} takes most steps, {steps}; check {check}")


if __name__ == "__main__":
    main()
