"""Moving many tensors from one mesh to another: the layouts of both, and what each device lacks.

``layouts`` says who holds which box of which tensor.
"""
