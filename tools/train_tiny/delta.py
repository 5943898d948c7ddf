"""The gated delta rule (Yang et al. 2024, arXiv:2412.06464) in its chunked form, by batched matmuls.

With S of [key_dim, value_dim] a position does, as src/kernels/recurrent_args.h has it:
    S = exp(g) S;  u = beta (v - S^T k);  S = S + k u^T;  out = S^T q
Over a chunk of C positions the u are the solution of a unit lower triangular system, so that a
chunk costs a few matmuls, and only the states between chunks are sequential (Yang et al. 2024,
arXiv:2406.06484, with decays as in the paper above).

Everything here is float32; on a GPU let its matmuls use TF32
(torch.set_float32_matmul_precision("high")).
"""
import torch
import torch.nn.functional as F

CHUNK = 64
BLOCK = 16  # inverted row by row, without matmuls, so that TF32 cannot spoil it


def _invert_blocks(a: torch.Tensor) -> torch.Tensor:
    """(I + a)^-1 of strictly lower triangular a [..., BLOCK, BLOCK], by forward substitution."""
    r = -a
    for i in range(1, a.shape[-1]):
        row = r[..., i, :i] + (r[..., i, :i, None] * r[..., :i, :i]).sum(-2)
        r = torch.cat((r[..., :i, :], F.pad(row, (0, a.shape[-1] - i))[..., None, :],
                       r[..., i + 1:, :]), -2)
    return r + torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)


def _diagonal_blocks(a: torch.Tensor, size: int) -> torch.Tensor:
    """[..., C, C] to [..., C / size, size, size]."""
    n = a.shape[-1] // size
    blocks = a.unflatten(-1, (n, size)).unflatten(-3, (n, size))  # [..., n, size, n, size]
    return torch.stack([blocks[..., i, :, i, :] for i in range(n)], -3)


def _invert(a: torch.Tensor) -> torch.Tensor:
    """(I + a)^-1 of strictly lower triangular a [..., C, C], C = BLOCK * 2^n."""
    x = _invert_blocks(_diagonal_blocks(a, BLOCK))
    size = BLOCK
    while size < a.shape[-1]:
        below = _diagonal_blocks(a, 2 * size)[..., size:, :size]
        upper, lower = x[..., 0::2, :, :], x[..., 1::2, :, :]
        corner = -lower @ below @ upper
        x = torch.cat((torch.cat((upper, torch.zeros_like(corner)), -1),
                       torch.cat((corner, lower), -1)), -2)
        size *= 2
    return x[..., 0, :, :]


class InvertUnitLower(torch.autograd.Function):
    """(I + a)^-1; the gradient needs the inverse alone: da = -x^T dx x^T below the diagonal."""

    @staticmethod
    def forward(ctx, a):
        x = _invert(a)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, dx):
        (x,) = ctx.saved_tensors
        t = x.transpose(-1, -2)
        return -(t @ dx @ t).tril(-1)


def _chunks(x: torch.Tensor) -> torch.Tensor:
    """[B, T, H, ...] to [B * H, T / CHUNK, CHUNK, ...]."""
    return x.unflatten(1, (-1, CHUNK)).movedim(3, 1).flatten(0, 1)


def system(k: torch.Tensor, g: torch.Tensor, beta: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Of each chunk: log decays from its start, decays between its positions, and the system's
    matrix below the diagonal."""
    total = g.cumsum(-1)
    above = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=k.device).triu(1)
    decay = (total[..., :, None] - total[..., None, :]).masked_fill(above, float("-inf")).exp()
    matrix = (((k * beta[..., None]) @ k.transpose(-1, -2)) * decay).tril(-1)
    return total, decay, matrix


def operands(q, k, v, beta, total, decay, inverse) -> tuple[torch.Tensor, ...]:
    """What the pass over the chunks needs of each: u and w, so that the new values are
    u - w S; scores within the chunk; q as it meets S, k as it enters S; the whole chunk's decay."""
    grown = total.exp()[..., None]
    u = inverse @ (v * beta[..., None])
    w = inverse @ (k * beta[..., None] * grown)
    within = (q @ k.transpose(-1, -2)) * decay
    k_out = (k * (total[..., -1:] - total).exp()[..., None]).transpose(-1, -2)
    return u, w, within, q * grown, k_out, total[..., -1].exp()[..., None, None]


def pass_over_chunks(u, w, within, q_in, k_out, last) -> torch.Tensor:
    """[B * H, T, dv]."""
    state = q_in.new_zeros(q_in.shape[0], q_in.shape[-1], u.shape[-1])
    rows = []
    for u, w, within, q_in, k_out, last in zip(*(x.unbind(1) for x in (u, w, within, q_in, k_out,
                                                                      last))):
        new = torch.baddbmm(u, w, state, alpha=-1)
        rows.append(torch.baddbmm(q_in @ state, within, new))
        state = torch.baddbmm(state * last, k_out, new)
    return torch.cat(rows, 1)


def gated_delta_rule(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor,
                     beta: torch.Tensor) -> torch.Tensor:
    """q, k [B, T, H, dk] normalised (q also scaled), v [B, T, H, dv], g (log decay) and beta
    [B, T, H]; float32. Returns [B, T, H, dv]. States begin at zero."""
    batch, length = q.shape[:2]
    if length % CHUNK != 0:  # zeros leave the state as it is
        pad = CHUNK - length % CHUNK
        q, k, v = (F.pad(x, (0, 0, 0, 0, 0, pad)) for x in (q, k, v))
        g, beta = (F.pad(x, (0, 0, 0, pad)) for x in (g, beta))
    q, k, v, g, beta = (_chunks(x) for x in (q, k, v, g, beta))
    total, decay, matrix = system(k, g, beta)
    inverse = InvertUnitLower.apply(matrix)
    out = pass_over_chunks(*operands(q, k, v, beta, total, decay, inverse))
    return out.unflatten(0, (batch, -1)).transpose(1, 2)[:, :length]


def gated_delta_rule_by_position(q, k, v, g, beta) -> torch.Tensor:
    """The same, position by position: what the chunked form is tested against."""
    state = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3])
    rows = []
    for t in range(q.shape[1]):
        state = state * g[:, t].exp()[..., None, None]
        u = beta[:, t][..., None] * (v[:, t] - torch.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state = state + k[:, t][..., None] * u[..., None, :]
        rows.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
    return torch.stack(rows, 1)
