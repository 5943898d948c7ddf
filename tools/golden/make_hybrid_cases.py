#!/usr/bin/env python3
"""Tiny hybrids with odd shapes and random weights, and what transformers computes for them.

    make_hybrid_cases.py --out DIR [--case NAME]...

A case is a folder of the layout that tests/golden/README.md describes: config.json,
model.safetensors (bfloat16), oracle.safetensors, oracle.json, with a head that drafts (mtp.*).
Everything is computed in float32, with eager attention and without a cache, on weights that
bfloat16 holds exactly. transformers has no such head; it is built here of the family's own layer:

    h'[t] = norm(layer(fc [norm_e(embedding(x[t+1])), norm_h(h[t])])),  logits = lm_head(h'[t])

Needs torch and transformers 5.17.0 (the committed cases: torch 2.15.0). `narrow` says where a path
is too narrow for another order of summation: choose another seed then.
"""

import argparse
import json
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import AutoModelForCausalLM
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig
from transformers.models.qwen3_5_moe.configuration_qwen3_5_moe import Qwen3_5MoeTextConfig
from transformers.models.qwen3_next.configuration_qwen3_next import Qwen3NextConfig

STEPS = 24
DEPTH = 3  # drafts behind prompt 3
SMALLEST_MARGIN = 2e-3  # of the two highest logits on a greedy path, and of a draft
LENGTHS = (1, 3, 11, 48, 5, 70)

DELTA, FULL = "linear_attention", "full_attention"
COMMON = {
    "bos_token_id": None,
    "eos_token_id": None,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
}


def _rope(base, share, sections=None):
    rope = {"rope_type": "default", "rope_theta": base, "partial_rotary_factor": share}
    if sections:
        rope.update(mrope_interleaved=True, mrope_section=sections)
    return rope


# name -> (configuration class, seed, prompt lengths, values)
CASES = {
    # One key head for three value heads of another size; attends first, and every other layer.
    "qwen3_5-h40": (Qwen3_5TextConfig, 1, LENGTHS, {
        "hidden_size": 40, "intermediate_size": 36, "num_hidden_layers": 4, "vocab_size": 97,
        "layer_types": [FULL, DELTA, FULL, DELTA], "num_attention_heads": 3,
        "num_key_value_heads": 1, "head_dim": 24, "linear_num_key_heads": 1,
        "linear_num_value_heads": 3, "linear_key_head_dim": 24, "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 3, "tie_word_embeddings": True,
        "rope_parameters": _rope(1e4, 0.5, [2, 2, 2]),
    }),
    # As many key heads as value heads; five experts of an odd width; ends without attention.
    "qwen3_5_moe-h36": (Qwen3_5MoeTextConfig, 2, LENGTHS, {
        "hidden_size": 36, "num_hidden_layers": 3, "vocab_size": 97,
        "layer_types": [DELTA, FULL, DELTA], "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 16, "linear_num_key_heads": 3, "linear_num_value_heads": 3,
        "linear_key_head_dim": 12, "linear_value_head_dim": 20, "linear_conv_kernel_dim": 4,
        "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 13,
        "shared_expert_intermediate_size": 20, "rope_parameters": _rope(1e6, 0.25, [1, 1, 0]),
    }),
    # Every expert but one is picked, by weights that are not divided by their sum; a KV head for
    # each query head; three value heads a key head.
    "qwen3_next-h32": (Qwen3NextConfig, 3, LENGTHS, {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "vocab_size": 97,
        "layer_types": [DELTA, DELTA, FULL, DELTA], "num_attention_heads": 3,
        "num_key_value_heads": 3, "head_dim": 20, "linear_num_key_heads": 2,
        "linear_num_value_heads": 6, "linear_key_head_dim": 16, "linear_value_head_dim": 8,
        "linear_conv_kernel_dim": 5, "num_experts": 4, "num_experts_per_tok": 3,
        "moe_intermediate_size": 12, "shared_expert_intermediate_size": 24,
        "norm_topk_prob": False, "rope_parameters": _rope(1e7, 0.4),
    }),
    # For a GGUF file that llama.cpp runs as well: key and value heads of one size, byte-level
    # vocabulary.
    "tiny-qwen35moe": (Qwen3_5MoeTextConfig, 4, (1, 2, 9, 24), {
        "hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 256,
        "layer_types": [DELTA, FULL], "num_attention_heads": 2, "num_key_value_heads": 1,
        "head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 6,
        "linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_conv_kernel_dim": 4,
        "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 12,
        "shared_expert_intermediate_size": 16, "rope_parameters": _rope(1e6, 0.5, [2, 1, 1]),
    }),
}


