"""A qwen3_5 text model with one MTP layer, in plain PyTorch: names of tensors as on the hub, maths
as in docs/models.md and transformers 5.17.0 (Qwen3_5ForCausalLM). For training and evaluation; no
caches, every call runs whole windows from position 0.
"""
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import nn

from delta import gated_delta_rule


@dataclass(frozen=True)
class Config:
    """Keys and meanings of the hub's config.json."""
    vocab_size: int = 4096
    hidden_size: int = 256
    intermediate_size: int = 512
    num_hidden_layers: int = 8
    full_attention_interval: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    partial_rotary_factor: float = 0.25
    rope_theta: float = 10000.0
    linear_num_key_heads: int = 2
    linear_num_value_heads: int = 4
    linear_key_head_dim: int = 64
    linear_value_head_dim: int = 64
    linear_conv_kernel_dim: int = 4
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = True

    @property
    def layer_types(self) -> list[str]:
        return ["full_attention" if i % self.full_attention_interval == 0 else "linear_attention"
                for i in range(1, self.num_hidden_layers + 1)]

    @property
    def rope_dims(self) -> int:
        return int(self.head_dim * self.partial_rotary_factor)

    def hub(self, eos: int) -> dict:
        """The config.json of the exported folder."""
        half = self.rope_dims // 2
        section = [half - 2 * (half // 3), half // 3, half // 3]  # plain rope, for text
        keys = asdict(self)
        theta, share = keys.pop("rope_theta"), keys.pop("partial_rotary_factor")
        return {
            "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text",
            "dtype": "bfloat16", **keys, "layer_types": self.layer_types,
            "partial_rotary_factor": share,
            "rope_parameters": {"rope_type": "default", "rope_theta": theta,
                                "partial_rotary_factor": share, "mrope_interleaved": True,
                                "mrope_section": section},
            "attention_bias": False, "attention_dropout": 0.0, "attn_output_gate": True,
            "hidden_act": "silu", "initializer_range": 0.02, "mtp_num_hidden_layers": 1,
            "mtp_use_dedicated_embeddings": False, "use_cache": True,
            "bos_token_id": None, "eos_token_id": eos, "pad_token_id": None,
        }

    @staticmethod
    def of_hub(keys: dict) -> "Config":
        """From a config.json; one that says what this file does not compute fails where used."""
        rope = keys.get("rope_parameters", {})
        known = {name: keys[name] for name in Config.__dataclass_fields__ if name in keys}
        known |= {name: rope[name] for name in ("rope_theta", "partial_rotary_factor")
                  if name in rope}
        known.setdefault("full_attention_interval",
                         keys["layer_types"].index("full_attention") + 1)
        return Config(**known)


class Lookup(torch.autograd.Function):
    """Rows of a table; the gradient is added up without sorting, which a CUDA graph can record."""

    @staticmethod
    def forward(ctx, table, rows):
        ctx.save_for_backward(rows)
        ctx.shape = table.shape
        return F.embedding(rows, table)

    @staticmethod
    def backward(ctx, gradient):
        (rows,) = ctx.saved_tensors
        table = gradient.new_zeros(ctx.shape)
        return table.index_add_(0, rows.flatten(), gradient.flatten(0, -2)), None


class Linear(nn.Module):
    """y = x W^T in x's type; the weight is kept in float32."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype))


class Norm(nn.Module):
    """Zero-centred RMSNorm, computed in float32; the result is of type `dtype`."""

    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))
        self.eps = eps

    def forward(self, x, dtype):
        x = x.float()
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)
        return (x * (1 + self.weight)).to(dtype)


class GatedNorm(nn.Module):
    """RMSNorm times w (not zero-centred), then times silu(z)."""

    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x, z):
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)
        return x * self.weight * F.silu(z.float())


class Rope:
    """cos and sin of `length` positions from `first` on, for the first rope_dims of a head."""

    def __init__(self, config: Config, length: int, first: int, device):
        steps = torch.arange(0, config.rope_dims, 2, dtype=torch.float32, device=device)
        frequencies = config.rope_theta ** (-steps / config.rope_dims)
        positions = torch.arange(first, first + length, dtype=torch.float32, device=device)
        angles = (positions[:, None] * frequencies).repeat(1, 2)[:, None, :]
        self.cos, self.sin, self.dims = angles.cos(), angles.sin(), config.rope_dims

    def __call__(self, x):
        """x [B, T, heads, head_dim], rotated by halves."""
        turned, rest = x[..., :self.dims].float(), x[..., self.dims:]
        low, high = turned.chunk(2, -1)
        turned = turned * self.cos + torch.cat((-high, low), -1) * self.sin
        return torch.cat((turned.to(x.dtype), rest), -1)


class Attention(nn.Module):
    """Grouped-query attention with norms of q and k and a sigmoid gate on its output."""

    def __init__(self, c: Config):
        super().__init__()
        self.heads, self.kv_heads, self.dim = (c.num_attention_heads, c.num_key_value_heads,
                                               c.head_dim)
        self.q_proj = Linear(c.hidden_size, 2 * self.heads * self.dim)
        self.k_proj = Linear(c.hidden_size, self.kv_heads * self.dim)
        self.v_proj = Linear(c.hidden_size, self.kv_heads * self.dim)
        self.o_proj = Linear(self.heads * self.dim, c.hidden_size)
        self.q_norm = Norm(c.head_dim, c.rms_norm_eps)
        self.k_norm = Norm(c.head_dim, c.rms_norm_eps)

    def forward(self, x, rope: Rope, earlier=()):
        """earlier: keys and values of shallower drafts, empty for a causal pass. Of the first of
        them a row sees those up to its own index, of the others and its own keys that of its
        index. Returns the output and this pass's keys and values."""
        q, gate = self.q_proj(x).unflatten(-1, (self.heads, 2 * self.dim)).chunk(2, -1)
        k = self.k_proj(x).unflatten(-1, (self.kv_heads, self.dim))
        v = self.v_proj(x).unflatten(-1, (self.kv_heads, self.dim))
        q = rope(self.q_norm(q, x.dtype))
        k = rope(self.k_norm(k, x.dtype))
        q, k, v = (t.transpose(1, 2) for t in (q, self.repeat(k), self.repeat(v)))
        if not earlier:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            one = torch.eye(x.shape[1], dtype=torch.bool, device=x.device)
            lower = torch.ones_like(one).tril()
            mask = torch.cat([lower] + [one] * len(earlier), 1)
            keys = torch.cat([pair[0] for pair in earlier] + [k], 2)
            values = torch.cat([pair[1] for pair in earlier] + [v], 2)
            out = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        out = out.transpose(1, 2) * torch.sigmoid(gate)
        return self.o_proj(out.flatten(2)), (k, v)

    def repeat(self, x):
        return x.repeat_interleave(self.heads // self.kv_heads, 2)


class DeltaNet(nn.Module):
    """Gated delta net: one causal convolution over q, k and v of all heads, the gated delta rule,
    a gated norm."""

    def __init__(self, c: Config):
        super().__init__()
        self.c = c
        self.key_width = c.linear_num_key_heads * c.linear_key_head_dim
        self.value_width = c.linear_num_value_heads * c.linear_value_head_dim
        channels = 2 * self.key_width + self.value_width
        self.in_proj_qkv = Linear(c.hidden_size, channels)
        self.in_proj_z = Linear(c.hidden_size, self.value_width)
        self.in_proj_b = Linear(c.hidden_size, c.linear_num_value_heads)
        self.in_proj_a = Linear(c.hidden_size, c.linear_num_value_heads)
        self.conv1d = nn.Module()
        self.conv1d.weight = nn.Parameter(torch.empty(channels, 1, c.linear_conv_kernel_dim))
        self.A_log = nn.Parameter(torch.empty(c.linear_num_value_heads))
        self.dt_bias = nn.Parameter(torch.empty(c.linear_num_value_heads))
        self.norm = GatedNorm(c.linear_value_head_dim, c.rms_norm_eps)
        self.out_proj = Linear(self.value_width, c.hidden_size)

    def convolve(self, x):
        """x [B, T, channels]; silu behind it."""
        width = self.c.linear_conv_kernel_dim
        padded = F.pad(x, (0, 0, width - 1, 0))
        weight = self.conv1d.weight[:, 0].to(x.dtype)
        y = sum(padded[:, j:j + x.shape[1]] * weight[:, j] for j in range(width))
        return F.silu(y)

    def forward(self, x):
        c = self.c
        groups = c.linear_num_value_heads // c.linear_num_key_heads
        qkv = self.convolve(self.in_proj_qkv(x)).float()
        q, k, v = qkv.split((self.key_width, self.key_width, self.value_width), -1)
        q, k = (unit(t.unflatten(-1, (-1, c.linear_key_head_dim))).repeat_interleave(groups, 2)
                for t in (q, k))
        v = v.unflatten(-1, (-1, c.linear_value_head_dim))
        a, b = self.in_proj_a(x).float(), self.in_proj_b(x).float()
        g = -self.A_log.exp() * F.softplus(a + self.dt_bias)
        out = gated_delta_rule(q * c.linear_key_head_dim ** -0.5, k, v, g, torch.sigmoid(b))
        z = self.in_proj_z(x).unflatten(-1, (-1, c.linear_value_head_dim))
        return self.out_proj(self.norm(out, z).to(x.dtype).flatten(2))


def unit(x):
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


class Mlp(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.gate_proj = Linear(c.hidden_size, c.intermediate_size)
        self.up_proj = Linear(c.hidden_size, c.intermediate_size)
        self.down_proj = Linear(c.intermediate_size, c.hidden_size)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """x is the residual stream in float32; branches compute in type `dtype`."""

    def __init__(self, c: Config, kind: str, dropout: float):
        super().__init__()
        self.attends = kind == "full_attention"
        if self.attends:
            self.self_attn = Attention(c)
        else:
            self.linear_attn = DeltaNet(c)
        self.mlp = Mlp(c)
        self.input_layernorm = Norm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = Norm(c.hidden_size, c.rms_norm_eps)
        self.dropout = dropout

    def forward(self, x, rope: Rope, dtype, earlier=()):
        y, pair = self.input_layernorm(x, dtype), None
        if self.attends:
            y, pair = self.self_attn(y, rope, earlier)
        else:
            y = self.linear_attn(y)
        x = x + F.dropout(y, self.dropout, self.training).float()
        y = self.mlp(self.post_attention_layernorm(x, dtype))
        return x + F.dropout(y, self.dropout, self.training).float(), pair


class Trunk(nn.Module):
    def __init__(self, c: Config, dropout: float):
        super().__init__()
        self.embed_tokens = nn.Module()
        self.embed_tokens.weight = nn.Parameter(torch.empty(c.vocab_size, c.hidden_size))
        self.layers = nn.ModuleList(Layer(c, kind, dropout) for kind in c.layer_types)
        self.norm = Norm(c.hidden_size, c.rms_norm_eps)


class Mtp(nn.Module):
    """h' = norm(layer(fc [norm_e(embedding of the next token), norm_h(h)]))."""

    def __init__(self, c: Config, dropout: float):
        super().__init__()
        self.pre_fc_norm_embedding = Norm(c.hidden_size, c.rms_norm_eps)
        self.pre_fc_norm_hidden = Norm(c.hidden_size, c.rms_norm_eps)
        self.fc = Linear(2 * c.hidden_size, c.hidden_size)
        self.layers = nn.ModuleList([Layer(c, "full_attention", dropout)])
        self.norm = Norm(c.hidden_size, c.rms_norm_eps)

    def forward(self, hidden, embedded, rope, dtype, earlier):
        joined = torch.cat((self.pre_fc_norm_embedding(embedded, dtype),
                            self.pre_fc_norm_hidden(hidden, dtype)), -1)
        x, pair = self.layers[0](self.fc(joined).float(), rope, dtype, earlier)
        return self.norm(x, dtype), pair


class Tiny(nn.Module):
    """dtype: of the matmuls (bfloat16 on a GPU); weights are kept in float32."""

    def __init__(self, config: Config, dropout: float = 0.0, dtype=torch.float32):
        super().__init__()
        self.config, self.dropout, self.dtype = config, dropout, dtype
        self.model = Trunk(config, dropout)
        self.mtp = Mtp(config, dropout)
        if not config.tie_word_embeddings:
            self.lm_head = Linear(config.hidden_size, config.vocab_size)

    def embed(self, tokens):
        return self.drop(Lookup.apply(self.model.embed_tokens.weight, tokens))

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training)

    def head(self, hidden):
        weight = (self.model.embed_tokens if self.config.tie_word_embeddings
                  else self.lm_head).weight
        return F.linear(hidden.to(self.dtype), weight.to(self.dtype)).float()

    def hidden(self, tokens):
        """[B, T] to what the final norm leaves, [B, T, hidden]."""
        rope = Rope(self.config, tokens.shape[1], 0, tokens.device)
        x = self.embed(tokens).float()
        for layer in self.model.layers:
            x, _ = layer(x, rope, self.dtype)
        return self.model.norm(x, self.dtype)

    def forward(self, tokens):
        """[B, T] to logits [B, T, vocabulary] in float32."""
        return self.head(self.hidden(tokens))

    def draft(self, hidden, tokens, earlier=()):
        """One pass of the MTP layer. Row t of `hidden` [B, T, hidden] is the main model's of
        position t at first and this head's own later, that of `tokens` the token at position
        t + 1 + len(earlier). Returns h' and the keys and values for deeper passes; head(h')
        proposes the token behind that one."""
        rope = Rope(self.config, tokens.shape[1], len(earlier), tokens.device)
        return self.mtp(hidden, self.embed(tokens).float(), rope, self.dtype, earlier)


def initialise(model: Tiny, seed: int) -> None:
    """Normal weights (output projections scaled by depth), decays spread as in Mamba 2."""
    generator = torch.Generator().manual_seed(seed)
    depth_scale = (2 * (model.config.num_hidden_layers + 1)) ** -0.5
    for name, weight in model.named_parameters():
        if name.endswith("A_log"):
            weight.data = torch.empty_like(weight).uniform_(1, 16, generator=generator).log()
        elif name.endswith("dt_bias"):
            span = torch.empty_like(weight).uniform_(-6.9, -2.3, generator=generator).exp()
            weight.data = span + torch.log(-torch.expm1(-span))  # softplus^-1 of 0.001 to 0.1
        elif name.endswith("conv1d.weight"):
            weight.data.uniform_(-0.5, 0.5, generator=generator)
        elif weight.dim() == 2:
            scale = depth_scale if name.endswith(("o_proj.weight", "out_proj.weight",
                                                  "down_proj.weight")) else 1.0
            weight.data.normal_(0, 0.02 * scale, generator=generator)


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())
