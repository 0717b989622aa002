"""Columns of data frames as arrays, whichever library they are of."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class Column:
    """A column: numbers, in which nan is missing, dates in UTC, in which NaT is missing, or objects, in which None is.

    Lengths of time are numbers of seconds.
    """

    values: Any
    #: The time zone of dates that have one.
    zone: str | None = None

    @property
    def has_dates(self) -> bool:
        return self.values.dtype.kind == "M"

    @property
    def has_numbers(self) -> bool:
        return self.values.dtype.kind in "iuf"


def is_frame(value: object) -> bool:
    """Whether a value has columns."""
    names = ("columns", "column_names", "__arrow_c_stream__", "__dataframe__")
    # The class is asked: a query would find its columns by running.
    return any(hasattr(type(value), name) for name in names)


def columns_of(frame: Any) -> dict[str, Any]:
    """The columns of a frame by their names, as its library has them."""
    if isinstance(frame, Mapping):
        single = [name for name, column in frame.items() if isinstance(column, str) or not hasattr(column, "__len__")]
        if single:
            raise TypeError(
                f"'{single[0]}' is one value, and a column has one for each job; of a list of rows make a data frame first"
            )
        return {str(name): column for name, column in frame.items()}
    # Some frames are queries, and have no rows before they are asked for them.
    if hasattr(frame, "collect"):
        return columns_of(frame.collect())
    names = getattr(frame, "column_names", None)
    names = getattr(frame, "columns", None) if names is None else names
    if isinstance(names, Iterable) and hasattr(frame, "__getitem__"):
        return {str(name): frame[name] for name in names}
    return columns_of(_in_memory(frame))


def _in_memory(frame: Any) -> Any:
    """A frame of some library as one whose columns can be taken by their names."""
    try:
        if not hasattr(frame, "__arrow_c_stream__"):
            import pandas

            return pandas.api.interchange.from_dataframe(frame)
        try:
            import pyarrow

            return pyarrow.table(frame)
        except ImportError:
            import polars

            return polars.DataFrame(frame)
    except ValueError as error:
        # One column alone has Arrow's interface, too.
        raise TypeError(f"a {type(frame).__name__} has no columns with names; give a data frame") from error


def read(column: Any) -> Column:
    """A column of a frame, or a list."""
    import numpy

    zone = _zone_of(column)
    if zone is not None:
        return Column(numpy.asarray(column, dtype="datetime64[ns]"), zone)
    array = numpy.asarray(column)
    if array.dtype.kind == "O":
        return _of_objects(array.tolist())
    if array.dtype.kind == "M":
        return Column(array.astype("datetime64[ns]"))
    if array.dtype.kind == "m":
        seconds = array.astype("timedelta64[ns]").astype(numpy.int64) / 1e9
        return Column(numpy.where(numpy.isnat(array), numpy.nan, seconds))
    if array.dtype.kind in "iuf":
        return Column(array)
    return Column(array.astype(object))


def _of_objects(values: list[Any]) -> Column:
    """A column of objects of Python: dates, lengths of time, numbers, or anything else."""
    import numpy

    values = [None if _is_missing(value) else value for value in values]
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, datetime.date) for value in known):
        return _of_dates([_with_time(value) for value in values])
    if known and all(isinstance(value, datetime.timedelta) for value in known):
        values = [None if value is None else value.total_seconds() for value in values]
    elif not all(_is_number(value) for value in known):
        array = numpy.empty(len(values), dtype=object)
        array[:] = values
        return Column(array)
    return Column(numpy.asarray([numpy.nan if value is None else float(value) for value in values]))


def _of_dates(values: list[datetime.datetime | None]) -> Column:
    import numpy

    zones = {value.tzinfo for value in values if value is not None}
    if None in zones and len(zones) > 1:
        raise ValueError("some dates have a time zone and some have none")
    utc = datetime.timezone.utc
    local = [
        value if value is None or value.tzinfo is None else value.astimezone(utc).replace(tzinfo=None)
        for value in values
    ]
    zone = None if None in zones else _zone_name(next(iter(zones)))
    return Column(numpy.asarray(local, dtype="datetime64[us]").astype("datetime64[ns]"), zone)


def _with_time(value: datetime.date | None) -> datetime.datetime | None:
    """A date with a time: a day begins at midnight."""
    if value is None or isinstance(value, datetime.datetime):
        return value
    return datetime.datetime.combine(value, datetime.time())


def _is_missing(value: object) -> bool:
    """Whether a value is None, or what a library has for it: nan, NaT, NA."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _is_number(value: object) -> bool:
    return not isinstance(value, (bool, str, bytes)) and hasattr(value, "__float__")


def _zone_of(column: Any) -> str | None:
    """The time zone of a column of dates, if its library says that it has one."""
    kind = getattr(column, "dtype", None) or getattr(column, "type", None)
    kind = getattr(kind, "pyarrow_dtype", kind)
    zone = getattr(kind, "tz", None) or getattr(kind, "time_zone", None)
    return None if zone is None else _zone_name(zone)


def _zone_name(zone: object) -> str:
    """The name of a time zone. A zone that is an offset alone has none, and its dates are those of UTC."""
    name = str(getattr(zone, "key", None) or getattr(zone, "zone", None) or zone)
    return name if "/" in name else "UTC"
