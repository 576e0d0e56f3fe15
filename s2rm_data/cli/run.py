"""How every command ends: one message and an exit status for what a user can mend, never a traceback for it."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import click

from s2rm_data.errors import DiskError, InterruptedRunError, S2RMError

EXIT_STATUSES = """\b
Exit status:
  0    done
  2    wrong option or argument
  3    damaged or unfinished store; the message names the object
  4    a component is missing; the message says how to install it
  5    another process is writing, or other data are in the way
  6    the disk is full, read-only or failing
  130  interrupted (SIGINT or SIGTERM); what was committed is safe"""


def run(command: click.Command, name: str) -> NoReturn:
    """Run a command as a program: never returns."""
    signal.signal(signal.SIGTERM, _interrupt)
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
        _fail(f"{usage}{name}: {error.format_message()}", 2)
    except (KeyboardInterrupt, click.Abort):
        _fail(f"{name}: interrupted; everything committed so far is safe", InterruptedRunError.exit_status)
    except BrokenPipeError:
        _close_pipe()
    except SystemExit as leaving:
        if leaving.code == 1 and sys.stdout is not output:  # click wraps a pipe that was closed, as by `| head`
            _close_pipe()
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{name}: {where}{error.strerror or error}", DiskError.exit_status)
    sys.exit(status if isinstance(status, int) else 0)


def _close_pipe() -> NoReturn:
    """Whoever read our output has seen enough: no error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _fail(message: str, status: int) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(status)
