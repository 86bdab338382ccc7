"""The verdict of the curve of uniform depth, from differences with a known answer."""

import pytest

from temporalzoom.experiments.data_sets import DATA_SETS, training_config
from temporalzoom.experiments.tables import layers
from temporalzoom.experiments.tables.layers import verdict


def results(*gains: float, p: float = 0.0001) -> dict:
    """Differences of so many systems to no layers, the same at all levels but twice as large at 0.9."""

    def cell(gain: float) -> dict[str, float]:
        return {"value": gain, "low": gain - 1, "high": gain + 1, "p": p}

    keys = ("0.5", "0.7", "0.8", "average")
    names = [f"uniform-{depth}+bdr - uniform-0+bdr" for depth in (1, 2, 4, 6, 9)]
    return {
        "differences": {
            name: {**{key: cell(gain) for key in keys}, "0.9": cell(2 * gain)}
            for name, gain in zip(names, gains, strict=False)
        }
    }


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (results(1.0, 3.0), "Depth pays here: uniform-2+bdr brings +6.0 @0.9 [+5.0, +7.0] over no layers."),
        (results(-1.0, 0.5), "Depth pays here: uniform-2+bdr brings +1.0 @0.9 [+0.0, +2.0] over no layers."),
        (results(-1.0, -3.0), "Depth does harm here: uniform-2+bdr brings -6.0 @0.9 [-7.0, -5.0] against no layers."),
        (results(1.0, p=0.02), "Flat: no difference to no layers is significant; the largest is uniform-1+bdr"),
    ],
)
def test_verdicts(found, words):
    (line,) = verdict(found)
    assert line.startswith(words)  # p = 0.02 five times is not significant


def test_no_verdict_about_one_system():
    assert verdict({"differences": {}}) == []


def test_all_else_is_equal():
    """The configurations differ in the name of the model, which is its depth, and in nothing else."""
    for data_set in DATA_SETS:
        configs = [training_config(data_set, None, 0, settings) for settings in layers.trainings(data_set).values()]
        assert [config.model.depth for config in configs] == list(layers.DEPTHS)
        assert all(config.bdr.enabled for config in configs)
        same = [
            config.model_copy(update={"model": config.model.model_copy(update={"name": "x"})}) for config in configs
        ]
        assert all(config == same[0] for config in same)
