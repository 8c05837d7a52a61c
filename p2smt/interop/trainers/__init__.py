"""Strategies as what trainers take: options of Megatron-LM and TorchTitan, DeepSpeed's config.

``option_table`` finds a trainer by its name, ``trainer`` is what each of them says of itself: what
it lacks, and how it writes a strategy.  ``megatron``, ``torchtitan`` and ``deepspeed`` are theirs.
Their rules are those of one commit each, which these modules name; the tests hold what is written
against the same rules, written anew.
"""
