"""The configuration: files, overrides, and what is said about mistakes in them."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from temporalzoom.config import Config, config_fields, dump_config, load_config, parse_config
from temporalzoom.errors import InputError

TOP = "seed, data, backbone, model, tzn, pyramid, bmn, bdr, training, augment, inference, evaluation"
OF_MODEL = "name, width, heads, window, dropout, drop_path, layer_scale, standardize, stem, head, levels, finest"
SOURCES = "zoombench, folder, sbhar, tug, thumos14, activitynet, fineaction, ego4d_mq, epic_kitchens"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.yaml"


def complaint(path: Path | None = None, *overrides: str) -> str:
    """The message for a user: one line."""
    with pytest.raises(InputError) as caught:
        load_config(path, overrides)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 500
    return message


# What is read


def test_without_a_file_all_is_default():
    config = load_config()
    assert config == Config()
    assert config.seed == 0 and config.data.source == "zoombench" and config.model.name == "uniform-6"
    assert (config.bdr.channels, config.bdr.radius, config.bdr.alpha) == ("start_end", 16.0, 0.1)
    assert (config.training.learning_rate, config.training.weight_decay) == (1e-4, 1e-4)


def test_a_file_changes_what_it_names_and_nothing_else(file: Path):
    file.write_text(
        "# a comment\nseed: 3\ntraining:\n  steps: 50\n  learning_rate: 3e-4\n"
        "data: {zoombench: {classes: 4}}\nmodel: {window: null}\n"
    )
    before, after = flat(Config().model_dump()), flat(load_config(file).model_dump())
    assert {key: after[key] for key in after if after[key] != before[key]} == {
        "seed": 3,
        "training.steps": 50,
        "training.learning_rate": 3e-4,  # YAML 1.1 takes it for text
        "data.zoombench.classes": 4,
        "model.window": None,
    }


@pytest.mark.parametrize(
    "text", ["", "# nothing but a comment\n", "{}", "training:\n  # steps: 5\n", "data: {zoombench: }"]
)
def test_empty_files_and_sections_are_defaults(file: Path, text: str):
    file.write_text(text)
    assert load_config(file) == Config()
    assert load_config(file, ["training.steps=7", "data.zoombench.fps=25"]).training.steps == 7


def test_overrides_come_after_the_file_and_in_order(file: Path):
    file.write_text("training: {steps: 50, batch_size: 2}")
    overrides = ["training.steps=60", "inference.refine=fuse", "training.steps=70", "bdr.radius=null"]
    config = load_config(file, overrides)
    assert (config.training.steps, config.training.batch_size) == (70, 2)
    assert config.inference.refine == "fuse" and config.bdr.radius is None
    assert load_config(file, iter(overrides)) == config


def test_the_text_of_an_override_may_be_anything():
    assert load_config(None, ["data.train_subset=a=b"]).data.train_subset == "a=b"
    assert load_config(None, ["model.name=["]).model.name == "["  # not YAML
    assert load_config(None, ["model.name=2024-99-99"]).model.name == "2024-99-99"  # a date that does not exist


def test_settings_that_only_fit_together_can_be_overridden_one_by_one():
    bench = load_config(None, ["data.zoombench.shortest=20", "data.zoombench.longest=30"]).data.zoombench
    assert (bench.shortest, bench.longest) == (20, 30)


def test_data_paths_of_a_file_start_at_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sets").mkdir()
    file = tmp_path / "sets" / "mine.yaml"
    file.write_text("data: {annotations: truth.json, features: ../i3d}")
    monkeypatch.chdir(tmp_path)
    for path in (file, Path("sets/mine.yaml"), "sets/mine.yaml"):
        data = load_config(path).data
        assert data.annotations == tmp_path / "sets" / "truth.json"
        assert data.features == tmp_path / "i3d"
    file.write_text(f"data: {{annotations: {tmp_path / 'elsewhere.json'}}}")
    assert load_config(file).data.annotations == tmp_path / "elsewhere.json"


def test_data_paths_of_overrides_start_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sets").mkdir()
    file = tmp_path / "sets" / "mine.yaml"
    file.write_text("data: {annotations: truth.json, features: i3d}")
    monkeypatch.chdir(tmp_path)
    data = load_config(file, ["data.features=other"]).data
    assert (data.annotations, data.features) == (tmp_path / "sets" / "truth.json", tmp_path / "other")


def test_a_dumped_configuration_means_the_same_wherever_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("data: {source: folder, annotations: truth.json, fps: 25}\nbdr: {radius: null}")
    config = load_config("mine.yaml", ["training.learning_rate=1.5e-7", "data.features=i3d"])
    run = tmp_path / "runs" / "first" / "config.yaml"
    run.parent.mkdir(parents=True)
    run.write_text(dump_config(config))
    monkeypatch.chdir("/")
    assert load_config(run) == config
    assert parse_config(config.model_dump(mode="json")) == config
    assert list(yaml.safe_load(run.read_text())) == list(Config.model_fields)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "seed": st.integers(0, 2**31 - 1),
            "bdr": st.fixed_dictionaries(
                {}, optional={"radius": st.none() | st.floats(1, 1e9), "enabled": st.booleans()}
            ),
            "training": st.fixed_dictionaries({}, optional={"learning_rate": st.floats(1e-12, 1e3)}),
            "data": st.fixed_dictionaries({}, optional={"train_subset": st.text(st.characters(codec="utf-8"))}),
        },
    )
)
def test_dump_and_load_is_the_same(tree: dict):
    config = parse_config(tree)
    assert parse_config(yaml.safe_load(dump_config(config))) == config


def test_a_configuration_never_changes():
    with pytest.raises(ValidationError):
        Config().training.steps = 5  # type: ignore[misc]


def test_every_key_of_the_tree_is_known():
    keys = list(config_fields())
    assert {"seed", "training", "training.steps", "data.zoombench", "data.zoombench.classes"} <= set(keys)
    leaves = set(flat(Config().model_dump()))
    assert leaves <= set(keys) and {key.rpartition(".")[0] for key in leaves} - {""} == set(keys) - leaves


# What is said about mistakes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("training: {step: 5}", "unknown key 'training.step' (value 5); did you mean 'training.steps'?"),
        ("data: {zoombench: {clases: 4}}",
         "unknown key 'data.zoombench.clases' (value 4); did you mean 'data.zoombench.classes'?"),
        ("trainning: {steps: 5}", "unknown key 'trainning' (value {'steps': 5}); did you mean 'training'?"),
        ("sed: 3", "unknown key 'sed' (value 3); did you mean 'seed'?"),
        ("steps: 5", "unknown key 'steps' (value 5); did you mean 'training.steps'?"),
        ("length: 5", "unknown key 'length' (value 5); did you mean 'training.length'?"),
        ("training: {dropout: 0.2}", "unknown key 'training.dropout' (value 0.2); did you mean 'model.dropout'?"),
        ("zoombench: {classes: 4}", "unknown key 'zoombench' (value {'classes': 4}); did you mean 'data.zoombench'?"),
        ("lr: 5", f"unknown key 'lr' (value 5); valid at the top are: {TOP}"),
        ("model: {lr: null}",
         f"unknown key 'model.lr' (value null); valid in 'model' are: {OF_MODEL}"),
        ("training: {on: 5}", "unknown key true in 'training': keys must be text"),
        ("1: 5", "unknown key 1: keys must be text"),
    ],
)  # fmt: skip
def test_unknown_keys(file: Path, text: str, said: str):
    file.write_text(text)
    assert complaint(file) == f"{file}: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("training: {steps: many}", "training.steps: must be a whole number, got 'many'"),
        ("training: {steps: 2.5}", "training.steps: must be a whole number, got 2.5"),
        ("training: {steps: [1,\n 2]}", "training.steps: must be a whole number, got [1, 2]"),
        ("seed:", "seed: must be a whole number, got null"),
        ("model: {window: none}", "model.window: must be a whole number or null, got 'none'"),
        ("training: {learning_rate: fast}", "training.learning_rate: must be a number, got 'fast'"),
        ("training: {learning_rate: .inf}", "training.learning_rate: must be a finite number, got inf"),
        ("bdr: {enabled: maybe}", "bdr.enabled: must be true or false, got 'maybe'"),
        ("data: {train_subset: 2014}", "data.train_subset: must be text, got 2014"),
        ("data: {features: [a]}", "data.features: must be a path or null, got ['a']"),
    ],
)
def test_wrong_types(file: Path, text: str, said: str):
    file.write_text(text)
    assert complaint(file) == f"{file}: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("inference: {refine: newtn}",
         "inference.refine: must be one of none, snap, newton, fuse, got 'newtn'; did you mean 'newton'?"),
        ("data: {source: null}", f"data.source: must be one of {SOURCES}, got null"),
        ("training: {precision: 16}", "training.precision: must be one of float32, bfloat16, got 16"),
    ],
)  # fmt: skip
def test_bad_choices(file: Path, text: str, said: str):
    file.write_text(text)
    assert complaint(file) == f"{file}: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("training: {steps: 0}", "training.steps: must be at least 1, got 0"),
        ("seed: -1", "seed: must be at least 0, got -1"),
        ("inference: {sigma: 0}", "inference.sigma: must be above 0, got 0"),
        ("inference: {max_move: 1.5}", "inference.max_move: must be at most 1, got 1.5"),
        ("bdr: {radius: -2}", "bdr.radius: must be at least 1 or null, got -2"),
        ("data: {zoombench: {classes: 5}}",
         "data.zoombench.classes: must be an even number, because classes come in pairs, got 5"),
        ("data: {zoombench: {shortest: 20}}", "data.zoombench: shortest must be at most longest (14), got 20"),
        ("data: {zoombench: {overlap: 0.9}}",
         "data.zoombench: back_to_back and overlap must be at most 1 together, got 0.15 and 0.9"),
    ],
)  # fmt: skip
def test_out_of_range(file: Path, text: str, said: str):
    file.write_text(text)
    assert complaint(file) == f"{file}: {said}"


@pytest.mark.parametrize("value", ["5", "fast", "[1, 2]", "true"])
def test_a_section_that_is_none(file: Path, value: str):
    file.write_text(f"training: {value}")
    shown = value if value in ("5", "[1, 2]", "true") else repr(value)
    assert complaint(file) == f"{file}: training: must be a section with keys, got {shown}"
    assert complaint(file, "training.steps=5") == complaint(file)  # the file is to blame, not the override
    file.write_text(f"data: {{zoombench: {value}}}")
    assert complaint(file) == f"{file}: data.zoombench: must be a section with keys, got {shown}"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("training.steps", "override 'training.steps': must have the form key=value, such as training.steps=500"),
        ("=5", "override '=5': must have the form key=value, such as training.steps=500"),
        ("", "override '': must have the form key=value, such as training.steps=500"),
        ("training.step=5", "override 'training.step=5': unknown key 'training.step'; did you mean 'training.steps'?"),
        ("trainning.length=5",
         "override 'trainning.length=5': unknown key 'trainning.length'; did you mean 'training.length'?"),
        ("zoombench.fps=5",
         "override 'zoombench.fps=5': unknown key 'zoombench.fps'; did you mean 'data.zoombench.fps'?"),
        ("training.steps.x=3",
         "override 'training.steps.x=3': unknown key 'training.steps.x'; did you mean 'training.steps'?"),
        ("seed.x=3", "override 'seed.x=3': unknown key 'seed.x'; did you mean 'seed'?"),
        (
            ".=3",
            f"override '.=3': unknown key '.'; valid at the top are: {TOP}",
        ),
        ("model=5",
         f"override 'model=5': 'model' is a section; set one of its keys: {OF_MODEL}"),
        ("training.steps=", "override: training.steps: must be a whole number, got null"),
        ("training.steps=0", "override: training.steps: must be at least 1, got 0"),
        ("seed=5=6", "override: seed: must be a whole number, got '5=6'"),
    ],
)  # fmt: skip
def test_bad_overrides(file: Path, override: str, said: str):
    assert complaint(None, override) == said
    file.write_text("seed: 3")
    assert complaint(file, "training.batch_size=2", override) == said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"seed: 1\ntraining: [1, 2", ", line 2: not valid YAML ("),
        (b"seed: 1\na: b: c", ", line 2: not valid YAML (mapping values are not allowed here)"),
        (b"seed: 1\n\tx: 2", ", line 2: not valid YAML ("),
        (b"x: !!python/name:os.system", ", line 1: not valid YAML ("),
        (b"seed: \x01", ": not valid YAML ("),
        (b"seed: \xff", ": not valid YAML ("),
        (b"seed: 2024-99-99", ": not valid YAML (month must be in 1..12)"),
        (b"- training", ": must hold sections such as 'training:', got ['training']"),
        (b"just words", ": must hold sections such as 'training:', got 'just words'"),
        (b"5", ": must hold sections such as 'training:', got 5"),
    ],
)
def test_files_that_are_no_configuration(file: Path, content: bytes, said: str):
    file.write_bytes(content)
    assert complaint(file).startswith(f"{file}{said}")


def test_files_that_cannot_be_read(tmp_path: Path):
    assert complaint(tmp_path / "nope.yaml") == f"{tmp_path / 'nope.yaml'}: cannot be read (No such file or directory)"
    assert complaint(tmp_path) == f"{tmp_path}: cannot be read (Is a directory)"


def test_long_values_are_shortened(file: Path):
    file.write_text(f"training: {{steps: {'x' * 1000}}}")
    assert complaint(file).endswith(f"got '{'x' * 56}...")


def test_a_tree_from_elsewhere_is_named():
    with pytest.raises(InputError, match=r"^runs/a/checkpoint.json: seed: must be a whole number, got 'x'$"):
        parse_config({"seed": "x"}, source="runs/a/checkpoint.json")


@given(st.sampled_from(sorted(config_fields())), st.data())
def test_one_wrong_letter_finds_the_key_again(key: str, data: st.DataObject):
    """Any key of more than four letters with one letter left out of its last word leads back to it."""
    section, _, word = key.rpartition(".")
    if len(word) <= 4:
        return
    at = data.draw(st.integers(0, len(word) - 1))
    wrong = f"{section}.{word[:at]}{word[at + 1 :]}".lstrip(".")
    if wrong not in config_fields():
        assert complaint(None, f"{wrong}=1").endswith(f"; did you mean {key!r}?")


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    leaves = {}
    for key, value in tree.items():
        leaves |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return leaves


def test_the_configurations_of_the_repository_are_valid():
    for path in sorted((Path(__file__).parents[1] / "configs").rglob("*.yaml")):
        load_config(path)
