"""Rank orders that people have: files of ranks or hosts, meshes of frameworks, names.

``read`` says what a text is; ``npy`` has arrays of numpy, ``mesh_json`` lists and meshes in JSON,
``rank_lines`` lines of ranks or hosts.
"""
