"""A small detector of one instance per recording: `detector.py` is plain, `detector_with_bdr.py` the same with BDR.

    python examples/retrofit/detector.py              # or detector_with_bdr.py

trains it on synthetic recordings and prints how far its boundaries are off.
"""

import torch
import torch.nn.functional as F
from torch import nn

from temporalzoom.bdr import DistanceHead, distance_loss, distance_targets, refine_segments


class Detector(nn.Module):
    def __init__(self, channels, width=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(channels, width, 5, padding=2), nn.ReLU(), nn.Conv1d(width, width, 5, padding=2), nn.ReLU()
        )
        self.score, self.box = nn.Conv1d(width, 1, 1), nn.Conv1d(width, 2, 1)
        self.distance = DistanceHead(width)

    def forward(self, signal):  # (B, channels, T)
        hidden = self.encoder(signal)
        return self.score(hidden)[:, 0], F.softplus(self.box(hidden)), self.distance(hidden.transpose(1, 2))


def training_loss(model, signal, starts, ends):  # one instance per sequence: (B,) each
    score, box, distance = model(signal)
    position = torch.arange(signal.shape[2])
    inside = (position > starts[:, None]) & (position < ends[:, None])
    target = torch.stack((position - starts[:, None], ends[:, None] - position), 1)
    box_loss = F.smooth_l1_loss(box, target, reduction="none").mean(1)[inside].mean()
    true = torch.stack([distance_targets([s], [e], len(position), radius=8) for s, e in zip(starts, ends, strict=True)])
    classic = F.binary_cross_entropy_with_logits(score, inside.float()) + 0.1 * box_loss
    return classic + distance_loss(distance, true)


@torch.no_grad()
def detect(model, signal):  # (1, channels, T) -> the best segment
    score, box, distance = model(signal)
    best = int(score[0].argmax())
    start, end = best - float(box[0, 0, best]), best + float(box[0, 1, best])
    starts, ends = refine_segments([start], [end], distance[0, :, 0], distance[0, :, 1], mode="snap", max_move=0.5)
    return float(starts[0]), float(ends[0])


def recordings(count, seed, channels=4, length=96):  # noise, and a higher level for 10 to 50 positions
    random = torch.Generator().manual_seed(seed)
    starts = 5 + 35 * torch.rand(count, generator=random)
    ends = starts + 10 + 40 * torch.rand(count, generator=random)
    position = torch.arange(length)
    inside = (position > starts[:, None]) & (position < ends[:, None])
    noise = torch.randn(count, channels, length, generator=random)
    return 1.5 * inside[:, None] + 0.5 * noise, starts, ends


def boundary_error(steps=250):  # of a trained detector, median, in positions
    torch.manual_seed(0)
    model = Detector(4)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for step in range(steps):
        loss = training_loss(model, *recordings(8, 1 + step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    signals, starts, ends = recordings(60, 0)
    found = torch.tensor([detect(model, signal[None]) for signal in signals])
    return float((found - torch.stack((starts, ends), 1)).abs().median())


if __name__ == "__main__":
    print(f"median boundary error: {boundary_error():.2f} positions")
