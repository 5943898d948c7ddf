#!/usr/bin/env python3
"""What Jinja makes of the chat templates in a folder.

    make_chat_golden.py --folder tests/golden/chat

Renders every *.jinja for some conversations with the settings that Hugging Face
transformers uses, and writes cases.json beside them.
"""

import argparse
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
    "qwen3.5": ("qwen3.5", "enable_thinking", [True, False]),
    "llama3": ("llama3", None, []),
    "llama3.1": ("llama3.1", None, []),
    "gemma3": ("gemma", None, []),
    "glm4": ("glm4", None, []),
    "glm4.5": ("glm4.5", "enable_thinking", [True, False]),
    "deepseek-v3": ("deepseek-v3", None, []),
    "deepseek-r1": ("deepseek-r1", None, []),
    "deepseek-v3.1": ("deepseek-v3.1", "thinking", [True, False]),
}

USER = {"role": "user", "content": "What is 2 + 2?"}
SYSTEM = {"role": "system", "content": "Be brief."}
SPACED = {"role": "user", "content": "\n\n  in spaces\u3000\n"}
ANSWER = {"role": "assistant", "content": "Four.\n"}
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
]


def raise_exception(message):
    raise ValueError(message)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    folder = parser.parse_args().folder
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = raise_exception
    cases = []
    for name, (format_name, switch, values) in TEMPLATES.items():
        template = environment.from_string((folder / f"{name}.jinja").read_text())
        bos = next((text for prefix, text in BOS.items() if name.startswith(prefix)), "")
        thinks = format_name not in ("chatml", "llama3", "llama3.1", "gemma", "glm4", "deepseek-v3")
        for messages, add in CONVERSATIONS + (THOUGHTFUL if thinks else []):
            for value in [None, *values]:
                arguments = {} if value is None else {switch: value}
                text = template.render(
                    messages=messages, add_generation_prompt=add, tools=None, bos_token=bos, **arguments
                )
                case = {"template": f"{name}.jinja", "format": format_name, "messages": messages}
                case |= {"add_generation_prompt": add, "text": text}
                if value is not None:
                    case["thinking"] = value
                cases.append(case)
    lines = ",\n".join(json.dumps(case) for case in cases)
    (folder / "cases.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
