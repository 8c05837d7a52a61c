"""A rank's place, from what torchrun and Slurm set."""

from __future__ import annotations

import pytest

from p2smt.errors import InputError
from p2smt.runtime.ranks.place import Place, existing_place, first_host, local_ranks

TORCHRUN = {
    "RANK": "9",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "16",
    "LOCAL_WORLD_SIZE": "8",
    "GROUP_RANK": "1",
    "ROLE_RANK": "9",
    "MASTER_ADDR": "node0",
    "MASTER_PORT": "29400",
    "TORCHELASTIC_RUN_ID": "none",
    "TORCHELASTIC_USE_AGENT_STORE": "True",
}
SRUN = {
    "SLURM_JOB_ID": "4711",
    "SLURM_JOB_NODELIST": "gpu[01-04]",
    "SLURM_NTASKS": "16",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "gpu[02-03]",
    "SLURM_STEP_NUM_TASKS": "16",
    "SLURM_STEP_TASKS_PER_NODE": "8(x2)",
    "SLURM_PROCID": "9",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
}


def test_no_launcher() -> None:
    assert existing_place({}) is None
    assert existing_place({"RANK": "1", "HOME": "/"}) is None


def test_torchrun() -> None:
    assert existing_place(TORCHRUN) == Place(9, 16, 1, 8, "node0", 29400, joined=True)
    first = {**TORCHRUN, "RANK": "0"}
    assert existing_place(first) == Place(
        0, 16, 1, 8, "node0", 29400, joined=True
    )  # its agent serves


def test_by_hand_rank_0_serves() -> None:
    hand = {"RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost", "MASTER_PORT": "2"}
    assert existing_place(hand) == Place(0, 4, 0, 4, "localhost", 2, serves=True, joined=True)
    assert existing_place({**hand, "RANK": "3"}) == Place(3, 4, 3, 4, "localhost", 2, joined=True)


def test_srun() -> None:
    assert existing_place(SRUN) == Place(
        9, 16, 1, 8, "gpu02", 29_500 + 16 * 4711 % 10_000, joined=True, run="4711.0"
    )
    first = existing_place({**SRUN, "SLURM_PROCID": "0", "SLURM_LOCALID": "0"})
    assert first is not None
    assert first.serves
    chosen = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "1234"}
    assert existing_place({**SRUN, **chosen}) == Place(
        9, 16, 1, 8, "10.0.0.1", 1234, joined=True, run="4711.0"
    )


def test_srun_of_one_task_starts_ranks_of_its_own() -> None:
    """So does a script that sbatch runs, where there is no step."""
    assert existing_place({**SRUN, "SLURM_STEP_NUM_TASKS": "1"}) is None
    batch = {k: v for k, v in SRUN.items() if not k.startswith("SLURM_STEP")}
    assert existing_place({**batch, "SLURM_PROCID": "0"}) is None


def test_torchrun_inside_srun() -> None:
    assert existing_place({**SRUN, **TORCHRUN}) == existing_place(TORCHRUN)


@pytest.mark.parametrize("tasks", ["8(x2)", "8,4(x3)", "8"])
def test_tasks_per_node(tasks: str) -> None:
    place = existing_place({**SRUN, "SLURM_STEP_TASKS_PER_NODE": tasks})
    assert place is not None
    assert place.local_ranks == 8


@pytest.mark.parametrize(
    ("hosts", "first"),
    [
        ("gpu7", "gpu7"),
        ("gpu7,gpu9", "gpu7"),
        ("gpu[03-05,7],other", "gpu03"),
        ("gpu[7]", "gpu7"),
        ("a-1.cluster,b", "a-1.cluster"),
        ("rack[1-2]node[3-4]", "rack1node3"),
        ("node[1-2]-ib", "node1-ib"),
    ],
)
def test_host_lists(hosts: str, first: str) -> None:
    assert first_host(hosts) == first


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({**TORCHRUN, "RANK": "-1"}, "RANK=-1"),
        ({**TORCHRUN, "RANK": "x"}, "RANK=x"),
        ({**TORCHRUN, "RANK": "16"}, "RANK=16"),
        ({**TORCHRUN, "WORLD_SIZE": "0"}, "RANK=9"),
        ({**TORCHRUN, "MASTER_PORT": "70000"}, "MASTER_PORT=70000"),
        ({"RANK": "0", "WORLD_SIZE": "4"}, "without MASTER_ADDR and MASTER_PORT"),
        ({**SRUN, "SLURM_PROCID": "16"}, "SLURM_PROCID=16"),
        ({**SRUN, "SLURM_STEP_NUM_TASKS": "many"}, "SLURM_STEP_NUM_TASKS=many"),
        ({**SRUN, "SLURM_STEP_NODELIST": ""}, "SLURM_STEP_NODELIST: is empty"),
    ],
)
def test_bad_variables(environment: dict[str, str], text: str) -> None:
    with pytest.raises(InputError, match=text):
        existing_place(environment)


@pytest.mark.parametrize(
    ("rank", "local_rank", "on_each", "expected"),
    [
        (0, 0, 4, range(4)),
        (6, 2, 4, range(4, 8)),
        (9, 1, 4, range(6, 10)),  # the last machine has fewer than the first
        (5, 0, 16, range(10)),
        (3, 9, 4, range(4)),  # not numbered machine by machine
    ],
)
def test_ranks_of_this_machine(rank: int, local_rank: int, on_each: int, expected: range) -> None:
    place = Place(rank, 10, local_rank, on_each, "localhost", 1)
    assert local_ranks(place, 10) == expected


def test_all_ranks_are_here_where_none_exist() -> None:
    assert local_ranks(None, 7) == range(7)
