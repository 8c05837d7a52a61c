"""Who holds which part of a model's weights in a framework: its names, shapes and rules.

Names and shapes are those of Hugging Face's files, and a layout says which elements of these each
rank holds.  How a rank stores them (q, k and v in one matrix, gate and up in one) is said in
docs/transfer-layouts.md, and decides packing only, but where the ranks cut the matrix as stored.

- ``models``: how families of decoders name their weights, and a model with its family;
- ``weight_tensors``: every weight of a model, with its role, which is what rules of frameworks go
  by;
- ``layout_text``: ``framework:key=value,..`` as checked options;
- ``stages``: layers on pipeline stages;
- ``ranks``: coordinates of ranks, and rules put together as a layout;
- ``megatron``, ``serving`` (vLLM and SGLang), ``table`` (FSDP2, HSDP, DTensor, JAX): the rules,
  each with the lines of its framework that it was read from;
- ``table`` has the table of frameworks, too, and the door: a text or a ``layout.json`` to a layout.
"""
