"""The native part of Busbar."""

import os
from typing import Any

import numpy
import pandas
import polars
from numpy.typing import NDArray

__version__: str

class Table:
    """Columns with names, for pandas, polars and whoever else takes Arrow's form."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
    @property
    def zone(self) -> str | None:
        """The time zone of its dates, if it has any."""
    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> NDArray[Any]:
        """A column as an array of numpy: dates in UTC, and whole numbers as others if some are missing."""
    def _repr_html_(self) -> str: ...
    def named(self, names: dict[str, list[str]]) -> Table:
        """The same table with names in the place of numbers, which count them from 1."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...
    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas DataFrame."""
    def to_polars(self) -> polars.DataFrame:
        """The table as a polars DataFrame."""

class Point:
    """One way to run a job."""

    @property
    def nodes(self) -> int:
        """Nodes that it takes."""
    @property
    def cores(self) -> int:
        """Cores that it uses in each of them."""
    @property
    def cap(self) -> float:
        """The cap of each node, in watts."""
    @property
    def watts(self) -> float:
        """What the job draws, in watts."""
    @property
    def time(self) -> float:
        """How long the job holds its nodes at most, in seconds."""

class Running:
    """The running jobs, as arrays of the same length, in the order in which they are expected to end."""

    def __len__(self) -> int: ...
    @property
    def jobs(self) -> NDArray[numpy.int64]:
        """The running jobs by their numbers."""
    @property
    def nodes(self) -> NDArray[numpy.int64]:
        """The nodes that each holds."""
    @property
    def watts(self) -> NDArray[numpy.float64]:
        """The power that each holds, in watts."""
    @property
    def until(self) -> NDArray[numpy.float64]:
        """When each ends at the latest, in seconds."""

class View:
    """The present, for a policy: the waiting jobs as arrays of the same length, in submit order."""

    def __len__(self) -> int: ...
    @property
    def now(self) -> float:
        """The simulated time, in seconds."""
    @property
    def free_nodes(self) -> int:
        """Nodes that are free."""
    @property
    def free_watts(self) -> float:
        """Power that is free, in watts; infinite without a budget."""
    @property
    def budget(self) -> float:
        """The limit that holds now, in watts; infinite without a budget."""
    @property
    def total_nodes(self) -> int:
        """Nodes of the machine that are in service."""
    @property
    def jobs(self) -> NDArray[numpy.int64]:
        """The waiting jobs by their numbers, which are their places in the workload from 0."""
    @property
    def nodes(self) -> NDArray[numpy.int64]:
        """The nodes that each waiting job asks for."""
    @property
    def requested(self) -> NDArray[numpy.float64]:
        """The time that each waiting job asks for, in seconds."""
    @property
    def submit(self) -> NDArray[numpy.float64]:
        """When each waiting job was submitted, in seconds."""
    @property
    def watts(self) -> NDArray[numpy.float64]:
        """What each waiting job is believed to draw if it runs as it was asked for, in watts."""
    @property
    def user(self) -> NDArray[numpy.int64]:
        """The number of each waiting job's user, -1 if it is not known."""
    @property
    def application(self) -> NDArray[numpy.int64]:
        """The number of each waiting job's application, -1 if it is not known."""
    @property
    def running(self) -> Running:
        """The running jobs."""
    def points(self, job: int) -> list[Point]:
        """The ways to run a job, the one that it asks for first."""
    def first_fit(self, order: Any | None = None) -> list[int]:
        """The jobs that fit, one after the other: each as it was asked for, if it fits beside those before it.

        ``order`` is places in the arrays of this view, such as ``view.requested.argsort()``; without it, the order is
        that of submission.
        """

class Start:
    """Starts a waiting job: as it was asked for, or at one of its points."""

    def __init__(self, job: int, point: Point | None = None) -> None: ...
    @property
    def job(self) -> int: ...

class Change:
    """Lets a running job go on at another of its points."""

    def __init__(self, job: int, point: Point) -> None: ...
    @property
    def job(self) -> int: ...

class Drop:
    """Gives a waiting job up: it will never run."""

    def __init__(self, job: int) -> None: ...
    @property
    def job(self) -> int: ...

class WakeAt:
    """Asks the policy again at this simulated time, in seconds."""

    def __init__(self, time: float) -> None: ...
    @property
    def time(self) -> float: ...

class Simulation:
    @property
    def json(self) -> str: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def text(self) -> str: ...
    def jobs(self) -> Table: ...
    def power(self) -> Table: ...
    def changes(self) -> Table: ...
    def caps(self) -> Table: ...

def simulate(words: list[str], policies: list[Any]) -> Simulation: ...
def compare(words: list[str], policies: list[Any]) -> tuple[str, str, Table, list[str]]: ...
def whatif(words: list[str], policies: list[Any]) -> tuple[str, str, None, list[str]]: ...
def workload(words: list[str]) -> tuple[str, str, Table, list[str]]: ...
def ask(words: list[str]) -> tuple[str, str, None, list[str]]: ...
def parameters(command: list[str]) -> list[tuple[str, bool, bool, str]] | None: ...
def program_is(path: str | os.PathLike[str]) -> None: ...
