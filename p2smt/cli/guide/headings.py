"""The help of a command: its options, each under its heading, and its examples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from p2smt.cli.guide.commands import PATHS, command_lines, emphasized, text_width

_PROBLEM = """
    --model --global-batch --seq --strategy --imbalance --optimizer-bytes --launched --set
    --axes --reduce --reduce-scatter --all-gather --all-to-all --dispatch --send --kind --objective
    --placement --expert-placement --program --levels --factors --collective --root --out-of-place
    --steps --rounds --chunks --mesh --shape --dtype --from --device-ids --to-device-ids --to-hosts
    --to-mesh --backward --payload --size --sizes --request --group --from-nccl-tests --from-osu
    --runs --shardy-file
"""
_CLUSTER = """
    --topology --use --hosts --fabric --unit --link-bandwidth --ports --devices-per-host --node
    --comms --uplink --oversubscription --labels --topology-name --gpu --nic --nic-fabric --ranks-on
    --backend --ranks --port --device --ranks-per-gpu
"""
_RULES = """
    --fix --require --forbid --forbid-form --length --max-steps-at --launcher --max-tp --max-pp
    --max-cp --max-dp-replicate --max-vpp --max-mbs --max-ep --max-etp --recompute --zero --relay
    --dispatcher --overlap --graphs --fp8-attention --flash --dropout --memory --keep-source
    --uneven --cuts --without --pieces --height --symmetry --messages --max-steps --max-chunks
    --fifo-depth --runtime --unverified --allow-above-nominal
"""
_MODEL = """
    --efficiency --measured --prices --algorithm --library --nominal --pipeline --latency-ratio
    --bandwidth-ratio --cost-per-call --margin --model-only
"""
_SEARCH = """
    --solver --time-limit --seed --workers --processes --engine --scheduler --journal --budget
    --limit --iterations --upto --prove --sample --all --pareto --sufficient --warmup --repeat
"""
_OUTPUT = """
    --within --top --pick --compare --sensitivity --explain --split --what-if --cost --symbolic
    --latex --plot --svg --code --trace --certificate --to --by-host --output --out --note --details
    --force --json --csv --quiet --no-config --anonymous --help --as
