"""Says yes (0) or no (1) to the softmax of rows.py on a GPU; compares on the CPU."""

import sys

import rows
import torch

x = torch.linspace(-3, 3, 300).reshape(3, 100)
y = rows.softmax(x.cuda()).cpu()
sys.exit(0 if torch.allclose(y, torch.softmax(x, dim=1), atol=1e-6) else 1)
