"""The model card: data, licences, what the model is for and not for, figures."""
from model import Config, Tiny, parameters

TEXT = """# tiny

A `qwen3_5` text model of {count:,} parameters, made by this project for tests, demonstrations and experiments: small enough to ship, real enough that text and drafts behave as those of a language model do. Three of four layers are gated delta nets, every fourth attends, and one MTP layer drafts tokens.

| | |
|---|---|
| layers | {layers}: hidden size {hidden}, MLP {inner} |
| attention | {heads} query and {kv_heads} KV heads of {head} |
| delta nets | {key_heads} key and {value_heads} value heads of {value}, convolution over {conv} |
| vocabulary | {vocabulary}, byte-level BPE trained on the same text; embedding and head tied |
| MTP layer | one, trained jointly, also on its own outputs two and three tokens ahead |
| type | bfloat16 |

## Data
| corpus | what | licence | training | validation | test |
|---|---|---|---|---|---|
{data}

Novels: A Tale of Two Cities, Bleak House, David Copperfield, Dracula, Emma, Great Expectations, Middlemarch, Moby-Dick, Pride and Prejudice, The Adventures of Sherlock Holmes, War and Peace (in English). The held-out parts are passages of those novels and whole source files; duplicates were left out. Training went through the prose {prose_epochs:.0f} times and through the code {code_epochs:.0f} times.

## For, and not for
For trying an inference engine: chat-like generation of a kind of English or Python, speculative decoding with drafts worth verifying, experiments that need no download. Not for information: it knows no facts, follows no instructions, and its code does not run. It repeats views and words of nineteenth-century novels. No filtering was done.

## How it was made
[`tools/train_tiny`](../../tools/train_tiny/README.md); settings, curves and times are in [docs/tiny-model.md](../../docs/tiny-model.md). The weights are under the licence of this project; they were made from the texts above, which keep theirs.
"""

FIGURES = """
## Figures
On the test parts, which nothing was chosen by. Bits per byte (of text), with {context} tokens of context at least where the text has them; the trigram model has interpolated modified Kneser-Ney smoothing and the same training tokens.

| | prose | code |
|---|---|---|
{bits}

Drafts of the MTP layer that equal the model's own greedy choice, by how far ahead: on held-out text with its own tokens given (teacher-forced), and free-running along {generated} greedily generated tokens behind each of {prompts} held-out prompts, where a draft counts only if those before it were accepted.

| | depth 1 | depth 2 | depth 3 |
|---|---|---|---|
{acceptance}

Free-running, a pass with {depths} drafts gives {per_pass} tokens.
"""


def size_text(part: dict) -> str:
    return f"{part['bytes'] / 1e6:.2f} MB, {part['tokens'] / 1e6:.2f} M tokens"


def data_rows(data: dict) -> str:
    about = {"prose": ("eleven English novels", "public domain"),
             "code": (f"Python {data['python']} standard library, tests included", "PSF-2.0")}
    rows = []
    for corpus, (what, licence) in about.items():
        sizes = [size_text(data[corpus][part]) for part in ("train", "validation", "test")]
        rows.append(f"| {corpus} | {what} | {licence} | {' | '.join(sizes)} |")
    return "\n".join(rows)


def bits_rows(figures: dict) -> str:
    names = {"model": "this model", "trigram": "trigram model, both corpora",
             "trigram of the corpus": "trigram model, that corpus alone"}
    rows = [f"| {name} | {figures['prose']['bits'][key]:.3f} | {figures['code']['bits'][key]:.3f} |"
            for key, name in names.items()]
    for key, name in list(names.items())[1:]:
        gains = [1 - figures[c]["bits"]["model"] / figures[c]["bits"][key] for c in
                 ("prose", "code")]
        rows.append(f"| fewer than {name} | {gains[0]:.1%} | {gains[1]:.1%} |")
    return "\n".join(rows)


def acceptance_rows(figures: dict) -> str:
    rows = []
    for corpus in ("prose", "code"):
        for kind in ("teacher-forced", "free-running"):
            shares = " | ".join(f"{share:.1%}" for share in figures[corpus][kind])
            rows.append(f"| {corpus}, {kind} | {shares} |")
    return "\n".join(rows)


def figures_text(figures: dict) -> str:
    per_pass = " (prose) and ".join(f"{figures[c]['tokens a pass']:.2f}" for c in ("prose", "code"))
    return FIGURES.format(
        context=figures["context"], generated=figures["generated"], prompts=figures["prompts"],
        bits=bits_rows(figures), acceptance=acceptance_rows(figures),
        depths=len(figures["prose"]["free-running"]), per_pass=per_pass + " (code)")


def card(run: dict, data: dict, figures: dict | None) -> str:
    config = Config(**run["config"])
    best = run["best"] or {"prose epochs": 0, "code epochs": 0}
    text = TEXT.format(
        count=parameters(Tiny(config)), layers=config.num_hidden_layers, hidden=config.hidden_size,
        inner=config.intermediate_size, heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads, head=config.head_dim,
        key_heads=config.linear_num_key_heads, value_heads=config.linear_num_value_heads,
        value=config.linear_value_head_dim, conv=config.linear_conv_kernel_dim,
        vocabulary=config.vocab_size, data=data_rows(data), prose_epochs=best["prose epochs"],
        code_epochs=best["code epochs"])
    return text + (figures_text(figures) if figures else "")