def take_plain_loops(config):
    """Attention and experts in simple tensor operations, whatever their sizes."""
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"


class DraftHead(nn.Module):
    """A model of one attending layer over what joins a hidden state and the next token."""

    def __init__(self, model):
        super().__init__()
        config = type(model.config)(
            **{**model.config.to_dict(), "num_hidden_layers": 1, "layer_types": [FULL]}
        )
        take_plain_loops(config)
        hidden = config.hidden_size
        norm = type(model.model.norm)
        self.decoder = type(model.model)(config)
        self.fc = nn.Linear(2 * hidden, hidden, bias=False)
        self.pre_fc_norm_embedding = norm(hidden, eps=config.rms_norm_eps)
        self.pre_fc_norm_hidden = norm(hidden, eps=config.rms_norm_eps)
        del self.decoder.embed_tokens

    def forward(self, embeddings, hidden):
        """[rows, hidden] each; what its norm leaves, [rows, hidden]."""
        parts = [self.pre_fc_norm_embedding(embeddings), self.pre_fc_norm_hidden(hidden)]
        joined = self.fc(torch.cat(parts, dim=-1))
        return self.decoder(inputs_embeds=joined[None], use_cache=False).last_hidden_state[0]

    def tensors(self):
        """By their names in a checkpoint."""
        named = {"mtp." + name.removeprefix("decoder."): t for name, t in self.state_dict().items()}
        return {name: tensor for name, tensor in named.items() if "rotary" not in name}


def randomise(module, generator):
    """Every parameter, none at what it is made with, and all exact in bfloat16."""
    for name, parameter in module.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if name.endswith("A_log"):
            values = 0.7 * noise
        elif name.endswith("dt_bias"):
            values = noise - 1
        elif name.endswith("linear_attn.norm.weight"):
            values = 1 + 0.2 * noise
        elif "norm" in name:
            values = 0.2 * noise  # zero-centred
        elif "embed_tokens" in name:
            values = noise
        elif "conv1d" in name:
            values = 0.5 * noise
        elif "lm_head" in name:
            values = 3 * noise / parameter.shape[-1] ** 0.5
        else:
            values = 1.3 * noise / parameter.shape[-1] ** 0.5
        parameter.data = values.to(torch.bfloat16).to(torch.float32)


def logits_and_hidden(model, tokens):
    """[T, vocabulary], and the residual stream: after the embedding, each layer, the final norm."""
    hidden = []
    keep = lambda _module, _inputs, output: hidden.append(
        (output[0] if isinstance(output, tuple) else output).detach()[0]
    )
    inner = model.model
    hooks = [m.register_forward_hook(keep) for m in [inner.embed_tokens, *inner.layers, inner.norm]]
    logits = model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]
    for hook in hooks:
        hook.remove()
    del hidden[-2]  # the last layer's own, before the norm
    return logits, hidden


def margin_of(logits):
    top = torch.topk(logits, 2).values
    return float(top[0] - top[1])


def greedy(model, tokens):
    """The continuation and the smallest margin on its path."""
    tokens, margins = list(tokens), []
    for _ in range(STEPS):
        logits, _ = logits_and_hidden(model, tokens)
        margins.append(margin_of(logits[-1]))
        tokens.append(int(logits[-1].argmax()))
    return tokens[-STEPS:], min(margins)


