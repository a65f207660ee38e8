"""How exact is the core? Measured errors of the basis and the filter, and the memory of a pass.

History: Gram matrices of the orthonormal basis by Gauss-Jacobi quadrature, the filter against
an exact eigendecomposition, and the peak memory of forward and backward at a low and a high degree.
The tests of polynomials and graphs hold the same; the code that wrote the record went.
"""

from pathlib import Path

from lab.studies._engine import read_record
from lab.studies._views import CAPTIONS, ResultTable

TITLE = "How exact the basis and the filter are (history)"
ORDER = 110


def tables(folder: Path) -> list[ResultTable]:
    """Errors and memory."""
    record = read_record(folder)
    plan, rows = record.plan, []
    for key, cell in record.below("gram/").items():
        a, b = key.split("/")
        what = f"Gram matrix against the identity, a = {a}, b = {b}, degree {plan['gram_degree']}"
        rows.append([what, f"{cell['value']:.1e}"])
    for key, cell in record.below("filter/").items():
        what = f"filter of degree {plan['degree']} against the eigendecomposition, {key}"
        rows.append([what, f"{cell['value']:.1e}"])
    for key, cell in record.below("memory/").items():
        what = f"memory of forward and backward, degree {key}, {plan['memory_nodes']:,} nodes"
        rows.append([what, f"{cell['value']:.0f} MiB"])
    caption = CAPTIONS["exactness"]["exactness"].format(nodes=plan["nodes"])
    return [ResultTable("exactness", caption, ["what", "measured"], rows)]
