"""Benchmarks on real recordings: statistics of predictions with a known answer, recipes, a small run."""

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml
from rich.console import Console

from temporalzoom.config import load_config
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.experiments.real_data import bench_config, costs, differences, levels, run_bench
from temporalzoom.experiments.real_data_tables import markdown, tables
from temporalzoom.experiments.retrofit import added_lines, code_lines
from temporalzoom.segments import Segments
from temporalzoom.workflows.recipes import BENCHMARKS, DETECTORS, OURS, RETROFIT, SYSTEMS

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
TRUTH = {f"r{i}": Segments([1.0, 5.0], [3.0, 9.0], ["run", "jump"]) for i in range(8)}
EXACT = {name: Segments(s.starts, s.ends, s.labels, [0.9, 0.8]) for name, s in TRUTH.items()}
LATE = {name: Segments(s.starts + 0.5, s.ends + 0.5, s.labels, [0.9, 0.8]) for name, s in TRUTH.items()}  # tIoU .6, .78


def test_levels_of_predictions_with_a_known_answer():
    exact, late = levels(TRUTH, [EXACT, EXACT], 200), levels(TRUTH, [LATE, LATE], 200)
    assert exact["average"] == [100.0, 100.0, 100.0]
    assert late["mAP"]["0.6"] == [100.0] * 3 and late["mAP"]["0.7"] == [50.0] * 3 and late["mAP"]["0.9"] == [0.0] * 3
    assert late["average"] == pytest.approx([90.0] * 3)
    mixed = levels(TRUTH, [EXACT, LATE], 2000)
    assert mixed["mAP"]["0.9"][0] == 50.0 and mixed["mAP"]["0.9"][1:] == [
        0.0,
        100.0,
    ]  # seeds differ: the interval says so


def test_differences_are_paired_and_corrected_over_the_table():
    found = differences(TRUTH, {"uniform-6": [LATE], "uniform-6+bdr": [EXACT], "tzn": [EXACT]}, OURS.comparisons, 500)
    assert set(found) == {"uniform-6+bdr - uniform-6", "tzn - uniform-6", "tzn - uniform-6+bdr"}
    gain = found["tzn - uniform-6"]["0.9"]
    assert (gain["value"], gain["low"], gain["high"]) == (100.0, 100.0, 100.0)
    assert gain["p"] < gain["p_holm"] < 0.2 and found["tzn - uniform-6+bdr"]["0.9"]["p_holm"] == 1.0
    assert set(differences(TRUTH, {"tzn": [EXACT], "uniform-6": [LATE]}, OURS.comparisons, 50)) == {"tzn - uniform-6"}


def test_costs_are_ratios_seed_by_seed():
    runs = [{"flops": f, "parameters": 7, "training_seconds": 3.0, "localization_seconds": 1.0} for f in (2e9, 4e9)]
    base = [{"flops": 4e9}, {"flops": 5e9}]
    assert costs(runs, base)["flops_ratio"] == pytest.approx([0.65, 0.5, 0.8])
    assert costs(runs, None)["flops_ratio"] is None and costs(runs, base)["gflops"] == 3.0


@pytest.mark.parametrize("data_set", ["sbhar", "sbhar-stem", "tug", "rats"])
@pytest.mark.parametrize(("system", "ending"), [("uniform-6+bdr", ""), ("tzn", "_tzn")])
def test_the_files_hold_the_same_recipes(data_set, system, ending):
    """`tzoom train configs/sbhar_tzn.yaml` trains what the benchmark trains."""
    file = CONFIGS / f"{data_set}{ending}.yaml".replace("-", "_")
    stored = load_config(file)
    root = stored.data.root or stored.data.annotations.parent
    assert stored == bench_config(data_set, system, 0, root)
    assert file.read_text().startswith(f"# tzoom train configs/{file.name}")


def test_on_zoombench_all_seeds_are_tested_on_the_same_sequences():
    """Tables compare the predictions of all seeds with one truth."""
    first, second = (
        load_data(config.data, config.seed)
        for config in (bench_config("zoombench", "tzn", seed, None, ["data.zoombench.sequences=2"]) for seed in (0, 1))
    )
    for one, other in ((first.train, second.train), (first.test, second.test)):
        assert len(one.samples) == len(other.samples)
        assert all(np.array_equal(a.features, b.features) for a, b in zip(one.samples, other.samples, strict=True))


