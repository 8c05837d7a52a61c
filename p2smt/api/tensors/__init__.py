"""Planned redistributions in a training script, in place of ``DTensor.redistribute``.

In reading order: ``function`` (:func:`torch_function` and what it returns), ``checks`` (whether a
tensor is what a plan starts from), ``planned`` (plans that all ranks have alike).
"""
