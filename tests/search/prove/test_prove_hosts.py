"""Plans on named hosts: solving again proves them, or finds a faster order of the same hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.cluster.file import parse_topology
from p2smt.files.validation import validated
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem, parse_axes, reduce, send
from p2smt.plans.check.check_plan import check_plan
from p2smt.plans.file import PlanModel, plan_data
from p2smt.plans.solution import ProofStatus, Solution, rank_alternative
from p2smt.plans.untimed import told
from p2smt.report.outputs.shape import json_of
from p2smt.report.plan_data import report_data, report_lines
from p2smt.result import Status
from p2smt.search.allocation.cell_grids import host_order
from p2smt.search.allocation.solve_on_hosts import solve_on_hosts
from p2smt.search.prove import prove
from tests.cli.tools import RACKS


@pytest.fixture(scope="module")
def found() -> Solution:
    problem = Problem(
        parse_topology(RACKS, "racks"),
        parse_axes("dp=2,pp=2,tp=2"),
        (reduce("dp=64MiB"), send("pp=1MiB")),
    )
    return solve_on_hosts(problem, ("n1", "n2", "n3", "n4"), programs=False)


def plan_of(solution: Solution) -> PlanModel:
    assert solution.best is not None
    return validated(PlanModel, plan_data(solution, solution.best), "plan")


def slower(found: Solution) -> Solution:
    """The order as listed, which puts both ends of every reduction in different racks."""
    ranks = host_order(found.problem, ("n1", "n3", "n2", "n4"))
    order = RankList(tuple(ranks.ravel().tolist()), found.problem.axis_sizes)
    answer = rank_alternative(found.problem, order)
    return replace(found, alternatives=(answer,), status=Status.FEASIBLE, bound_s=0.0)


def test_a_plan_of_the_best_order_is_not_refuted(found: Solution) -> None:
    proof = prove(plan_of(found))
    assert proof.on_hosts
    assert proof.better is None
    wanted = ProofStatus.PROVED if found.status is Status.OPTIMAL else ProofStatus.OPEN
    assert proof.status is wanted


def test_a_slower_order_is_refuted_by_the_hosts_of_a_faster_one(found: Solution) -> None:
    best, worse = found.best, slower(found)
    assert best is not None
    plan = plan_of(worse)
    assert told(plan.objective_s) > best.objective_s
    report, proof = check_plan(plan, "plan"), prove(plan)
    assert report.valid
    assert proof.status is ProofStatus.REFUTED
    assert proof.better is not None
    assert proof.better.objective_s < told(plan.objective_s)
    lines = "\n".join(report_lines(report, proof))
    assert "a better plan takes" in lines
    assert "  hosts n" in lines
    assert json_of(report_data(report, proof))["proof"]["bound_s"] is not None
