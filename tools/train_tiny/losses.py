"""The training loss: the model's next token, and the MTP layer's tokens one to three further, each
pass fed with the hidden state that the pass before it gave, as drafting does."""
import torch
import torch.nn.functional as F

from model import Tiny

DEPTHS = 3
DEPTH_WEIGHTS = (0.5, 0.3, 0.2)


def cross_entropy(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def soft_loss(logits, targets, teacher, soft: float):
    """A mix of the true token and of what a teacher expects there. A draft's teacher is the model
    itself, since that is what a draft is verified against."""
    log_q = F.log_softmax(logits, -1)
    hard = F.nll_loss(log_q.flatten(0, 1), targets.flatten())
    return (1 - soft) * hard - soft * (teacher * log_q).sum(-1).mean()


class Teachers:
    """Trained models whose mean expectation a model learns from, beside the text (Hinton et al.
    2015): it says more about a position than the one token that stands there, and so is harder to
    learn by heart. `share` of the loss is against it."""

    def __init__(self, models: list[Tiny], share: float):
        self.models, self.share = models, share

    @torch.no_grad()
    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """[B, T] to probabilities [B, T, vocabulary]."""
        return sum(model(tokens).softmax(-1) for model in self.models) / len(self.models)


def losses(model: Tiny, tokens: torch.Tensor, soft: float, teachers: Teachers,
           drafts: bool = True) -> torch.Tensor:
    """tokens [B, T + AHEAD]. Returns the model's loss and that of each depth (zeros without)."""
    length = tokens.shape[1] - DEPTHS - 1
    hidden = model.hidden(tokens[:, :length])
    logits, targets = model.head(model.drop(hidden)), tokens[:, 1:length + 1]
    if teachers.models:
        parts = [soft_loss(logits, targets, teachers(tokens[:, :length]), teachers.share)]
    else:
        parts = [cross_entropy(logits, targets)]
    if not drafts:
        return F.pad(parts[0][None], (0, DEPTHS))
    with torch.no_grad():
        teacher = model.head(hidden).softmax(-1)
    earlier, rows = (), length - DEPTHS  # those whose own expectation is known, at every depth
    for depth in range(1, DEPTHS + 1):
        hidden, pair = model.draft(hidden, tokens[:, depth:depth + length], earlier)
        earlier += (pair,)
        parts.append(soft_loss(model.head(hidden[:, :rows]),
                               tokens[:, depth + 1:depth + 1 + rows],
                               teacher[:, depth:depth + rows], soft))
    return torch.stack(parts)


def total(parts: torch.Tensor, mtp_weight: float) -> torch.Tensor:
    return parts[0] + mtp_weight * sum(w * part for w, part in zip(DEPTH_WEIGHTS, parts[1:]))


@torch.no_grad()
def measure(model: Tiny, tokens: torch.Tensor, token_bytes: torch.Tensor) -> dict[str, float]:
    """Sums over windows [B, T + AHEAD]: nats and bytes of the targets, and by depth how many drafts
    were proposed and equal the model's own choice, on the text's tokens (teacher-forced)."""
    length = tokens.shape[1] - DEPTHS - 1
    hidden = model.hidden(tokens[:, :length])
    logits = model.head(hidden)
    targets = tokens[:, 1:length + 1]
    sums = {"nats": float(F.cross_entropy(logits.flatten(0, 1), targets.flatten(),
                                          reduction="sum")),
            "bytes": int(token_bytes[targets].sum())}
    choice = logits.argmax(-1)
    earlier = ()
    for depth in range(1, DEPTHS + 1):
        hidden, pair = model.draft(hidden, tokens[:, depth:depth + length], earlier)
        earlier += (pair,)
        drafts = model.head(hidden[:, :length - depth]).argmax(-1)
        sums[f"accepted {depth}"] = int((drafts == choice[:, depth:]).sum())
        sums[f"drafted {depth}"] = drafts.numel()
    return sums


def add(into: dict[str, float], more: dict[str, float]) -> None:
    for key, value in more.items():
        into[key] = into.get(key, 0) + value
