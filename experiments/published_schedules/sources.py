"""Which public repositories the study looks at, by commit, and which programs of theirs it runs.

Nothing of theirs is copied: files are read from clones, and programs run in them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a repository that prints schedules.

    path: of the script, in the repository.
    arguments: it is called with.
    custom: the collective that its schedules call ``custom``, by its name in ``CUSTOM``.
    code: where a script only defines a function: what is run after it is imported.
    """

    path: str
    arguments: str = ""
    custom: str = ""
    code: str = ""

    @property
    def name(self) -> str:
        """The command, as rows call it."""
        return f"{self.path} {self.arguments}".strip()


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at a commit.

    name: owner/name on GitHub.
    commit: in full.
    files: patterns (fnmatch, ``*`` crosses folders) of the files that are schedules.
    imports: folders, from its root, that its programs import from.
    bare: a package of it that is imported without its ``__init__``, which needs a GPU's libraries.
    programs: that generate schedules.
    runtime: whose tables its XML files must fit.
    """

    name: str
    commit: str
    files: tuple[str, ...] = ()
    imports: tuple[str, ...] = (".",)
    bare: str = ""
    programs: tuple[Program, ...] = ()
    runtime: str = ""

    @property
    def url(self) -> str:
        """Where it is."""
        return f"https://github.com/{self.name}"


def _mscclang(script: str, *arguments: str) -> tuple[Program, ...]:
    """An example of MSCCLang with each of these arguments."""
    return tuple(Program(f"examples/mscclang/{script}.py", one) for one in arguments)


_SYNTHESIZED = """
from msccl.collectives import {collective}
from msccl.instance import Instance
from msccl.ncclize import ncclize
from msccl.strategies import solve_instance
from msccl.topologies import dgx1, fully_connected, ring

found = solve_instance({topology}, {collective}({arguments}), Instance({instance}))
print(ncclize(found, instances={instances}))
"""


def _synthesized(
    topology: str, collective: str, arguments: str, instance: str, instances: int, custom: str = ""
) -> Program:
    """What the synthesizer of msccl-tools finds, as its XML writer writes it."""
    words = f"({topology} {collective}, {instance}, instances {instances})"
    code = _SYNTHESIZED.format(
        topology=topology,
        collective=collective,
        arguments=arguments,
        instance=instance,
        instances=instances,
    )
    return Program("msccl/ncclize.py", words, custom, code)


_MSCCL_TOOLS = (
    _synthesized("dgx1()", "allgather", "8", "2, extra_rounds=1, chunks=2", 1),
    _synthesized("dgx1()", "allgather", "8", "2, extra_rounds=1, chunks=2", 2),
    _synthesized("dgx1()", "allgather", "8", "2", 1),
    _synthesized("dgx1()", "broadcast", "8, 0", "3, chunks=3", 1, "from rank 0"),
    _synthesized("ring(4)", "alltoall", "4", "2, extra_rounds=1", 1),
    _synthesized("ring(4)", "alltoall", "4", "2, extra_rounds=1", 2),
    _synthesized("fully_connected(4)", "allreduce", "4", "2", 1),
    *_mscclang("allgather_a100_pcie", "4 1", "4 2"),
    *_mscclang("allgather_allpairs", "8 1", "8 2"),
    *_mscclang("allgather_recursive_doubling", "8 1", "8 2", "4 4"),
    *_mscclang("allgather_ring", "8 2 1", "8 1 4"),
    *_mscclang("allreduce_1step", "8 1", "8 2"),
    *_mscclang("allreduce_a100_allpairs", "8 1", "8 2"),
    *_mscclang("allreduce_a100_allpairs_v2", "8 1", "8 2"),
    *_mscclang("allreduce_a100_multinode_allpairs", "16 1"),
    *_mscclang("allreduce_a100_ncv4", "4 1", "4 2"),
    *_mscclang("allreduce_a100_ncv4_v2", "4 1", "4 2"),
    *_mscclang("allreduce_a100_pcie_hierarchical", "4 1", "4 2"),
    *_mscclang("allreduce_a100_recursive_doubling_halving", "1 1", "2 1"),
    *_mscclang("allreduce_a100_ring", "8 4 1", "8 8 2", "8 1 4"),
    *_mscclang("allreduce_binomial_tree", "8 1 1", "8 2 1"),
    *_mscclang("allreduce_dgx1", "2 1"),
    *_mscclang("allreduce_ndv2", "1"),
    *_mscclang("allreduce_recursive_doubling_halving", "8 1", "8 2"),
    *_mscclang("alltoall_a100_three_step", "2 4 1", "4 4 2 --ib_connections 1"),
    *_mscclang("alltoall_a100_two_step", "2 4", "4 4"),
    *_mscclang("alltoall_allpairs", "8 1", "8 2"),
    Program("examples/mscclang/alltonext_backward.py", "2 1", "to the one before"),
    Program("examples/mscclang/alltonext_forward.py", "2 1", "to the next"),
    *_mscclang("hierarchical_allreduce", "4 2 1", "4 2 2", "4 2 2 --schedule manual"),
    *_mscclang("hierarchical_allreduce", "8 4 1 --schedule manual"),
    *_mscclang("pipeline_a100_allpairs", "8 1"),
    *_mscclang("pipeline_a100_ring", "8 4 1"),
    *_mscclang("reducegather", "8 2"),
    *_mscclang("simple/allgather_ring", ""),
    *_mscclang("simple/allreduce_ring", "8 1", "8 2"),
    Program("examples/mscclang/simple/custom_collective.py", "", "from rank 0"),
)


def _language(folder: str, arguments: str, *scripts: str) -> tuple[Program, ...]:
    """Example programs of MSCCL++'s language."""
    root = f"python/mscclpp/language/tests/{folder}"
    return tuple(Program(f"{root}/{one}.py", f"--name x {arguments}".strip()) for one in scripts)


