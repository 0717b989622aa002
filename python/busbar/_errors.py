"""Exceptions, with the texts that the program prints after ``error:``."""


class Error(Exception):
    """Something that Busbar was asked for did not work; the text says what and what to do about it."""


class InputError(Error, ValueError):
    """What was asked, or what a file holds, cannot be used."""


class SystemFailure(Error, OSError):
    """Something could not be read or written."""
