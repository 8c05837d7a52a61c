"""What the rows say together: theorems per size, and what they suggest beyond."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

from experiments.crossings.store import Row

Group = tuple[str, bool]
"""A kind of request, and whether the cost of a call is an unknown."""


def groups(rows: Sequence[Row]) -> dict[Group, list[Row]]:
    """The rows by what is asked."""
    found: dict[Group, list[Row]] = {}
    for row in rows:
        found.setdefault((row["kind"], row["calls"]), []).append(row)
    return found


def proved(row: Row) -> bool:
    """Whether the set is proved, its certificate checked, and each member alone best somewhere."""
    return bool(row["status"] == "optimal" and row["certificate"] and row["alone"])


def theorem_table(rows: Sequence[Row]) -> str:
    """A line for each request, and set of programs that is enough for some of the sizes."""
    lines = [
        "| request | cost per call | settings | proved | programs | always enough | Farkas cases |",
        "|---|---|---|---|---|---|---|",
    ]
    for (kind, calls), several in groups(rows).items():
        sets = Counter(tuple(row["members"]) for row in several)
        for members, count in sets.items():
            those = [row for row in several if tuple(row["members"]) == members]
            lines.append(
                f"| {kind} | {'c >= 0' if calls else '0'} | {count} | {sum(map(proved, those))} | "
                f"{_range(row['programs'] for row in those)} of "
                f"{_range(row['costs'] for row in those)} costs | {_listed(members)} | "
                f"{_range(row['cases'] for row in those)} |"
            )
    return "\n".join(lines)


def _range(numbers: object) -> str:
    known = sorted(set(numbers))  # type: ignore[call-overload]
    return str(known[0]) if len(known) == 1 else f"{known[0]} to {known[-1]}"


def _listed(members: Sequence[str]) -> str:
    return f"{len(members)}: " + "<br>".join(f"`{member}`" for member in members)


def flat_range(row: Row) -> tuple[Fraction, Fraction] | None:
    """The bandwidth ratios between which the single collective alone is best for large payloads.

    None: these are not one cell between ties and the other member.
    """
    cells = row["large"]
    if len(cells) != 3 or [member for _, member, _ in cells][1:] != [0, 1] or cells[1][2] != 1:
        return None
    return Fraction(cells[1][0]), Fraction(cells[2][0])


def expected_range(row: Row) -> tuple[Fraction, Fraction]:
    """The closed form: from P / k to P N, with P ports an outer entity."""
    (outer, inner), ports = row["factors"], row["ports"][0]
    return Fraction(ports, inner), Fraction(ports * outer)


def off(rows: Sequence[Row], holds: Callable[[Row], bool]) -> list[Row]:
    """The rows for which a statement does not hold."""
    return [row for row in rows if not holds(row)]


def follows_closed_form(row: Row) -> bool:
    """Whether the crossing of large payloads is where the closed form says."""
    return flat_range(row) == expected_range(row)


def needs_no_calls(row: Row) -> bool:
    """Whether the conjecture on the size of sets is about a row: calls cost nothing, or the request
    is none that all-reduces could join."""
    return row["kind"] != "all-reduce" or not row["calls"]


def has_expected_count(row: Row) -> bool:
    """Whether the set has 2^(L-1) programs over L levels: each cut between levels is left out, or
    the parts on both sides of it follow each other."""
    return len(row["members"]) == int(2 ** (len(row["factors"]) - 1))


def counts(rows: Sequence[Row]) -> str:
    """How many programs are enough for which sizes."""
    found: dict[int, list[str]] = {}
    for row in rows:
        found.setdefault(len(row["members"]), []).append(" x ".join(map(str, row["factors"])))
    return "; ".join(f"{n} over {', '.join(sizes)}" for n, sizes in sorted(found.items()))
