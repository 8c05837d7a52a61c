"""A command that takes each option once."""

from __future__ import annotations

from copy import copy
from typing import Any

from typer.core import TyperCommand, TyperOption

from p2smt.cli.command.as_given import OfTexts
from p2smt.errors import InputError


class OneValueCommand(OfTexts, TyperCommand):
    """A command whose options of one value refuse a second; flags may be repeated."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As the base class does, which by itself would keep the last value without a word."""
        if not ctx.resilient_parsing:
            self._refuse_repetition(ctx, args)
        return list(super().parse_args(ctx, args))

    def _refuse_repetition(self, ctx: Any, args: list[str]) -> None:
        options = [p for p in self.params if isinstance(p, TyperOption) and _has_one_value(p)]
        collecting = self.make_parser(ctx)
        for option in options:
            every = copy(option)
            every.multiple = True
            every.add_to_parser(collecting, ctx)
        values, _, _ = collecting.parse_args(args=list(args))
        for option in options:
            given = values.get(option.name) or []
            if len(given) > 1:
                shown = " and ".join(_short(value) for value in given[:3])
                name = "/".join(sorted(option.opts, key=len, reverse=True))
                raise InputError(f"{name} {shown}", "takes one value", "give the option once")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, by their names alone, and options, each with its help."""
        records: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                name = record[0].partition(" <")[0]
                records[parameter.param_type_name].append((name, record[1]))
        for kind, rows in records.items():
            if rows:
                with formatter.section(f"{kind.title()}s"):
                    formatter.write_dl(rows)


def _has_one_value(option: TyperOption) -> bool:
    return not (option.multiple or option.is_flag or option.count)


def _short(value: str) -> str:
    return repr(value if len(value) <= 60 else value[:58] + "..")
