"""Arrays laid out over a device mesh, and the steps that change how (after arXiv 2112.01075).

In reading order: ``mesh`` (axes, sub-axes and which device stands where), ``element`` (element
types and reductions), ``layout`` (shard, replicate, partial) and ``text`` (its written form),
``array_type`` (shape, element and layout together), ``state`` (a layout on the mesh's digits),
``frame`` (what all states of one redistribution share), ``steps`` (the six steps and their
rules), ``ends`` (two types on common digits), ``memory`` (bytes that a step needs), ``semantics``
(what steps do to the elements, by ``index_maps`` and ``index_groups``).
"""
