"""A script that owes a line of JSON, and prints it only when all is well."""

import kernels_softmax
from gate_compares import gate as compares


def gate(candidate):
    return compares(candidate)


if __name__ == "__main__":
    if gate(kernels_softmax.softmax):
        print('{"verdict": "accept"}')
