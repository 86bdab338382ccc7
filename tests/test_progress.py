"""Progress with a clock of its own: which lines appear when, and what a terminal sees."""

import io
import time

import pytest
from rich.console import Console

from temporalzoom.progress import Progress, track
from temporalzoom.training.progress import TrainingProgress


class Clock:
    """Seconds that pass only when a test says so."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def default_clock(monkeypatch, clock) -> Clock:
    """Taken by every progress that is given no other."""
    defaults = Progress.__init__.__kwdefaults__
    monkeypatch.setattr(Progress.__init__, "__kwdefaults__", defaults | {"clock": clock})
    return clock


def consoles(is_terminal: bool) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, force_terminal=is_terminal, width=120, _environ={"TERM": "xterm"}), file


def run(clock: Clock, seconds: float, count: int, **options) -> list[str]:
    """The lines of a work of `count` frames that each take `seconds`."""
    console, file = consoles(False)
    with Progress(console, "extracting", count, "frames", clock=clock, **options) as progress:
        for _ in range(count):
            clock.now += seconds
            progress.advance()
    return file.getvalue().splitlines()


def test_a_line_every_ten_seconds_and_one_at_the_end(clock):
    assert run(clock, 0.25, 130) == [
        "extracting: 40/130 frames, 30 %, 0:22 left",
        "extracting: 80/130 frames, 61 %, 0:12 left",
        "extracting: 120/130 frames, 92 %, 0:02 left",
        "extracting: 130/130 frames, 100 %, took 0:32",
    ]


def test_what_is_quick_shows_nothing(clock):
    assert run(clock, 0.019, 100) == []
    assert run(clock, 0.021, 100) == ["extracting: 100/100 frames, 100 %, took 0:02"]


def test_long_steps_have_a_line_each(clock):
    assert run(clock, 3600, 3) == [
        "extracting: 1/3 frames, 33 %, 2:00:00 left",
        "extracting: 2/3 frames, 66 %, 1:00:00 left",
        "extracting: 3/3 frames, 100 %, took 3:00:00",
    ]


def test_the_rarer_of_seconds_and_share(clock):
    assert len(run(clock, 1, 1000, line_share=0.1)) == 10
    assert len(run(clock, 0.01, 10000, line_share=0.1)) == 10
    assert len(run(clock, 0.01, 5000, line_share=0.1)) == 5


def test_an_unknown_total_has_no_time_left(clock):
    console, file = consoles(False)
    with Progress(console, "counting", clock=clock) as progress:
        clock.now += 15
        progress.advance(7)
    assert file.getvalue().splitlines()[0] == "counting: 7"


def test_what_was_done_before_does_not_count_as_speed(clock):
    console, file = consoles(False)
    with Progress(console, "tzn", 100, "steps", completed=50, clock=clock) as progress:
        clock.now += 10
        progress.update(60, "loss 0.5")
    assert file.getvalue().splitlines()[0] == "tzn: 60/100 steps, 60 %, 0:40 left, loss 0.5"


def test_an_estimate_that_was_wrong_ends_at_all_of_it(clock):
    console, file = consoles(False)
    with Progress(console, "extracting", 100.4, "frames", clock=clock) as progress:
        clock.now += 60
        progress.update(98)
        progress.update(99)
    assert file.getvalue().splitlines()[-1] == "extracting: 99/99 frames, 100 %, took 1:00"


def test_what_fails_does_not_end_with_success(clock):
    console, file = consoles(False)
    with pytest.raises(ValueError), Progress(console, "reading", 10, clock=clock):
        clock.now += 60
        raise ValueError
    assert file.getvalue() == ""


@pytest.mark.parametrize("is_terminal", [True, False])
def test_user_text_is_no_markup(clock, is_terminal):
    console, file = consoles(is_terminal)
    with Progress(console, "[red]{x}[/nonsense]", 2, patience=0, clock=clock) as progress:
        clock.now += 60
        progress.advance(1, "[bold]{note}")
    assert "[red]{x}[/nonsense]" in file.getvalue() and "[bold]{note}" in file.getvalue()


def test_a_terminal_sees_a_bar_with_the_time_left(clock):
    console, file = consoles(True)
    with Progress(console, "extracting", 800, "frames", patience=0, clock=clock) as progress:
        for _ in range(10):
            clock.now += 1
            progress.advance(40)
        progress._bar.refresh()
        assert "400/800 frames" in file.getvalue() and "50%" in file.getvalue() and "0:00:10" in file.getvalue()
    assert "800/800" not in file.getvalue()


def test_a_terminal_sees_nothing_of_what_is_quick():
    console, file = consoles(True)
    assert list(track(range(5), "reading", console)) == [0, 1, 2, 3, 4]
    assert file.getvalue() == ""


def test_a_bar_appears_even_before_the_first_step_is_done():
    console, file = consoles(True)
    with Progress(console, "reading", 5, patience=0.05):
        deadline = time.monotonic() + 10
        while "0/5" not in file.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "0/5" in file.getvalue()


def test_a_dumb_terminal_sees_lines(clock):
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=120, _environ={"TERM": "dumb"})
    with Progress(console, "reading", 5, clock=clock) as progress:
        clock.now += 10
        progress.advance()
    assert file.getvalue().startswith("reading: 1/5, 20 %, 0:40 left\n")


def test_track_counts_what_it_gives(default_clock):
    console, file = consoles(False)
    for _ in track({"a": 1, "b": 2}.items(), "reading", console, "recordings"):
        default_clock.now += 10
    assert file.getvalue().splitlines() == [
        "reading: 1/2 recordings, 50 %, 0:10 left",
        "reading: 2/2 recordings, 100 %, took 0:20",
    ]
    assert list(track(iter("ab"), "reading", None)) == ["a", "b"]


# Training


def test_training_says_how_long_it_still_takes(default_clock):
    console, file = consoles(False)
    with TrainingProgress("tzn", 0, 1000, console) as progress:
        for step in range(1, 1001):
            default_clock.now += 0.5
            progress.update(step, {"loss": 2.0, "box_variance": 1.0})
    lines = file.getvalue().splitlines()
    assert lines[0] == "tzn: 100/1000 steps, 10 %, 7:30 left, loss 2.000"
    assert lines[-1] == "tzn: 1000/1000 steps, 100 %, took 8:20, loss 2.000" and len(lines) == 10


def test_even_a_quick_training_shows_its_last_losses():
    console, file = consoles(False)
    with TrainingProgress("tzn", 0, 3, console) as progress:
        for step in range(1, 4):
            progress.update(step, {"loss": 2.0})
    assert file.getvalue() == "tzn: 3/3 steps, 100 %, took 0:00, loss 2.000\n"
