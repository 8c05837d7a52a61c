"""Communication libraries as data: what each can run, what it chooses, and what that costs.

``accuracy``: how well predictions under a library held.
"""
