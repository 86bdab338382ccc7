"""`tzoom localize` on tables: a model of raw signals, trained on arrays, finds the same in a CSV file."""

import json

import numpy as np
import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walks")
    random = np.random.default_rng(0)
    rows = {name: random.normal(size=(200, 3)).astype(np.float32).round(4) for name in ("one", "two", "three")}
    np.savez(folder / "signals.npz", **rows)
    database = {
        name: {"subset": "test" if name == "three" else "train", "duration": 4.0, "fps": 50,
               "annotations": [{"label": "walk", "segment": [1.0, 2.0]}, {"label": "sit", "segment": [2.5, 3.5]}]}
        for name in rows
    }  # fmt: skip
    (folder / "annotations.json").write_text(json.dumps({"database": database}))
    (folder / "tables").mkdir()
    times = np.arange(200) * 20
    for name, suffix, header in (("one", ".csv", "time_ms,x,y,z"), ("two", ".tsv", "time_ms\tx\ty\tz")):
        mark = "," if suffix == ".csv" else "\t"
        lines = [mark.join([str(t), *map(repr, row)]) for t, row in zip(times, rows[name].tolist(), strict=True)]
        (folder / "tables" / f"{name}{suffix}").write_text("\n".join([header, *lines]))
    np.save(folder / "one.npy", rows["one"])
    return folder


@pytest.fixture
def run(folder, tzoom):
    if not (folder / "run").exists():
        settings = "data.raw=true data.stride=4 data.window=8 model.name=uniform-1 model.width=16 model.head=mlp"
        settings += " model.levels=1 training.steps=2 training.batch_size=2 training.length=16 training.warmup_steps=1"
        settings += " inference.min_score=1e-6"
        (folder / "own.yaml").write_text("data: {annotations: annotations.json, features: signals.npz}")
        arguments = [part for setting in settings.split() for part in ("--set", setting)]
        code, _, said = tzoom("train", folder / "own.yaml", "--out", folder / "run", *arguments)
        assert code == 0, said
    return folder / "run"


def test_a_table_gives_what_its_array_gives(folder, run, tzoom):
    results = []
    for file in (folder / "one.npy", folder / "tables" / "one.csv"):
        out = folder / f"{file.suffix[1:]}.json"
        code, _, said = tzoom("localize", file, "--model", run, "--threshold", 0, "--out", out)
        assert code == 0, said
        results.append(json.loads(out.read_text())["results"]["one"])
    assert results[0] == results[1] and results[0]
    flat = " ".join(said.split())
    assert "one: Column 'time_ms' is the time, in ms: as the name 'time_ms' says. 50 rows per second, regular." in flat


def test_a_folder_of_tables(folder, run, tzoom):
    out = folder / "all.json"
    code, _, said = tzoom("localize", folder / "tables", "--model", run, "--threshold", 0, "--out", out)
    assert code == 0, said
    assert set(json.loads(out.read_text())["results"]) == {"one", "two"}


def test_beside_features_a_table_is_something_else(folder, run, tzoom):
    (folder / "results.csv").write_text("video,start,end,label\n")
    out = folder / "arrays.json"
    _, _, said = tzoom("localize", folder / "one.npy", folder, "--model", run, "--threshold", 0, "--out", out)
    assert "results.csv" not in said and "signals.npz" in said  # an archive of several recordings is none


def test_a_table_that_does_not_fit(folder, run, tzoom):
    path = folder / "odd.csv"
    path.write_text("time_s,x\n" + "\n".join(f"{k / 50:.2f},{k % 7}" for k in range(100)))
    code, _, said = tzoom("localize", path, "--model", run)
    assert code != 0 and "odd.csv: the raw signal has 1 channels, the model was trained with 3" in " ".join(
        said.split()
    )
