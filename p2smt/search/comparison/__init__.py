"""Rank orders side by side: what each costs, what decides it, and how far it is from the best.

In reading order: ``tensors`` (what lists and texts of users mean), ``figures`` (what an order
costs), ``compare``.
"""
