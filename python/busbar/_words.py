"""Keyword arguments as the words of a command line.

The words are read by the same code as those of the program, so that defaults, checks and error texts are the same.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping

from ._columns import is_frame


def text(value: object) -> str:
    """One value as it is typed."""
    if isinstance(value, datetime.datetime):
        zone = getattr(value.tzinfo, "key", None) or getattr(value.tzinfo, "zone", None)
        return value.isoformat() + (f"[{zone}]" if zone else "")
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def is_many(value: object) -> bool:
    """Whether a value stands for several."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, os.PathLike))


def words(options: Mapping[str, object], by_place: Iterable[object] = ()) -> list[str]:
    """The words of options by their names in Python, and of what is given by its place.

    None and False leave an option out, True gives it without a value, and several values give it several times.
    """
    line: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if is_frame(value):
            raise TypeError(f"{name} takes no data frame; this is {type(value).__name__}")
        if value is True:
            line.append(option)
        elif is_many(value):
            line.extend(f"{option}={text(each)}" for each in value)
        else:
            line.append(f"{option}={text(value)}")
    given = [text(value) for value in by_place if value is not None]
    return line + (["--", *given] if given else [])
