"""Files of other tools.

A folder holds one format of schedules, with the same files as its neighbours:

- ``parse``: ``parse_X(text, source)``, a text as frozen types with line numbers (which may have a
  file of their own: ``execution_plan``); what no file of the format may say is an error here;
- ``read``: ``read_X(text, source, reading)``, the schedule that those types mean; what the
  checker can judge is kept, even if it is wrong.  ``FORMAT`` is what the schedule calls it;
  ``warnings_of(..)`` is what the runtime makes of a file besides what it says;
- ``write``: ``write_X(schedule)``, the text that means the same, or what the format cannot say.

``X`` is the folder's name.  ``reading`` has what a reader is told beside the file, and
``schedule_files`` the table of formats.  To add one: a folder with these, and a row of
``schedule_files.FORMATS``; docs/schedules.md says what its steps mean.

``nccl_tests`` holds measurements, not schedules, and writes nothing: ``elements`` (tables of
times), ``parse_text`` (what is printed), ``calibration_files`` (the ``-J`` report, what ran on how
many ranks, and what a calibration takes).  ``osu`` is the same of the OSU micro-benchmarks.

``clusters`` has what tells of clusters: a format is a reader that takes facts from a text
(switches and hosts outside, levels inside a node, or all levels), and a row of the table in
``clusters.read``, which puts several together.  ``clusters.nodes`` has those of nodes,
``astra_sim`` networks of ASTRA-sim, which are written, too.  ``fabrics`` reads fabrics.

``arrays`` has the types of arrays as PyTorch and Shardy write them, plans as functions for JAX
(``shard_map``), and what other planners do (``peers``).

``places`` is the host and device of each rank of a plan, ``launchers`` a file for each launcher,
``frameworks`` and ``meshes`` the ranks as frameworks number them, and ``exports`` the table of all
that a plan is exported to.  ``rank_orders`` reads orders of ranks.

``weights`` says who holds which part of a model's weights in a framework.

``model_config`` reads what Hugging Face says of a model, ``trainers`` writes a strategy as programs
that train take it (``option_table`` has them), also from a plan.
"""
