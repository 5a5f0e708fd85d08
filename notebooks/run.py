"""Run every notebook and keep what it shows; `make notebooks`."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

for path in sorted(Path(__file__).parent.glob("*.ipynb")):
    notebook = nbformat.read(path, as_version=4)
    # Times would make every run a change.
    NotebookClient(notebook, timeout=600, record_timing=False).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        # Graphviz remarks on the font settings of the machine, which are no reader's business.
        if "outputs" in cell:
            cell.outputs = [
                output
                for output in cell.outputs
                if not output.get("text", "").startswith("Fontconfig warning")
            ]
    nbformat.write(notebook, path)
