"""TorchTitan: the run that its options, or the TOML of older versions, tell.

Fields have a section and a name: ``--parallelism.tensor_parallel_degree 4`` is ``[parallelism]
tensor_parallel_degree = 4``.  Source: as of :mod:`p2smt.interop.trainers.torchtitan`; those of TOML
``torchtitan/config/job_config.py`` of v0.2.0.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from p2smt.errors import InputError
from p2smt.files.yaml_text import read_text
from p2smt.interop.shell.variables import MARK, unknowns
from p2smt.interop.trainers.launch import (
    Launch,
    Options,
    Started,
    check_ranks,
    missing,
    started,
    without_even_split,
)
from p2smt.training.strategy import AXES, Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer

MARKS = (
    *("--parallelism.tensor_parallel_degree", "--parallelism.data_parallel_shard_degree"),
    *("--parallelism.pipeline_parallel_degree", "--parallelism.data_parallel_replicate_degree"),
    *(
        "--parallelism.context_parallel_degree",
        "--training.seq_len",
        "--training.max_context_length",
    ),
)
"""Options by which its command line is found in a script."""
FILES = ("--job.config_file", "--job.config-file")
"""Options that name the TOML from which fields come that the command line does not say."""
_PRICED = ("parallelism", "training", "activation_checkpoint", "quantize", "float8", "mx")
"""Sections whose fields count for time and memory; of the others only ``model`` is read."""
_ON_AVERAGE = frozenset(
    (
        *("training.steps", "training.max_norm", "training.gc_freq", "training.gc_debug"),
        *("training.dataset", "training.dataset_path", "training.seed", "training.deterministic"),
        *(
            "training.mixed_precision_reduce",
            "training.compile",
            "training.debug_moe_force_load_balance",
        ),
        *(
            "training.dtype",
            "training.disable_cuda_graphs",
            "parallelism.enable_async_tensor_parallel",
        ),
        *("parallelism.disable_loss_parallel", "parallelism.enable_compiled_autograd"),
        *("parallelism.context_parallel_load_balancer", "parallelism.enable_fsdp_symm_mem"),
        *("parallelism.spmd_backend", "parallelism.expert_parallel_a2a_dispatch_impl"),
        *("activation_checkpoint.early_stop", "activation_checkpoint.preserve_rng_state"),
        *("parallelism.fsdp_reshard_after_forward", "activation_checkpoint.selective_ac_option"),
        "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",
    )
)
"""Fields without an effect, or with one that the fitted constants hold on average."""


@dataclass(slots=True)
class _Fields:
    """Fields by ``section.name``, read one by one."""

    source: str
    values: Mapping[str, str]
    read: set[str] = field(default_factory=set)
    assumed: list[str] = field(default_factory=list)

    def text(self, name: str, default: str = "") -> str:
        self.read.add(name)
        return self.values.get(name, default)

    def whole(self, name: str, default: int = 1) -> int:
        """A whole number; -1 means that others tell it."""
        text = self.text(name, str(default))
        if not re.fullmatch(r"-1|[0-9]{1,12}", text):
            raise InputError(f"{self.source}: {name} {text[:40]}", "must be a whole number")
        return int(text)

    def flag(self, name: str, default: bool) -> bool:
        return self.text(name, str(default)).lower() in ("true", "1", "")

    def left(self) -> list[str]:
        """Fields that count and were not asked for."""
        counted = (name for name in self.values if name.split(".")[0] in _PRICED)
        return [name for name in counted if name not in self.read | _ON_AVERAGE]


def read_torchtitan(
    text: str,
    settings: Mapping[str, str],
    source: str,
    *,
    model: Transformer | None,
    devices: int | None = None,
) -> Launch:
    """The run that a command line, a script with one, or a TOML file starts.

    Args:
        text: the file.
        settings: variables of the script, and fields such as ``training.seq_len``;
            ``job.config_file``: a TOML on disk, where the script names one that it does not write.
        source: names the file in errors.
        model: what is trained; None: asked for.
        devices: how many ranks start where the file does not say.

    Raises:
        InputError: it does not say enough (all of it is named), or has what is not priced.
    """
    program = None if is_toml(text) else started(text, settings, (*MARKS, *FILES), source)
    found = (
        _of_toml(text, source)
        if program is None
        else _of_script(program, settings.get("job.config_file"), source)
    )
    given = {name: value for name, value in settings.items() if "." in name or name == "dispatcher"}
    fields = _Fields(
        source, {_named_now(name): value for name, value in {**found, **given}.items()}
    )
    fields.assumed += () if program is None else program.left
    ranks = check_ranks(source, program.ranks if program else 0, devices)
    wanted = list(unknowns(value for name, value in fields.values.items() if _counts(name)))
    wanted += ["devices"] * (ranks == 0) + ["--model"] * (model is None)
    if "activation_checkpoint.mode" not in fields.values:
        wanted.append("activation_checkpoint.mode")
    if wanted or model is None:
        raise missing(source, wanted, program.doubted if program else {})
    if fields.flag("fault_tolerance.enable", False):
        rule = "joins replicas of several jobs, whose traffic between them is not priced"
        asked = f"{source}: fault_tolerance.enable"
        raise InputError(asked, rule, "give --set fault_tolerance.enable=false for one alone")
    strategy = _staged(fields, model, _strategy(fields, model, ranks))
    batch, strategy = _batch(fields, strategy)
    if left := fields.left():
        rule = f"has {', '.join(left[:8])}, whose effect on time and memory is not known"
        raise InputError(source, rule, "take them out where they have none")
    ignored = tuple(name for name in fields.values if name not in fields.read)
    mapped = tuple(name for name in fields.values if name in fields.read)
    told = (model, batch, strategy, ranks, AXES, tuple(fields.assumed), ignored)
    return Launch("torchtitan", *told, mapped=mapped)


def is_toml(text: str) -> bool:
    """Whether a text is TOML, and no script that has some in it."""
    try:
        return bool(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return _SECTION.search(text) is not None and not any(one in text for one in FILES)


_SECTION = re.compile(r"(?m)^\s*\[[a-z_]+\]\s*(#.*)?$")


def _of_script(program: Started, told: str | None, source: str) -> dict[str, str]:
    """Fields of options, before those of the TOML that they name."""
    found = _of_options(program, source)
    name = told or found.get("job.config_file")
    if name is None:
        return found
    if name in program.files:
        text = program.files[name]
    elif os.path.isfile(name):
        text = read_text(name, "job.config_file")
    else:
        rule = f"takes fields from {', '.join(unknowns([name])) or name[:60]}, which is not here"
        raise InputError(source, rule, "give --set job.config_file=PATH")
    quoted = MARK.sub(lambda mark: f'"{mark.group()}"', text)  # no value of TOML is bare
    return {**_of_toml(quoted, f"{source}: {name[:60]}"), **found}


def _named_now(name: str) -> str:
    """The name of a field in newer versions: degrees had other sections."""
    section, _, key = name.partition(".")
    key = "data_parallel_shard_degree" if key == "data_parallel_degree" else key
    moved = section in ("training", "experimental") and (
        "_parallel_" in key or "_parallel" in key[-9:]
    )
    return f"parallelism.{key}" if moved else name


def _counts(name: str) -> bool:
    return name.split(".")[0] in _PRICED and name not in _ON_AVERAGE


def _of_toml(text: str, source: str) -> dict[str, str]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(source, f"is no TOML: {str(error)[:80]}") from None
    return dict(_flat(data))


def _flat(data: Mapping[str, object], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield above + name, str(value)


def _of_options(program: Started, source: str) -> dict[str, str]:
    """Fields of options, a flag as True or, of ``no_``, False."""
    options = Options.of(program.words, source)
    found: dict[str, str] = {}
    for name, values in options.values.items():
        section, _, key = name.removeprefix("--").replace("-", "_").rpartition(".")
        negated = key.startswith("no_") and not values
        found[f"{section}.{key.removeprefix('no_') if negated else key}".lstrip(".")] = (
            "False" if negated else " ".join(values[:1]) or "True"
        )
        for word in values[1:]:
            if mode := re.fullmatch(r"activation[-_]checkpoint:(.*)", word):
                found["activation_checkpoint.mode"] = mode.group(1).removesuffix("_config")
    for word in program.words:
        if mode := re.fullmatch(r"activation[-_]checkpoint:(\w+)", word):
            found["activation_checkpoint.mode"] = mode.group(1)
    return found


def _strategy(fields: _Fields, model: Transformer, ranks: int) -> Strategy:
    tp, cp = (fields.whole(f"parallelism.{name}_parallel_degree") for name in ("tensor", "context"))
    pp = fields.whole("parallelism.pipeline_parallel_degree")
    ep = fields.whole("parallelism.expert_parallel_degree")
    cut = ep == 1 and model.experts is not None  # by tp, like other MLPs
    copies = fields.whole("parallelism.data_parallel_replicate_degree")
    shards = fields.whole("parallelism.data_parallel_shard_degree", -1)
    if shards == -1:
        shards = max(ranks // (tp * cp * pp * copies), 1)
    if copies * shards * tp * cp * pp != ranks:
        rule = f"must be dp_replicate {copies} x dp_shard {shards} x cp {cp} x tp {tp} x pp {pp}"
        raise InputError(f"{fields.source}: {ranks} ranks", rule)
    return Strategy(
        tp=tp,
        pp=pp,
        cp=cp,
        dp=copies * shards,
        ep=ep,
        etp=fields.whole("parallelism.expert_tensor_parallel_degree", tp if cut else 1),
        sequence_parallel=fields.flag("parallelism.enable_sequence_parallel", True) and tp > 1,
        zero=_zero(fields, shards * cp, pp),
        dp_replicate=copies if shards * cp > 1 else 1,  # without shards nothing is copied
        recompute=_recompute(fields),
        dtype=_dtype(fields),
        dispatcher=_dispatcher(fields),
        graphs="none" if fields.flag("training.disable_cuda_graphs", True) else "full",
    )


def _dispatcher(fields: _Fields) -> str:
    """It stands in the model's configuration, which no field tells."""
    if fields.text("dispatcher"):
        return fields.text("dispatcher")
    if fields.whole("parallelism.expert_parallel_degree") > 1:
        fields.assumed.append("tokens go to experts by alltoall (--set dispatcher=flex)")
    return "alltoall"