"""
HEADINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Problem": tuple(_PROBLEM.split()),
        "Cluster": tuple(_CLUSTER.split()),
        "Rules": tuple(_RULES.split()),
        "Model": tuple(_MODEL.split()),
        "Search": tuple(_SEARCH.split()),
        "Output": tuple(_OUTPUT.split()),
    }
)
"""Options by heading, in the order in which help has the headings; *Model* is that of cost."""
OTHERWISE: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("redistribute", "--to"): "Problem",
        ("transfer", "--to"): "Problem",
        ("redistribute", "--steps"): "Rules",
        ("verify", "--fix"): "Output",
        ("export", "--launcher"): "Output",
        ("estimate", "--force"): "Model",
        ("plan", "--force"): "Model",
        ("calibrate", "--efficiency"): "Problem",
    }
)
"""Of these commands, what the option means stands under another heading."""
_HEADING_OF = {option: heading for heading, options in HEADINGS.items() for option in options}


def heading_of(command: str, option: str) -> str | None:
    """The heading of an option of a command; None: it has none of its own."""
    return OTHERWISE.get((command, option), _HEADING_OF.get(option))


ARGUMENTS, OTHER = "Arguments", "Options"
_WORDS = re.compile(r"(?:'[^']*'|[^\s'])+")
_NAME_WIDTH = 28
"""Of the column of names, at most: the text of a longer one stands below it."""
Rows = list[tuple[str, str]]


def write_parameters(parameters: Iterable[Any], ctx: Any, formatter: Any) -> None:
    """Arguments, by their names alone, and options under their headings, each with its help."""
    found: dict[str, Rows] = {name: [] for name in (ARGUMENTS, *HEADINGS, OTHER)}
    for one in parameters:
        record = one.get_help_record(ctx)
        if record is not None:
            option = one.param_type_name == "option"
            under = (getattr(one, "rich_help_panel", None) or OTHER) if option else ARGUMENTS
            found[under].append((record[0].partition(" <")[0], record[1]))
    width = min(max(len(name) for rows in found.values() for name, _ in rows), _NAME_WIDTH)
    for name, rows in found.items():
        write_rows(name, [(first.ljust(width), text) for first, text in rows], formatter)


def write_rows(name: str, rows: Rows, formatter: Any) -> None:
    """Rows of names and texts under a heading, if there are any."""
    if rows:
        with formatter.section(emphasized(name)):
            formatter.write_dl(rows)


def write_examples(command_path: str, formatter: Any) -> None:
    """The examples of a command, each as it is typed; a long one over several lines."""
    examples = EXAMPLES.get(command_path.partition(" ")[2], ())
    if not examples:
        return
    formatter.write_paragraph()
    formatter.write(f"{emphasized('Examples')}:\n")
    for example in examples:
        lines = [*_broken(example, text_width() - 8)]
        formatter.write("".join(f"{line}\n" for line in command_lines(lines)))


def _broken(command: str, width: int) -> Iterator[str]:
    """Its words in lines of at most so many characters, none of them cut."""
    line = ""
    for word in _WORDS.findall(command):
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}".lstrip()
    yield line


# Two examples of each command: its help shows them, and a test runs all of them.


_TRAIN, _VERIFY, _RESHARD, _ = (" ".join(words) for words in PATHS.values())
_PLACED = "-t dgx-a100:4 --axes dp=8,tp=4 --placement '[[4,2],[1,4]]'"

EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "plan": (
            _TRAIN,
            "p2smt plan -m llama-3-8b -t dgx-h100:4 --global-batch 256 --seq 8192 --max-cp 1 "
            "--compare tp=8,pp=2,sp=1",
        ),
        "estimate": (
            "p2smt estimate -m llama-3-70b -t dgx-h100:8 --strategy tp=4,pp=4,sp=1,zero=1 "
            "--global-batch 128 --seq 8192",
            "p2smt estimate train.sh -t dgx-h100:4",
        ),
        "models": ("p2smt models", "p2smt models llama-3-70b"),
        "solve": (
            "p2smt solve -t dgx-a100:4 --axes dp=8,tp=4 --reduce dp=1GiB --reduce 'tp=64MiB*128'",
            "p2smt solve -t dgx-h100:4 --axes dp=4,pp=2,tp=4 --reduce dp=1GiB --send 'pp=64MiB*8' "
            "--require 'tp within node' -o plan.json",
        ),
        "placements": (
            "p2smt placements -t dgx-h100:4 --axes dp=8,tp=4",
            "p2smt placements --levels 4,8 --axes 8,4 --json",
        ),
        "programs": (
            "p2smt programs --factors 2,8",
            f"p2smt programs {_PLACED} --reduce dp=1GiB --top 3",
        ),
        "compare": (
            "p2smt compare -t dgx-h100:4 --axes dp=4,pp=2,tp=4 --reduce dp=1GiB "
            "--send 'pp=64MiB*8'",
            "p2smt compare own.json other.json",
        ),
        "cost": (
            f"p2smt cost {_PLACED} --reduce dp=1GiB",
            "p2smt cost -t dgx-h100:4 --axes dp=32 --placement '[[4,8]]' --reduce dp "
            "--sizes '4KiB..1GiB*64'",
        ),
        "crossings": (
            "p2smt crossings --factors 4,8 --bandwidth-ratio 1..16",
            "p2smt crossings -t dgx-a100 --axes dp=16 --reduce dp --length 3",
        ),
        "run": (
            "p2smt run plan.json --payload 64KiB --backend reference",
            "p2smt run schedule.xml --payload 16MiB --backend gloo",
        ),
        "synthesize": (
            "p2smt synthesize --fabric ring:4 --collective all-gather --steps 2 --rounds 3 "
            "--chunks 2 -o schedule.xml",
            "p2smt synthesize -t dgx-a100:1 --collective all-gather --size 1KiB..1GiB -o sized.xml",
        ),
        "redistribute": (
            _RESHARD,
            "p2smt redistribute -t dgx-h100:1 --mesh tp=8 --shape 8192,8192 --from 'S(tp),R' "
            "--to 'R,R' -o plan.json",
        ),
        "transfer": (
            "p2smt transfer -t dgx-h100:16 -m llama-3-70b --from megatron:tp=8,pp=4,dp=2 "
            "--to vllm:tp=8,engines=8 --to-device-ids 64-127 -o plan.json",
            "p2smt transfer -t dgx-h100:4 --from before.json --to after.json --code transfer.py",
        ),
        "verify": ("p2smt verify plan.json --prove", _VERIFY),
        "convert": (
            "p2smt convert schedule.xml schedule.json",
            "p2smt convert plan.json dp.json",
        ),
        "export": (
            "p2smt export plan.json --to torchrun",
            "p2smt export --to nccl-tuner -t dgx-h100:4 --comms 1x8,4x8 -o nccl_tuner.conf",
        ),
        "order": (
            "p2smt order plan.json -t cluster.yaml --hosts 'n[01-32]'",
            "p2smt order plan.json -t cluster.yaml --hosts job.txt --to hostlist",
        ),
        "classics": (
            "p2smt classics",
            "p2smt classics ring-all-reduce --ranks 4 -o ring.xml",
        ),
        "calibrate": (
            "p2smt calibrate --from-nccl-tests one.txt two.txt -t dgx-h100:4 -o cluster.yaml",
            "p2smt calibrate --runs runs.csv",
        ),
        "topology list": ("p2smt topology list", "p2smt topology list --json"),
        "topology show": ("p2smt topology show dgx-h100:8", "p2smt topology show cluster.yaml"),
        "topology check": (
            "p2smt topology check cluster.yaml",
            "p2smt topology check gb200-nvl72:2 --json",
        ),
        "topology fabric": ("p2smt topology fabric dgx1", "p2smt topology fabric torus:4x4"),
        "topology import": (
            "p2smt topology import topology.conf --node dgx-h100 --uplink leaf=400GB/s -o c.yaml",
            "p2smt topology import nodes.json --node dgx-h100 --labels topograph",
        ),
        "topology detect": (
            "p2smt topology detect",
            "p2smt topology detect --nic 8x400Gb/s -o cluster.yaml",
        ),
        "topology export": (
            "p2smt topology export dgx-h100:4 --to astra-sim",
            "p2smt topology export cluster.yaml --to astra-sim -o network.yml",
        ),
        "docs": ("p2smt docs", "p2smt docs planning"),
        "report": (
            "p2smt report plan.json -o report.html",
            "p2smt report today.json better.json -o gain.html --anonymous",
        ),
        "show": ("p2smt show plan.json", "p2smt show ring.xml"),
        "schema": ("p2smt schema", "p2smt schema plan"),
    }
)
"""Commands of a shell by the command of ours whose help shows them."""
