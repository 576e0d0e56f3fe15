"""Signals at the two ends of a program's life, and in a loop that looks at a flag."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from patience import finish

from s2rm_data.core.signals import Interrupt


def test_a_signal_while_python_takes_itself_apart_does_not_change_the_status() -> None:
    code = (
        "import os, signal, sys\n"
        "from s2rm_data.core.signals import begin_program\n"
        "class Last:\n"
        "    def __del__(self, kill=os.kill, pid=os.getpid(), numbers=(signal.SIGTERM, signal.SIGINT)):\n"
        "        for number in numbers: kill(pid, number)\n"
        "begin_program('test')\n"
        "sys.modules['last'] = Last()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_signal_that_nobody_acted_upon_takes_effect_when_the_loop_is_left() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.asked
    with pytest.raises(ZeroDivisionError), Interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        raise ZeroDivisionError


def test_a_burst_is_one_interrupt() -> None:
    with pytest.raises(RuntimeError, match="stopped"), Interrupt() as interrupt:
        for _ in range(20):
            os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.asked
        raise RuntimeError("stopped")


def interrupted_program(work: str) -> tuple[int, str]:
    code = (
        "import os, signal, time\n"
        "from s2rm_data.core import signals as module\n"
        "def send(): os.kill(os.getpid(), signal.SIGTERM)\n"
        "module.begin_program('test')\n"
        "module.raise_from_now_on()\n"
        f"{work}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_the_advice_on_how_to_resume_is_given_however_a_signal_ends_the_program() -> None:
    """A machine that is busy can spread a burst over more than BURST_SECONDS, so that its end means a second wish."""
    status, err = interrupted_program(
        "module.BURST_SECONDS = 0.01\n"
        "with module.Interrupt('Run it again'):\n"
        "    send(); time.sleep(0.1); send()\n"
    )  # fmt: skip
    assert (status, err) == (130, "test: interrupted; everything committed so far is safe. Run it again\n")


def test_a_burst_that_outlasts_the_block_does_not_disturb_what_follows() -> None:
    """Signals come at the moment at which the handlers from before are back."""
    status, err = interrupted_program(
        "put = signal.signal\n"
        "def put_and_send(*words):\n"
        "    found = put(*words); send(); return found\n"
        "try:\n"
        "    with module.Interrupt():\n"
        "        send(); signal.signal = put_and_send\n"
        "        raise ZeroDivisionError\n"
        "except ZeroDivisionError:\n"
        "    signal.signal = put\n"
        "    module.end_at_once()\n"
    )  # fmt: skip
    assert (status, err) == (0, "")


@pytest.mark.parametrize("handled_first", [False, True])
@pytest.mark.parametrize("stuck", [True, False])
def test_a_signal_ends_a_program_that_is_stuck_in_a_library_but_not_one_that_handles_it(
    stuck: bool, handled_first: bool
) -> None:
    """A lock that is taken twice stands for torch's waiting for a process that is gone: no signal gets through."""
    work = "lock(mutex); lock(mutex)" if stuck else "[time.sleep(0.1) for _ in range(15)]; print(interrupt.asked)"
    code = (
        "import ctypes, time\n"
        "from s2rm_data.core import signals as module\n"
        "module.STUCK_SECONDS, module.BURST_SECONDS = 0.3, 0.2\n"
        "module.begin_program('test')\n"
        "lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(128)\n"
        "with module.EndsWhenStuck():\n"
        "    interrupt = module.Interrupt().__enter__()\n"
        "    print('ready', flush=True)\n"
        f"    time.sleep({0.5 if handled_first else 0})\n"
        f"    {work}\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        try:
            said, _ = finish(process)
        finally:
            process.kill()
    assert (process.returncode, said) == ((130, "") if stuck else (0, "True\n"))
