"""The requests of a plan as code that runs them.

In reading order: ``memory_rows`` (a request as groups of launched ranks, which part of the payload
each member holds from step to step, and that as expressions), ``coded`` (a request ready to be
printed); then the printers, ``torch_writer`` and ``jax_writer``, with what they print besides.
"""
