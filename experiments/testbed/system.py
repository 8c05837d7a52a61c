"""Calls of ``ip`` and ``tc``, and what is said where they are missing or refused."""

from __future__ import annotations

import os
import shutil
import subprocess

from p2smt.errors import InputError

COMMAND = "python -m experiments.testbed.testbed"
"""The command line of the test cluster, in the folder of the repository."""

TOOLS = ("ip", "tc")
_LIMIT_S = 60
_FEATURES = {
    "tbf": "token bucket filters (module sch_tbf)",
    "bridge": "bridges (module bridge)",
    "veth": "veth pairs (module veth)",
    "netns": "network namespaces",
}


class Unavailable(InputError):
    """This machine cannot build a test cluster, for a reason other than a missing tool."""


class ToolMissing(Unavailable):
    """A program that the test cluster is built with is not installed."""


def check() -> None:
    """Root rights and tools, without building anything.

    Raises:
        Unavailable: the process is not root.
        ToolMissing: ``ip`` or ``tc`` is not found.
    """
    if os.geteuid() != 0:
        rule = "building network namespaces needs root"
        raise Unavailable(f"user id {os.geteuid()}", rule, "run it as root, for instance by sudo")
    for tool in TOOLS:
        if shutil.which(tool) is None:
            rule = "is not found, and the network is built with it"
            raise ToolMissing(tool, rule, "install iproute2 (Debian, Ubuntu: apt install iproute2)")


def call(*command: str) -> None:
    """Run ``ip`` or ``tc``.

    Raises:
        Unavailable: it failed; names what the kernel does not have or allow.
    """
    # In a process group of its own: Ctrl-C on the terminal must not cut it off halfway.
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_LIMIT_S, process_group=0
    )
    if done.returncode:
        raise _refused(command, done.stderr)


def _refused(command: tuple[str, ...], said: str) -> Unavailable:
    lines = said.strip().splitlines() or ["no reason given"]
    feature = next((text for word, text in _FEATURES.items() if word in command), "this")
    return Unavailable(
        " ".join(command),
        f"the kernel or container does not allow {feature} ({lines[0].strip()})",
        "run it as root of a machine or virtual machine, or in a privileged container",
    )
