"""Options that `estimate` and `plan` share, and what their values mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from p2smt.cli import given
from p2smt.cli.parameters import Text, Texts, flag, option

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.interop.trainers.launch import Launch
    from p2smt.training.efficiency import Efficiency
    from p2smt.training.measured.anchor import Anchor
    from p2smt.training.strategy import Batch
    from p2smt.training.transformer import Transformer

_RANGE = ".."
MEMORY = option("SIZE", "That a run may take of a device: 76GB, or 71G (GiB); default: 92 % of it.")
MODEL = option(
    "NAME|FILE",
    "Such as llama-3-70b, a YAML file, a config.json of Hugging Face, or an answer of p2smt.",
    "-m",
)
_EXAMPLES = {
    "model": "--model llama-3-70b",
    "topology": "--topology dgx-h100:8",
    "strategy": "--strategy tp=8,pp=4,dp=2",
    "global batch": "--global-batch 1024",
    "sequence length": "--seq 8192",
}
"""How what must be given is written."""
FORCE = flag("Take a measurement that is 20 times off.")
MEASURED = option(
    "STRATEGY|FILE: TIME[, MEMORY]",
    "An iteration measured on this cluster, such as 'tp=4,pp=4: 31.2s, 71GB', or 'run.sh: 31.2s' "
    "of a launch script or an answer: scales the times.",
)
SVG = option("FILE", "Draw the parts of the time, and which axis spans which level.")


def anchor_of(
    measured: Texts,
    trained: Transformer,
    topology: Topology,
    batch: Batch,
    efficiency: Efficiency,
    given_fields: Mapping[str, Any],
    force: bool,
    settings: Texts = None,
    hosts: Sequence[str] | None = None,
    least_batch: int | None = None,
) -> Anchor | None:
    """What the cluster reaches of the model, by --measured; None: nothing was measured.

    ``settings``: what files in --measured leave open; ``hosts`` and ``least_batch``: as of
    :func:`~p2smt.api.anchoring.parse_measured`.

    Raises:
        InputError: a run cannot be, or is far off.
    """
    if not measured:
        if force:
            from p2smt.errors import InputError

            raise InputError("--force", "takes what --measured says", "add that, or drop it")
        return None
    from p2smt.api.anchoring import anchor, parse_measured

    told = settings_of(settings)
    asked = topology, given_fields, trained, batch, told
    runs = [parse_measured(text, *asked, hosts, least_batch) for text in measured]
    return anchor(trained, topology, batch, runs, efficiency, hosts=hosts, force=force)


def launched(
    file: Text,
    settings: Texts,
    model: Text,
    strategy: Text,
    workload: WorkloadOptions,
    devices: int,
) -> Launch | None:
    """The run that a file starts, with notes on what it leaves to defaults; None: no file is given.

    Raises:
        InputError: the file cannot be read, or an option says what stands in it.
    """
    from p2smt.errors import InputError

    told = settings_of(settings)
    if file is None:
        if told:
            raise InputError("--set", "tells what a launch script leaves open", "give that, too")
        return None
    for name, text in (("--strategy", strategy), ("--global-batch", workload.global_batch)):
        if text is not None:
            raise InputError(f"{name} {text[:40]}", f"stands in {file[:40]}", "drop one of them")
    found = read_run(file, told, model, workload.seq, devices)
    note_launch(found)
    return found


def read_run(
    file: str, told: Mapping[str, str], model: Text, seq: Text, devices: int | None
) -> Launch:
    """The run that a file starts, with notes; ``told``: what it leaves open.

    Raises:
        InputError: the file cannot be read, or does not say enough.
    """
    from p2smt.errors import InputError
    from p2smt.interop.trainers.launches import read_launch
    from p2smt.training.strategy import MAX_BATCH

    named = None if model is None else _read(model)
    tokens = None if seq is None else given.count_of(seq, "--seq", MAX_BATCH)
    told = {**told, **({} if tokens is None else {"seq": str(tokens)})}
    found = read_launch(file, told, model=named, devices=devices)
    if tokens not in (None, found.batch.tokens):
        rule = f"{file[:40]} has sequences of {found.batch.tokens:,} tokens"
        raise InputError(f"--seq {tokens}", rule, "drop it")
    return found


def note_launch(found: Launch) -> None:
    """Say what a file leaves to defaults, and how much of it counts for nothing here."""
    from p2smt.cli.output import note

    for text in found.assumed:
        note(text)
    if found.ignored:
        shown = ", ".join(found.ignored[:6]) + (", .." if len(found.ignored) > 6 else "")
        note(f"{len(found.ignored)} options count for no time or memory here: {shown}")


def settings_of(texts: Texts) -> dict[str, str]:
    """The values of --set by name."""
    return dict(_setting(text) for text in texts or [])


def _read(model: str) -> Transformer:
    """The model; which defaults of its file are taken is said beside the answer."""
    from p2smt.api.workload import read_model
    from p2smt.cli.output import note_beside

    found = read_model(model)
    for text in found.assumed:
        note_beside(text)
    return found


def _setting(text: str) -> tuple[str, str]:
    from p2smt.errors import InputError

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--set {text[:40]!r}", "is not NAME=VALUE", "write it like TP=2")
    return name.strip(), value.strip()


@contextmanager
def hinting_at_part(topology: Topology, valid_on: Callable[[Topology], object]) -> Iterator[None]:
    """Say with an error that a power of two of each rack would do: 64 of 72.

    ``valid_on``: raises where what is asked is not valid on a topology.

    Raises:
        InputError: the one that is raised inside.
    """
    from p2smt.cluster.trimmed import even_part
    from p2smt.errors import InputError

    try:
        yield
    except InputError as error:
        part = even_part(topology)
        if part is None or _valid(valid_on, topology) or not _valid(valid_on, part.topology):
            raise
        remedies = (error.remedy, f"--use {part.use} makes it valid: {part.words}")
        raise InputError(error.given, error.rule, "; ".join(filter(None, remedies))) from None


def _valid(valid_on: Callable[[Topology], object], topology: Topology) -> bool:
    from p2smt.errors import InputError

    try:
        valid_on(topology)
    except InputError:
        return False
    return True


def and_words(names: Sequence[str]) -> str:
    """Names in a row: ``model, topology and strategy``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def after_tables(lines: Sequence[str], details: bool) -> Sequence[str]:
    """Lines that follow an answer, apart from its tables."""
    return ["", *lines] if details and lines and lines[0] else lines


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
    seq: Text = option("N", "Tokens of a sequence, such as 8192 or 8k.")
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

    def of(
        self, model: Text, *, ranges: bool = False, trained: Transformer | None = None
    ) -> tuple[Transformer, Batch]:
        """The model and the batch, which must be given; of ``ranges`` the largest.

        ``trained``: the model, where a file says it.
        """
        from p2smt.errors import InputError
        from p2smt.training.strategy import MAX_BATCH, Batch

        self.check_given({"model": model} if trained is None else {})
        if _RANGE in (self.global_batch or "") and not ranges:
            rule = "is a range, which plan searches on named hosts"
            raise InputError(f"--global-batch {self.global_batch}", rule, "give one number")
        batch = Batch(
            self.batches()[1],
            given.count_of(self.seq or "", "--seq", MAX_BATCH),
        )
        return trained or _read(model or ""), batch

    def check_given(self, others: Mapping[str, Text]) -> None:
        """Hold that these, the batch and the sequence length are given: all that lack at once.

        Raises:
            InputError: some are not.
        """
        from p2smt.errors import InputError

        known = {**others, "global batch": self.global_batch, "sequence length": self.seq}
        missing = [name for name, text in known.items() if text is None]
        if missing:
            verb = "is missing" if len(missing) == 1 else "are missing"
            remedy = f"give {' '.join(_EXAMPLES[name] for name in missing)}"
            raise InputError(and_words(missing), verb, remedy)

    def batches(self) -> tuple[int, int]:
        """The least and the largest batch: one number, or a range such as 960..1056."""
        from p2smt.errors import InputError
        from p2smt.training.strategy import MAX_BATCH

        text = self.global_batch or ""
        first, dots, last = text.partition(_RANGE)
        if dots and not (first.strip() and last.strip()):
            rule = "is a range without its ends"
            raise InputError(f"--global-batch {text[:40]}", rule, "write it like 960..1056")
        both = (first, last if dots else first)
        ends = [given.count_of(one, "--global-batch", MAX_BATCH) for one in both]
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
