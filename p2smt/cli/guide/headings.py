"""Under which heading the help of a command has an option."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_PROBLEM = """
    --model --global-batch --seq --strategy --imbalance --optimizer-bytes --launched --set
    --axes --reduce --reduce-scatter --all-gather --all-to-all --dispatch --send --kind --objective
    --placement --expert-placement --program --levels --factors --collective --root --out-of-place
    --steps --rounds --chunks --mesh --shape --dtype --from --device-ids --to-device-ids --to-mesh
    --backward --payload --size --sizes --request --group --from-nccl-tests --from-osu --runs
    --shardy-file
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
    --uneven --cuts --without --pieces --symmetry --messages --max-steps --max-chunks --fifo-depth
    --runtime --unverified --allow-above-nominal
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
