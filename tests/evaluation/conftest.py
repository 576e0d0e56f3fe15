from __future__ import annotations

import torch

torch.set_num_threads(1)  # models this small lose time with more