def record_drafts(model, head, tokens, record):
    """Rows of the head over prompt 3, and its greedy drafts from there; the smallest margin."""
    logits, hidden = logits_and_hidden(model, tokens)
    main, following = hidden[-1], int(logits[-1].argmax())
    embed = model.model.embed_tokens
    rows = head(embed(torch.tensor(tokens[1:])), main[:-1])
    record["mtp.p3.main_hidden"] = main
    record["mtp.p3.hidden"] = rows
    record["mtp.p3.logits"] = model.lm_head(rows)
    record["mtp.p3.next"] = torch.tensor([following], dtype=torch.int32)
    inputs, sources = [*tokens[1:], following], [*main]
    drafts, draft_logits = [], []
    for _ in range(DEPTH):
        out = head(embed(torch.tensor(inputs)), torch.stack(sources))[-1]
        draft_logits.append(model.lm_head(out))
        drafts.append(int(draft_logits[-1].argmax()))
        inputs.append(drafts[-1])
        sources.append(out)
    record["mtp.p3.drafts"] = torch.tensor(drafts, dtype=torch.int32)
    record["mtp.p3.draft_logits"] = torch.stack(draft_logits)
    return min(margin_of(row) for row in draft_logits)


def write_checkpoint(model, head, folder):
    """As save_pretrained does, with the head's tensors beside the others."""
    with tempfile.TemporaryDirectory() as temporary:
        model.to(torch.bfloat16).save_pretrained(temporary)
        tensors = load_file(pathlib.Path(temporary) / "model.safetensors")
        tensors.update({n: t.to(torch.bfloat16).clone() for n, t in head.tensors().items()})
        config = json.loads((pathlib.Path(temporary) / "config.json").read_text())
    for key in ("architectures", "dtype"):
        config.pop(key, None)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


@torch.no_grad()
def make_case(name, out):
    kind, seed, lengths, values = CASES[name]
    generator = torch.Generator().manual_seed(seed)
    config = kind(**COMMON, **values)
    take_plain_loops(config)
    model = AutoModelForCausalLM.from_config(config).to(torch.float32).eval()
    head = DraftHead(model).to(torch.float32).eval()
    randomise(model, generator)
    randomise(head, generator)
    record, prompts, margins = {}, [], []
    for i, length in enumerate(lengths):
        tokens = torch.randint(config.vocab_size, (length,), generator=generator).tolist()
        logits, hidden = logits_and_hidden(model, tokens)
        continuation, margin = greedy(model, tokens)
        margins.append(margin)
        record[f"p{i}.tokens"] = torch.tensor(tokens, dtype=torch.int32)
        record[f"p{i}.logits"] = logits[-64:]
        record[f"p{i}.greedy"] = torch.tensor(continuation, dtype=torch.int32)
        if i == 3:
            record.update({f"p3.hidden.{l}": state for l, state in enumerate(hidden)})
            margins.append(record_drafts(model, head, tokens, record))
        prompts.append({
            "length": length, "min_top2_margin": margin, "greedy": continuation,
            "logit_std": float(logits.std()),
        })
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {n: t.contiguous().clone() for n, t in record.items()}
    save_file(tensors, folder / "oracle.safetensors")
    about = {
        "family": config.model_type.removesuffix("_text"), "seed": seed,
        "transformers": transformers.__version__, "torch": torch.__version__,
        "dtype": "float32 compute on bfloat16-representable weights", "prompts": prompts,
    }
    (folder / "oracle.json").write_text(json.dumps(about, indent=1) + "\n")
    write_checkpoint(model, head, folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    narrow = " narrow" if min(margins) < SMALLEST_MARGIN else ""
    print(f"{name}: {size / 1024:.0f} KiB, smallest margin {min(margins):.1e}{narrow}, "
          f"logits' deviation {prompts[-1]['logit_std']:.2f}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--case", action="append", choices=CASES)
    arguments = parser.parse_args()
    for name in arguments.case or CASES:
        make_case(name, arguments.out)


if __name__ == "__main__":
    main()