def test_tables_fit_the_terminal_whole():
    levels = {"mAP": {t: [97.1, 93.4, 99.4] for t in ("0.5", "0.7", "0.8", "0.9")}, "average": [95.7, 91.8, 98.4]}
    costs = {"flops_ratio": [0.46, 0.45, 0.47], "latency_ratio": [0.69, 0.6, 0.7], "parameters": 1_380_000}
    costs |= {"training_seconds": 455.7, "localization_seconds": 1.2}
    cell = {"value": 3.2, "low": -0.4, "high": 17.1, "p": 0.01, "p_holm": 0.04}
    results = {
        "data_set": "sbhar",
        "seeds": [0, 1],
        "test_recordings": 19,
        "test_instances": 365,
        "systems": {"uniform-6+bdr": levels | costs},
        "differences": {"uniform-6+bdr - uniform-6": dict.fromkeys(("0.5", "0.7", "0.8", "0.9", "average"), cell)},
    }
    console = Console(width=80, file=io.StringIO())
    for table in tables(results):
        console.print(table)
    text = console.file.getvalue()
    assert "…" not in text and "[93.4, 99.4]" in text and "[-0.4, +17.1]" in text and "+3.2 *" in text
    for whole in ("uniform-6+bdr", "0.46x", "0.69x", "1.4 M", "456", "1.2"):
        assert whole in text
    assert "+3.2 [-0.4, +17.1] \\*" in markdown(results)


def test_unknown_names_are_answered_with_the_known(tmp_path):
    with pytest.raises(InputError, match=r"'sbahr'.*sbhar, sbhar-stem, tug, rats"):
        bench_config("sbahr", "tzn", 0, tmp_path)
    with pytest.raises(InputError, match="no system 'tznn'; there are uniform-6,"):
        run_bench("sbhar", tmp_path, tmp_path, systems=["tznn"])
    with pytest.raises(InputError, match=r"data\.root"):
        run_bench("sbhar", tmp_path / "nowhere", tmp_path / "out")


def write_sbhar(folder: Path) -> None:
    """A folder as UCI publishes it, small: four people, one of them a test person."""
    random = np.random.default_rng(0)
    raw = folder / "RawData"
    raw.mkdir(parents=True)
    (folder / "activity_labels.txt").write_text("1 WALKING\n2 SITTING\n")
    labels = []
    for experiment, user in enumerate((1, 3, 5, 2, 4), 1):
        for sensor in ("acc", "gyro"):
            np.savetxt(raw / f"{sensor}_exp{experiment:02d}_user{user:02d}.txt", random.normal(size=(1500, 3)))
        labels += [f"{experiment} {user} 1 100 500", f"{experiment} {user} 2 700 1200"]
    (raw / "labels.txt").write_text("\n".join(labels) + "\n")


@pytest.mark.slow
def test_a_benchmark_from_the_raw_folder_to_its_tables(tmp_path):
    write_sbhar(tmp_path / "sbhar")
    small = ["model.width=16", "model.heads=2", "training.steps=3", "training.batch_size=2", "training.length=40"]
    options = {"seeds": (0, 1), "overrides": small, "resamples": 50}
    results = run_bench("sbhar", tmp_path / "sbhar", tmp_path / "out", **options)
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == results
    assert results["test_recordings"] == 2 and results["test_instances"] == 4
    assert tuple(results["systems"]) == OURS.systems and results["systems"]["uniform-6"]["flops_ratio"][0] == 1.0
    assert 0 < results["systems"]["tzn"]["flops_ratio"][0] and results["systems"]["tzn"]["latency_ms"] > 0
    page = markdown(results)
    assert "| tzn |" in page and len(tables(results)) == 3
    again = run_bench("sbhar", tmp_path / "sbhar", tmp_path / "out", **options)  # nothing is trained again
    assert again["systems"]["tzn"]["mAP"] == results["systems"]["tzn"]["mAP"]
    assert yaml.safe_load((tmp_path / "out/tzn/seed-0/config.yaml").read_text())["training"]["steps"] == 3
    chosen = ["uniform-6", "uniform-6+bdr", "actionformer", "actionformer+bdr"]
    options["overrides"] = [*small, "pyramid.levels=2"]
    retrofit = run_bench("sbhar", tmp_path / "sbhar", tmp_path / "r", benchmark=RETROFIT, systems=chosen, **options)
    assert retrofit["systems"]["actionformer+bdr"]["added_lines"] == added_lines("actionformer")
    assert "actionformer 15" in markdown(retrofit) and len(tables(retrofit)[2].columns) == 7
    assert list(retrofit["differences"]) == ["uniform-6+bdr - uniform-6", "actionformer+bdr - actionformer"]
    assert (tmp_path / "r" / "results-retrofit.json").is_file()
    words = f"--data sbhar --systems {','.join(chosen)} --seeds 0,1 {' '.join(options['overrides'])}"
    assert f"`tzoom bench retrofit {words}`" in markdown(retrofit)


