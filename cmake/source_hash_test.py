#!/usr/bin/env python3
"""What a variant's source hash depends on, and that the header is left alone where it is right."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("source_hash.py")


class SourceHash(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.src = pathlib.Path(folder.name) / "src"
        self.output = pathlib.Path(folder.name) / "generated" / "k" / "add.hash.h"
        for name, text in {
            "k/add.cpp": '#include <vector>\n#include "k/add.h"\n#include "k/add.hash.h"\n',
            "k/add.h": '#pragma once\n#include "k/op.h"\n',
            "k/op.h": '#pragma once\n#include "k/add.h"  // a cycle ends\n',
            "k/other.h": "#pragma once\n",
        }.items():
            path = self.src / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def hash(self, compiler="GNU 12", flags="-O2;-Wall"):
        subprocess.run(
            [sys.executable, SCRIPT, "--src", self.src, "--file", "k/add.cpp", "--output",
             self.output, f"--compiler={compiler}", f"--flags={flags}"],
            check=True)
        return self.output.read_text()

    def append(self, name):
        with open(self.src / name, "a", encoding="utf-8") as file:
            file.write("// changed\n")

    def test_covers_the_file_and_the_headers_that_it_reaches(self):
        hashes = [self.hash()]
        for name in ("k/add.cpp", "k/add.h", "k/op.h"):
            self.append(name)
            hashes.append(self.hash())
        self.assertEqual(len(set(hashes)), 4)

    def test_covers_the_compiler_and_its_flags(self):
        texts = {self.hash(), self.hash(compiler="GNU 13"), self.hash(flags="-O3;-Wall")}
        self.assertEqual(len(texts), 3)

    def test_ignores_headers_out_of_reach(self):
        before = self.hash()
        self.append("k/other.h")
        self.assertEqual(self.hash(), before)

    def test_leaves_the_header_alone_where_nothing_changed(self):
        self.hash()
        written = self.output.stat().st_mtime_ns
        (self.src / "k/op.h").touch()
        self.hash()
        self.assertEqual(self.output.stat().st_mtime_ns, written)


if __name__ == "__main__":
    unittest.main()
