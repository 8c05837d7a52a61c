"""A model with what the names of its weights need: its family, and which matrices have biases."""

from __future__ import annotations

import os
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.files.json_text import read_json
from p2smt.interop.config_keys import ConfigKeys
from p2smt.interop.model_config import CONFIG, MAX_BYTES, config_model, text_part
from p2smt.interop.weights.families import WeightFamily, family_named, family_of_packaged
from p2smt.training import model_file
from p2smt.training.model_names import model_names
from p2smt.training.transformer import Transformer


@dataclass(frozen=True, slots=True)
class WeightModel:
    """The sizes of a decoder and how its weights are named.

    ``query_bias``: q, k and v have biases; ``output_bias``: what attention gives out, too.  Layers
    of multi-token prediction are none of it: serving frameworks leave them out of the model.
    """

    sizes: Transformer
    family: WeightFamily
    query_bias: bool
    output_bias: bool


def read_weight_model(name_or_path: str) -> WeightModel:
    """The model of a name that p2smt knows, or of a ``config.json`` or a folder that has one.

    Raises:
        InputError: there is no such model or file; the names of its weights are not known; or it
            is quantised, or has biases where there are no rules for them.
    """
    if name_or_path.endswith(".json") or os.path.isdir(name_or_path):
        return _of_config(name_or_path)
    sizes = model_file.read_model(name_or_path)
    if os.path.exists(name_or_path) or sizes.name not in model_names():
        rule = "is a file of sizes, which says no names of weights"
        raise InputError(f"model {name_or_path[:80]!r}", rule, "give the model's config.json")
    family = family_of_packaged(sizes.name)
    return WeightModel(sizes, family, family.query_bias, output_bias=False)


def _of_config(path: str) -> WeightModel:
    file = os.path.join(path, CONFIG) if os.path.isdir(path) else path
    data = read_json(file, f"model file {file!r}", f"give a {CONFIG}", MAX_BYTES)
    sizes = config_model(data, file)
    keys = text_part(ConfigKeys(data, file))
    family = family_named(keys.text("model_type"))
    for part in (ConfigKeys(data, file), keys):
        if part.has("quantization_config"):
            rule = "weights have scales, for which there are no rules"
            raise part.error("quantization_config", "..", rule, "give the bf16 model's config.json")
    if keys.switch("mlp_bias", default=False):
        raise keys.error("mlp_bias", "true", "there are no rules for biases of an MLP")
    biased = keys.switch("attention_bias", default=False)
    if biased and not family.may_bias:
        raise keys.error("attention_bias", "true", "there are no rules for them in this family")
    return WeightModel(sizes, family, biased or family.query_bias, biased)
