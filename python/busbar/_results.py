"""What commands answer."""

from __future__ import annotations

import json
import warnings
from functools import cached_property
from typing import Any

from . import _busbar
from ._busbar import Table


class BusbarWarning(UserWarning):
    """What the program prints after ``warning:``."""


def warn(texts: list[str], between: int = 0) -> None:
    """Passes warnings on to whoever called the public function; so many other functions are between that and this."""
    for each in texts:
        warnings.warn(each, BusbarWarning, stacklevel=3 + between)


class Simulation:
    """One workload under one policy: its figures, and what became of each job.

    Printing it shows what ``busbar simulate`` prints. Tables are made when they are first asked for.
    """

    def __init__(self, done: _busbar.Simulation) -> None:
        self._done = done

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All figures of the run, by the names of ``busbar simulate --json``."""
        return json.loads(self._done.json)

    @property
    def refused(self) -> list[str]:
        """The first decisions that the ledger refused, each with its instant and the reason."""
        return self.summary.get("refused", [])

    @cached_property
    def jobs(self) -> Table:
        """What became of each job, a row for each: the columns of jobs.csv."""
        return self._done.jobs()

    @cached_property
    def power(self) -> Table:
        """The power drawn over time and the budget: the columns of power.csv."""
        return self._done.power()

    @cached_property
    def changes(self) -> Table:
        """How jobs changed while they ran: the columns of changes.csv."""
        return self._done.changes()

    @cached_property
    def caps(self) -> Table:
        """The caps of single processors: the columns of caps.csv."""
        return self._done.caps()

    def __getitem__(self, figure: str) -> Any:
        """One figure of the summary: ``run["mean_wait_s"]``."""
        return self.summary[figure]

    def __str__(self) -> str:
        return self._done.text

    def __repr__(self) -> str:
        return f"<busbar.Simulation: {self.summary['policy']} on {self.summary['workload']}>"


class Comparison:
    """Several policies under several budgets, ranked.

    Printing it shows the tables that ``busbar compare`` prints.
    """

    def __init__(self, answer: str, text: str, results: Table) -> None:
        self._answer = answer
        self._text = text
        #: A row for each run, with all of its figures: the columns of results.csv.
        self.results: Table = results

    @cached_property
    def answer(self) -> dict[str, Any]:
        """Everything, as ``busbar compare --json`` answers."""
        return json.loads(self._answer)

    @property
    def rankings(self) -> list[dict[str, Any]]:
        """A ranking for each workload, number of nodes and budget, best policy first."""
        return self.answer["rankings"]

    @property
    def best(self) -> str:
        """The policy at the top of the first ranking."""
        return self.rankings[0]["rows"][0]["policy"]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<busbar.Comparison: {len(self.results)} runs, {len(self.rankings)} rankings>"


class Workload:
    """The jobs of a log or of a generator, and what they are like."""

    def __init__(self, answer: str, jobs: Table) -> None:
        #: What the workload is like, as ``busbar workload info --json`` answers.
        self.info: dict[str, Any] = json.loads(answer)
        #: A row for each job: id, submit, processors, requested, run_time, user, application, power.
        self.jobs: Table = jobs

    def __len__(self) -> int:
        return len(self.jobs)

    def __repr__(self) -> str:
        return f"<busbar.Workload: {self.info['workload']}, {len(self)} jobs>"
