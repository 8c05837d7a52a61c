"""Names of collectives as people and programs write them."""

from __future__ import annotations

import pytest

from p2smt.collectives.names import (
    CALL_NAMES,
    COLLECTIVES,
    Collective,
    Operation,
    RequestKind,
    collective_named,
    operation_named,
)
from p2smt.interop.reading import Reading

WRITTEN = {
    "allreduce": "all-reduce all_reduce AllReduce allReduce ncclAllReduce all_reduce_perf "
    "dist.all_reduce MPI_Allreduce lax.psum ./build/all_reduce_perf",
    "allgather": "all-gather ALLGATHER rcclAllGather all_gather_perf_mpi allgather_test_perf "
    "all_gather_into_tensor _all_gather_base MPI_Allgather",
    "reduce_scatter": "reducescatter reduce-scatter ReduceScatter reduce_scatter_perf "
    "torch.distributed.reduce_scatter_tensor psum_scatter",
    "alltoall": "all-to-all all_to_all AllToAll alltoall_perf alltoall_test_perf all_to_all_single",
    "sendrecv": "send send-recv send_recv SendRecv sendrecv_perf ppermute collective-permute",
    "broadcast": "Broadcast bcast ncclBcast broadcast_perf",
    "reduce": "Reduce reduce_perf",
    "gather": "Gather gather_perf",
    "scatter": "scatter_perf",
}
PAIRS = [(name, text) for name, texts in WRITTEN.items() for text in (name, *texts.split())]


@pytest.mark.parametrize(("name", "text"), PAIRS)
def test_a_collective_has_many_spellings(name: str, text: str) -> None:
    assert collective_named(text) == name
    assert Reading(collective=text).collective == name


def test_every_name_of_the_program_is_read() -> None:
    assert [collective_named(name) for name in COLLECTIVES] == list(COLLECTIVES)
    known: list[Operation] = [*Collective, RequestKind.ALL_TO_ALL, RequestKind.SEND]
    found = [operation_named(name) for name in CALL_NAMES]
    assert [one.value for one in found if one] == list(CALL_NAMES)
    assert set(found) == set(known)


@pytest.mark.parametrize(
    "text", ["", "perf", "nccl", "all", "alltoallv", "allreduces", "custom", "tensor", "mpi", "a/"]
)
def test_other_names_are_none(text: str) -> None:
    assert collective_named(text) is None
    assert operation_named(text) is None
    assert Reading(collective=text).collective == text


def test_what_groups_cannot_do_in_one_step_is_no_operation() -> None:
    assert operation_named("gather") is operation_named("scatter") is None
