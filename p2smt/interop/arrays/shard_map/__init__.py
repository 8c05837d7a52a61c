"""A planned redistribution as a function for JAX's ``shard_map``, in a module that needs no other.

In reading order: ``names`` (mesh axes of the function: one for each digit), ``lines`` (each step as
lines of Python), ``parts`` (the steps that run on one order of devices), ``writer`` (the module).
"""
