"""Generated functions, on forced host devices: every block on every device is the planned one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from p2smt.interop.arrays.shard_map import shard_map_text
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.steps import StepKind
from p2smt.resharding.types import ElementType, Uneven
from tests.interop.arrays.shard_map.blocks import block, contributions, reduced
from tests.interop.arrays.shard_map.walks import walked
from tests.interpreter import python

pytest.importorskip("jax")

TURNED = (7, 0, 1, 6, 5, 2, 3, 4)
OTHER = (3, 1, 0, 2, 6, 7, 5, 4)


def check(folder: Path, plans: Sequence[RedistributionPlan], devices: int) -> None:
    wholes = []
    for number, plan in enumerate(plans):
        whole = contributions(plan.frame, plan.start, number)
        wholes.append(whole)
        (folder / f"case_{number}.py").write_text(shard_map_text(plan))
        stacked = (plan.frame.ways(plan.start.partial),) if plan.start.partial else ()
        np.save(folder / f"{number}.npy", whole.reshape(*stacked, *plan.frame.shape))
    run(folder, len(plans), devices)
    for number, (plan, whole) in enumerate(zip(plans, wholes, strict=True)):
        last = plan.states[-1]
        expected = reduced(plan.frame, plan.start, last, whole)
        for device in range(devices):
            found = np.load(folder / f"{number}.{device}.npy")
            if last.partial:
                found = found[0]
            text = [step.text(plan.frame) for step in plan.array_steps]
            np.testing.assert_array_equal(
                found, block(plan.frame, last, expected, device), f"{number}, {device}: {text}"
            )


def run(folder: Path, count: int, devices: int) -> None:
    forced = f"--xla_force_host_platform_device_count={devices}"
    module = "tests.interop.arrays.shard_map.jax_devices"
    place = {"XLA_FLAGS": forced, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
    python("-W", "error", "-m", module, str(folder), str(count), environment=place)


def some_plans() -> list[RedistributionPlan]:
    f32, found = ElementType.F32, []
    for seed in range(5):
        found.append(walked("a=2,b=4", (8, 16), "S(a),R;P(b)", 5, seed))
        found.append(walked("a=2,b=2,c=2", (8, 8, 8), "R,S(b,a),R;P(c)", 4, seed))
    for seed, op in enumerate(("max", "min", "product", "avg")):
        found.append(walked("a=2,b=4", (8, 8), f"R,R;P(a,{op});P(b,{op})", 3, seed, element=f32))
    for seed in range(3):
        orders = (TURNED, OTHER)
        found.append(walked("a=2,b=4", (8, 16), "S(b),R;P(a)", 4, seed, orders=orders))
    for seed, element in enumerate((ElementType.BF16, ElementType.I8, ElementType.F64)):
        found.append(walked("a=8", (8, 8), "S(a:(2)2),R;P(a:(1)2)", 4, seed, element=element))
    found.append(walked("a=2,b=4", (5, 6), "S(b),R", 3, 1, uneven=Uneven.PADDED))
    found.append(walked("a=2,b=4", (8, 8), "S(b),R", 0, 1))
    return found


@pytest.mark.exhaustive
@pytest.mark.slow
def test_blocks_on_eight_devices(tmp_path: Path) -> None:
    plans = some_plans()
    assert {s.kind for plan in plans for s in plan.array_steps} == set(StepKind)
    assert any(plan.states[-1].order for plan in plans)
    check(tmp_path, plans, 8)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_blocks_where_primes_differ(tmp_path: Path) -> None:
    plans = [walked("a=6", (12, 6), "S(a:(1)2),R;P(a:(2)3)", 4, seed) for seed in range(4)]
    check(tmp_path, plans, 6)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_blocks_of_many_plans(tmp_path: Path) -> None:
    starts = (
        ("a=2,b=4", (8, 16), "S(a),R;P(b)"),
        ("a=2,b=4", (16, 8), "S(b,a),R"),
        ("a=8", (8, 8), "R,S(a:(4)2)"),
        ("a=2,b=2,c=2", (8, 8, 8), "S(c),R,S(a)"),
    )
    plans = [
        walked(axes, shape, text, 6, seed, orders=(TURNED, OTHER) if seed % 3 == 0 else None)
        for axes, shape, text in starts
        for seed in range(12)
    ]
    check(tmp_path, plans, 8)
