"""cumulus/sampling.h in numpy: the same floats, bit for bit, operation by operation.

`constant` and `bilinear` draw from tables of those interpolations, `lookup` finds cells, `table_format` reads the .cst
layout, `sequences` has the points, `sphere` the projections, `libm` the C library's own functions.
"""
