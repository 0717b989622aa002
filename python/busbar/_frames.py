"""Data frames as workloads.

A frame is written as a log, which the program reads as any other. Here is only how columns become its fields.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ._busbar import Table
from ._columns import Column, columns_of, is_frame, read
from ._errors import InputError, without_paths
from ._results import Workload

#: The columns of a workload, with what they mean.
MEANING = {
    "id": "a whole number for each job",
    "submit": "when each job was submitted: dates, or seconds",
    "start": "when each job started: dates, or seconds",
    "end": "when each job ended: dates, or seconds",
    "wait": "how long each job waited: seconds, or lengths of time",
    "run_time": "how long each job ran: seconds, or lengths of time",
    "requested": "the time that each job asked for: seconds, or lengths of time",
    "processors": "how many processors each job asked for",
    "user": "the user of each job: names or numbers",
    "group": "the group or account of each job: names or numbers",
    "application": "the executable of each job: names or numbers",
    "partition": "the partition of each job: names or numbers",
    "power": "measured mean power of each job, all its nodes together, in watts",
}

#: Columns whose values are names, or numbers that stand for somebody.
NAMED = ("user", "group", "application", "partition")

#: The largest number that a log has for a user, a group, an executable or a partition.
LARGEST_NUMBER = 2**31 - 1

LINE = "%d %d %d %d %d -1 -1 %d %d -1 1 %d %d %d -1 %d -1 -1\n"


def is_workload(value: object) -> bool:
    """Whether a value is a table of jobs, rather than a name, a path or several of them."""
    if isinstance(value, Mapping):
        return not all(_is_name(each) or is_workload(each) for each in value.values())
    return not _is_name(value) and (isinstance(value, Workload) or is_frame(value))


def _is_name(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


class Jobs:
    """The jobs of a frame, as a log has them."""

    def __init__(self, frame: Any) -> None:
        import numpy

        self.warnings: list[str] = []
        #: What the numbers of users and others stand for, from 1 on.
        self.names: dict[str, list[str]] = {}
        processors = None
        if isinstance(frame, Workload):
            processors = frame.info["processors"]
            frame = frame.jobs
        columns = columns_of(frame)
        # An array of numpy has no zone, and a table of Busbar says it.
        self._zone = frame.zone if isinstance(frame, Table) else None
        # Tables of Busbar have seconds, and dates beside them where they are known.
        self._columns = {
            name: columns.get(f"{name}_date", column)
            for name, column in columns.items()
            if name in MEANING
        }
        if {"cap", "state"} <= columns.keys():
            # In a table of what became of jobs, it is what they added to the power of idle nodes.
            self._columns.pop("power", None)
        self._check(list(columns))
        times = self._times()
        submit, start = times["submit"], times.get("start")
        run_time = self._seconds("run_time") if "run_time" in self._columns else times["end"] - start
        wait = start - submit if start is not None else self._seconds("wait")
        size = self._whole("processors")
        self._refuse("end", run_time < 0, "is before the start")
        self._refuse("start", wait < 0, "is before the submission")
        self._refuse("processors", size < 1, "is not above zero")
        is_known = ~(numpy.isnan(submit) | numpy.isnan(run_time) | numpy.isnan(size))
        left_out = int((~is_known).sum())
        if len(submit) == 0:
            raise InputError("the data frame has no rows; a workload has at least one job")
        if left_out == len(submit):
            raise InputError("no row of the data frame has a submission, a run time and processors")
        if left_out:
            self.warnings.append(
                f"{left_out} of {len(submit)} rows of the data frame are left out: no submission, run time or processors"
            )
        numbers = self._ids(len(submit))
        requested = numpy.ceil(self._seconds("requested"))
        whole = lambda values: numpy.nan_to_num(numpy.round(values), nan=-1).astype(numpy.int64)
        fields = [numbers, whole(submit), whole(wait), whole(run_time), whole(size), whole(size), whole(requested)]
        fields += [self._numbered(name) for name in NAMED]
        self.rows = list(zip(*(field[is_known].tolist() for field in fields)))
        power = self._floats("power")
        self._refuse("power", power < 0, "is below zero")
        is_measured = is_known & ~numpy.isnan(power)
        self.powers = list(zip(numbers[is_measured].tolist(), power[is_measured].tolist()))
        if processors is None and not numpy.isnan(wait[is_known]).any():
            processors = _most_at_once((submit + wait)[is_known], run_time[is_known], size[is_known])
        self.processors = processors

    def _check(self, given: list[str]) -> None:
        """Whether the columns are there that a workload cannot do without; others that are nearly one are told."""
        needed = ["submit", "processors"]
        if not {"start", "end"} <= set(self._columns):
            needed.append("run_time")
        for name in needed:
            if name not in self._columns:
                raise InputError(_missing(name, given))
        if len(lengths := {len(column) for column in self._columns.values()}) > 1:
            raise InputError(f"the columns of the data frame have different lengths: {min(lengths)} to {max(lengths)}")
        for name in given:
            close = difflib.get_close_matches(name.lower(), MEANING, 1, 0.8)
            if name not in MEANING and close and close[0] not in self._columns and not name.endswith("_date"):
                self.warnings.append(f"column '{name}' of the data frame is not used; did you mean '{close[0]}'?")

    def _column(self, name: str) -> Column:
        try:
            column = read(self._columns[name])
        except ValueError as error:
            raise InputError(f"column '{name}' of the data frame: {error}") from error
        if name not in NAMED and not column.has_dates and not column.has_numbers:
            example = next((value for value in column.values.tolist() if value is not None), None)
            dates = "; make dates of them, as with pandas.to_datetime" if name in ("submit", "start", "end") else ""
            raise InputError(
                f"column '{name}' of the data frame has {example!r} in it, which is no number{dates}; it is {MEANING[name]}"
            )
        return column

    def _floats(self, name: str) -> Any:
        """A column of numbers; nan everywhere if there is none."""
        import numpy

        if name not in self._columns:
            return numpy.full(len(self._columns["submit"]), numpy.nan)
        column = self._column(name)
        if column.has_dates:
            raise InputError(f"column '{name}' of the data frame has dates in it; it is {MEANING[name]}")
        return column.values.astype(numpy.float64)

    def _seconds(self, name: str) -> Any:
        seconds = self._floats(name)
        self._refuse(name, seconds < 0, "is below zero")
        return seconds

    def _whole(self, name: str) -> Any:
        import numpy

        values = self._floats(name)
        self._refuse(name, ~numpy.isnan(values) & (values != numpy.floor(values)), "is not a whole number")
        return values

    def _refuse(self, name: str, is_wrong: Any, why: str) -> None:
        if is_wrong.any():
            row = int(is_wrong.argmax())
            value = self._column(name).values[row]
            raise InputError(f"column '{name}' of the data frame, row {row} (from 0): {value} {why}")

    def _times(self) -> dict[str, Any]:
        """When jobs were submitted, started and ended, in seconds from one beginning, which has a date if they are dates."""
        import numpy

        self.begin: int | None = None
        self.zone: str | None = None
        given = [name for name in ("submit", "start", "end") if name in self._columns]
        found = {name: self._column(name) for name in given}
        if len({column.has_dates for column in found.values()}) > 1:
            raise InputError(
                f"{', '.join(given)} of the data frame are partly dates and partly seconds; write the same in all of them"
            )
        submit = found["submit"]
        if not submit.has_dates:
            return {name: self._seconds(name) for name in given}
        dates = submit.values[~numpy.isnat(submit.values)]
        begin = (dates.min() if len(dates) else numpy.datetime64(0, "s")).astype("datetime64[s]")
        self.begin = int(begin.astype(numpy.int64))
        self.zone = submit.zone or self._zone or "UTC"
        gone = {name: numpy.isnat(column.values) for name, column in found.items()}
        passed = {name: (column.values - begin).astype(numpy.int64) / 1e9 for name, column in found.items()}
        return {name: numpy.where(gone[name], numpy.nan, passed[name]) for name in given}

    def _ids(self, rows: int) -> Any:
        import numpy

        if "id" not in self._columns:
            return numpy.arange(rows)
        column = self._column("id")
        if not column.has_numbers:
            raise InputError(f"column 'id' of the data frame has dates in it; it is {MEANING['id']}")
        values = self._whole("id")
        self._refuse("id", numpy.isnan(values) | (values < 0), "is no number of a job")
        numbers = column.values.astype(numpy.int64)
        found, counts = numpy.unique(numbers, return_counts=True)
        if (counts > 1).any():
            twice = found[counts > 1][0]
            raise InputError(f"column 'id' of the data frame has {twice} more than once; leave it out to count rows")
        return numbers

    def _numbered(self, name: str) -> Any:
        """Numbers above zero, −1 where nothing is known. Names are numbered in the order in which they come."""
        import numpy

        if name not in self._columns:
            return numpy.full(len(self._columns["submit"]), -1)
        column = self._column(name)
        if column.has_numbers:
            numbers = numpy.nan_to_num(column.values.astype(numpy.float64), nan=-1.0)
            if (numbers == numpy.floor(numbers)).all() and (numbers <= LARGEST_NUMBER).all():
                return numpy.where(numbers > 0, numbers, -1).astype(numpy.int64)
        known: dict[str, int] = {}
        texts = [None if value is None or value != value else str(value) for value in column.values.tolist()]
        numbers = [-1 if text is None else known.setdefault(text, len(known) + 1) for text in texts]
        self.names[name] = list(known)
        return numpy.asarray(numbers)

    def write(self, path: Path) -> None:
        """Writes the log, and what jobs draw beside it."""
        header = ["Version: 2.2", "Note: made of a data frame", f"MaxJobs: {len(self.rows)}"]
        if self.processors is not None:
            header.append(f"MaxProcs: {self.processors}")
        if self.begin is not None:
            header += [f"UnixStartTime: {self.begin}", f"TimeZoneString: {self.zone}"]
        partitions = enumerate(self.names.get("partition", []), 1)
        # A name ends at the first blank.
        header += [f"Partition: {number} {'_'.join(name.split())}" for number, name in partitions]
        if self.powers:
            beside = path.with_suffix(".power.csv")
            header.append(f"BusbarPower: {beside.name}")
            rows = (f"{number},{watts!r},\n" for number, watts in self.powers)
            beside.write_text("job,mean_w,peak_w\n" + "".join(rows))
        with path.open("w") as out:
            out.writelines(f"; {line}\n" for line in header)
            out.writelines(LINE % row for row in self.rows)


def _missing(name: str, given: list[str]) -> str:
    """That a column is not there, and what may be it."""
    else_ = {"run_time": ", and no columns 'start' and 'end'"}.get(name, "")
    by_small = {each.lower().replace(" ", "_"): each for each in given}
    close = difflib.get_close_matches(name, by_small, 1, 0.7)
    hint = f"; did you mean '{by_small[close[0]]}'? rename it" if close else ""
    if name == "processors" and "nodes" in given:
        hint = "; multiply 'nodes' by the processors of a node"
    return f"the data frame has no column '{name}'{else_}{hint}; '{name}' is {MEANING[name]}; the columns are {', '.join(given)}"


def _most_at_once(start: Any, run_time: Any, size: Any) -> int:
    """The most processors that were busy at once; whoever ends makes room for those who start at the same time."""
    import numpy

    at = numpy.concatenate([start, start + run_time])
    change = numpy.concatenate([size, -size])
    order = numpy.lexsort((change, at))
    return int(max(change[order].cumsum().max(), size.max()))


class Named:
    """What stands for workloads in the words of a command, while the command runs."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.names: dict[str, list[str]] = {}


