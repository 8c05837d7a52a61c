"""The table of the project's README on the paper's claims, from the JSON files alone.

python -m experiments.placement_448x.report.readme
"""

from __future__ import annotations

from experiments.placement_448x.report.measured import measured, with_model
from experiments.placement_448x.report.text import Lines, percent, table
from experiments.placement_448x.report.values import all_values


def claims_table() -> Lines:
    """Claim, paper, modelled and measured; ranges are over the test clusters."""
    value, speedups = all_values(), [data["summary"]["speedup"] for data in with_model()]
    shares, means, most = (
        [one[f"chosen_{name}"] for one in speedups] for name in ("share_gaining", "mean", "max")
    )
    tops = [data["summary"]["accuracy"]["top_10"] for data in with_model()]
    ratios = [data["summary"]["placement_ratio"] for data in measured()]
    rows = (
        (
            "placements of one all-reduce differ by up to",
            "448.5x",
            f"{value['ratio_effective']}, nominal links {value['ratio_nominal']}",
            f"{min(ratios):.0f}x to {max(ratios):.0f}x",
        ),
        (
            "requests that gain from a program",
            "69 %",
            f"{value['share_both']}, over rings {value['share_ring']}",
            f"{percent(min(shares))} to {percent(max(shares))}",
        ),
        (
            "mean speedup",
            "1.27x",
            f"{value['mean_both']}, over rings {value['mean_ring']}",
            f"{min(means):.2f}x to {max(means):.2f}x",
        ),
        (
            "largest speedup",
            "2.04x",
            f"over rings {value['max_ring']}, over trees {value['max_tree']}",
            f"{min(most):.2f}x to {max(most):.2f}x",
        ),
        ("the model's ten best hold the measured best", "> 90 %", "-", f"{percent(min(tops))}"),
    )
    yield from table(("claim", "paper", "modelled here", "measured here"), rows)


if __name__ == "__main__":
    print("\n".join(claims_table()))
