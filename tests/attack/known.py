"""What the tests of known attacks share."""

import pytest

from temporalzoom.errors import InputError


def annotation(name: str = "a", label: str = "run", **more: object) -> dict[str, object]:
    entry = {"duration": 9, "fps": 10, "subset": "train", "annotations": [{"label": label, "segment": [1, 2]}], **more}
    return {"database": {name: entry}}


def refused(read, *arguments: object) -> str:
    with pytest.raises(InputError) as caught:
        read(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)
