"""Ctrl-C and termination: an event first, KeyboardInterrupt next, and every handler back in its place."""

import signal
import subprocess
import sys
import threading

import pytest

from temporalzoom.interrupts import SIGNALS, exit_code, interruptible, stop_on_termination


@pytest.fixture(autouse=True)
def handlers_stay():
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    assert [signal.getsignal(number) for number in SIGNALS] == before


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_sets_the_event_and_the_second_raises(number):
    with pytest.raises(KeyboardInterrupt), interruptible() as interrupted:
        assert not interrupted.is_set()
        signal.raise_signal(number)
        assert interrupted.is_set()
        signal.raise_signal(SIGNALS[0])
        pytest.fail("the second signal was swallowed")


@pytest.mark.parametrize("number", SIGNALS)
def test_at_once_the_first_raises(number):
    with pytest.raises(KeyboardInterrupt), interruptible(at_once=True):
        signal.raise_signal(number)
        pytest.fail("the signal was swallowed")


def test_the_innermost_handles_it():
    with interruptible(at_once=True) as outer, interruptible() as inner:
        signal.raise_signal(signal.SIGINT)
        assert inner.is_set() and not outer.is_set()


def test_nothing_is_handled_outside_the_main_thread():
    found = []

    def run():
        with interruptible() as interrupted:
            found.append((interrupted.is_set(), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [(False, signal.getsignal(signal.SIGINT))]


def test_a_process_that_ignores_ctrl_c_from_birth_is_interruptible_all_the_same():
    code = """
import signal
from temporalzoom.interrupts import interruptible
assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
with interruptible() as interrupted:
    signal.raise_signal(signal.SIGINT)
    assert interrupted.is_set()
assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
"""
    subprocess.run(
        [sys.executable, "-c", code], check=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
    )


def test_children_of_the_tests_do_not_ignore_ctrl_c():
    """Even where the tests themselves run in the background of a script."""
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_exit_code_tells_what_ended_it(number, code):
    with pytest.raises(KeyboardInterrupt), interruptible(at_once=True):
        signal.raise_signal(number)
    assert exit_code() == code


def test_termination_is_a_keyboard_interrupt_inside_of_the_command():
    with pytest.raises(KeyboardInterrupt), stop_on_termination():
        signal.raise_signal(signal.SIGTERM)
    assert exit_code() == 143


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_demo_that_is_stopped_says_so_in_one_line(tmp_path, number, code):
    command = [sys.executable, "-m", "temporalzoom", "demo", "--out", str(tmp_path / "demo")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "training" in process.stderr.readline()
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == code and "Traceback" not in err
    assert err.strip().splitlines()[-1].startswith("stopped")