@pytest.mark.slow
def test_folds_score_every_recording_by_a_network_that_has_not_seen_its_person(tmp_path):
    write_sbhar(tmp_path / "sbhar")
    small = ["model.width=16", "model.heads=2", "training.steps=2", "training.batch_size=2", "training.length=40"]
    options = {"systems": ["uniform-6", "tzn"], "seeds": (0,), "folds": 2, "overrides": small, "resamples": 20}
    results = run_bench("sbhar", tmp_path / "sbhar", tmp_path / "out", **options)
    assert json.loads((tmp_path / "out" / "folds-2-results.json").read_text()) == results
    assert results["test_recordings"] == 5 and results["test_instances"] == 10
    runs = [json.loads((tmp_path / f"out/tzn/seed-0/fold-{k}/result.json").read_text()) for k in (0, 1)]
    assert [run["test_recordings"] for run in runs] == [3, 2]  # of users 1 to 5, every second
    assert results["systems"]["tzn"]["gflops"] == pytest.approx(sum(run["flops"] for run in runs) / 1e9)
    page = markdown(results)
    assert "5 recordings, 10 instances, each scored by a network that has not seen its subject (2 folds)" in page
    assert "--seeds 0 --folds 2 model.width=16" in page


@pytest.mark.slow
def test_strides_are_timed_on_positions_of_their_own(tmp_path):
    write_sbhar(tmp_path / "sbhar")
    small = ["model.width=16", "model.heads=2", "training.steps=2", "training.batch_size=2", "training.length=40"]
    options = {"systems": ["tzn", "tzn-stride-12"], "seeds": (0,), "overrides": small, "resamples": 20}
    found = run_bench("sbhar-stem", tmp_path / "sbhar", tmp_path / "out", benchmark=BENCHMARKS["strides"], **options)
    coarse, fine = found["systems"].values()
    assert fine["latency_positions"] == pytest.approx(25 / 12 * coarse["latency_positions"], abs=3)
    assert coarse["flops_ratio"] == [1.0, 1.0, 1.0] and fine["flops_ratio"][0] > 1.2
    assert list(found["differences"]) == ["tzn-stride-12 - tzn"] and "of tzn" in str(tables(found)[2].title)


def test_every_system_of_every_benchmark_has_a_configuration():
    for benchmark in BENCHMARKS.values():
        assert {name for pair in benchmark.comparisons for name in pair} <= set(benchmark.systems) <= set(SYSTEMS)
        for system in benchmark.systems:
            config = bench_config("zoombench", system, 0, None)
            assert config.bdr.enabled == (system.endswith("+bdr") or system.startswith("tzn"))
    with pytest.raises(InputError, match="sbhar needs --root"):
        bench_config("sbhar", "tzn", 0, None)


def test_at_every_stride_of_sbhar_the_same_time_is_seen():
    """In seconds, whatever the number of positions; only the step of 25 samples is no multiple of the others."""
    configs = [bench_config("sbhar-stem", system, 0, Path("sbhar")) for system in BENCHMARKS["strides"].systems]
    assert [config.data.stride for config in configs] == [25, 12, 6]
    for config in configs:
        assert math.prod(config.model.stem) == config.data.stride
        reaches = (config.model.window / 16, config.tzn.zoom / 24, config.bdr.radius / 8, config.training.length / 192)
        assert len(set(reaches)) == 1
        assert reaches[0] * config.data.stride == pytest.approx(25, rel=0.05)
        assert reaches[0] * 2**6 == 2**config.model.levels


def test_lines_are_counted_in_the_source():
    class Told:
        """Two lines of words,
        not counted."""

        one = 1  # distance

        # nor this
        def two(self):
            "nor this"
            return self.one

    assert [line.strip() for line in code_lines(Told)] == ["class Told:", "one = 1  # distance", "def two(self):",
                                                          "return self.one"]  # fmt: skip
    assert all(0 < added_lines(name) <= 50 for name in DETECTORS)
