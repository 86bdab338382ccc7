"""A device for machines that have none: its tensors are kept by the processor, but it is as strict as a real one.

Operations that mix its tensors with those of the processor fail, as do float64 (`mps` has none) and NumPy arrays of its
tensors. Unlike torch's fake tensors they hold values, so that code which depends on data runs too, and random numbers
come from the processor's generator, so that results are those of the processor, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

# A name that torch knows without a driver, and that nobody computes on.
DEVICE = torch.device("meta")
# What moves values from one device to another; all else must stay on one.
CROSSINGS = {torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default}
# Where not even a single number may come from elsewhere.
JOINING = {torch.ops.aten.cat.default, torch.ops.aten.stack.default}


class WrongDevice(RuntimeError):
    """What a real device would not have done."""


class OnDevice(Tensor):
    """A tensor on `DEVICE`; `kept`: its values."""

    kept: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, kept: Tensor) -> OnDevice:
        return Tensor._make_wrapper_subclass(
            cls,
            kept.shape,
            strides=kept.stride(),
            storage_offset=kept.storage_offset(),
            dtype=kept.dtype,
            device=DEVICE,
        )

    def __init__(self, kept: Tensor) -> None:
        self.kept = kept

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})

    def new_tensor(self, *args: Any, **kwargs: Any) -> Tensor:
        return torch.tensor(*args, **{"dtype": self.dtype, "device": DEVICE, **kwargs})

    def tolist(self) -> Any:
        return self.kept.tolist()

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"OnDevice({self.kept!r})"


class Operations(TorchDispatchMode):
    """Takes the operations that make tensors, which have no tensor that would say where."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


def _filled(make: Any) -> Any:
    """`torch.tensor` and its like fill memory themselves, not by an operation: here they fill it on the processor."""

    def on_any_device(*args: Any, device: Any = None, **kwargs: Any) -> Any:
        return make(*args, **kwargs).to(DEVICE) if _is_device(device) else make(*args, device=device, **kwargs)

    return on_any_device


@contextmanager
def pretend_device() -> Iterator[torch.device]:
    """Inside the block there is one more device."""
    literals = {name: _filled(getattr(torch, name)) for name in ("tensor", "as_tensor")}
    with patch.multiple(torch, **literals), Operations():
        yield DEVICE


def run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One operation, by the processor, if a device could have done it."""
    if torch.is_inference_mode_enabled():  # where operations do not come in their parts, and have no subclasses
        with torch.inference_mode(False), torch.no_grad(), Operations():
            result = func.decompose(*args, **kwargs)
            return result if result is not NotImplemented else run(func, args, kwargs)
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    ours = [tensor for tensor in tensors if isinstance(tensor, OnDevice)]
    others = [tensor for tensor in tensors if not isinstance(tensor, OnDevice)]
    shapes = [tuple(other.shape) for other in others if other.ndim or func in JOINING]  # a single number may come along
    if func not in CROSSINGS and ours and shapes:
        raise WrongDevice(f"{func}: tensors on the device mixed with those of the processor, {shapes}")
    asked = kwargs.get("device")
    stays = _is_device(asked) if asked is not None else bool(ours)
    if func is torch.ops.aten.copy_.default:
        stays = isinstance(args[0], OnDevice)
    if asked is not None:
        kwargs = kwargs | {"device": torch.device("cpu"), "pin_memory": None}
        kwargs = {key: value for key, value in kwargs.items() if key in {a.name for a in func._schema.arguments}}
    args, kwargs = tree_map(lambda leaf: leaf.kept if isinstance(leaf, OnDevice) else leaf, (args, kwargs))
    result = func(*args, **kwargs)
    return _returned(func, result, ours) if stays else result


def _returned(func: Any, result: Any, ours: Sequence[OnDevice]) -> Any:
    known = {id(tensor.kept): tensor for tensor in ours}  # what an operation in place gives back

    def wrapped(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if value.dtype == torch.float64:
            raise WrongDevice(f"{func}: float64, which not every device has")
        return known.get(id(value)) if id(value) in known else OnDevice(value)

    return tree_map(wrapped, result)


def _is_device(device: Any) -> bool:
    return device is not None and torch.device(device).type == DEVICE.type
