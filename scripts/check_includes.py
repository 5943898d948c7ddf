#!/usr/bin/env python3
"""Checks who includes whom, from cmake/modules.txt and the tables below.

 - a module includes itself and what it may reach in the module table, nothing else;
 - a sub-folder of a module (kernels/cpu, ledger/jsonl) is private to that module;
 - a third-party header is included only where its row says;
 - a file for one instruction set (_avx2.cpp, _avx512.cpp, _amx.cpp) reaches, through everything
   that it includes, plain headers only, so that no inline function compiled for a newer machine can
   end up in a program for an older one.

--self-test plants violations of each kind in an empty tree and expects each to be found.
"""
import argparse
import pathlib
import re
import sys
import tempfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
INSTRUCTION_SET = re.compile(r"_(avx2|avx512|amx)\.(cpp|h)$")
GENERATED = re.compile(r"(\.hash|_generated)\.h$")  # made by the build
TEST = re.compile(r"(_test\.cpp|/test_\w+\.h|_testing\.h)$")

JSON_USERS = [
    f"{module}/"
    for module in ("formats", "models", "engine", "ledger", "experiment", "adapters", "server", "cli")
]
# (headers, where they may be included). A path ends with "/" for a folder, "*" is everywhere.
THIRD_PARTY = [
    (r"fmt/", ["*"]),
    (r"nlohmann/json", JSON_USERS),
    (r"yaml-cpp/", ["base/"]),
    (r"CLI/", ["cli/"]),
    (r"xxhash\.h", ["base/"]),
    (r"tsl/", ["formats/"]),
    (r"pcre2\.h", ["adapters/"]),
    (r"utf8proc\.h", ["formats/"]),
    (r"sqlite3", ["ledger/sqlite/"]),
    (r"libpq|postgres", ["ledger/postgres/"]),
    (r"httplib\.h", ["server/"]),
    (r"(cuda|cublas|cub/|cutlass/|cute/|cupti|nv|mma\.h|cooperative_groups)", ["kernels/cuda/"]),
]
TEST_ONLY = re.compile(r"(gtest|gmock)/")
BENCHMARK_ONLY = re.compile(r"benchmark/")
INTRINSICS = re.compile(r"(imm|x86|[a-z]mm|avx\w*|cpuid)intrin\.h|cpuid\.h")

STANDARD = set(
    """algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv
    chrono cinttypes climits clocale cmath compare complex concepts condition_variable coroutine
    csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque
    exception execution filesystem forward_list fstream functional future initializer_list iomanip
    ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource mutex
    new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore
    set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string
    string_view system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set
    utility valarray variant vector version""".split()
)
POSIX = re.compile(
    r"(sys/[a-z_]+|unistd|fcntl|poll|pthread|sched|signal|dirent|dlfcn|pwd|grp|termios|spawn|pty|time"
    r"|errno|stdlib|string|stdio|stdint|stddef|netdb|netinet/in|arpa/inet|cxxabi|linux/[a-z_]+)\.h"
)
# What a file for one instruction set may reach: headers without a function that gets inlined.
PLAIN = {"cstdint", "cstddef", "stdint.h", "stddef.h", "cfloat", "climits"}


class Tree:
    """The sources under src/ and the module table."""

    def __init__(self, root: pathlib.Path):
        self.src = root / "src"
        self.reach = read_modules(root / "cmake" / "modules.txt")
        self.files = sorted(
            str(path.relative_to(self.src))
            for pattern in ("*.cpp", "*.h", "*.cu", "*.cuh")
            for path in self.src.rglob(pattern)
        )
        self.known = set(self.files)

    def includes(self, name: str) -> Iterator[tuple[int, str, str]]:
        """Yields (line number, quote or bracket, header)."""
        lines = (self.src / name).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            if match := INCLUDE.match(line):
                yield number, match[1], match[2]


def read_modules(table: pathlib.Path) -> dict[str, set[str]]:
    """Module -> every module that it may include, itself included."""
    reach: dict[str, set[str]] = {}
    for line in table.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"([a-z]+):(.*)", line):
            name, dependencies = match[1], match[2].split()
            for dependency in dependencies:
                if dependency not in reach:
                    sys.exit(f"{table}: {name} depends on {dependency}, which is not above it")
            reach[name] = {name}.union(*(reach[dependency] for dependency in dependencies))
    return reach


def check_project_header(tree: Tree, name: str, header: str) -> str:
    """Why `name` may not include the project's `header`, or ""."""
    module, target = name.split("/")[0], header.split("/")[0]
    if target not in tree.reach:
        return f'"{header}" does not start with a module (project headers are "module/file.h")'
    if header not in tree.known and not GENERATED.search(header):
        return f'"{header}" is not in src/'
    if target not in tree.reach[module]:
        return f"{module} may not include {target} (cmake/modules.txt)"
    if target != module and header.count("/") > 1:
        return f'"{header}" is private to {target}'
    return ""


