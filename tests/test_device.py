"""Which device is chosen, which precision it allows; and the pretended device is as strict as a real one."""

import numpy as np
import pytest
import torch
from torch import nn

from pretend_device import DEVICE, OnDevice, WrongDevice, pretend_device
from temporalzoom.device import available_devices, choose_device, device_of
from temporalzoom.errors import InputError
from temporalzoom.models import runtime
from temporalzoom.models.runtime import check_precision, gradient_scaler, move_network, products_in


@pytest.fixture
def there(monkeypatch):
    """`there("cuda")`: as on a machine with these, and with nothing else but the processor."""

    def only(*names: str) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in names)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in names)

    return only


@pytest.mark.parametrize(
    ("names", "fastest"), [((), "cpu"), (("mps",), "mps"), (("cuda",), "cuda"), (("cuda", "mps"), "cuda")]
)
def test_auto_is_the_fastest_that_is_there(there, names, fastest):
    there(*names)
    assert available_devices() == (*names, "cpu")
    assert choose_device() == choose_device("auto") == torch.device(fastest)
    for name in (*names, "cpu"):
        assert choose_device(name) == torch.device(name)


def test_what_is_not_there_is_named_with_what_is(there):
    there()
    with pytest.raises(InputError, match=r"^device: cuda is not available here; available: cpu$"):
        choose_device("cuda")
    there("mps")
    with pytest.raises(InputError, match=r"^device: cuda is not available here; available: mps, cpu$"):
        choose_device("cuda")
    with pytest.raises(InputError, match=r"unknown device 'gpu'; valid: auto, cpu, cuda, mps"):
        choose_device("gpu")


def test_a_network_moves_and_one_without_parameters_stays(there):
    there()
    model = nn.Linear(2, 2)
    move_network(model, "auto")
    assert device_of(model) == device_of(nn.ReLU()) == torch.device("cpu")
    move_network(nn.ReLU(), "cpu")
    there("cuda")
    move_network(nn.ReLU(), "auto")
    with pytest.raises(InputError, match=r"this network runs on the cpu only, not on cuda"):
        move_network(nn.ReLU(), "cuda")


# Precision


@pytest.mark.parametrize("device_type", ["cpu", "mps"])
def test_float16_is_for_cuda(device_type):
    for use in (products_in, gradient_scaler, check_precision):
        with pytest.raises(InputError, match=rf"precision: float16 needs the device cuda, this one is {device_type}"):
            use("float16", device_type)
    with pytest.raises(InputError, match=r"^training\.precision: float16 needs"):
        check_precision("float16", device_type, "training.precision")
    with pytest.raises(InputError, match=r"unknown precision 'half'; valid: float32, bfloat16, float16"):
        products_in("half", "cpu")
    check_precision("float16", "cuda")


@pytest.mark.filterwarnings("ignore:.*Disabling autocast")
def test_products_follow_the_device():
    model, x = nn.Linear(4, 4), torch.ones(2, 4)
    with products_in("float32"):
        assert model(x).dtype == torch.float32
    with products_in("bfloat16", "cpu"):
        assert model(x).dtype == torch.bfloat16
    assert products_in("float16", "cuda").device == "cuda"
    assert products_in("float16", "cuda").fast_dtype == torch.float16
    assert products_in("bfloat16", "mps").device == "mps"


def test_only_float16_scales_gradients(monkeypatch):
    for precision in ("float32", "bfloat16"):
        scaler, loss = gradient_scaler(precision, "cuda"), torch.tensor(3.0)
        assert not scaler.is_enabled() and scaler.scale(loss) is loss
    monkeypatch.setattr(runtime, "FLOAT16_DEVICES", ("cpu",))
    assert gradient_scaler("float16", "cpu").get_scale() > 1


# The device that the tests pretend to have


@pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")
def test_the_pretended_device_computes():
    with pretend_device() as device:
        x = torch.arange(6.0, device=device)
        assert isinstance(x, OnDevice) and x.device == DEVICE
        weight = nn.Parameter(torch.ones(6).to(device))
        (weight * x + x.new_tensor(2.0) + torch.tensor([1.0], device=device)).square().sum().backward()
        assert weight.grad.cpu().tolist() == [2 * i * (i + 3) for i in range(6)]
        x[x > 3] = 0.0
        x[1:3] += torch.tensor(1.0)  # a single number may come from anywhere
        assert x.tolist() == [0, 2, 3, 3, 0, 0] and int(x.sum()) == 8 and bool((x > 2).any())
        assert type(x.cpu()) is torch.Tensor and x.cpu().numpy().sum() == 8
        layer = nn.Linear(6, 2).to(device)
        layer.load_state_dict(nn.Linear(6, 2).state_dict())
        assert layer(x).device == DEVICE and device_of(layer) == DEVICE


FAULTS = {
    "sum": lambda x: x + torch.arange(5),
    "index": lambda x: x[torch.arange(3)],
    "assignment": lambda x: x.index_fill_(0, torch.tensor([1, 2]), 0.0),
    "mask": lambda x: x[torch.ones(5, dtype=torch.bool)],
    "other way round": lambda x: torch.arange(5.0)[x.long()],
    "joined": lambda x: torch.cat((x, torch.zeros(1))),
    "stacked": lambda x: torch.stack((x[0], torch.zeros(()))),
    "condition": lambda x: torch.where(torch.ones(5) > 0, x, 0.0),
    "layer": lambda x: nn.Linear(5, 2)(x),
    "array": lambda x: x.numpy(),
    "from an array": lambda x: x * torch.from_numpy(np.ones(5, np.float32)),
    "double": lambda x: x.double(),
    "made double": lambda x: torch.zeros(2, dtype=torch.float64, device=x.device),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_pretended_device_is_strict(fault):
    with pretend_device() as device:
        x = torch.arange(5.0, device=device)
        with pytest.raises((WrongDevice, RuntimeError), match=r"mixed|float64|numpy"):
            FAULTS[fault](x)
