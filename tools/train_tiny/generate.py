"""Text from the model, and what its drafts are worth along that text."""
import torch

from decoder import Decoder
from losses import DEPTHS
from model import Tiny


def pick(logits: torch.Tensor, temperature: float, top_p: float, generator) -> torch.Tensor:
    """[B, vocabulary] to [B]; greedy at temperature 0."""
    if temperature == 0:
        return logits.argmax(-1)
    probabilities, ids = (logits / temperature).softmax(-1).sort(-1, descending=True)
    probabilities[probabilities.cumsum(-1) - probabilities > top_p] = 0
    chosen = torch.multinomial(probabilities.cpu(), 1, generator=generator)
    return ids.gather(-1, chosen.to(ids.device))[:, 0]


@torch.no_grad()
def generate(model: Tiny, prompts: torch.Tensor, count: int, temperature: float = 0,
             top_p: float = 1, seed: int = 1) -> torch.Tensor:
    """prompts [B, P] to [B, P + count]."""
    generator = torch.Generator().manual_seed(seed)
    size = prompts.shape[1]
    decoder = Decoder(model, len(prompts), size + count, str(prompts.device))
    columns = list(prompts.unbind(1))
    for t in range(size + count - 1):
        logits = decoder(columns[t])
        if t + 1 >= size:
            columns.append(pick(logits, temperature, top_p, generator))
    return torch.stack(columns, 1)


@torch.no_grad()
def drafts_along(model: Tiny, tokens: torch.Tensor) -> torch.Tensor:
    """What the head would draft behind every position, each depth fed with the drafts before it:
    [B, T - 1, DEPTHS]; row t, depth d is a proposal for position t + 1 + d."""
    hidden = model.hidden(tokens)[:, :-1]
    given, earlier, drafts = tokens[:, 1:], (), []
    for _ in range(DEPTHS):
        hidden, pair = model.draft(hidden, given, earlier)
        earlier += (pair,)
        given = model.head(hidden).argmax(-1)
        drafts.append(given)
    return torch.stack(drafts, -1)


def walk(tokens: list[int], drafts: list[list[int]], first: int) -> tuple[list[int], list[int],
                                                                         int]:
    """Speculative decoding over a text that the model itself chose from position `first` on: drafts
    reached and accepted by depth, and passes."""
    reached, accepted, passes = [0] * DEPTHS, [0] * DEPTHS, 0
    at = first - 1  # the last position whose successor is known from the model
    while at + 1 + DEPTHS < len(tokens):
        passes += 1
        length = 0
        for depth in range(DEPTHS):
            reached[depth] += 1
            if drafts[at][depth] != tokens[at + 2 + depth]:
                break
            accepted[depth] += 1
            length += 1
        at += length + 1
    return reached, accepted, passes
