"""What commands answer."""

from __future__ import annotations

import html
import json
import warnings
from collections.abc import Iterator
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


def preformatted(text: str) -> str:
    """A text as notebooks show it."""
    return f"<pre>{html.escape(text)}</pre>"


class Simulation:
    """One workload under one policy: its figures, and what became of each job.

    Printing it shows what ``busbar simulate`` prints. Tables are made when they are first asked for. Their times are
    seconds from the start of the log; where the log has dates, they are in columns beside them, such as
    ``submit_date``.
    """

    def __init__(self, done: _busbar.Simulation, names: dict[str, list[str]] | None = None) -> None:
        self._done = done
        self._names = names or {}

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
        return self._done.jobs().named(self._names)

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

    def _repr_html_(self) -> str:
        return preformatted(str(self))

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

    def _repr_html_(self) -> str:
        return preformatted(str(self))

    def __repr__(self) -> str:
        return f"<busbar.Comparison: {len(self.results)} runs, {len(self.rankings)} rankings>"


class Workload:
    """The jobs of a log, of records, of a data frame or of a generator, and what they are like.

    It can be given as ``workload`` to the functions that take one.
    """

    def __init__(self, answer: str, jobs: Table, records: dict[str, Any] | None = None) -> None:
        #: What the workload is like, as ``busbar workload info --json`` answers.
        self.info: dict[str, Any] = json.loads(answer)
        #: A row for each job: id, submit, processors, requested, run_time, user, application, power, wait, group and
        #: partition; submit_date if there are dates.
        self.jobs: Table = jobs
        #: What was found in records, as ``busbar workload import --json`` answers; None for other workloads.
        self.records: dict[str, Any] | None = records

    def __len__(self) -> int:
        return len(self.jobs)

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.info['workload'])}</p>{self.jobs._repr_html_()}"

    def __repr__(self) -> str:
        return f"<busbar.Workload: {self.info['workload']}, {len(self)} jobs>"


class WhatIf:
    """Past jobs under a budget, as ``busbar whatif --json`` answers.

    Parts are taken by their names: ``answer["rows"]``. Those that are lists of rows are tables:
    ``pandas.DataFrame(answer["rows"])``.
    """

    def __init__(self, answer: str, names: dict[str, list[str]] | None = None) -> None:
        #: Everything.
        self.answer: dict[str, Any] = json.loads(answer)
        #: What the numbers of users and others stand for, from 1 on, if they had names in a data frame.
        self.names: dict[str, list[str]] = names or {}

    def __getitem__(self, part: str) -> Any:
        return self.answer[part]

    def keys(self) -> list[str]:
        """The names of the parts."""
        return list(self.answer)

    @property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The parts that are lists of rows; the name of a part of a part is ``waits.by_user``."""
        return dict(tables_in(self.answer))

    def _repr_html_(self) -> str:
        texts = {name: part for name, part in self.answer.items() if isinstance(part, str)}
        said = "".join(f"<p>{html.escape(name)}: {html.escape(text)}</p>" for name, text in texts.items())
        shown = (f"<h4>{html.escape(name)}</h4>{rows_as_html(rows)}" for name, rows in self.tables.items())
        return said + "".join(shown)

    def __repr__(self) -> str:
        return f"<busbar.WhatIf: {', '.join(self.answer)}>"


def tables_in(answer: dict[str, Any], above: str = "") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The lists of rows in an answer, with their names."""
    for name, part in answer.items():
        if isinstance(part, dict):
            yield from tables_in(part, f"{above}{name}.")
        elif isinstance(part, list) and part and all(isinstance(row, dict) for row in part):
            yield f"{above}{name}", part


def rows_as_html(rows: list[dict[str, Any]]) -> str:
    """Rows as a table, with the columns that any of them has. What is in a row in turn is left out."""
    names = list(dict.fromkeys(name for row in rows for name, value in row.items() if not isinstance(value, (dict, list))))
    cell = lambda value: "" if value is None else html.escape(f"{value:.6g}" if isinstance(value, float) else str(value))
    line = lambda tag, values: "<tr>" + "".join(f"<{tag}>{value}</{tag}>" for value in values) + "</tr>"
    lines = [line("td", (cell(row.get(name)) for name in names)) for row in rows]
    return f"<table><thead>{line('th', map(html.escape, names))}</thead><tbody>{''.join(lines)}</tbody></table>"
