"""Two real trainings with one frame: it saves now and then and when it is told to stop, and goes on from there."""

from __future__ import annotations

STEPS = 80

FRAME = f"""
import os, signal, sys, time
from pathlib import Path
from model import Model

checkpoint = Path(os.environ["YARD_CHECKPOINT"]) / "state"
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(True))
model = Model()
if checkpoint.exists():
    model.load(checkpoint)
print("begins after step", model.step)
while model.step < {STEPS}:
    loss = model.train_one_step()
    print("step", model.step)
    time.sleep(float(os.environ.get("STEP_SECONDS", "0")))
    if told or model.step % 10 == 0:
        part = checkpoint.with_suffix(".part")
        model.save(part)
        part.replace(checkpoint)
        Path(os.environ["YARD_BEACON"]).write_text(str(model.step))
        print("saved", model.step)
    if told:
        sys.exit(1)
print("final loss", repr(loss))
"""

PLAIN = """
import json, random

class Model:
    def __init__(self):
        self.step, self.weights, self.random = 0, [0.0, 0.0, 0.0], random.Random(7)

    def train_one_step(self):
        loss = 0.0
        for _ in range(16):
            x = [self.random.gauss(0, 1) for _ in self.weights]
            y = 2 * x[0] - x[1] + 0.5 * x[2] + self.random.gauss(0, 0.1)
            error = sum(w * v for w, v in zip(self.weights, x)) - y
            self.weights = [w - 0.01 * error * v for w, v in zip(self.weights, x)]
            loss += error * error / 16
        self.step += 1
        return loss

    def save(self, path):
        path.write_text(json.dumps([self.step, self.weights, self.random.getstate()]))

    def load(self, path):
        self.step, self.weights, (version, numbers, rest) = json.loads(path.read_text())
        self.random.setstate((version, tuple(numbers), rest))
"""

TORCH = """
import warnings
warnings.filterwarnings("ignore")
import torch

torch.set_num_threads(1)
torch.manual_seed(7)

class Model:
    def __init__(self):
        self.step = 0
        self.net = torch.nn.Sequential(
            torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 1)
        )
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)

    def train_one_step(self):
        x = torch.randn(64, 8)
        loss = torch.nn.functional.mse_loss(self.net(x), x.sum(1, keepdim=True).sin())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def save(self, path):
        parts = [self.net.state_dict(), self.optimizer.state_dict(), torch.get_rng_state(), self.step]
        torch.save(parts, path)

    def load(self, path):
        net, optimizer, numbers, self.step = torch.load(path)
        self.net.load_state_dict(net)
        self.optimizer.load_state_dict(optimizer)
        torch.set_rng_state(numbers)
"""