def check_system_header(name: str, header: str) -> str:
    """Why `name` may not include <header>, or ""."""
    if header in STANDARD or POSIX.fullmatch(header):
        return ""
    if TEST_ONLY.match(header):
        return "" if TEST.search(name) else f"<{header}> belongs in a test (x_test.cpp, test_x.h)"
    if BENCHMARK_ONLY.match(header):
        return "" if name.endswith("_bench.cpp") else f"<{header}> belongs in a _bench file"
    if INTRINSICS.fullmatch(header):
        if INSTRUCTION_SET.search(name) or header == "cpuid.h":
            return ""
        return f"<{header}> belongs in an _avx2, _avx512 or _amx file"
    for pattern, places in THIRD_PARTY:
        if re.match(pattern, header):
            if any(place == "*" or name.startswith(place) for place in places):
                return ""
            return f"<{header}> may be included only in {', '.join(places)}"
    return f"<{header}> is not in the tables of scripts/check_includes.py"


def check_instruction_set(tree: Tree, name: str) -> Iterator[str]:
    """Follows every include of a file for one instruction set."""
    seen: set[str] = set()
    todo = [(name, name)]
    while todo:
        current, path = todo.pop()
        for number, kind, header in tree.includes(current):
            if kind == '"' and header in tree.known:
                if header not in seen:
                    seen.add(header)
                    todo.append((header, f"{path} -> {header}"))
            elif kind == "<" and header not in PLAIN and not INTRINSICS.fullmatch(header):
                yield (
                    f"src/{current}:{number}: <{header}> has inline functions, and a file for one "
                    f"instruction set reaches it ({path})"
                )


def check(root: pathlib.Path) -> list[str]:
    tree = Tree(root)
    problems = []
    for name in tree.files:
        module = name.split("/")[0]
        if module not in tree.reach:
            problems.append(f"src/{name}: {module} is not in cmake/modules.txt")
            continue
        for number, kind, header in tree.includes(name):
            if kind == '"':
                problem = check_project_header(tree, name, header)
            else:
                problem = check_system_header(name, header)
            if problem:
                problems.append(f"src/{name}:{number}: {problem}")
        if INSTRUCTION_SET.search(name):
            problems += check_instruction_set(tree, name)
    return sorted(set(problems))


# file -> (content, what the message must say; None where nothing is wrong)
PLANTED = {
    "base/good.h": ("#include <vector>\n", None),
    "kernels/good.cpp": ('#include "base/good.h"\n#include "kernels/cpu/plain.h"\n', None),
    "kernels/cpu/plain.h": ("#include <cstdint>\n", None),
    "kernels/cpu/good_avx2.cpp": ('#include <immintrin.h>\n#include "kernels/cpu/plain.h"\n', None),
    "experiment/good_test.cpp": ("#include <gtest/gtest.h>\n", None),
    "base/upward.cpp": ('#include "kernels/op.h"\n', "base may not include kernels"),
    "experiment/engine.cpp": ('#include "engine/session.h"\n', "experiment may not include engine"),
    "models/backend.cpp": ('#include "kernels/cpu/plain.h"\n', "private to kernels"),
    "base/missing.cpp": ('#include "base/nothing.h"\n', "is not in src/"),
    "base/relative.cpp": ('#include "good.h"\n', "does not start with a module"),
    "engine/yaml.cpp": ("#include <yaml-cpp/yaml.h>\n", "only in base/"),
    "engine/flags.cpp": ("#include <CLI/CLI.hpp>\n", "only in cli/"),
    "ledger/index.cpp": ("#include <sqlite3.h>\n", "only in ledger/sqlite/"),
    "kernels/device.cpp": ("#include <cuda_runtime.h>\n", "only in kernels/cuda/"),
    "engine/unknown.cpp": ("#include <boost/any.hpp>\n", "not in the tables"),
    "engine/mock.cpp": ("#include <gmock/gmock.h>\n", "belongs in a test"),
    "kernels/wide.cpp": ("#include <immintrin.h>\n", "belongs in an _avx2, _avx512 or _amx file"),
    "kernels/cpu/text.h": ("#include <string>\n", None),
    "kernels/cpu/direct_avx2.cpp": ("#include <vector>\n", "<vector> has inline functions"),
    "kernels/cpu/far_avx2.cpp": ('#include "kernels/cpu/text.h"\n', "text.h:1: <string> has"),
    "stray/x.cpp": ("", "stray is not in cmake/modules.txt"),
    "kernels/op.h": ("", None),
    "engine/session.h": ("", None),
}


def self_test() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "cmake").mkdir()
        table = (ROOT / "cmake" / "modules.txt").read_text(encoding="utf-8")
        (root / "cmake" / "modules.txt").write_text(table, encoding="utf-8")
        for name, (content, _) in PLANTED.items():
            path = root / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        problems = check(root)
    expected = [message for _, message in PLANTED.values() if message]
    for message in expected:
        if not any(message in problem for problem in problems):
            sys.exit(f"self-test: nothing was found that says '{message}'")
    if len(problems) != len(expected):
        sys.exit("self-test: more was found than was planted:\n" + "\n".join(problems))
    print(f"check_includes: self-test passed ({len(expected)} planted violations found)")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--self-test", action="store_true", help="check the check itself")
    if parser.parse_args().self_test:
        self_test()
        return
    problems = check(ROOT)
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(f"check_includes: {len(problems)} problem(s)")
    print("check_includes: every include is allowed")


if __name__ == "__main__":
    main()
