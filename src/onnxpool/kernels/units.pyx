"""An extension module of compiled loops: exports their table, which the build writes, and facts about registers."""
from cpython.pycapsule cimport PyCapsule_New

from .core.units cimport Unit

cdef extern from *:
    """
    #include UNITS_TABLE_H
    """
    const Unit* units_table
    enum:
        WIDTH
        LANES_PICKED "PICKS"

UNITS = PyCapsule_New(<void*> units_table, "onnxpool.kernels.units", NULL)
REGISTER, PICKS = WIDTH, LANES_PICKED
