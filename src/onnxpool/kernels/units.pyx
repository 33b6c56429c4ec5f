"""The loops of one instruction set. The build writes the table of what it has compiled."""
from cpython.pycapsule cimport PyCapsule_New

from .core.units cimport Unit

cdef extern from *:
    """
    #include UNITS_TABLE_H
    """
    const Unit* units_table

UNITS = PyCapsule_New(<void*> units_table, "onnxpool.kernels.units", NULL)
