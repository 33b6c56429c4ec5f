"""Stages: how each reduction of a dtype loads, combines and stores."""
from libc.stdint cimport int8_t, uint8_t

from .job cimport (
    MAX_F32,
    MAX_F64,
    MAX_I16,
    MAX_I8,
    MAX_U8,
    PLACED_ANY,
    PLACED_F32,
    PLACED_F64,
    PLACED_I8,
    PLACED_U8,
    SUM_F32,
    SUM_F64,
    SUM_I32,
    SUM_I64,
    SUM_WIDE,
    Divide,
    Load,
    Stage,
    Store,
)
from .reductions cimport SumF32, SumF64, SumI32, SumI64


cdef Stage max_stage(str dtype):
    if dtype in KEYS:
        return Stage(MAX_I16, NULL, <Store> store_keys, NULL)
    if dtype == "int8":
        return Stage(MAX_I8, NULL, NULL, NULL)
    if dtype == "uint8":
        return Stage(MAX_U8, NULL, NULL, NULL)
    if dtype == "float64":
        return Stage(MAX_F64, NULL, NULL, NULL)
    return Stage(MAX_F32, NULL, NULL, NULL)


cdef Stage magnitude_stage(str dtype):
    if dtype == "float64":
        return Stage(MAX_F64, <Load> load_magnitudes[double], <Store> store_magnitudes[double], NULL)
    return Stage(MAX_F32, <Load> load_magnitudes[float], <Store> store_magnitudes[float], NULL)


cdef Stage mean_stage(str dtype):
    if dtype == "float64":
        return Stage(SUM_F64, NULL, <Store> store_means[SumF64, double],
                     <Divide> divide_means[SumF64, double])
    return Stage(SUM_F32, NULL, <Store> store_means[SumF32, float], <Divide> divide_means[SumF32, float])


cdef Stage norm_stage(str dtype, double p):
    if p == 2:  # squares are read as a format
        if dtype == "float64":
            return Stage(SUM_F64, NULL, <Store> store_norms[double], NULL)
        return Stage(SUM_F64, NULL, <Store> store_norms[float], NULL)
    if dtype == "float64":
        return Stage(SUM_F64, <Load> load_powers[double], <Store> store_norms[double], NULL)
    return Stage(SUM_F64, <Load> load_powers[float], <Store> store_norms[float], NULL)


cdef Stage mend_stage(str reduction, str dtype):
    if reduction == "max":
        return Stage(MAX_F32, NULL, NULL, NULL)
    if reduction == "indexed_max":
        return any_indexed_stage(dtype)
    if dtype == "float64":
        return Stage(SUM_WIDE, <Load> load_wide[double], <Store> mend_floats[double], NULL)
    return Stage(SUM_WIDE, <Load> load_wide[float], <Store> mend_floats[float], NULL)


cdef Stage quantised_stage(str dtype, bint long_sums):
    if dtype == "int8" and long_sums:
        return Stage(SUM_I64, <Load> load_integers[int8_t, SumI64], <Store> store_quantised[SumI64, int8_t], NULL)
    if dtype == "int8":
        return Stage(SUM_I32, NULL, <Store> store_quantised[SumI32, int8_t], NULL)
    if long_sums:
        return Stage(SUM_I64, <Load> load_integers[uint8_t, SumI64], <Store> store_quantised[SumI64, uint8_t], NULL)
    return Stage(SUM_I32, NULL, <Store> store_quantised[SumI32, uint8_t], NULL)


cdef Stage indexed_stage(str dtype):
    if dtype == "float64":
        return Stage(PLACED_F64, NULL, NULL, NULL)
    if dtype == "int8":
        return Stage(PLACED_I8, NULL, NULL, NULL)
    if dtype == "uint8":
        return Stage(PLACED_U8, NULL, NULL, NULL)
    return Stage(PLACED_F32, NULL, NULL, NULL)


cdef Stage any_indexed_stage(str dtype):
    if dtype == "float64":
        return Stage(PLACED_ANY, NULL, NULL, NULL)
    if dtype == "int8":
        return Stage(PLACED_ANY, <Load> load_any[int8_t], <Store> store_any[int8_t], NULL)
    if dtype == "uint8":
        return Stage(PLACED_ANY, <Load> load_any[uint8_t], <Store> store_any[uint8_t], NULL)
    return Stage(PLACED_ANY, <Load> load_any[float], <Store> store_any[float], NULL)


cdef Stage in_order_stage(str dtype):
    if dtype == "int8":
        return Stage(SUM_F32, <Load> load_dequantised[int8_t], <Store> store_requantised[int8_t], NULL)
    return Stage(SUM_F32, <Load> load_dequantised[uint8_t], <Store> store_requantised[uint8_t], NULL)
