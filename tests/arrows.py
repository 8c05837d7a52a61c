"""Which package may import which, and why: the rules of ``test_layering.py`` as data."""

from __future__ import annotations

from collections.abc import Mapping

# Lowest first.  A package may import those of rows above its own, and itself; packages of one row
# do not know each other.  "p2smt" is the package itself, with the public functions.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("units", "result"),
    ("display",),
    ("files", "collectives"),
    ("parallel_search",),
    ("cluster",),
    ("fabric", "parallelism"),
    ("programs",),
    ("problems", "cost"),
    ("encodings", "plans", "calibration"),
    ("solvers",),
    ("schedules",),
    ("search",),
    ("resharding", "synthesis", "training", "transfer"),
    ("interop", "runtime"),
    ("api",),
    ("p2smt",),
    ("report",),
    ("cli",),
)

# The same inside the packages that are houses of their own.
INSIDE: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "schedules": (
        ("schedules.model", "schedules.multisets"),
        ("schedules.memory_cells", "schedules.folded"),
        ("schedules.index", "schedules.construction", "schedules.language"),
        ("schedules.order", "schedules.classics"),
        ("schedules.races", "schedules.lower"),
        ("schedules.verify",),
        ("schedules.cost", "schedules.families"),
    ),
    "runtime": (
        (
            *("runtime.process_groups", "runtime.mpi", "runtime.payload", "runtime.unwritten"),
            "runtime.allocated",
        ),
        ("runtime.job",),
        ("runtime.programs", "runtime.schedules", "runtime.arrays", "runtime.summary"),
        ("runtime.transfers",),
        ("runtime.numpy_reference",),
        ("runtime.work",),
        ("runtime.ranks",),
    ),
}

# (who, sees only these of the package, because): independence that is claimed is held here.
SEES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "encodings",
        (
            *("errors", "result", "problems", "encodings"),
            *("collectives.names", "collectives.demand"),
            *("parallelism.placement", "programs.program"),
        ),
        "encodings see problems only: what checks an answer must not share code with it",
    ),
    ("collectives", ("errors", "collectives"), "start and goal rest on nothing"),
    (
        "programs.semantics",
        ("errors", "collectives", "parallelism.placement", "programs.preconditions"),
        "the specification stands alone",
    ),
    (
        "programs.preconditions",
        ("errors", "collectives", "parallelism.placement"),
        "the specification stands alone",
    ),
    *(
        (
            f"resharding.{name}",
            (
                *("errors", "parallelism.placement", "resharding.index_maps", "resharding.types"),
                *("resharding.states", "resharding.steps"),
            ),
            "the specification takes states and steps as data, and moves index maps by itself",
        )
        for name in ("semantics", "index_maps")
    ),
    (
        "transfer.certificate",
        ("transfer.classes", "transfer.ports"),
        "the check of a bound shares nothing with what found it",
    ),
    (
        "transfer.plan",
        ("errors", "transfer.classes", "transfer.ports"),
        "the replay of a plan shares nothing with what found it",
    ),
    (
        "transfer.check",
        (
            *("cluster", "errors", "result", "transfer.buckets", "transfer.certificate"),
            *("transfer.file_model", "transfer.plan", "transfer.plan_file", "transfer.ports"),
            "transfer.question",
        ),
        "the check of a plan file shares nothing with what found the plan",
    ),
    (
        "synthesis.certificate",
        ("errors", "synthesis.certificate"),
        "the check of a bound shares nothing with what found it",
    ),
    (
        "schedules.races.replay",
        ("errors", "collectives.contract", "schedules.model"),
        "replay interprets a schedule anew, to check what the solver found",
    ),
    *(
        (
            f"runtime.schedules.{name}",
            (
                *("errors", "collectives.contract", "schedules.model"),
                *("runtime.schedules.rows", "runtime.schedules.values"),
            ),
            "the reference executor shares with the checker the representation only",
        )
        for name in ("rows", "reference", "values")
    ),
    (
        "runtime.schedules",
        ("errors", "units", "collectives", "schedules.model", "runtime"),
        "execution of schedules shares with the checker the representation only",
    ),
    (
        "runtime.transfers",
        (
            *("errors", "runtime", "transfer.buckets", "transfer.classes", "transfer.layouts"),
            "transfer.plan",
        ),
        "execution of a transfer shares with its check how elements of a class are numbered",
    ),
    (
        "runtime.ranks.run_transfer",
        (
            *("errors", "runtime"),
            *("transfer.check", "transfer.file_model", "transfer.plan_file"),
        ),
        "one place asks the checker before it runs a transfer",
    ),
    (
        "runtime.ranks.run_schedule",
        (
            *("errors", "units", "runtime", "schedules.model"),
            *("schedules.verify.verify", "schedules.verify.report"),
        ),
        "one place asks the checker before it runs a schedule",
    ),
    (
        "cost",
        (
            *("errors", "units", "result", "cluster", "collectives", "parallelism", "cost"),
            *("programs.program", "files"),  # files: those of libraries
        ),
        "what a program costs does not depend on what it means",
    ),
    (
        "schedules.language",
        (
            *("errors", "files", "problems.race", "collectives"),
            *("schedules.model", "schedules.folded", "schedules.language"),
        ),
        "a file's text becomes a schedule without being judged",
    ),
)