@contextlib.contextmanager
def named(workload: Any, out: Any = None) -> Iterator[tuple[Any, Named]]:
    """Workloads as they are named in words: data frames become logs in the folder for results if there is one, so that
    the run can be repeated, and otherwise in a folder that is removed in the end.
    """
    said = Named()
    if not has_frames(workload):
        yield workload, said
        return
    with contextlib.ExitStack() as stack:
        if out is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="busbar-")))
        else:
            folder = Path(out)
            folder.mkdir(parents=True, exist_ok=True)

        def path(value: Any, name: str) -> Any:
            if not is_workload(value):
                return value
            jobs, log = Jobs(value), folder / f"{name}.swf"
            jobs.write(log)
            said.warnings += jobs.warnings
            said.names.update(jobs.names)
            return log

        with without_paths(f"{folder}{os.sep}", ""):
            if is_workload(workload):
                yield path(workload, "frame"), said
            elif isinstance(workload, Mapping):
                safe = lambda name: str(name).replace(os.sep, "_")
                yield [path(value, safe(name)) for name, value in workload.items()], said
            else:
                yield [path(value, f"frame-{place}") for place, value in enumerate(workload, 1)], said


def has_frames(workload: Any) -> bool:
    """Whether a value is a table of jobs, or several values among which there is one."""
    if is_workload(workload):
        return True
    if isinstance(workload, Mapping):
        return True
    return isinstance(workload, (list, tuple)) and any(is_workload(each) for each in workload)
