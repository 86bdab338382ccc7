"""Cost: FLOPs in closed form, memory and depth statistics on known numbers, latency on systems that sleep."""

import math
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from temporalzoom.metrics.cost import (
    count_flops,
    count_parameters,
    count_run,
    end_to_end,
    paper_formula,
    peak_memory,
    tau_statistics,
)
from temporalzoom.metrics.latency import LatencyResult, latency_ratio, measure_latency, threads, time_parts
from temporalzoom.models import build_model
from temporalzoom.models.attention import MIN_BLOCK
from temporalzoom.models.coarse_to_fine import REACH

INPUTS, CLASSES, WIDTH = 20, 5, 16


def features(length: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(length, INPUTS))


def network(name: str, **options: object) -> nn.Module:
    torch.manual_seed(0)
    return build_model(name, INPUTS, CLASSES, **({"width": WIDTH, "distance_channels": 2} | options)).eval()


# FLOPs


def linear(length: int, *widths: int) -> int:
    """Products of a chain of linear layers: one multiplication and one addition per weight and position."""
    return sum(2 * length * before * after for before, after in pairwise(widths))


def layer_flops(length: int, width: int, window: int, expansion: int) -> int:
    block = max(window, MIN_BLOCK)
    blocks, keys = math.ceil(length / block), block + 2 * window
    attention = 2 * (2 * blocks * block * keys * width)  # similarities, and the weighted sum of values
    return attention + linear(length, width, 3 * width) + linear(length, width, width) + linear(
        length, width, expansion * width, width
    )  # fmt: skip


def zoom_layer_flops(tokens: int, reach: int, expansion: int) -> int:
    attention = 2 * (2 * tokens * (2 * reach + 1) * WIDTH)
    return attention + linear(tokens, WIDTH, WIDTH, WIDTH) + linear(tokens, WIDTH, expansion * WIDTH, WIDTH)


def projection_flops(length: int) -> int:
    return 3 * linear(length, INPUTS, WIDTH, WIDTH)  # convolutions of size 3


def heads_flops(length: int) -> int:
    half = WIDTH // 2
    return sum(linear(length, WIDTH, half, half, outputs) for outputs in (CLASSES, 4, 4))


def test_flops_of_a_uniform_network_are_the_closed_form():
    for length in [1, 31, 32, 33, 100, 257]:
        for depth, window in [(1, 4), (3, 9), (2, 40)]:
            count = count_flops(network(f"uniform-{depth}", window=window), features(length))
            assert count.parts == {
                "projection": projection_flops(length),
                "encoder": depth * layer_flops(length, WIDTH, window, 4),
                "levels": 0,
                "heads": heads_flops(length),
            }
            assert count.total == sum(count.parts.values())


