"""Fixtures of the tests of file formats."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from temporalzoom.errors import InputError
from temporalzoom.formats import import_annotations


@pytest.fixture
def fails() -> Callable[..., None]:
    """`fails(paths, words, **options)`: the import ends with one line that has all the words."""

    def check(paths: list[Path], words: list[str], **options: Any) -> None:
        with pytest.raises(InputError) as caught:
            import_annotations(paths, **options)
        message = str(caught.value)
        assert "\n" not in message and all(word in message for word in words), message

    return check
