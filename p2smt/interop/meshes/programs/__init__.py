"""The requests of a plan as code that runs them.

In reading order: ``steps`` (a request as groups of launched ranks), ``rows`` (which part of the
payload each member of a group holds from step to step), ``place`` (a rank's place in its group as
expressions), ``row_text`` (rows as expressions over these), ``coded`` (a request ready to be
printed), ``body`` (what functions of all frameworks have in common); then the printers,
``torch_writer`` and ``jax_writer``, and what they print besides the programs, ``torch_helpers``
and ``jax_helpers``.
"""