def _zero(fields: _Fields, sharded: int, pp: int) -> int:
    again = fields.text("parallelism.fsdp_reshard_after_forward", "default")
    if again == "default":
        again = "never" if pp > 1 else "always"
    return 0 if sharded == 1 else 3 if again == "always" else 2


def _staged(fields: _Fields, model: Transformer, found: Strategy) -> Strategy:
    """With the layers of its stages; embedding and logits count as layers where nothing is told."""
    schedule = fields.text("parallelism.pipeline_parallel_schedule", "1F1B")
    each = fields.whole("parallelism.pipeline_parallel_layers_per_stage", -1)
    first, last = (
        fields.whole(f"parallelism.pipeline_parallel_{end}_stage_less_layers")
        for end in ("first", "last")
    )
    if found.pp == 1:
        return found
    if schedule not in ("1F1B", "Interleaved1F1B"):
        given = f"{fields.source}: pipeline_parallel_schedule {schedule[:30]}"
        raise InputError(given, "is not priced: schedules are 1F1B and Interleaved1F1B")
    layers = model.layers + first + last
    chunks = -(-layers // each) if each > 0 else found.pp * (2 if schedule != "1F1B" else 1)
    each, rest = divmod(layers, chunks)
    split = [each + (at < rest) for at in range(chunks)]
    split[0], split[-1] = split[0] - first, split[-1] - last
    found = replace(found, vpp=max(chunks // found.pp, 1))
    return without_even_split(replace(found, split=tuple(split)), model)


def _recompute(fields: _Fields) -> Recompute:
    mode = fields.text("activation_checkpoint.mode")
    known = {"none": Recompute.NONE, "full": Recompute.FULL}
    if mode not in known:
        given = f"{fields.source}: activation checkpoint {mode[:30]}"
        rule = "is not priced: it keeps some operators' results"
        raise InputError(given, rule, "give --set activation_checkpoint.mode=full, or none")
    return known[mode]


def _dtype(fields: _Fields) -> str:
    names = fields.text("model.converters")  # sections of converters that are not named do nothing
    for name in fields.values:
        if name.split(".")[0] in ("float8", "mx", "quantize"):
            fields.read.add(name)
    if fields.flag("float8.enable_float8_linear", False):  # before there were converters
        return "fp8"
    if "mx" in names:
        return "mxfp8"
    if "float8" in names:
        return "fp8"
    return {"float32": "fp32"}.get(fields.text("training.mixed_precision_param"), "bf16")


def _batch(fields: _Fields, found: Strategy) -> tuple[Batch, Strategy]:
    """Sequences and tokens; older versions count sequences, newer ones tokens."""
    if "training.max_context_length" in fields.values:
        tokens = fields.whole("training.max_context_length", 2048)
        each = fields.whole("training.num_tokens_per_microbatch_per_dp_rank", 16384) // tokens
        every = fields.whole("training.num_tokens_per_train_step", -1)
        fields.read.add("parallelism.num_pp_microbatches")
        many = every // tokens if every > 0 else each * found.dp
        return Batch(many, tokens), replace(found, micro_batch=max(each, 1))
    tokens = fields.whole("training.seq_len", 2048)
    local = fields.whole("training.local_batch_size", fields.whole("training.batch_size", 8))
    many = fields.whole("training.global_batch_size", -1)
    many = local * found.dp if many == -1 else many
    each = local
    if found.pp > 1:
        each = fields.whole("parallelism.pipeline_parallel_microbatch_size", 1)
        if many != local * found.dp:
            fields.assumed.append("micro-batches of an iteration go through the pipeline at once")
    return Batch(many, tokens), replace(found, micro_batch=each)
