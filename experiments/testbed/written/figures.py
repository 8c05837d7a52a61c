"""How the studies' figures are written.  Needs the ``plots`` extra."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from p2smt.report.progress import counted

PNG_DPI = 110


def write_figures(
    figures: Mapping[str, Callable[[], Figure]], folder: Path, arguments: Sequence[str]
) -> None:
    """Write every figure as SVG below ``folder``, or as PNG into a folder that arguments name.

    An SVG has neither a date nor random names, so the same data give the same file.
    """
    mpl.rcParams["svg.hashsalt"] = "p2smt"
    target = Path(arguments[0]) if arguments else folder / "figures"
    target.mkdir(exist_ok=True)
    for name, draw in counted(figures.items(), "figures"):
        figure = draw()
        if arguments:
            figure.savefig(target / f"{name}.png", dpi=PNG_DPI)
        else:
            figure.savefig(target / f"{name}.svg", metadata={"Date": None})
