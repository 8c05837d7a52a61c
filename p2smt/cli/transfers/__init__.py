"""Commands that move many tensors from one mesh to another.

``transfer_command``: `p2smt transfer`; ``layout_options``: the layouts that it is given;
``transfer_files``: what it writes beside the plan.
"""
