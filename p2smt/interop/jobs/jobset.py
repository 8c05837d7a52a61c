"""A job of Kubernetes: a JobSet with a pod on each host of a plan, and the numbers of its hosts.

Which pod comes to which host is the scheduler's; which ranks a host has is the plan's.  So each pod
learns the name of its host from ``spec.nodeName`` and looks its number up in a ConfigMap, whose
keys are the hosts.  The first host has a job of its own, so that the name by which the others meet
there is known beforehand: JobSet names pods ``SET-JOB-INDEX-INDEX.SET``.

Sources: kubernetes-sigs/jobset, ``site/static/examples/simple/jobset-with-network.yaml`` and API
``jobset.x-k8s.io/v1alpha2``; Kubernetes' pages on node affinity and the downward API.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from p2smt.errors import InputError
from p2smt.files.yaml_text import dump_yaml
from p2smt.interop.exported import Exported
from p2smt.interop.jobs.command import PORT, USUAL, AskedJob, JobCommand, job_command
from p2smt.interop.launchers import host_blocks
from p2smt.interop.places import PlacedPlan, local_orders, telling

_MOUNTED, _START = "/etc/p2smt", "_start"
"""Where a pod sees the ConfigMap: a file for each host, which has its number, and what pods run; no
host is called that."""
_FIRST, _OTHERS, _CONTAINER = "first", "others", "trainer"
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_HOSTNAME, _SET = "kubernetes.io/hostname", "jobset.sigs.k8s.io/jobset-name"
_GPUS = "nvidia.com/gpu"


def write_jobset(plan: PlacedPlan, path: str, asked: AskedJob = USUAL) -> Exported:
    """The ConfigMap and the JobSet, one behind the other.

    Raises:
        InputError: as :func:`~p2smt.interop.jobs.command.job_command`; hosts have no names, or some
            that no node has; or the ranks of a host are not one block.
    """
    if plan.problem.topology.hosts is None and not asked.pinned:
        rule = "names no hosts, and pods are bound to theirs"
        raise InputError(plan.source, rule, "give --hosts with the names of nodes")
    hosts = host_blocks(plan)
    for host in hosts:
        if not _NODE.fullmatch(host):
            raise InputError(f"host {host[:80]!r}", "is no name of a node of Kubernetes")
    command = job_command(plan, asked)
    numbers = {host: str(number) for number, host in enumerate(hosts)}
    parts = [_map_text(plan, command, numbers), dump_yaml(_jobset(plan, command, hosts))]
    head = [f"# {command.title}, by p2smt: {command.what}", *(f"# {n}" for n in command.notes)]
    head.append("# YOURS: image, args (data, tokenizer, ..), volumes, network devices, queue")
    text = "\n".join(head) + "\n" + "---\n".join(parts)
    return Exported(text, (*_notes(path), *command.notes))


def _map_text(plan: PlacedPlan, command: JobCommand, numbers: dict[str, str]) -> str:
    """The ConfigMap, with what pods run line by line; ``data`` stands last."""
    data = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _map_name(command)},
        "data": numbers,
    }
    script = "".join(f"    {line}\n" for line in _script(plan, command, len(numbers)))
    return f"{dump_yaml(data)}  {_START}: |\n{script}"


def _map_name(command: JobCommand) -> str:
    return f"{command.name}-hosts"


def _jobset(plan: PlacedPlan, command: JobCommand, hosts: Sequence[str]) -> dict[str, Any]:
    groups = [(_FIRST, hosts[:1]), (_OTHERS, hosts[1:])]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": command.name},
        "spec": {
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "failurePolicy": {"maxRestarts": 0},
            "replicatedJobs": [
                _job(name, some, _pod(plan, command, some)) for name, some in groups if some
            ],
        },
    }


def _job(name: str, hosts: Sequence[str], pod: dict[str, Any]) -> dict[str, Any]:
    """An indexed job of a pod for each of these hosts."""
    count = len(hosts)
    return {
        "name": name,
        "replicas": 1,
        "template": {
            "spec": {
                "parallelism": count,
                "completions": count,
                "completionMode": "Indexed",
                "backoffLimit": 0,
                "template": {"spec": pod},
            }
        },
    }


def _pod(plan: PlacedPlan, command: JobCommand, hosts: Sequence[str]) -> dict[str, Any]:
    name = command.name
    from_field = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    given = [{"name": key, "value": v} for key, v in command.environment.items() if v is not None]
    container = {
        "name": _CONTAINER,
        "image": "IMAGE",
        "command": ["bash", f"{_MOUNTED}/{_START}"],
        "args": [],
        "env": [
            {"name": "NODE_NAME", "valueFrom": from_field},
            {"name": "MASTER_ADDR", "value": f"{name}-{_FIRST}-0-0.{name}"},
            {"name": "MASTER_PORT", "value": str(PORT)},
            *given,
        ],
        "resources": {"limits": {_GPUS: plan.per_host}},
        "volumeMounts": [
            {"name": "hosts", "mountPath": _MOUNTED, "readOnly": True},
            {"name": "shm", "mountPath": "/dev/shm"},
        ],
    }
    return {
        "restartPolicy": "Never",
        "affinity": _affinity(name, hosts),
        "containers": [container],
        "volumes": [
            {"name": "hosts", "configMap": {"name": _map_name(command)}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ],
    }


def _affinity(name: str, hosts: Sequence[str]) -> dict[str, Any]:
    """On these hosts and no others, and no two pods of the set on one."""
    here = {"key": _HOSTNAME, "operator": "In", "values": list(hosts)}
    mine = {"matchLabels": {_SET: name}}
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [here]}]
            }
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": mine, "topologyKey": _HOSTNAME}
            ]
        },
    }


def _script(plan: PlacedPlan, command: JobCommand, hosts: int) -> list[str]:
    """What a pod runs; its arguments are the user's."""
    orders = set(local_orders(plan).values())
    if len(orders) > 1:
        rule = "has hosts whose ranks lie on their devices in unlike orders"
        raise InputError(plan.source, rule, "give --by-host")
    told = telling(orders.pop(), "LOCAL_RANK")
    program = command.program[1:] if not told else ("--no-python", told, *command.program)
    start = [
        f"torchrun --nnodes={hosts} --nproc-per-node={plan.per_host}",
        f'--node-rank="$(cat {_MOUNTED}/"$NODE_NAME")"',
        '--master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT"',
        " ".join(program),
        *command.options,
        '"$@"',
        *map(shlex.quote, command.last),
    ]
    unset = [f"unset {name}" for name, value in command.environment.items() if value is None]
    lines = [f"{'  ' if i else 'exec '}{part} \\" for i, part in enumerate(start)]
    return ["set -e", *unset, *lines[:-1], lines[-1].removesuffix(" \\")]


def _notes(path: str) -> tuple[str, ...]:
    file = shlex.quote(path)
    return (
        f"kubectl apply -f {file}, in a cluster that has JobSet; IMAGE and args are yours",
        f"hosts are found by their label {_HOSTNAME}, and numbered by their names",
    )