def test_flops_of_layers_on_coarser_levels_are_the_closed_form():
    for length, layers in ((1, 1), (33, 2), (257, 1)):
        count = count_flops(network("tzn", levels=4, coarse_layers=layers, expansion=3, budget=0.0), features(length))
        coarser = [-(-length // 2**number) for number in (1, 2, 3)]
        expected = sum(layers * layer_flops(n, WIDTH, REACH, 3) + linear(n, WIDTH, WIDTH) for n in coarser)
        assert count.parts["levels"] == expected


def test_flops_of_adaptive_depth_are_those_of_the_tokens_that_ran():
    layers = {"shallow_layers": 2, "deep_layers": 3, "window": 5, "deep_window": 200, "expansion": 3}
    narrow = max(WIDTH // 4, 8)
    for length, combine, zoom, context in product(
        (40, 150), ("residual", "logits", "features"), (0, 2), ("convolution", "attention")
    ):
        model = network("tzn", budget=0.2, zoom=zoom, combine=combine, context=context, pruning=True, **layers)
        count, active = count_flops(model, features(length)), math.floor(0.2 * length)
        convolution, banded = linear(length, 7 * narrow, narrow), 3 * layer_flops(length, narrow, 3, 1)
        # Without zoom, every active token sees all others: blocks of keys reach over as many entries as there are.
        deep = zoom_layer_flops(active, zoom, 3) if zoom else layer_flops(active, WIDTH, active - 1, 3)
        assert count.parts == {
            "projection": projection_flops(length),
            "shallow": 2 * layer_flops(length, WIDTH, 5, 3),
            "levels": 0,
            "deep": 3 * deep,
            "heads": heads_flops(length) + heads_flops(active),
            **({"zoom": linear(length, WIDTH, 2 * (WIDTH // 4))} if zoom else {}),
            "uncertainty": linear(length, WIDTH, narrow) + (banded if context == "attention" else convolution)
            + linear(length, narrow + 1 + WIDTH, narrow, 1),
            "depth": linear(length, WIDTH + 1 + 4, 2 * narrow, 1),
            "importance": linear(length, WIDTH, narrow, 1),
        }, (length, combine, zoom, context)  # fmt: skip
        assert count.total == sum(count.parts.values())


def test_parts_that_never_run_cost_nothing():
    count = count_flops(network("tzn", budget=0.0), features(60))
    assert count.parts["deep"] == 0 and count.parts["heads"] == heads_flops(60)
    assert count.total == sum(count.parts.values())


def test_gated_layers_cost_less_than_all_layers_everywhere():
    """tau is about one half at random weights, so that about half of the deep layers run."""
    gated = count_flops(network("tzn", tau_min=0.0, keep=1.0, combine="layers"), features(200)).parts["deep"]
    blended = count_flops(network("tzn", tau_min=0.0, keep=1.0), features(200)).parts["deep"]
    assert 0.4 * blended < gated < 0.7 * blended


def test_work_outside_of_the_parts_is_not_lost():
    class Loose(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = nn.Linear(4, 6, bias=False)
            self.idle = nn.Linear(4, 4)

        def forward(self, tokens, mask):
            return self.inside(tokens) @ torch.ones(6, 3)

    count = count_flops(Loose(), np.zeros((5, 4)))
    assert count.parts == {"inside": 2 * 5 * 4 * 6, "idle": 0, "other": 2 * 5 * 6 * 3}
    assert count.total == sum(count.parts.values())


def test_several_runs_add_up_and_leave_the_network_alone():
    model = network("uniform-1")
    tokens, mask = torch.zeros(1, 50, INPUTS), torch.ones(1, 50, dtype=torch.bool)
    before = model(tokens, mask).logits
    thrice = count_run(model, lambda: [model(tokens, mask) for _ in range(3)])
    assert thrice.total == 3 * count_flops(model, features(50)).total
    assert torch.equal(model(tokens, mask).logits, before)


def test_parameters():
    assert count_parameters(nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))) == 3 * 4 + 4 + 8


def test_paper_formula():
    assert paper_formula(146.4, 60.8, 0.16, 1.0) == pytest.approx(156.1, abs=0.05)  # the paper's own example
    assert paper_formula(10.0, 100.0, 1.0, 0.5) == 60.0
    assert paper_formula(10.0, 100.0, 0.0, 1.0) == 10.0


# Memory


def test_peak_memory_is_the_most_that_is_alive_at_once():
    before = torch.zeros(1000)

    def run() -> None:
        a = torch.empty(1_000_000)  # 4 MB
        b = torch.empty(500_000)  # 2 MB
        del a
        torch.add(b, 1.0)  # 2 MB more
        del b
        before.clone()

    assert peak_memory(run) == 6_000_000
    assert peak_memory(run) == 6_000_000  # whatever the heap keeps
    assert peak_memory(lambda: None) == 0


def test_peak_memory_sees_what_an_operation_needs_inside():
    tokens = torch.zeros(64, 1024)
    assert peak_memory(lambda: tokens.t().contiguous().sum()) >= tokens.nbytes


def test_peak_memory_of_a_network_is_linear_in_the_length():
    model = network("uniform-2")

    def peak(length: int) -> int:
        tokens, mask = torch.zeros(1, length, INPUTS), torch.ones(1, length, dtype=torch.bool)
        return peak_memory(lambda: model(tokens, mask))

    assert peak(3200) == pytest.approx(2 * peak(1600), rel=0.1)


def test_measuring_memory_says_nothing(capfd):
    peak_memory(lambda: torch.zeros(3))
    assert capfd.readouterr() == ("", "")


# How depth is spent


def test_statistics_of_a_constant_tau():
    found = tau_statistics(np.full(7, 0.3))
    assert found.mean == pytest.approx(0.3)
    assert (found.flip_rate, found.entropy) == (0.0, 0.0) and sum(found.histogram) == 1.0


def test_statistics_of_an_even_tau():
    found = tau_statistics((np.arange(20) + 0.5) / 20)
    assert found.mean == pytest.approx(0.5)
    assert found.histogram == pytest.approx([0.1] * 10)
    assert found.entropy == pytest.approx(math.log2(10))
    assert found.flip_rate == pytest.approx(1 / 19)


def test_flips_are_changes_of_the_sign_of_tau_minus_one_half():
    assert tau_statistics([0.1, 0.9, 0.1, 0.9]).flip_rate == 1.0
    assert tau_statistics([0.1, 0.4, 0.6, 0.9]).flip_rate == pytest.approx(1 / 3)
    # One half has no sign of its own.
    assert tau_statistics([0.4, 0.5, 0.6]).flip_rate == 0.5 and tau_statistics([0.4, 0.5, 0.4]).flip_rate == 0.0
    assert tau_statistics([0.5, 0.5, 0.6, 0.5]).flip_rate == 0.0
    assert tau_statistics([0.4, 0.5, 0.9, 0.5, 0.6], [True, True, False, True, True]).flip_rate == 0.0
    assert tau_statistics([0.9]).flip_rate == 0.0


def test_invalid_positions_count_for_nothing_and_keep_recordings_apart():
    found = tau_statistics([0.1, 0.2, 1.0, 0.8, 0.9], [True, True, False, True, True])
    assert found.mean == pytest.approx(0.5) and found.flip_rate == 0.0 and found.histogram[9] == 0.25
    assert tau_statistics(*end_to_end([np.array([0.1, 0.2]), np.array([0.8, 0.9])])) == found
    assert math.isnan(tau_statistics([0.1], [False]).mean)
    assert math.isnan(tau_statistics(*end_to_end([])).entropy)
    with pytest.raises(ValueError, match="one length"):
        tau_statistics([0.1, 0.2], [True])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_statistics_stay_in_their_bounds(values):
    found = tau_statistics(values)
    assert sum(found.histogram) == pytest.approx(1.0)
    assert 0 <= found.entropy <= math.log2(10) + 1e-9
    flips = sum(a != b for a, b in pairwise(value > 0.5 for value in values if value != 0.5))
    assert found.flip_rate == pytest.approx(flips / (len(values) - 1))
    mirrored = tau_statistics(values[::-1])
    assert mirrored.flip_rate == found.flip_rate and mirrored.entropy == pytest.approx(found.entropy)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40), st.floats(0, 0.3))
def test_a_dead_zone_never_adds_flips(values, band):
    steadied = [0.5 if abs(value - 0.5) <= band else value for value in values]
    assert tau_statistics(steadied).flip_rate <= tau_statistics(values).flip_rate


# Latency


def test_systems_take_turns():
    calls: list[str] = []
    systems = {name: lambda name=name: calls.append(name) for name in "abc"}
    found = measure_latency(systems, repeats=4, warmup=2)
    assert [len(result.seconds) for result in found.values()] == [4, 4, 4]
    rounds = ["".join(calls[i : i + 3]) for i in range(0, len(calls), 3)]
    assert rounds == ["abc", "bca", "cab", "abc", "bca", "cab"]


def test_latency_of_known_numbers():
    result = LatencyResult((5.0, 1.0, 2.0, 3.0, 4.0))
    assert result.median == 3.0 and result.quartiles == (2.0, 4.0)


def test_ratio_is_paired():
    """The machine is ten times slower in some rounds: the ratio does not notice."""
    slow = np.array([1, 10, 1, 1, 10, 1, 10, 1, 1, 1.0])
    ratio = latency_ratio(LatencyResult(tuple(0.5 * slow)), LatencyResult(tuple(slow)))
    assert (ratio.median, ratio.low, ratio.high) == (0.5, 0.5, 0.5)


def test_ratio_of_noisy_numbers():
    random = np.random.default_rng(1)
    system, baseline = (LatencyResult(tuple(random.lognormal(mean, 0.1, 200))) for mean in (0.0, math.log(2)))
    ratio = latency_ratio(system, baseline)
    assert ratio.low < ratio.median < ratio.high and ratio.low < 0.5 < ratio.high
    assert ratio.high - ratio.low < 0.06
    assert ratio == latency_ratio(system, baseline)  # seeded
    few = LatencyResult(system.seconds[:10]), LatencyResult(baseline.seconds[:10])
    assert latency_ratio(*few).high - latency_ratio(*few).low > ratio.high - ratio.low


def test_ratio_needs_rounds_that_pair_up():
    with pytest.raises(ValueError, match="pair up"):
        latency_ratio(LatencyResult((1.0, 2.0)), LatencyResult((1.0,)))
    with pytest.raises(ValueError, match="pair up"):
        latency_ratio(LatencyResult(()), LatencyResult(()))


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    """A clock that only `wait` moves on."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("temporalzoom.metrics.latency.time", SimpleNamespace(perf_counter=lambda: clock.now))
    return clock


class Wait(nn.Module):
    def __init__(self, clock: SimpleNamespace, seconds: float, *inside: nn.Module) -> None:
        super().__init__()
        self.clock, self.seconds, self.inside = clock, seconds, nn.ModuleList(inside)

    def forward(self) -> None:
        self.clock.now += self.seconds
        for module in self.inside:
            module()


def test_time_by_part(clock):
    """Parts are found however they are entered, calls inside of calls count once, the rest is `other`."""

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.nested = Wait(clock, 1.0, Wait(clock, 2.0))
            self.stack = nn.Sequential(Wait(clock, 4.0), Wait(clock, 8.0))
            self.idle = Wait(clock, 16.0)

        def forward(self) -> None:
            self.nested()
            self.nested.inside[0]()
            for part in self.stack:  # never through the stack itself
                part()
            clock.now += 32.0

    model = Whole()
    found = time_parts(model, model, repeats=3, warmup=1)
    assert found == {"nested": 1.0 + 2.0 + 2.0, "stack": 12.0, "idle": 0.0, "other": 32.0}
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_rounds_of_the_warm_up_do_not_count(clock):
    waits = iter([100.0, 1.0, 3.0, 2.0])

    def run() -> None:
        clock.now += next(waits)

    assert measure_latency({"a": run}, repeats=3, warmup=1)["a"].seconds == (1.0, 3.0, 2.0)


def test_threads_are_given_back():
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError), threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise RuntimeError
    assert torch.get_num_threads() == before
