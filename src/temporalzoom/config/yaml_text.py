"""YAML of any origin as lists, dictionaries and values; what is no YAML, or would never end, is a ValueError."""

from __future__ import annotations

from typing import Any

import yaml

DEEPEST = 50
MOST = 100_000  # values; references of a few lines (`&a [*b, *b]`) could stand for more than any machine holds


class _Shallow(yaml.SafeLoader):
    """Ends where nesting becomes absurd: the time that it takes to read on grows with its square."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.depth += 1
        if self.depth > 2 * DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} levels deep")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def parse_yaml(text: str) -> Any:
    """What `yaml.safe_load` reads. Everything that is wrong raises ValueError of one line, which says the line."""
    parts = parse_yaml_parts(text)
    if len(parts) > 1:
        raise ValueError(f"{len(parts)} parts, where one is expected")
    return parts[0] if parts else None


def parse_yaml_parts(text: str) -> list[Any]:
    """The parts between lines `---`; errors as of `parse_yaml`."""
    try:
        trees = list(yaml.load_all(text, _Shallow))
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{where}{' '.join(str(error.problem or error.context).split())}") from None
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} levels deep") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: dates that do not exist
        raise ValueError(" ".join(str(error).split())) from None
    except (LookupError, AttributeError, TypeError, OverflowError) as error:  # `!!bool perhaps`, `!!timestamp soon`
        raise ValueError(f"a value is not what its tag says ({type(error).__name__}: {error})") from None
    _check(trees)
    return trees


def _check(tree: Any) -> None:
    """Level by level, counting what is referred to as often as it is."""
    level, count = [tree], 0
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                inner += [*node, *node.values()]
            elif isinstance(node, list | tuple | set):
                inner += node
            elif isinstance(node, int) and abs(node) > 10**300:
                raise ValueError(f"a number of {len(str(node))} digits")
            if count + len(inner) > MOST:
                raise ValueError(f"more than {MOST} values")
        count += len(inner)
        level = inner
        if not level:
            return
    raise ValueError(f"nested more than {DEEPEST} levels deep")
