"""Files for the frameworks that lay meshes of axes over launched ranks.

``tensor`` has the number that a launcher gives each rank of a plan, the launched rank at each
coordinate of the mesh, and whether a framework can take it; ``arrays`` redistributions, and
``programs`` the programs of a plan as code.
"""
