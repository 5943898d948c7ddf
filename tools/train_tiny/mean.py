"""The mean of a model's weights over steps (stochastic weight averaging, Izmailov et al. 2018): a
point in the middle of those that a rate above zero wanders through, which generalises better."""
import torch


class MeanWeights:
    def __init__(self, model):
        self.weights = {name: torch.zeros_like(weight, dtype=torch.float32)
                        for name, weight in model.state_dict().items()}
        self.count = 0

    @torch.no_grad()
    def add(self, model) -> None:
        self.count += 1
        for name, weight in model.state_dict().items():
            self.weights[name] += (weight.float() - self.weights[name]) / self.count

    def state_dict(self) -> dict:
        return {"weights": self.weights, "count": self.count}

    def load_state_dict(self, saved: dict) -> None:
        self.count = saved["count"]
        for name, weight in saved["weights"].items():
            self.weights[name].copy_(weight)
