"""The help of a command: its options, each under its heading, and its examples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from p2smt.cli.guide.commands import command_lines, emphasized, text_width
from p2smt.cli.guide.examples import EXAMPLES

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
