"""What a user's module imports: the decorators, the delivery that a resolver gets, the error.

The names and meanings follow the document resolver services of webMethods Integration Server
(specifications pub.publish:documentResolverSpec and pub.jms:documentResolverSpec).
"""

from __future__ import annotations

import atexit
import contextlib
import inspect
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
Function = TypeVar("Function", bound=Callable[..., Any])

NAME = re.compile(r"[A-Za-z_][\w.-]*")


class TransientError(Exception):
    """Raise it if the cause will go away: a database that is down, a time-out.

    The trigger's settings decide what follows. Either the delivery waits and the trigger is
    suspended (`suspend_on_preprocessing_error`, or `on_retry_failure` suspend), or the delivery is
    IN_DOUBT.
    """


class RegistrationError(Exception):
    """A module of this folder cannot be used; the message has the remedy."""


class HasDocument:
    """What Delivery and Work have in common: a document."""

    document: str | None

    @cached_property
    def document_json(self) -> Any:
        """The document parsed as JSON, also behind a byte order mark; None if it is not JSON."""
        if self.document is None:
            return None
        try:
            return json.loads(self.document.lstrip("\ufeff"))
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True)
class Delivery(HasDocument):
    """What a resolver is asked about.

    document_type_name: the type that trigger conditions name.
    redelivery_count: as the transport gives it, one higher for a recovery; None without one.
    uuid, track_id, event_id: the ids it came with (JMS: uuid property and JMSMessageID).
    document: its text, or the text that it was resubmitted with.
    transport: one of seeds/transports.csv.
    received_at: when it was taken from the transport, UTC.
    """

    document_type_name: str | None
    redelivery_count: int | None
    uuid: str | None
    track_id: str | None
    event_id: str | None
    document: str | None
    transport: str
    trigger_name: str
    received_at: datetime


@dataclass(frozen=True)
class Hook:
    """A registered function."""

    kind: str
    name: str
    function: Callable[..., Any]
    # pandas or pyarrow if the function takes a table of deliveries, None if it takes one delivery
    table: str | None = None


class Registry:
    """Every function that the modules of this folder have registered, by kind and name."""

    def __init__(self) -> None:
        self._hooks: dict[tuple[str, str], Hook] = {}

    def add(self, hook: Hook) -> None:
        """Keep a function; raises RegistrationError if its name is taken or unusable."""
        if not isinstance(hook.name, str) or not NAME.fullmatch(hook.name):
            raise RegistrationError(
                f"{hook.kind} {hook.name!r} cannot be named so: use letters, digits, _ . and -"
            )
        taken = self._hooks.get((hook.kind, hook.name))
        if taken is not None:
            raise RegistrationError(
                f"{hook.kind} {hook.name} is registered twice, by {taken.function.__module__} and "
                f"by {hook.function.__module__}: give one of them another name"
            )
        self._hooks[hook.kind, hook.name] = hook

    def get(self, kind: str, name: str) -> Hook:
        """The function registered under a name; raises KeyError if there is none."""
        return self._hooks[kind, name]

    def hooks(self) -> list[tuple[str, str]]:
        """Kind and name of every function."""
        return [*self._hooks]

    def names(self, kind: str) -> list[str]:
        """The names registered under a kind, sorted."""
        return sorted(name for of_kind, name in self._hooks if of_kind == kind)


registry = Registry()


def resolver(name: str) -> Callable[[Function], Function]:
    """Register a function that settles what count and history cannot.

    It takes one `Delivery` and returns "NEW", "DUPLICATE" or "IN_DOUBT", or that and a message of
    up to 1,000 characters. If its argument is annotated as a pandas.DataFrame or a pyarrow.Table,
    it takes a table with a column for each attribute of Delivery. It then returns a table of as
    many rows in the same order, with a column `status` and, if you like, `message`.
    """

    def register(function: Function) -> Function:
        argument = _only_argument("resolver", name, function)
        registry.add(Hook("resolver", name, function, _table_of(argument.annotation)))
        return function

    return register


def resource_monitor(name: str) -> Callable[[Function], Function]:
    """Register a function without arguments that returns whether a resource is available again.

    If an error has suspended a trigger that names it in `resource_monitor`, the first run in which
    it returns True resumes the trigger.
    """

    def register(function: Function) -> Function:
        if _required(function):
            raise RegistrationError(
                f"resource_monitor {name} ({_place(function)}) must take no argument"
            )
        registry.add(Hook("resource_monitor", name, function))
        return function

    return register


def _required(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _only_argument(kind: str, name: str, function: Callable[..., Any]) -> inspect.Parameter:
    required = _required(function)
    if len(required) != 1 or required[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise RegistrationError(
            f"{kind} {name} ({_place(function)}) must take exactly one argument, the delivery; "
            f"it takes {len(required)}"
        )
    others = (
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
    )
    if any(is_other(function) for is_other in others):
        raise RegistrationError(
            f"{kind} {name} ({_place(function)}) must be a plain function that returns its answer"
        )
    return required[0]


def _table_of(annotation: Any) -> str | None:
    """The library whose table an annotation names; compared by name, to import neither library."""
    if not isinstance(annotation, str):
        module = getattr(annotation, "__module__", "")
        annotation = f"{module}.{getattr(annotation, '__qualname__', '')}"
    if re.fullmatch(r"(pandas|pd)\b.*\.DataFrame", annotation):
        return "pandas"
    if re.fullmatch(r"(pyarrow|pa)\b.*\.Table", annotation):
        return "pyarrow"
    return None


def _place(function: Callable[..., Any]) -> str:
    code = inspect.unwrap(function).__code__
    return f"{function.__module__}, line {code.co_firstlineno}"


class once_per_worker(Generic[Value]):  # noqa: N801 (a decorator)
    """Make something once per worker process, such as a connection, and close it at the end.

    Decorate a generator function that yields it; the code after the yield closes it. A call returns
    what was yielded. The thread that made it closes it once no resolver was called for some
    seconds. A call that overruns its time limit is abandoned with what it holds, and the next call
    makes a new one.
    """

    def __init__(self, function: Callable[[], Iterator[Value]]) -> None:
        if not inspect.isgeneratorfunction(function) or _required(function):
            raise RegistrationError(
                f"once_per_worker {function.__name__} ({_place(function)}) must be a function "
                "without arguments that yields what it makes"
            )
        self._function = function
        self.__doc__ = function.__doc__

    def __call__(self) -> Value:
        made = _of_thread.__dict__.setdefault("made", {})
        if self not in made:
            generator = self._function()
            made[self] = (next(generator), generator)
        return made[self][0]

    def forget(self) -> None:
        """Close it now, such as a broken connection; the next call makes a new one."""
        _, generator = _of_thread.__dict__.get("made", {}).pop(self, (None, None))
        _close(generator)


_of_thread = threading.local()


@atexit.register
def close_resources() -> None:
    """Close what this thread has made, latest first; an error does not stop the others."""
    made = _of_thread.__dict__.get("made", {})
    while made:
        _, (_, generator) = made.popitem()
        _close(generator)


def _close(generator: Iterator[Any] | None) -> None:
    with contextlib.suppress(Exception):
        next(generator or iter(()), None)
