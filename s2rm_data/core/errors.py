"""Errors that a user can cause or fix, each family with the exit status its command ends with. A message says what
came, what is allowed and what to do next; the command line prints it alone, without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class S2RMError(Exception):
    """Base of all errors that reach the user as one message."""

    exit_status = 1


class UsageError(S2RMError):
    """An option, argument or config value that cannot be used."""

    exit_status = 2


class UnknownNameError(UsageError, KeyError):
    """A name that is not in a store or group; a KeyError too, for code that asks by trying."""

    def __str__(self) -> str:  # not KeyError's, which quotes the message
        return Exception.__str__(self)


class DamagedStoreError(S2RMError):
    """Stored bytes that are missing or not those that were committed; the message names the object."""

    exit_status = 3


class UnreadableError(DamagedStoreError):
    """Stored bytes that the system did not give: perhaps it will another time, so nothing is replaced because of it."""

    exit_status = 6


class MissingComponentError(S2RMError):
    """An optional package or program that is not installed; the message says how to install it."""

    exit_status = 4


class ConflictError(S2RMError):
    """Something in the way: another writer, or data already there with other settings."""

    exit_status = 5


class DiskError(S2RMError):
    """The file system refuses: full, read-only, over quota, failing."""

    exit_status = 6


class InterruptedRunError(S2RMError):
    """Stopped by SIGINT or SIGTERM; what was committed stays."""

    exit_status = 130


class S2RMWarning(UserWarning):
    """Something a user should know although the work continues; the command line prints it as one line."""


def nearest(name: str, allowed: Iterable[str]) -> str | None:
    """The allowed name that is nearest, if any is near: the same in other case, the initials (`learning_rate`, `lr`),
    or one with at least six letters in ten the same, in order."""
    names = list(allowed)
    words = name.lower().replace("-", "_").split("_")
    initials = "".join(word[:1] for word in words) if len(words) > 1 else None
    same = [other for other in names if other.lower() in (name.lower(), initials)]
    return next(iter(same or difflib.get_close_matches(name, names, n=1, cutoff=0.6)), None)


def did_you_mean(name: str, allowed: Iterable[str], then: str = "") -> str:
    """`; did you mean 'x'? Then` if an allowed name is near, else `; then`; what follows says what is allowed."""
    near = nearest(name, allowed)
    if near is None:
        return f"; {then}" if then else ""
    return f"; did you mean {near!r}?" + (f" {then[0].upper()}{then[1:]}" if then else "")


def missing_component(package: str, extra: str, needed_for: str) -> MissingComponentError:
    missing = f"{needed_for} needs the package {package!r}, which is not installed"
    return MissingComponentError(f"{missing}; install it with: pip install 's2rm-data[{extra}]'")
