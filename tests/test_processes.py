"""Several processes, seen from one: what the environment says, and what is asked of the whole batch."""

from itertools import pairwise

import pytest
import torch

from temporalzoom import processes
from temporalzoom.errors import InputError


@pytest.fixture
def started(monkeypatch):
    """As torchrun would start this process."""

    def start(rank: int, count: int) -> None:
        values = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 1}
        for name, value in values.items():
            monkeypatch.setenv(name, str(value))

    return start


def test_alone_everything_is_as_it_is(monkeypatch):
    for name in processes.NAMES:
        monkeypatch.delenv(name, raising=False)
    assert processes.count() == 1 and processes.rank() == 0 and processes.leads()
    monkeypatch.setenv("WORLD_SIZE", "4")  # left behind by a cluster, without the rest of what torchrun sets
    assert processes.count() == 1
    own = torch.arange(6.0).view(3, 2).requires_grad_()
    with processes.one_voice(), processes.connected("cpu"), processes.running(processes.own_rows(3), 3, 2):
        assert processes.own_rows(3) == slice(0, 3)
        assert processes.whole_batch(own) is own
        assert processes.any_of(True) and not processes.any_of(False)
        assert processes.decided_by_the_first(lambda: 7) == 7
    own.sum().backward()
    processes.add_gradients([torch.nn.Parameter(own)])
    assert own.grad is not None and bool((own.grad == 1).all())
    torch.manual_seed(3)
    noise = processes.uniform((3, 2), own)
    kept = processes.kept_values(own, 0.5)
    torch.manual_seed(3)
    assert torch.equal(noise, torch.rand(3, 2)) and torch.equal(kept, torch.nn.functional.dropout(own, 0.5))


def test_the_environment_of_torchrun(started, monkeypatch, tzoom):
    started(1, 3)
    assert processes.count() == 3 and processes.rank() == 1 and not processes.leads()
    with pytest.raises(InputError, match=r"training\.batch_size: 3 processes need at least 3 crops per batch, got 2"):
        processes.own_rows(2)
    started(0, 2)
    code, out, err = tzoom("recipes")
    assert (code, out) == (2, "")
    assert err == "error: WORLD_SIZE: several processes, as torchrun starts them, are for tzoom train only\n"
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(InputError, match="WORLD_SIZE: must be a whole number from 1 on"):
        processes.count()


@pytest.mark.parametrize("shape", [(1, 1), (4, 1, 1), (4, 5, 1), (4, 5, 3)])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_noise_of_all_processes_is_that_of_one(monkeypatch, shape, count):
    """Of rows, and of the same rows packed into one."""
    total, rest = 4, shape[1:]
    whole = draw(total, rest, 0, total, monkeypatch, packed=False)
    bounds = [total * k // count for k in range(count + 1)]
    for packed in (False, True) if rest[0] == 5 else (False,):
        parts = [draw(total, rest, low, high, monkeypatch, packed).view(-1, *rest) for low, high in pairwise(bounds)]
        assert torch.equal(torch.cat(parts), whole)


def draw(total, rest, first, last, monkeypatch, packed):
    torch.manual_seed(5)
    monkeypatch.setattr(processes, "_rows", processes.Rows(first, last, total, 5))
    shape = (1, (last - first) * rest[0], *rest[1:]) if packed else (last - first, *rest)
    values = processes.uniform(shape, torch.zeros(())) + processes.kept_values(torch.ones(shape), 0.3)
    monkeypatch.setattr(processes, "_rows", None)
    return values


def test_what_has_left_a_row_has_noise_of_its_own(started, monkeypatch):
    """Other numbers in each process, and the same ones where a layer is computed again."""
    drawn = []
    for rank in (0, 1, 1):
        started(rank, 2)
        monkeypatch.setattr(processes, "_rows", processes.Rows(2 * rank, 2 * rank + 2, 4, 5))
        torch.manual_seed(5)
        drawn.append(processes.uniform((1, 7, 1), torch.zeros(())))
        after = torch.rand(())
    assert not torch.equal(drawn[0], drawn[1]) and torch.equal(drawn[1], drawn[2])
    torch.manual_seed(5)
    torch.randint(2**31, ())
    assert torch.equal(after, torch.rand(()))  # whatever the rank
