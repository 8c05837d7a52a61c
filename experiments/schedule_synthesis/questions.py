"""What both tools are asked: the same fabric, collective, steps, rounds and chunks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """One question, as both tools are asked it.

    title: for the table.
    fabric, collective: as p2smt calls them.
    size: steps, rounds, chunks; None: the whole frontier.
    topology, peer_collective: as msccl-tools calls them; ``topology`` with its arguments.
    exists: whether there is a schedule; None: the frontier.
    repeat_none: whether p2smt is asked without symmetries, too.
    """

    title: str
    fabric: str
    collective: str
    size: tuple[int, int, int] | None
    topology: tuple[str, ...]
    peer_collective: str
    exists: bool | None
    repeat_none: bool = True

    def ours(self, python: str, output: str, *, symmetry: str) -> list[str]:
        """The command of p2smt; the schedule is verified, lowered and written."""
        command = [python, "-m", "p2smt.cli", "synthesize", "--fabric", self.fabric]
        command += ["--collective", self.collective, "--symmetry", symmetry, "--json"]
        if self.size is None:
            return [*command, "--pareto", "-o", output]
        steps, rounds, chunks = map(str, self.size)
        return [*command, "--steps", steps, "--rounds", rounds, "--chunks", chunks, "-o", output]

    def theirs(self, python: str) -> list[str]:
        """The command of msccl-tools; its answer is printed and not saved."""
        name, *arguments = self.topology
        kind = "pareto-optimal" if self.size is None else "instance"
        command = [python, "-m", "msccl", "solve", kind, name, self.peer_collective, *arguments]
        if self.size is None:
            return [*command, "--no-save"]
        steps, rounds, chunks = map(str, self.size)
        return [*command, "-s", steps, "-r", rounds, "-c", chunks, "--no-save"]


_DGX1, _DGX2 = ("DGX1",), ("DGX2",)

QUESTIONS = (
    Question("DGX-1 all-gather", "dgx1", "all-gather", (2, 3, 2), _DGX1, "Allgather", True),
    Question("DGX-1 all-gather", "dgx1", "all-gather", (3, 7, 6), _DGX1, "Allgather", True),
    Question("DGX-2 all-gather", "dgx2", "all-gather", (2, 2, 1), _DGX2, "Allgather", False),
    Question("DGX-1 all-to-all", "dgx1", "all-to-all", (3, 3, 1), _DGX1, "Alltoall", True),
    Question(
        *("4 in a full mesh, all-reduce", "mesh:4", "all-reduce", (2, 2, 4)),
        *(("FullyConnected", "-n", "4"), "Allreduce", True),
    ),
    Question(
        *("ring of 8, all-reduce", "ring:8", "all-reduce", (14, 14, 8)),
        *(("Ring", "-n", "8"), "Allreduce", True),
    ),
    Question("DGX-1 all-reduce", "dgx1", "all-reduce", (4, 4, 8), _DGX1, "Allreduce", True),
    Question(
        *("DGX-1 all-gather, whole frontier", "dgx1", "all-gather", None),
        *(_DGX1, "Allgather", None, False),
    ),
)
"""Those on which the prototype was measured, and the all-reduces that msccl-tools cannot find."""
