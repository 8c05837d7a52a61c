"""The MPIs whose ranks tests run: each a virtual environment in build/mpi, made by `make mpi`."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.tools import Outcome
from tests.imports import ROOT
from tests.runtime.processes import run_to_end
from tests.tiers import but_the_first

MPIS = ("openmpi", "mpich")


@dataclass(frozen=True)
class Mpi:
    """An MPI by its name; ``bin`` has its mpirun and a Python that finds it."""

    name: str

    @property
    def bin(self) -> Path:
        return ROOT / "build" / "mpi" / self.name / "bin"

    def environment(self, *first: Path) -> dict[str, str]:
        """Of its ranks, which see our packages beside theirs, and those of ``first`` before."""
        packages = (*first, ROOT, Path(sysconfig.get_path("purelib")))
        return {
            "PATH": os.pathsep.join((str(self.bin), os.environ["PATH"])),
            "PYTHONPATH": os.pathsep.join(map(str, packages)),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        }

    def p2smt(
        self,
        *words: str,
        ranks: int = 0,
        first: tuple[Path, ...] = (),
        more: Mapping[str, str] = {},
    ) -> Outcome:
        """A command of ours, as that many ranks of mpirun where there are any."""
        launcher = [str(self.bin / "mpirun"), "-n", str(ranks)] if ranks else []
        line = [*launcher, str(self.bin / "python"), "-m", "p2smt.cli", *words]
        return run_to_end(line=line, environment={**self.environment(*first), **more})


@pytest.fixture(params=but_the_first(*MPIS))
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """Each MPI that is here."""
    found = Mpi(request.param)
    if not (found.bin / "mpirun").exists():
        pytest.skip(f"no {found.name} in build/mpi: make mpi installs it")
    return found
