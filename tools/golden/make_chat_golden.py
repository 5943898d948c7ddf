#!/usr/bin/env python3
"""What Jinja makes of the chat templates in a folder.

    make_chat_golden.py --folder tests/golden/chat [--published LIST]

Renders every *.jinja for some conversations with the settings that Hugging Face
transformers uses, and writes cases.json beside them. LIST is a JSON list of published
templates ("source", "template": which one here it stands beside, "text"): each must
render every conversation that it takes as that one does. published.json says which did.
"""

import argparse
import hashlib
import json
import pathlib

from jinja2.sandbox import ImmutableSandboxedEnvironment

BOS = {"llama3": "<|begin_of_text|>", "gemma3": "<bos>", "deepseek": "<｜begin▁of▁sentence｜>"}
# file → (format, the template's own name for the switch of thinking, the values that it takes)
TEMPLATES = {
    "smollm2": ("chatml", None, []),
    "qwen2.5": ("chatml", None, []),
    "qwen3": ("qwen3", "enable_thinking", [True, False]),
    "qwen3-thinking": ("qwen3-thinking", None, []),
    "qwen3-instruct": ("qwen3-instruct", None, []),
    "qwq": ("qwq", None, []),
    "qwen3.5": ("qwen3.5", "enable_thinking", [True, False]),
    "qwen3.5-small": ("qwen3.5-small", "enable_thinking", [True, False]),
    "llama3": ("llama3", None, []),
    "llama3.1": ("llama3.1", None, []),
    "gemma3": ("gemma", None, []),
    "glm4": ("glm4", None, []),
    "glm4.5": ("glm4.5", "enable_thinking", [True, False]),
    "deepseek-v3": ("deepseek-v3", None, []),
    "deepseek-r1": ("deepseek-r1", None, []),
    "deepseek-r1-0528": ("deepseek-r1-0528", None, []),
    "deepseek-v3.1": ("deepseek-v3.1", "thinking", [True, False]),
}

USER = {"role": "user", "content": "What is 2 + 2?"}
SYSTEM = {"role": "system", "content": "Be brief."}
SPACED = {"role": "user", "content": "\n\n  in spaces\u3000\n"}
ANSWER = {"role": "assistant", "content": "Four.\n"}
TWICE = {"role": "assistant", "content": "<think>a</think> b </think> c"}
THOUGHT = {"role": "assistant", "content": "<think>\nTwo and two.\n</think>\n\nFour."}
UNOPENED = {"role": "assistant", "content": "Two and two.\n</think>\n\nFour. "}
# messages, whether the model is to answer
CONVERSATIONS = [
    ([USER], True),
    ([SYSTEM, USER], True),
    ([SPACED], True),
    ([USER, ANSWER, SPACED], True),
    ([SYSTEM, USER, ANSWER, USER], True),
    ([SYSTEM, USER, ANSWER], False),
]
THOUGHTFUL = [
    ([USER, THOUGHT, USER], True),
    ([SYSTEM, USER, UNOPENED, USER, ANSWER, SPACED], True),
    ([USER, THOUGHT], False),
    ([USER, TWICE, USER], True),
]


def raise_exception(message):
    raise ValueError(message)


def render(environment, text, template_name, case):
    """What a template makes of a case; None where it refuses the conversation."""
    arguments = {} if "thinking" not in case else {TEMPLATES[template_name][1]: case["thinking"]}
    bos = next((text for prefix, text in BOS.items() if template_name.startswith(prefix)), "")
    try:
        return environment.from_string(text).render(
            messages=case["messages"],
            add_generation_prompt=case["add_generation_prompt"],
            tools=None,
            bos_token=bos,
            **arguments,
        )
    except ValueError:
        return None


def make_cases(environment, folder):
    cases = []
    for name, (format_name, _, values) in TEMPLATES.items():
        text = (folder / f"{name}.jinja").read_text()
        thinks = format_name not in ("chatml", "llama3", "llama3.1", "gemma", "glm4")
        for messages, add in CONVERSATIONS + (THOUGHTFUL if thinks else []):
            for value in [None, *values]:
                case = {"template": f"{name}.jinja", "format": format_name, "messages": messages}
                case["add_generation_prompt"] = add
                if value is not None:
                    case["thinking"] = value
                case["text"] = render(environment, text, name, case)
                cases.append(case)
    return cases


def check_published(environment, published, cases):
    rows = []
    for entry in published:
        name = entry["template"]
        for case in (case for case in cases if case["template"] == f"{name}.jinja"):
            text = render(environment, entry["text"], name, case)
            if text not in (None, case["text"]):
                raise SystemExit(f"{entry['source']}: {case['messages']}\n{text!r}\n{case['text']!r}")
        digest = hashlib.sha256(entry["text"].encode()).hexdigest()
        rows.append({"source": entry["source"], "sha256": digest, "template": f"{name}.jinja"})
    return rows


def write_lines(path, rows):
    lines = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(f"[\n{lines}\n]\n")
    print(f"{path.name}: {len(rows)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--published", type=pathlib.Path)
    arguments = parser.parse_args()
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = raise_exception
    cases = make_cases(environment, arguments.folder)
    write_lines(arguments.folder / "cases.json", cases)
    if arguments.published:
        published = json.loads(arguments.published.read_text())
        write_lines(arguments.folder / "published.json", check_published(environment, published, cases))


if __name__ == "__main__":
    main()
