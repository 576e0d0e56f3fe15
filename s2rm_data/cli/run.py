"""How every command starts and ends: signals and standard streams that cannot break it, and for what a user can fix one
message and an exit status, never a traceback."""

import codecs
import contextlib
import io
import json
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from s2rm_data.core.errors import DiskError, InterruptedRunError, S2RMError, S2RMWarning, UsageError, nearest
from s2rm_data.core.signals import begin_program, end_at_once, interrupt_message, raise_from_now_on, was_interrupted

EXIT_STATUSES = """\b
Exit status:
  0    done
  1    something else failed; the message says what
  2    wrong option or argument
  3    damaged or unfinished store; the message names the object
  4    a component is missing; the message says how to install it
  5    another process is writing, or other data are in the way
  6    the disk is full, read-only or failing; a bucket or a cluster cannot be reached
  130  interrupted (SIGINT or SIGTERM); what was committed is safe"""


def run(command: click.Command, name: str) -> NoReturn:
    """Run a command as a program: never returns."""
    # Threads of torch that wait for each other must sleep, not spin: on a busy machine two that spin take ten times
    # the processor time of one. OpenMP reads this when torch is imported, which no command has done yet.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    begin_program(name)
    _open_streams()
    _print_warnings(name)
    raise_from_now_on()
    output = sys.stdout
    try:
        status = command.main(prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except S2RMError as error:
        _fail(f"{name}: {error}", error.exit_status)
    except click.exceptions.NoArgsIsHelpError as error:
        _fail(error.format_message(), 2)
    except click.ClickException as error:
        usage = f"{error.ctx.get_usage()}\n" if isinstance(error, click.UsageError) and error.ctx else ""
        _fail(f"{usage}{name}: {_message(error)}", 2)
    except BrokenPipeError:
        _close_pipe()
    except SystemExit as leaving:
        if leaving.code == 1 and sys.stdout is not output:  # click wraps a pipe that was closed, as by `| head`
            _close_pipe()
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again unless it is understood
        _fail_unexpectedly(name, error)
    end_at_once()
    sys.exit(status if isinstance(status, int) else 0)


def _message(error: click.ClickException) -> str:
    """click's own message, which suggests for a wrong option only what is near it: dashes are not likeness."""
    if not isinstance(error, click.NoSuchOption) or not error.ctx:
        return error.format_message()
    params, given = error.ctx.command.get_params(error.ctx), error.option_name.lstrip("-")
    argument = next((p.human_readable_name for p in params if isinstance(p, click.Argument) and p.name == given), None)
    if argument:
        return f"there is no option {error.option_name}; give {argument} by itself, as the usage line shows"
    known = {word.lstrip("-"): word for p in params if isinstance(p, click.Option) for word in p.opts if len(word) > 2}
    near = nearest(given, known)
    suggestion = f"; did you mean {known[near]}?" if near else f"; `{error.ctx.command_path} --help` lists the options"
    return f"there is no option {error.option_name}{suggestion}"


def _fail_unexpectedly(name: str, error: BaseException) -> NoReturn:
    if was_interrupted() or isinstance(error, KeyboardInterrupt | click.Abort):
        # Whatever the interrupt has become on its way through other people's code.
        _fail(f"{name}: {interrupt_message()}", InterruptedRunError.exit_status)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{name}: {where}{error.strerror or error}", DiskError.exit_status)
    if isinstance(error, UnicodeEncodeError) and error.encoding == "utf-8":  # only names that are not text do this
        shown = ascii(error.object if len(error.object) <= 100 else error.object[max(0, error.start - 40) :][:80])
        _fail(f"{name}: {shown} is not text (UTF-8), as it must be here; use another name", UsageError.exit_status)
    if isinstance(error, MemoryError):
        _fail(f"{name}: out of memory; use smaller sizes, fewer workers or a larger machine", S2RMError.exit_status)
    raise error


def _fail(message: str, status: int) -> NoReturn:
    end_at_once()
    click.echo(printable(message), err=True)
    try:  # what cannot be written must not change the exit status
        sys.stdout.flush()
    except OSError:
        _discard_output()
    if status == InterruptedRunError.exit_status:
        os._exit(status)  # not to wait for threads that may still be at work
    sys.exit(status)


def say_json(**fields: Any) -> None:
    click.echo(json.dumps(fields))


def aligned(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """The rows of a table as lines; `sides` has for each column "<" or ">", where its cells stand."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    form = "  ".join(f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True))
    return [form.format(*row).rstrip() for row in rows]


def printable(text: str) -> str:
    """A message without what a terminal would act upon: names of files can hold any characters."""
    return "".join(c if c.isprintable() or c == "\n" or "\ud800" <= c <= "\udfff" else ascii(c)[1:-1] for c in text)


def _close_pipe() -> NoReturn:
    """Whoever read our output has seen enough: no error."""
    end_at_once()
    _discard_output()
    sys.exit(0)


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class _Unfailing(io.FileIO):
    """Standard error that loses what cannot be written instead of stopping the work that it is about."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


def _print_warnings(name: str) -> None:
    """Print our own warnings as one line, without the place in the source."""
    usual = warnings.formatwarning

    def format_warning(message: Warning | str, category: type[Warning], *where: Any) -> str:
        ours = issubclass(category, S2RMWarning)
        return f"{name}: {printable(str(message))}\n" if ours else usual(message, category, *where)

    warnings.formatwarning = format_warning  # type: ignore[assignment]


def _open_streams() -> None:
    """Give closed standard streams a place, or the next file opened would become one of them."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # a path may hold any bytes, and the terminal may know few characters
        escapes = codecs.lookup(sys.stdout.encoding).name == "utf-8"
        with contextlib.suppress(OSError):  # the descriptor was replaced by one that cannot seek
            sys.stdout.reconfigure(errors="surrogateescape" if escapes else "backslashreplace")
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    buffer = io.BufferedWriter(_Unfailing(2, "wb", closefd=False))  # type: ignore[type-var]
    sys.stderr = io.TextIOWrapper(buffer, encoding, errors="backslashreplace", line_buffering=True)
