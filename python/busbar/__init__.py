"""Busbar shares a fixed feed of watts among the jobs of an HPC machine.

>>> import busbar
>>> run = busbar.simulate(policy="share", budget="60%")
>>> run["completed"], run.jobs.to_pandas()  # doctest: +SKIP

The functions are the commands of the program, and their keyword arguments the options. A class with ``decide(view)``
is a policy beside the built-in ones; see :class:`Policy`.
"""

from ._busbar import (
    Change,
    Drop,
    Point,
    Running,
    Start,
    Table,
    View,
    WakeAt,
    __version__,
    program_is as _program_is,
)
from . import _busbar
from ._errors import Error, InputError, SystemFailure
from ._functions import (
    compare,
    machine,
    plan,
    read_records,
    simulate,
    solve,
    tune,
    tune_policy,
    whatif,
    workload,
)
from ._policies import Decision, Policy
from ._results import BusbarWarning, Comparison, Simulation, WhatIf, Workload

# Results in the cache are those of the same build, and the program that runs is Python itself.
_program_is(_busbar.__file__)

__all__ = [
    "BusbarWarning",
    "Change",
    "Comparison",
    "Decision",
    "Drop",
    "Error",
    "InputError",
    "Point",
    "Policy",
    "Running",
    "Simulation",
    "Start",
    "SystemFailure",
    "Table",
    "View",
    "WakeAt",
    "WhatIf",
    "Workload",
    "__version__",
    "compare",
    "machine",
    "plan",
    "read_records",
    "simulate",
    "solve",
    "tune",
    "tune_policy",
    "whatif",
    "workload",
]
