"""The guide's examples run as they are printed."""

import contextlib
import io
import os
import re
import tempfile
import unittest
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "python.md"


class Guide(unittest.TestCase):
    def test_its_examples_run(self):
        blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 4)
        printed, names, before = io.StringIO(), {}, Path.cwd()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
            os.chdir(folder)
            try:
                for place, block in enumerate(blocks):
                    exec(compile(block, f"{GUIDE.name}, example {place + 1}", "exec"), names)
                report = Path("results/report.html").read_text()
            finally:
                os.chdir(before)
        # The policy of the guide is in the table and in the report.
        self.assertIn("shortest-first", printed.getvalue())
        self.assertIn("shortest-first", report)
        # The last of them asks for a policy that there is not.
        self.assertIn("'esay'", printed.getvalue().splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
