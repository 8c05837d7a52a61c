"""Options that `estimate` and `plan` share, and what their values mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from p2smt.cli import given

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.training.efficiency import Efficiency
    from p2smt.training.strategy import Batch
    from p2smt.training.transformer import Transformer

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME|FILE",
        help="A model such as llama-3-70b, a YAML file, or a config.json of Hugging Face.",
    ),
]
BatchOption = Annotated[
    str | None,
    typer.Option("--global-batch", metavar="N", help="Sequences of an iteration, all devices."),
]
SequenceOption = Annotated[
    str | None, typer.Option("--seq", metavar="N", help="Tokens of a sequence.")
]
EfficiencyOption = Annotated[
    str | None,
    typer.Option(
        "--efficiency",
        metavar="NAME|FILE",
        help="What a framework reaches on the device, such as megatron-a100, nemo-h100, "
        "fsdp-h100, or a file of calibrate --runs; default: that of --launcher on that "
        "device, else Megatron's.",
    ),
]
MemoryOption = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="Of a device, such as 76GB; default: all of it."),
]
SvgOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Draw the parts of the time, and which axis spans which level."
    ),
]


@dataclass(frozen=True, slots=True)
class WorkloadTexts:
    """Model, batch, efficiency and memory as given."""

    model: str | None
    batch: str | None
    sequence: str | None
    efficiency: str | None
    memory: str | None

    def trained(self) -> tuple[Transformer, Batch]:
        """The model and the batch, which must be given."""
        from p2smt.api.workload import read_model
        from p2smt.errors import InputError
        from p2smt.training.strategy import MAX_BATCH, Batch

        if self.model is None:
            raise InputError("model", "is missing", "give --model llama-3-70b or a file")
        if self.batch is None:
            raise InputError("global batch", "is missing", "give --global-batch 1024")
        if self.sequence is None:
            raise InputError("sequence length", "is missing", "give --seq 8192")
        batch = Batch(
            given.count_of(self.batch, "--global-batch", MAX_BATCH),
            given.count_of(self.sequence, "--seq", MAX_BATCH),
        )
        return read_model(self.model), batch

    def constants(self, topology: Topology, launcher: str | None) -> Efficiency:
        """The efficiency, or the default for the launcher on the device of the topology."""
        from p2smt.api.efficiencies import efficiency_of

        return efficiency_of(topology, self.efficiency, launcher or "")

    def memory_bytes(self) -> int | None:
        """What a device may hold, if that is given."""
        from p2smt.units import parse_bytes

        return None if self.memory is None else parse_bytes(self.memory, "--memory")
