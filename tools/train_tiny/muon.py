"""Muon (Jordan et al. 2024; the scaling of Liu et al. 2025, arXiv:2502.16982): momentum of a matrix
is made orthogonal before it is applied, so that all its directions move alike.

    m = momentum m + g;  w = (1 - rate decay) w - rate 0.2 sqrt(max(rows, columns)) orth(g + momentum m)

With that factor an update is as large as one of AdamW, and learning rate and weight decay are
AdamW's. Matrices of one shape are done in one batch; no step asks the host, so that it can be part
of a CUDA graph.
"""
import torch

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the Newton-Schulz iteration, Jordan's
ITERATIONS = 5


def orthogonal(x: torch.Tensor) -> torch.Tensor:
    """[n, rows, columns]: roughly U V^T of each x = U S V^T; in bfloat16 on a GPU."""
    tall = x.shape[-2] > x.shape[-1]
    y = x.to(torch.bfloat16 if x.is_cuda else torch.float32)
    y = y.transpose(-1, -2) if tall else y
    y = y / (y.square().sum((-1, -2), keepdim=True).sqrt() + 1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(ITERATIONS):
        gram = y @ y.transpose(-1, -2)
        y = a * y + (b * gram + c * gram @ gram) @ y
    return (y.transpose(-1, -2) if tall else y).to(x.dtype)


class Muon(torch.optim.Optimizer):
    """lr may be a tensor on the device, to be changed between replays of a graph."""

    def __init__(self, matrices, lr, weight_decay: float, momentum: float = 0.95):
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            shapes: dict = {}
            for p in group["params"]:
                if p.grad is not None:
                    shapes.setdefault(p.shape, []).append(p)
            for some in shapes.values():
                self.step_alike(some, group)

    def step_alike(self, some: list, group: dict) -> None:
        momentum = group["momentum"]
        for p in some:
            if "momentum" not in self.state[p]:
                self.state[p]["momentum"] = torch.zeros_like(p)
        kept = [self.state[p]["momentum"] for p in some]
        gradients = [p.grad for p in some]
        torch._foreach_mul_(kept, momentum)
        torch._foreach_add_(kept, gradients)
        ahead = torch._foreach_add(gradients, kept, alpha=momentum)
        updates = orthogonal(torch.stack(ahead)) * (0.2 * max(some[0].shape) ** 0.5)
        for p, update in zip(some, updates):
            p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update * group["lr"])
