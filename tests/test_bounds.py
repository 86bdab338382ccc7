"""No setting asks for more than a machine can do: a number too many is an error, not a hang."""

from typing import Annotated

import pytest
from pydantic import TypeAdapter, ValidationError

from temporalzoom.config import load_config
from temporalzoom.config.base import sections_of
from temporalzoom.config.sections import config_fields
from temporalzoom.errors import InputError

MUCH = 10**9
# With these a number of any size costs nothing: a seed, how many neighbours a limit looks at, and a number of blocks,
# which is compared with those that the backbone has.
HARMLESS = {"seed", "inference.limit_span", "backbone.trainable"}


def adapter(key: str) -> TypeAdapter:
    """What a setting takes, by its own type and limits."""
    field = config_fields()[key]
    return TypeAdapter(Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation)


def integer_settings() -> list[str]:
    leaves = [key for key, field in config_fields().items() if not sections_of(field)]
    return [key for key in leaves if "'integer'" in str(adapter(key).json_schema())]


def accepts(key: str, value: object) -> bool:
    try:
        adapter(key).validate_python(value)
    except ValidationError:
        return False
    return True


def test_there_are_integer_settings():
    assert {"model.window", "training.steps", "model.stem", "data.length", "seed"} <= set(integer_settings())


@pytest.mark.parametrize("key", integer_settings())
def test_a_thousand_million_is_refused_or_harmless(key):
    value, little = ([MUCH], [2]) if key in ("model.stem", "model.paper.depths") else (MUCH, 2)
    assert accepts(key, little), key
    assert accepts(key, value) == (key in HARMLESS), key


@pytest.mark.parametrize("name", ["uniform-65", "uniform-999", "uniform-999999", f"uniform-{MUCH}"])
def test_networks_have_a_depth_that_can_be_built(name):
    with pytest.raises(InputError, match=r"model\.name"):
        load_config(None, [f"model.name={name}"])


def test_what_people_use_is_within_the_bounds():
    ample = "model.width=2048 model.heads=64 model.zoom=4096 training.steps=1000000 training.length=9216"
    load_config(None, [*ample.split(), "training.batch_size=512", "inference.max_segments=100000"])
    load_config(None, ["model.name=uniform-64"])
