"""What the options of `p2smt synthesize` ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p2smt.cli.spread_options import SpreadTexts
    from p2smt.result import StopWatch
    from p2smt.synthesis.question import ScheduleSize, SynthesisSetting

_MOST_STEPS, _MOST_ROUNDS, _MOST_CHUNKS, _MOST_MESSAGES = 1_000, 100_000, 10_000, 100


@dataclass(frozen=True, slots=True)
class SettingTexts:
    """The options that say what is asked about, as given."""

    fabric: str | None
    collective: str | None
    root: str | None
    symmetry: str
    messages: str | None
    unit: str | None
    link_bandwidth: str | None

    def named_collective(self) -> str:
        """The collective, where nothing is missing.

        Raises:
            InputError: fabric or collective are missing, or symmetry or collective is none.
        """
        from p2smt.errors import InputError
        from p2smt.synthesis.question import collective_named

        if self.fabric is None:
            raise InputError("--fabric", "is missing", "give --fabric dgx1, or another")
        if self.collective is None:
            rule = "give --collective all-gather, or another"
            raise InputError("--collective", "is missing", rule)
        if self.symmetry not in ("auto", "none"):
            raise InputError(f"--symmetry {self.symmetry[:40]!r}", "must be auto or none")
        return collective_named(self.collective)


def check_parts(texts: SpreadTexts, symmetry: str, *, pareto: bool) -> None:
    """Refuse early what is not searched in parts, and options of parts that do not read.

    Raises:
        InputError: a frontier, or symmetries, are to be searched in parts; or an option is bad.
    """
    from p2smt.errors import InputError

    if not texts.wanted:
        return
    if pareto:
        rule = "does not go with --pareto: one size is searched in parts, not a frontier"
        raise InputError(texts.first, rule, "drop one of them")
    if symmetry != "none":
        rule = "asks for parts of the complete search, which knows no symmetries"
        raise InputError(texts.first, rule, "add --symmetry none")
    texts.spread()


def setting_of(texts: SettingTexts, watch: StopWatch) -> SynthesisSetting:
    """What is asked about; ``watch``: of the making of the fabric.

    Raises:
        InputError: an option is missing or not understood, or they do not go together.
        OutOfTimeError: the time came before the fabric was made.
    """
    from p2smt.cli import given
    from p2smt.interop.fabrics import read_fabric
    from p2smt.synthesis.question import SynthesisSetting
    from p2smt.units import exact_rate

    unit, bandwidth = texts.unit, texts.link_bandwidth
    collective = texts.named_collective()
    root = 0 if texts.root is None else given.count_of(texts.root, "root", least=0)
    messages = texts.messages
    many = 1 if messages is None else given.count_of(messages, "messages", _MOST_MESSAGES)
    return SynthesisSetting(
        read_fabric(
            str(texts.fabric),
            unit=None if unit is None else exact_rate(unit, "--unit"),
            link_bandwidth=None if bandwidth is None else exact_rate(bandwidth, "--link-bandwidth"),
            watch=watch,
        ),
        collective,
        root,
        texts.symmetry == "auto",
        many,
    )


@dataclass(frozen=True, slots=True)
class SizeTexts:
    """The options that say how much, as given."""

    steps: str | None
    rounds: str | None
    chunks: str | None
    max_steps: str | None
    max_chunks: str | None

    def check(self, *, pareto: bool) -> None:
        """Refuse early what does not go together or does not read.

        Raises:
            InputError: an option goes with --pareto and that was not given, or the other way
                round; or one is missing, or no number.
        """
        if not pareto:
            self.size()
            return
        self.refuse_for_frontier()
        self.most_steps()
        self.most_chunks()

    def size(self) -> ScheduleSize:
        """The steps, rounds and chunks of one question.

        Raises:
            InputError: one is missing or no number, or one was given that goes with --pareto.
        """
        from p2smt.cli import given
        from p2smt.errors import InputError
        from p2smt.synthesis.question import ScheduleSize

        for name, text in (("--max-steps", self.max_steps), ("--max-chunks", self.max_chunks)):
            if text is not None:
                raise InputError(name, "goes with --pareto", "add that, or drop it")
        if self.steps is None or self.rounds is None or self.chunks is None:
            rule = "are all needed for one schedule"
            raise InputError("--steps, --rounds and --chunks", rule, "give them, or --pareto")
        return ScheduleSize(
            given.count_of(self.steps, "steps", _MOST_STEPS),
            given.count_of(self.rounds, "rounds", _MOST_ROUNDS),
            given.count_of(self.chunks, "chunks", _MOST_CHUNKS),
        )

    def refuse_for_frontier(self) -> None:
        """The frontier chooses sizes itself.

        Raises:
            InputError: one was given.
        """
        from p2smt.errors import InputError

        named = {"--steps": self.steps, "--rounds": self.rounds, "--chunks": self.chunks}
        for name, text in named.items():
            if text is not None:
                raise InputError(name, "is found by --pareto", "drop one of them")

    def most_steps(self) -> int | None:
        """The most steps of a frontier; None: as many as it looks at by itself."""
        from p2smt.cli import given

        text = self.max_steps
        return None if text is None else given.count_of(text, "max-steps", _MOST_STEPS)

    def most_chunks(self) -> int | None:
        """The most chunks of a frontier, as its collective counts them; None: the default."""
        from p2smt.cli import given

        text = self.max_chunks
        return None if text is None else given.count_of(text, "max-chunks", _MOST_CHUNKS)