APART = "execution and specification check each other"

# (who, must not import, because)
BANS: tuple[tuple[str, str, str], ...] = (
    ("programs", "cost", "what a program means does not depend on what it costs"),
    *(
        ("problems", f"programs.{part}", "a question does not know what checks its answer")
        for part in ("semantics", "preconditions", "check")
    ),
    *(("runtime", f"programs.{part}", APART) for part in ("semantics", "preconditions", "check")),
    *(("runtime", f"resharding.{part}", APART) for part in ("semantics", "index_maps")),
    ("runtime", "plans.check", APART),
    ("runtime", "resharding.plan_check", APART),
    *((f"runtime.{part}", "schedules", APART) for part in ("programs", "job", "payload")),
    *(
        (
            "schedules.verify",
            f"schedules.{part}",
            "a checker does not know where a schedule is from",
        )
        for part in ("construction", "classics", "lower", "language")
    ),
)

COUNTS = "a cover is counted by other code than that which makes the cubes"
BANS += (
    *(
        (counter, maker, COUNTS)
        for counter in ("parallelism.matrix_count", "training.axis_sizes", "api.journal_shares")
        for maker in (
            *("search.spaces", "training.validity", "training.search.subproblems"),
            "parallelism.matrices",
        )
    ),
    ("training.axis_sizes", "training.search.strategies", COUNTS),
    ("search", "parallelism.matrix_count", COUNTS),
    ("training", "parallelism.matrix_count", COUNTS),
    ("training.search", "training.axis_sizes", COUNTS),
    *(
        (
            "parallel_search.journal",
            f"parallel_search.{part}",
            "a journal is verified without what searched",
        )
        for part in ("coordinate", "state", "engines", "parallel_options")
    ),
)

# Only solvers imports encodings: whatever asks, asks through its one door.
JOINS_ENCODINGS = ("solvers", "encodings")

# They import by a computed name: public names on first use, the encoding that is asked, and what
# shows an answer in a notebook.
COMPUTES_NAMES = ("p2smt", "solvers.ask", "display")

# Rows of formulas, of which `make formulas` makes the functions that commands run.
ROWS = tuple(
    f"training.formulas.{name}"
    for name in ("symbols", "memory", "seconds", "kinds", "traffic", "kinds_seconds", "rows")
)

# Third-party packages and who may import them; None: every module.
PACKAGES: Mapping[str, tuple[str, ...] | None] = {
    "numpy": None,
    "ortools": ("encodings",),
    "z3": ("encodings",),
    # the first puts it off (OR-Tools imports it), the second makes frames of rows
    "pandas": ("encodings.cpsat_library", "display"),
    # and file.py, file_model.py of every package; cluster.error_model is the part of
    # cluster.file_model that files of accuracies (cost.accuracy) have as well, with its block of
    # devices: together they would be more than one file holds
    "pydantic": (
        "files",
        "report.outputs.catalogue",
        "report.outputs.certificate",
        "cluster.error_model",
    ),
    "defusedxml": ("interop",),
    "tree_sitter": ("interop.shell",),
    "tree_sitter_bash": ("interop.shell",),
    "scipy": ("calibration", "resharding.step_prices"),
    "sympy": ROWS,  # installed with the extra "dev" alone
    "pydantic_core": ("files",),
    "yaml": ("files",),
    "typer": ("cli",),
    "rich": ("cli", "report"),
    # its types and its planners are read where they are translated
    # api.tensors: functions of DTensors, which need layouts, search and execution together
    "mpi4py": ("runtime.mpi",),
    "torch": ("runtime", "interop.arrays.torch_spec", "interop.arrays.peers", "api.tensors"),
    "matplotlib": ("report",),
    "dask": ("parallel_search.engines",),  # the extra "cluster"
    "distributed": ("parallel_search.engines.dask", "parallel_search.engines.dask_worker"),
}

PRINTS = ("cli", "report")
