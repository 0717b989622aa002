"""Accounting records for the import: files as they are, and data frames of records as files."""

from __future__ import annotations

import contextlib
import csv
import datetime
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from ._columns import columns_of, is_frame
from ._errors import without_paths
from ._words import is_many

#: What the names of an import are about, and the columns of jobs that have their numbers.
COLUMNS = {"user": "user", "group": "group", "executable": "application"}


@contextlib.contextmanager
def with_files(records: Any, zone: Any, out: Any, names: Any) -> Iterator[tuple[list[Any], Path, Path]]:
    """The files of records, the log that is to be made of them, and the file of names. What nobody asked for is in a
    folder that is removed in the end.
    """
    with tempfile.TemporaryDirectory(prefix="busbar-") as made, as_file(records, zone) as given:
        folder = Path(made)
        files = list(given) if is_many(given) else [given]
        name = Path(os.fspath(files[0])).name.split(".")[0] if files else ""
        log = folder / f"{name or 'records'}.swf" if out is None else Path(out)
        yield files, log, folder / "names.csv" if names is None else Path(names)


@contextlib.contextmanager
def as_file(records: Any, zone: Any) -> Iterator[Any]:
    """What names files of records; a data frame of records becomes one, which is removed in the end."""
    if not is_frame(records):
        yield records
        return
    with tempfile.TemporaryDirectory(prefix="busbar-") as folder:
        path = Path(folder, "records.txt")
        write(records, path, None if zone is None else str(zone))
        with without_paths(str(path), "the data frame"):
            yield path


def write(frame: Any, path: Path, zone: str | None) -> None:
    """Writes a frame with the columns of ``sacct`` as ``sacct -P`` does."""
    columns = columns_of(frame)
    lists = [[_cell(value, zone) for value in _values(column)] for column in columns.values()]
    with path.open("w", encoding="utf-8") as out:
        out.write("|".join(columns) + "\n")
        out.writelines("|".join(row) + "\n" for row in zip(*lists))


def _values(column: Any) -> list[Any]:
    for name in ("to_list", "tolist", "to_pylist"):
        if hasattr(column, name):
            return getattr(column, name)()
    return list(column)


def _cell(value: Any, zone: str | None) -> str:
    """A value as ``sacct`` writes it. Dates with a zone are in that of the import, or in UTC."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return ""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(ZoneInfo(zone or "UTC"))
        return value.strftime("%Y-%m-%dT%H:%M:%S")
    if isinstance(value, datetime.timedelta):
        days, seconds = divmod(int(value.total_seconds()), 86_400)
        return f"{days}-{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if isinstance(value, float) and value.is_integer():
        # Whole numbers among which some are missing.
        value = int(value)
    return " ".join(str(value).replace("|", "_").split())


def names_in(path: Path) -> dict[str, list[str]]:
    """What the numbers of users, groups and executables stand for, from 1 on."""
    names: dict[str, list[str]] = {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as rows:
            for row in csv.DictReader(rows):
                if row["kind"] in COLUMNS:
                    names.setdefault(COLUMNS[row["kind"]], []).append(row["name"])
    return names
