"""Exceptions, with the texts that the program prints after ``error:``."""

import contextlib
from collections.abc import Iterator


class Error(Exception):
    """Something that Busbar was asked for did not work; the text says what and what to do about it."""


class InputError(Error, ValueError):
    """The request or a file is invalid."""


class SystemFailure(Error, OSError):
    """Something could not be read or written."""


@contextlib.contextmanager
def without_paths(path: str, instead: str) -> Iterator[None]:
    """Lets errors say something else than the path of a file that nobody but us has written."""
    try:
        yield
    except Error as error:
        raise type(error)(str(error).replace(path, instead)) from None
