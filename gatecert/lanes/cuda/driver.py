"""A script that prints what the CUDA driver says of the first GPU: nothing where there is none.

Imports the standard library alone, since it runs isolated from everything else.
"""

from __future__ import annotations

import ctypes

_NAME_BYTES = 256
_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR of the CUDA driver API."""


def ask_driver() -> str:
    """`NVIDIA H200, sm_90, driver CUDA 12.8`; "" without a driver or a GPU."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    device, version, major, minor = (ctypes.c_int(0) for _ in range(4))
    name = ctypes.create_string_buffer(_NAME_BYTES)
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(device), 0)
        or driver.cuDeviceGetName(name, _NAME_BYTES, device)
        or driver.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device)
        or driver.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device)
        or driver.cuDriverGetVersion(ctypes.byref(version))
    )
    if failed:
        return ""
    cuda = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return f"{name.value.decode()}, sm_{major.value}{minor.value}, driver CUDA {cuda}"


if __name__ == "__main__":
    print(ask_driver())
