"""`p2smt schema`."""

from __future__ import annotations

import json as json_module
from typing import Annotated

import typer


def schema(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="plan, topology or schedule.")
    ] = "plan",
) -> int:
    """The JSON Schema of a file format."""
    from pydantic import BaseModel

    from p2smt.cluster.file_model import TopologyModel
    from p2smt.errors import InputError
    from p2smt.plans.file import PlanModel
    from p2smt.schedules.language.file_model import FileModel

    known: dict[str, type[BaseModel]] = {
        "plan": PlanModel,
        "topology": TopologyModel,
        "schedule": FileModel,
    }
    if name not in known:
        raise InputError(f"schema {name[:40]!r}", f"must be one of {', '.join(known)}")
    data = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    typer.echo(json_module.dumps(data | known[name].model_json_schema(), indent=2))
    return 0
