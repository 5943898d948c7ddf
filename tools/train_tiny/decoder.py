"""The model a position at a time, many sequences at once, for generating text."""
import torch
import torch.nn.functional as F

from model import Attention, DeltaNet, Rope, Tiny, unit


class Decoder:
    """A model a position at a time, for a batch of sequences: keys and values, tails of the
    convolutions and states of the delta rule are kept."""

    def __init__(self, model: Tiny, batch: int, length: int, device: str):
        c = model.config
        self.model, self.at = model, 0
        self.rope = Rope(c, length, 0, device)
        self.kept = []
        for kind in c.layer_types:
            if kind == "full_attention":
                shape = (batch, c.num_key_value_heads, length, c.head_dim)
                self.kept.append([torch.zeros(shape, dtype=model.dtype, device=device)
                                  for _ in "kv"])
            else:
                channels = (2 * c.linear_num_key_heads * c.linear_key_head_dim
                            + c.linear_num_value_heads * c.linear_value_head_dim)
                tail = torch.zeros(batch, c.linear_conv_kernel_dim - 1, channels,
                                   dtype=model.dtype, device=device)
                self.kept.append([tail, torch.zeros(
                    batch, c.linear_num_value_heads, c.linear_key_head_dim,
                    c.linear_value_head_dim, device=device)])

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """[B] to logits [B, vocabulary]."""
        model = self.model
        x = F.embedding(tokens, model.model.embed_tokens.weight).float()
        for layer, kept in zip(model.model.layers, self.kept):
            y = layer.input_layernorm(x, model.dtype)
            x = x + (self.attend(layer.self_attn, y, kept) if layer.attends
                     else self.delta(layer.linear_attn, y, kept)).float()
            x = x + layer.mlp(layer.post_attention_layernorm(x, model.dtype)).float()
        self.at += 1
        return model.head(model.model.norm(x, model.dtype))

    def turn(self, x: torch.Tensor) -> torch.Tensor:
        """Rope at this position; x [B, heads, head_dim]."""
        turned, rest = x[..., :self.rope.dims].float(), x[..., self.rope.dims:]
        low, high = turned.chunk(2, -1)
        turned = (turned * self.rope.cos[self.at]
                  + torch.cat((-high, low), -1) * self.rope.sin[self.at])
        return torch.cat((turned.to(x.dtype), rest), -1)

    def attend(self, layer: Attention, x: torch.Tensor, kept: list) -> torch.Tensor:
        keys, values = kept
        q, gate = layer.q_proj(x).unflatten(-1, (layer.heads, 2 * layer.dim)).chunk(2, -1)
        k = layer.k_proj(x).unflatten(-1, (layer.kv_heads, layer.dim))
        q, k = self.turn(layer.q_norm(q, x.dtype)), self.turn(layer.k_norm(k, x.dtype))
        keys[:, :, self.at] = k
        values[:, :, self.at] = layer.v_proj(x).unflatten(-1, (layer.kv_heads, layer.dim))
        seen = slice(0, self.at + 1)  # a KV head's query heads are rows of one small matrix
        out = F.scaled_dot_product_attention(q.unflatten(1, (layer.kv_heads, -1)),
                                             keys[:, :, seen], values[:, :, seen])
        return layer.o_proj((out.flatten(1, 2) * torch.sigmoid(gate)).flatten(1))

    @staticmethod
    def delta(layer: DeltaNet, x: torch.Tensor, kept: list) -> torch.Tensor:
        c = layer.c
        window = torch.cat((kept[0], layer.in_proj_qkv(x)[:, None]), 1)
        kept[0] = window[:, 1:]
        qkv = F.silu((window * layer.conv1d.weight[:, 0].t().to(x.dtype)).sum(1)).float()
        q, k, v = qkv.split((layer.key_width, layer.key_width, layer.value_width), -1)
        groups = c.linear_num_value_heads // c.linear_num_key_heads
        q, k = (unit(t.unflatten(-1, (-1, c.linear_key_head_dim))).repeat_interleave(groups, 1)
                for t in (q, k))
        v = v.unflatten(-1, (-1, c.linear_value_head_dim))
        decay = torch.exp(-layer.A_log.exp() * F.softplus(layer.in_proj_a(x).float()
                                                          + layer.dt_bias))
        beta = torch.sigmoid(layer.in_proj_b(x).float())[..., None]
        memory = kept[1].mul_(decay[..., None, None])
        u = beta * (v - (k[..., None, :] @ memory)[..., 0, :])
        memory.view(-1, *memory.shape[2:]).baddbmm_(k.flatten(0, 1)[..., None],
                                                    u.flatten(0, 1)[..., None, :])
        out = (q[..., None, :] @ memory)[..., 0, :] * c.linear_key_head_dim ** -0.5
        z = layer.in_proj_z(x).unflatten(-1, (-1, c.linear_value_head_dim))
        return layer.out_proj(layer.norm(out, z).to(x.dtype).flatten(1))