_NODES = "--name x --num_gpus 8 --gpus_per_node 4"
_REDUCE_SCATTER = """
from mscclpp.default_algos.reducescatter_multi_nodes import reducescatter_multi_nodes
from mscclpp.language.collectives import ReduceScatter
from mscclpp.language.utils import AlgoSpec

spec = AlgoSpec(
    name="x",
    collective=ReduceScatter(8, 1, True),
    nranks_per_node=4,
    world_size=8,
    in_place=True,
    instances=1,
    protocol="LL",
    auto_sync=False,
    reuse_resources=True,
    use_double_scratch_buffer=True,
)
print(reducescatter_multi_nodes(spec, 1).to_json())
"""
_MSCCLPP = (
    *_language("single_node", "", "allgather", "allgather_tbg", "allreduce_pipeline"),
    *_language("single_node", "--num_gpus 4", "allgather_nvls_zero_copy"),
    *_language("single_node", "--num_gpus 4", "allgather_nvls_zero_copy_pkt", "allgather_pkt"),
    *_language("single_node", "--num_gpus 4", "allgather_pkt_rppkt", "allgather_ring"),
    *_language("single_node", "--num_gpus 4", "allreduce", "allreduce_naivy", "allreduce_pkt"),
    *_language("single_node", "--num_gpus 4", "allreduce_nvls_zero_copy"),
    *_language("single_node/alltoall", "--num_gpus 4", "alltoall", "alltoall_pipeline"),
    *_language("single_node/alltoall", "--num_gpus 4", "alltoall_pkt", "alltoall_ring"),
    *_language("single_node/alltoall", "--num_gpus 4", "alltoall_ring_oop", "alltoall_ring_peers"),
    *_language("multi_node", "--gpus_per_node 4", "allgather", "allgather_pkt"),
    *_language("multi_node", "--gpus_per_node 4", "reducescatter", "reducescatter_pkt"),
    *_language("multi_node", "--num_gpus 8 --gpus_per_node 4 --tbg_size 2", "allgather_tbg"),
    *_language("multi_node", "--nnodes 2 --gpus_per_node 2", "send_recv"),
    Program("python/mscclpp/default_algos/allgather_multi_nodes.py", _NODES),
    Program("python/mscclpp/default_algos/allreduce_multi_nodes.py", _NODES),
    Program(
        "python/mscclpp/default_algos/reducescatter_multi_nodes.py",
        "(called for 8 ranks on 2 nodes)",
        code=_REDUCE_SCATTER,
    ),
)

REPOSITORIES = (
    Repository(
        "microsoft/msccl-tools",
        "030a750fc56e03fb863ffe48268672d84d4cdc7b",
        programs=_MSCCL_TOOLS,
    ),
    Repository(
        "microsoft/mscclpp",
        "1f5f065d7b13ab02df32c22568f38785d1eeec01",
        files=("test/execution-files/*.json", "test/executor-tests/execution-plans/*.json"),
        imports=("python",),
        bare="mscclpp",
        programs=_MSCCLPP,
    ),
    Repository(
        "Azure/msccl-scheduler",
        "a0bfca14a1869bd8ef71328c26ee998bd2dcc368",
        files=("tools/msccl-algorithms/*.xml",),
    ),
    Repository(
        "ROCm/rccl",
        "0cbce2a7571c907554199fad7e905f16ec0a565c",
        files=("tools/msccl-algorithms/*.xml", "tools/msccl-unit-test-algorithms/*.xml"),
        runtime="rccl",
    ),
    Repository(
        "microsoft/TE-CCL",
        "c128bf241e5b8bf6ce816b2fe5b8000baacb7c44",
        files=("teccl/examples/MSCCL_examples/*.xml",),
    ),
    Repository(
        "rouge3877/ns3-msccl-data",
        "76fd62432d68b328079cb8256572fecd2aa675e1",
        files=("Validation/SingleCollective/Input/*.xml",),
    ),
    Repository(
        "dailiuyao/msccl_tools_lyd",
        "07a83fdbcdf24ceb828c1d45cf91c5f100c8fc7c",
        files=("examples/xml/*.xml",),
    ),
    Repository(
        "spriestgcl/teccl-msccl",
        "763dd9077f85597b7af1ca22a2c0889dfc82fe65",
        files=("test.xml", "teccl/examples/experiments/output*.xml"),
    ),
)
"""Also looked through, and without schedule files: microsoft/msccl, Azure/msccl,
Azure/msccl-executor-nccl, microsoft/taccl, microsoft/msccl-leaderboard."""
