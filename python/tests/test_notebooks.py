"""Every notebook runs from its first cell to its last."""

import json
import os
import unittest
from pathlib import Path

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"


def run(notebook: Path) -> None:
    """Runs the code cells one after the other, without a server and without showing pictures."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    before = Path.cwd()
    os.chdir(notebook.parent)
    names: dict[str, object] = {"__name__": "__main__"}
    try:
        for cell in json.loads(notebook.read_text())["cells"]:
            if cell["cell_type"] == "code":
                code = compile("".join(cell["source"]), f"{notebook.name}, {cell['id']}", "exec")
                exec(code, names)
    finally:
        os.chdir(before)
        plt.close("all")


class Notebooks(unittest.TestCase):
    def test_there_are_three(self):
        self.assertEqual(len(list(NOTEBOOKS.glob("*.ipynb"))), 3)

    def test_outputs_are_not_kept(self):
        for notebook in NOTEBOOKS.glob("*.ipynb"):
            for cell in json.loads(notebook.read_text())["cells"]:
                self.assertEqual(cell.get("outputs", []), [], notebook.name)

    def test_which_policy(self):
        run(NOTEBOOKS / "which-policy.ipynb")

    def test_own_policy(self):
        run(NOTEBOOKS / "own-policy.ipynb")

    def test_a_figure_again(self):
        run(NOTEBOOKS / "a-figure-again.ipynb")


if __name__ == "__main__":
    unittest.main()
