#!/usr/bin/env python3
"""Executes the notebooks of python/notebooks; their cells assert what they show.

    run_notebooks.py [FOLDER]      FOLDER: where to write them with their outputs, to be looked at

Exits with 77, which means "skipped", where nbclient is not installed.
"""

import os
import pathlib
import sys

try:
    import nbclient
    import nbformat
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed; scripts/python_env does that")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent


def main():
    import conftest  # noqa: F401  the programs in PATH, the message modules

    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE.parent / "src"), os.environ.get("PYTHONPATH")]))
    failed = []
    for path in sorted((HERE.parent / "notebooks").glob("*.ipynb")):
        book = nbformat.read(path, as_version=4)
        try:
            nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute(cwd=str(path.parent))
            print(f"{path.name}: {sum(cell.cell_type == 'code' for cell in book.cells)} cells ran")
        except nbclient.exceptions.CellExecutionError as problem:
            failed.append(path.name)
            print(f"{path.name}: {problem}")
        if len(sys.argv) > 1:
            nbformat.write(book, pathlib.Path(sys.argv[1]) / path.name)
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
