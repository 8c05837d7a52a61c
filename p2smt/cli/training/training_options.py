"""Options that `estimate` and `plan` share, and what their values mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from p2smt.cli import given
from p2smt.cli.parameters import Text, flag, option

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.training.efficiency import Efficiency
    from p2smt.training.strategy import Batch
    from p2smt.training.transformer import Transformer

_RANGE = ".."
MEMORY = option("SIZE", "Of a device, such as 76GB; default: all of it.")
MODEL = option(
    "NAME|FILE",
    "A model such as llama-3-70b, a YAML file, or a config.json of Hugging Face.",
    "-m",
)
DETAILS = flag("All tables behind the first screen.")
SVG = option("FILE", "Draw the parts of the time, and which axis spans which level.")


def memory_bytes(text: Text) -> int | None:
    """What a device may hold, if that is given."""
    from p2smt.units import parse_bytes

    return None if text is None else parse_bytes(text, "--memory")


@dataclass(frozen=True)
class WorkloadOptions:
    """How much is trained, and what a device reaches of its peak."""

    global_batch: Text = option(
        "N|N..N", "Sequences of an iteration, all devices; of plan --hosts also a range: 960..1056."
    )
    seq: Text = option("N", "Tokens of a sequence.")
    efficiency: Text = option(
        "NAME|FILE",
        "What a framework reaches on the device, such as megatron-a100, nemo-h100, fsdp-h100, or "
        "a file of calibrate --runs; default: that of --launcher on that device, else Megatron's "
        "on the nearest.",
    )
    optimizer_bytes: Text = option(
        "N", "Of the optimizer for a parameter: 12 (fp32, the default), 8 with moments in 16 bits."
    )
    imbalance: Text = option(
        "X", "Of a mixture: tokens of the busiest rank to those of a balanced routing; default: 1."
    )

    def of(self, model: Text, *, ranges: bool = False) -> tuple[Transformer, Batch]:
        """The model and the batch, which must be given; of ``ranges`` the largest."""
        from p2smt.api.workload import read_model
        from p2smt.errors import InputError
        from p2smt.training.strategy import MAX_BATCH, Batch

        if model is None:
            raise InputError("model", "is missing", "give --model llama-3-70b or a file")
        if self.global_batch is None:
            raise InputError("global batch", "is missing", "give --global-batch 1024")
        if self.seq is None:
            raise InputError("sequence length", "is missing", "give --seq 8192")
        if _RANGE in self.global_batch and not ranges:
            rule = "is a range, which plan searches on named hosts"
            raise InputError(f"--global-batch {self.global_batch[:40]}", rule, "give one number")
        batch = Batch(
            self.batches()[1],
            given.count_of(self.seq, "--seq", MAX_BATCH),
        )
        return read_model(model), batch

    def batches(self) -> tuple[int, int]:
        """The least and the largest batch: one number, or a range such as 960..1056."""
        from p2smt.errors import InputError
        from p2smt.training.strategy import MAX_BATCH

        text = self.global_batch or ""
        first, _, last = text.partition(_RANGE)
        ends = [given.count_of(one, "--global-batch", MAX_BATCH) for one in (first, last or first)]
        if ends[0] > ends[1]:
            rule = "must be from the smaller to the larger"
            raise InputError(f"--global-batch {text[:40]}", rule, f"give {last}..{first}")
        return ends[0], ends[1]

    def given(self) -> dict[str, Any]:
        """Fields of every strategy that options of their own say."""
        from p2smt.training.strategy import parse_value

        texts = {"optimizer_bytes": self.optimizer_bytes, "imbalance": self.imbalance}
        return {
            key: parse_value(key, text, f"--{key.replace('_', '-')} {text[:40]!r}")
            for key, text in texts.items()
            if text is not None
        }

    def constants(self, topology: Topology, launcher: Text, kinds: bool) -> Efficiency:
        """The efficiency, or the default for the launcher on the device of the topology.

        ``kinds``: one that was fitted by kinds of layers.
        """
        from p2smt.api.efficiencies import efficiency_of

        return efficiency_of(topology, self.efficiency, launcher or "", kinds)
