"""Policies that are written in Python."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol, Union, runtime_checkable

from ._busbar import Change, Drop, Point, Start, View, WakeAt
from ._words import is_many, text

#: What ``decide`` may return, one after the other: a job, a job with a point, or a decision.
Decision = Union[int, "tuple[int, Point]", Start, Change, Drop, WakeAt]


class Policy:
    """A policy of your own: a class with ``decide(view)``.

    Deriving from this class is not necessary; it shows editors what there is. Give the class, or an object of it, to
    :func:`busbar.simulate` or :func:`busbar.compare` as ``policy``. Each run gets a new object of the class. An object
    is copied for each run.
    """

    #: The name in tables and reports; without it, that of the class in small letters with hyphens.
    name: str = ""
    #: What the policy does beyond starting jobs as asked: some of caps, sizes, recaps, resizes and drops, with commas
    #: between them.
    wants: str = ""
    #: The freedoms that it requires.
    needs: str = ""
    #: What it believes of times and power under caps: rated, clock, fitted-clock, measured, regression or pass.
    believes: str = ""
    #: Whether it is asked when no waiting job could start with what is free, too. Policies that change running jobs or
    #: give jobs up always are.
    asks_always: bool = False

    def decide(self, view: View) -> Iterable[Decision] | None:
        """Looks at the present and returns decisions, which are carried out in their order.

        The ledger refuses a decision that is wrong: ``Simulation.refused`` names it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no decide(self, view), which a policy needs")


@runtime_checkable
class Decides(Protocol):
    """Anything with ``decide(view)``."""

    def decide(self, view: View) -> Iterable[Decision] | None: ...


#: A policy by its name, a class with ``decide(view)``, or an object of such a class.
AnyPolicy = Union[str, "type[Decides]", Decides]

#: What the native module wants to know of a policy.
Described = "tuple[str, Callable[[], Any], str, str, str, bool]"


def name_of(policy: object) -> str:
    """The name of a policy: what it says, or its class's name in small letters with hyphens."""
    said = getattr(policy, "name", "")
    if said:
        return str(said)
    cls = policy if inspect.isclass(policy) else type(policy)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", "-", cls.__name__).lower()


def listed(value: object) -> str:
    """Names as one text."""
    return (",".join(str(each) for each in value) if is_many(value) else str(value or "")) or "none"


def described(policy: Any) -> tuple[str, Callable[[], Any], str, str, str, bool]:
    """A class or an object with ``decide`` as the native module wants it."""
    if inspect.isclass(policy):
        make = policy
    else:
        import copy

        def make() -> Any:
            return copy.deepcopy(policy)

    wants, needs = (listed(getattr(policy, each, "")) for each in ("wants", "needs"))
    does_more = any(each in wants.split(",") for each in ("recaps", "resizes", "drops"))
    always = bool(getattr(policy, "asks_always", False)) or does_more
    return name_of(policy), make, wants, needs, str(getattr(policy, "believes", "") or ""), always


def registered(policy: Any) -> tuple[list[str] | None, list[Any]]:
    """The names of policies as options, and what is to be registered for them."""
    if policy is None:
        return None, []
    each = list(policy) if is_many(policy) and not hasattr(policy, "decide") else [policy]
    names, own = [], []
    for one in each:
        if isinstance(one, str):
            names.append(one)
        elif callable(getattr(one, "decide", None)):
            own.append(described(one))
            names.append(own[-1][0])
        else:
            raise TypeError(
                f"a policy is a name, or a class or an object with decide(view); this is {text(one)!r}"
            )
    return names, own
