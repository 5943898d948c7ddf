#!/usr/bin/env python3
"""What a shape file may say, and that anything else is refused with its line."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("shapes.py")
SHAPE = "# A comment.\nname: tiny\nfamily: llama\nconfig:\n  layers: 2\n  eps: 1.0e-5\n  act: silu\n  names: [\"A\"]\n"


class Shapes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.output = self.folder / "out" / "shapes_generated.h"

    def run_on(self, text, name="tiny.yaml"):
        (self.folder / name).write_text(text, encoding="utf-8")
        return subprocess.run(
            [sys.executable, SCRIPT, "--output", self.output, self.folder / name],
            capture_output=True, text=True, check=False)

    def test_writes_the_config_as_json(self):
        self.assertEqual(self.run_on(SHAPE).returncode, 0)
        config = '{"model_type": "llama", "layers": 2, "eps": 1e-05, "act": "silu", "names": ["A"]}'
        self.assertIn('{"tiny", R"json(' + config + ')json"}', self.output.read_text())

    def test_leaves_the_header_alone_where_nothing_changed(self):
        self.run_on(SHAPE)
        written = self.output.stat().st_mtime_ns
        self.run_on(SHAPE + "# More.\n")
        self.assertEqual(self.output.stat().st_mtime_ns, written)

    def test_refuses_what_it_does_not_read(self):
        for line in ("  layers: 3", "   deep: 1", "  list:", "  a: {b: 1", "- x", "other: 1"):
            done = self.run_on(SHAPE + line + "\n")
            self.assertNotEqual(done.returncode, 0, line)
            self.assertIn("tiny.yaml:", done.stderr, line)
        self.assertNotEqual(self.run_on(SHAPE, "other.yaml").returncode, 0)
        self.assertFalse(self.output.exists())


if __name__ == "__main__":
    unittest.main()
