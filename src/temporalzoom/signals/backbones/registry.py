"""Backbones by name, or `family:source`. Builder functions register themselves; their arguments are the options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from importlib import import_module

from temporalzoom.errors import InputError
from temporalzoom.signals.backbones.interface import Backbone

Builder = Callable[..., Backbone]
_builders: dict[str, Builder] = {}
# A file is imported when one of its backbones is asked for: some load torch.
_FILES = {
    "motion": "motion",
    "efficientnet_lite0": "efficientnet",
    "swin3d_t": "swin3d",
    "swin3d_s": "swin3d",
    "swin3d_b": "swin3d",
    "huggingface": "huggingface",
}
CUTS = "+cuts"  # at the end of any name: one channel more, see `with_cuts`


def register(name: str) -> Callable[[Builder], Builder]:
    """Decorator: `builder(**options) -> Backbone` becomes available as `name`."""

    def add(builder: Builder) -> Builder:
        _builders[name] = builder
        return builder

    return add


def backbone_names() -> tuple[str, ...]:
    names = dict.fromkeys([*_FILES, *_builders])
    return tuple("huggingface:NAME" if name == "huggingface" else name for name in names)


def backbone(name: str, device: str = "auto", **options: object) -> Backbone:
    """The backbone called `name`. Options may be given as text; an unknown name or option raises InputError.

    `name+cuts` adds a channel: the probability that the window holds a cut from one shot to the next. device: where
    its network runs, see `choose_device`; no option, because the features are the same ones anywhere.
    """
    if name.endswith(CUTS):
        wrapped = backbone(name.removesuffix(CUTS), device, **options)
        from temporalzoom.signals.backbones.with_cuts import WithCuts

        return WithCuts(wrapped)
    family, _, source = name.partition(":")
    if family not in _builders and family in _FILES:
        import_module(f"temporalzoom.signals.backbones.{_FILES[family]}")
    if family not in _builders or (family == "huggingface") != bool(source):
        raise InputError(f"unknown backbone {name!r}; valid: {', '.join(backbone_names())}")
    builder = partial(_builders[family], source) if source else _builders[family]
    known = inspect.signature(builder).parameters
    for option in options:
        if option not in known:
            valid = f"valid: {', '.join(known)}" if known else "it has none"
            raise InputError(f"backbone {name}: unknown option {option!r}; {valid}")
    typed = {option: _typed(name, option, value, known[option].default) for option, value in options.items()}
    return builder(**typed).to(device)


def _typed(name: str, option: str, value: object, default: object) -> object:
    """Text from the command line as the type of the option's default."""
    if isinstance(default, int) and isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            raise InputError(f"backbone {name}: option {option} must be a whole number, got {value!r}") from None
    return value
