"""Files for the frameworks that lay meshes of axes over launched ranks.

In reading order: ``numbering`` (which number a launcher gives each rank of a plan), ``tensor`` (the
launched rank at each coordinate of the mesh, and whether a framework can take it), a file for each
framework, and ``programs/`` (the programs of a plan as code).
"""
