"""`synthesize --size`: payloads, the topology that prices them, and the search of the question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.cli import given
from p2smt.cli import option_groups as o
from p2smt.cli.output import is_default
from p2smt.cli.parameters import Text, Texts, option

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology


@dataclass(frozen=True)
class SizeOptions:
    """Payloads, and whose latencies and library price them."""

    size: Text = option(
        "SIZE[..SIZE]",
        "The best schedules of such payloads on --topology: 64MiB, or 1KiB..1GiB (the whole vector "
        "per device).",
    )
    topology: Text = o.TOPOLOGY
    library: Text = option(
        "NAME|FILE|none",
        "With --size: whose choice stands beside; default: the topology's, its newest version.",
    )

    def check(self, others: Mapping[str, object]) -> None:
        """Refuse early what is missing or does not go together; ``others``: options by name.

        Raises:
            InputError: it is so.
        """
        from p2smt.errors import InputError

        if self.topology is None:
            rule = "needs a topology, whose latencies and library payloads are priced by"
            raise InputError("--size", rule, "give --topology dgx-a100:2, or another")
        for name, value in others.items():
            if value:
                raise InputError(name, "does not go with --size", "drop one of them")
        self.payloads()

    def refuse(self) -> None:
        """Without --size there is nothing to price; --objective has a use for the topology.

        Raises:
            InputError: one of the others is given, and no default.
        """
        from p2smt.errors import InputError

        for name, value in (("--topology", self.topology), ("--library", self.library)):
            if value is not None and not is_default(name):
                rule, remedy = "goes with --size", "add that, or drop it"
                if name == "--topology":
                    rule += ", or --objective"
                    remedy = f"add one, or give --fabric {value[:60]} instead"
                raise InputError(name, rule, remedy)

    def payloads(self) -> tuple[int, ...]:
        """The payloads to show: of a range each twice the one before.

        Raises:
            InputError: they do not read, or are a list.
        """
        from p2smt.errors import InputError
        from p2smt.units import parse_sizes

        text = self.size or ""
        if "," in text:
            rule = "is a list: one payload is asked about, or all of a range"
            raise InputError(f"--size {text[:60]!r}", rule, "write it like 64MiB or 1KiB..1GiB")
        return parse_sizes(text, "--size")

    def under(self) -> Topology:
        """The topology under the library that prices."""
        return priced_under(self.topology, self.library)


def priced_under(spec: Text, library: Text, use: Texts = None) -> Topology:
    """The topology under a library: the newest version of its own, unless it was calibrated.

    Raises:
        InputError: there is no such topology or library, or a bandwidth is not stated.
    """
    from p2smt.cluster.allocation import check_stated
    from p2smt.cluster.library.registry import newest_version

    found = given.topology_of(spec, library, use=use)
    check_stated(found)
    if library is not None or found.library is None:
        return found
    newest = newest_version(found.library_name)
    return found if found.fitted_for_other(newest) else found.under(newest)
