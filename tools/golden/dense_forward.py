"""A dense decoder's forward pass in NumPy: llama, qwen2, qwen3 and gemma3, no cache, float64 inside.

Written from the models' published descriptions, apart from the engine, so that
the two can disagree. Weights go by Hugging Face tensor names; matrices are
[out, in]. Everything is computed in float64 on the stored weights, so a
float32 engine is compared with a result that has no rounding of its own.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class DenseConfig:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    rope_base: float
    eps: float
    tied: bool
    qk_norm: bool  # RMSNorm over each head of q and k, before rope (qwen3)
    interleaved: bool = False  # rope pairs (2i, 2i+1), as GGUF `llama` rows want; else (i, i + head_dim/2)
    qkv_bias: bool = False  # qwen2
    gemma: bool = False  # embedding * sqrt(hidden), norms 1 + w, GELU (tanh), norms behind each block
    layer_types: tuple = ()  # "sliding_attention" or "full_attention"; (): all full
    window: int = 0  # positions that a sliding layer sees, its own included
    local_rope_base: float = 0.0  # of sliding layers
    query_scale: float = 0.0  # 0: head_dim ** -0.5

    @staticmethod
    def from_hf(config):
        """From a parsed config.json."""
        rope = config["rope_parameters"]
        gemma = config["model_type"] == "gemma3_text"
        more = {}
        if gemma:
            more = dict(
                gemma=True,
                layer_types=tuple(config["layer_types"]),
                window=config["sliding_window"],
                local_rope_base=rope["sliding_attention"]["rope_theta"],
                query_scale=config["query_pre_attn_scalar"] ** -0.5,
            )
            rope = rope["full_attention"]
        return DenseConfig(
            layers=config["num_hidden_layers"],
            hidden=config["hidden_size"],
            heads=config["num_attention_heads"],
            kv_heads=config["num_key_value_heads"],
            head_dim=config["head_dim"],
            intermediate=config["intermediate_size"],
            vocab=config["vocab_size"],
            rope_base=rope["rope_theta"],
            eps=config["rms_norm_eps"],
            tied=config["tie_word_embeddings"],
            qk_norm=config["model_type"] == "qwen3" or gemma,
            qkv_bias=config["model_type"] == "qwen2",
            **more,
        )


def shapes(config):
    """Name → shape of every tensor of the checkpoint."""
    hidden, inner, dim = config.hidden, config.intermediate, config.head_dim
    result = {"model.embed_tokens.weight": (config.vocab, hidden), "model.norm.weight": (hidden,)}
    if not config.tied:
        result["lm_head.weight"] = (config.vocab, hidden)
    for layer in range(config.layers):
        at = f"model.layers.{layer}."
        result[at + "input_layernorm.weight"] = (hidden,)
        result[at + "post_attention_layernorm.weight"] = (hidden,)
        if config.gemma:
            result[at + "pre_feedforward_layernorm.weight"] = (hidden,)
            result[at + "post_feedforward_layernorm.weight"] = (hidden,)
        if config.qkv_bias:
            result[at + "self_attn.q_proj.bias"] = (config.heads * dim,)
            result[at + "self_attn.k_proj.bias"] = (config.kv_heads * dim,)
            result[at + "self_attn.v_proj.bias"] = (config.kv_heads * dim,)
        result[at + "self_attn.q_proj.weight"] = (config.heads * dim, hidden)
        result[at + "self_attn.k_proj.weight"] = (config.kv_heads * dim, hidden)
        result[at + "self_attn.v_proj.weight"] = (config.kv_heads * dim, hidden)
        result[at + "self_attn.o_proj.weight"] = (hidden, config.heads * dim)
        result[at + "mlp.gate_proj.weight"] = (inner, hidden)
        result[at + "mlp.up_proj.weight"] = (inner, hidden)
        result[at + "mlp.down_proj.weight"] = (hidden, inner)
        if config.qk_norm:
            result[at + "self_attn.q_norm.weight"] = (dim,)
            result[at + "self_attn.k_norm.weight"] = (dim,)
    return result


def random_weights(config, rng, embedding_std=1.0):
    """Every tensor random, norms too: 1 + 0.2 n for norms (0.2 n where they are zero-centred), 0.5 n for
    biases, 1.2 / sqrt(fan-in) n for matrices."""
    weights = {}
    for name, shape in sorted(shapes(config).items()):
        noise = rng.standard_normal(shape)
        if name.endswith(".bias"):
            weights[name] = (0.5 * noise).astype(np.float32)
        elif len(shape) == 1:
            weights[name] = ((0 if config.gemma else 1) + 0.2 * noise).astype(np.float32)
        elif name == "model.embed_tokens.weight":
            weights[name] = (embedding_std * noise).astype(np.float32)
        elif name == "lm_head.weight":
            weights[name] = (3 / np.sqrt(config.hidden) * noise).astype(np.float32)
        else:
            weights[name] = (1.2 / np.sqrt(shape[1]) * noise).astype(np.float32)
    return weights


def _rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def _rope(x, config, base):
    """x: [tokens, heads, head_dim], positions 0… ."""
    dim = config.head_dim
    frequency = base ** (-np.arange(0, dim, 2) / dim)
    angle = np.arange(x.shape[0])[:, None, None] * frequency
    cos, sin = np.cos(angle), np.sin(angle)
    first, second = (x[..., 0::2], x[..., 1::2]) if config.interleaved else (x[..., : dim // 2], x[..., dim // 2 :])
    rotated = (first * cos - second * sin, first * sin + second * cos)
    if config.interleaved:
        return np.stack(rotated, axis=-1).reshape(x.shape)
    return np.concatenate(rotated, axis=-1)


def forward(weights, config, tokens):
    """Returns (logits [tokens, vocab], hidden): hidden[0] the embedding, hidden[l] the output of
    layer l, except the last, which is after the final norm. float64.
    """
    count = len(tokens)
    dim, groups = config.head_dim, config.heads // config.kv_heads
    embedding = weights["model.embed_tokens.weight"].astype(np.float64)
    x = embedding[np.asarray(tokens)]
    if config.gemma:
        x = x * np.sqrt(config.hidden)
    hidden = [x]
    scale = config.query_scale or dim**-0.5
    causal = np.triu(np.full((count, count), -np.inf), 1)
    distance = np.arange(count)[:, None] - np.arange(count)[None, :]
    windowed = np.where(distance < config.window, causal, -np.inf)
    for layer in range(config.layers):
        sliding = bool(config.layer_types) and config.layer_types[layer] == "sliding_attention"
        base = config.local_rope_base if sliding else config.rope_base

        def weight(name, at=f"model.layers.{layer}."):
            return weights[at + name + ".weight"].astype(np.float64)

        def norm(name):
            return weight(name) + (1 if config.gemma else 0)

        def projected(x, name, at=f"model.layers.{layer}."):
            result = x @ weight(name).T
            return result + weights[at + name + ".bias"].astype(np.float64) if config.qkv_bias else result

        normed = _rms_norm(x, norm("input_layernorm"), config.eps)
        q = projected(normed, "self_attn.q_proj").reshape(count, config.heads, dim)
        k = projected(normed, "self_attn.k_proj").reshape(count, config.kv_heads, dim)
        v = projected(normed, "self_attn.v_proj").reshape(count, config.kv_heads, dim)
        if config.qk_norm:
            q = _rms_norm(q, norm("self_attn.q_norm"), config.eps)
            k = _rms_norm(k, norm("self_attn.k_norm"), config.eps)
        q, k = _rope(q, config, base), _rope(k, config, base)
        attended = np.empty_like(q)
        for head in range(config.heads):
            scores = q[:, head] @ k[:, head // groups].T * scale + (windowed if sliding else causal)
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            attended[:, head] = scores @ v[:, head // groups] / scores.sum(axis=-1, keepdims=True)
        delta = attended.reshape(count, -1) @ weight("self_attn.o_proj").T
        if config.gemma:
            delta = _rms_norm(delta, norm("post_attention_layernorm"), config.eps)
        x = x + delta

        before = "pre_feedforward_layernorm" if config.gemma else "post_attention_layernorm"
        normed = _rms_norm(x, norm(before), config.eps)
        gate = normed @ weight("mlp.gate_proj").T
        up = normed @ weight("mlp.up_proj").T
        if config.gemma:
            active = 0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
        else:
            active = gate / (1 + np.exp(-gate))
        delta = (active * up) @ weight("mlp.down_proj").T
        if config.gemma:
            delta = _rms_norm(delta, norm("post_feedforward_layernorm"), config.eps)
        x = x + delta
        hidden.append(x)
    final = weights["model.norm.weight"].astype(np.float64) + (1 if config.gemma else 0)
    hidden[-1] = _rms_norm(x, final, config.eps)
    head = embedding if config.tied else weights["lm_head.weight"].astype(np.float64)
    return hidden[-1] @ head.T, hidden


def record(weights, config, prompts, steps, hidden_of=None):
    """Runs every prompt; returns (tensors of oracle.safetensors, prompt entries of oracle.json).

    Greedy continuation by full recompute, ties to the lower index; no stop at end-of-sequence.
    """
    tensors, entries = {}, []
    for i, prompt in enumerate(prompts):
        tokens = [int(t) for t in prompt]
        logits, hidden = forward(weights, config, tokens)
        kept = logits[-64:]
        tensors[f"p{i}.tokens"] = np.array(tokens, np.int32)
        tensors[f"p{i}.logits"] = kept.astype(np.float32)
        if i == hidden_of:
            for layer, value in enumerate(hidden):
                tensors[f"p{i}.hidden.{layer}"] = value.astype(np.float32)
        greedy, margin, last = [], np.inf, logits[-1]
        for step in range(steps):
            second, first = np.sort(last)[-2:]
            margin = min(margin, first - second)
            greedy.append(int(np.argmax(last)))
            if step + 1 < steps:
                last = forward(weights, config, tokens + greedy)[0][-1]
        tensors[f"p{i}.greedy"] = np.array(greedy, np.int32)
        entries.append(
            {
                "length": len(tokens),
                "min_top2_margin": float(margin),
                "greedy": greedy,
                "logit_std": float(kept.std()),
            }
        )
    return tensors, entries
