"""Hosts as launchers' files name them, and names with a domain or without."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2smt.cluster.allocation import as_known
from p2smt.cluster.hostlist import hosts_named, offered_by, read_hosts
from p2smt.errors import InputError

THREE = ("n1", "n02", "n-3.x.org")


@pytest.mark.parametrize(
    "form",
    [
        "{0}\n{1}\n{2}\n",
        "{0} slots=8\n{1} slots=8 max_slots=8\n{2} max-slots=8\n",
        "{0}:8\n{1}:8\n{2}:16\n",
        "{0}:8,{1}:8\n{2}\n",
        "{0} {1} {2}\n",
        "{0} 8 {1} 8 {2} 8\n",
        "{0} 8\n{1} 8\n{2} 8\n",
        "# hosts\n\n{0}   slots=4 # first\n\t{1} slots=4\n{2}\tslots=4\n",
        "{0} slots = 8\n{1} slots = 8 max_slots = 8\n{2}\n",
        "root@{0}\nroot@{1}:8\nme@{2} slots=8\n",
        "- {0}\n- {1}\n- {2}\n",
        "node/{0}\nnode/{1}\nnode/{2}\n",
        "SLURM_JOB_NODELIST={0},{1},{2}\n",
        "   NodeList={0},{1},{2}\n",
        "export HOSTS='{0},{1},{2}'\n",
        '["{0}", "{1}", "{2}"]\n',
        '"{0}","{1}","{2}"\n',
        "rank 0={0} slot=0\nrank 1={1} slot=0:0-3\nrank 2={2} slot=0\n",
        "{0} torchrun --nnodes=3 --node-rank=0\n{1} torchrun --nnodes=3\n{2} torchrun --nnodes=3\n",
    ],
)
def test_each_form_names_the_hosts(tmp_path: Path, form: str) -> None:
    (tmp_path / "h").write_text(form.format(*THREE), "utf-8")
    assert read_hosts(str(tmp_path / "h")) == THREE


def test_a_line_for_each_rank_names_each_host_once(tmp_path: Path) -> None:
    (tmp_path / "h").write_text("n1\n" * 4 + "n2\n" * 4, "utf-8")
    assert read_hosts(str(tmp_path / "h")) == ("n1", "n2")
    (tmp_path / "h").write_text("n1\n" * 4 + "n2\n" * 3, "utf-8")
    assert len(read_hosts(str(tmp_path / "h"))) == 7


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("n1 slots=4\nn2 slots = 8 max_slots=16\n", (4, 8)),
        ("n1:4,n2:4\n", (4,)),
        ("n1 8 n2 8\n", (8,)),
        ("n1 8\nn2 4\n", (4, 8)),
        ("n1\nn1\nn2\nn2\n", (2,)),
        ("rank 0=n1 slot=0\nrank 1=n1 slot=1\nrank 2=n2 slot=0\n", (2,)),
        ("n1\nn[2-3]\nfe80::1\n10.0.0.2\n", ()),
        ("n1 torchrun --nnodes=3 --node-rank=0\nn2 torchrun --nnodes=3\n", ()),
        ("# gpus 4\nn1 max_slots=8\n", ()),
    ],
)
def test_how_many_ranks_a_host_is_offered(tmp_path: Path, text: str, offered: object) -> None:
    (tmp_path / "h").write_text(text, "utf-8")
    assert offered_by(str(tmp_path / "h")) == offered


def test_what_mpirun_takes_as_hosts() -> None:
    assert hosts_named("n1:8,n2:8") == ("n1", "n2")
    assert hosts_named("NodeList=n[1-2]") == hosts_named("n[1-2]") == ("n1", "n2")
    assert hosts_named("fe80::1:8") == ("fe80::1:8",)


@pytest.mark.parametrize("line", ["n[1-2] slots", "slots=8", "n1; n2", "n1 max_slots", "n1@n2@n3"])
def test_what_is_no_line_of_hosts(tmp_path: Path, line: str) -> None:
    (tmp_path / "h").write_text(f"n0\n{line}\n", "utf-8")
    with pytest.raises(InputError, match="line 2"):
        read_hosts(str(tmp_path / "h"))


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("n1.cluster.local", ("n1", "n2"), "n1"),
        ("n1", ("n1.cluster.local", "n2"), "n1.cluster.local"),
        ("n1.a", ("n1.a", "n1"), "n1.a"),
        ("n1.a", ("n1.b", "n2"), "n1.a"),
        ("n1", ("n1.a", "n1.b"), "n1"),
        ("n3.a", ("n1", "n2"), "n3.a"),
        ("10.0.0.1", ("10.0.0.2", "n1"), "10.0.0.1"),
    ],
)
def test_a_domain_is_no_other_host(name: str, known: tuple[str, ...], found: str) -> None:
    """Where one of both has it; two domains are two hosts."""
    assert as_known([name], known) == (found,)
