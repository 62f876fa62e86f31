import os
import random
import sys
import warnings

import numpy as np
import torch
import torch.backends.cudnn as cudnn

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
random.seed(1)
np.random.seed(1)
torch.manual_seed(999)
torch.set_num_threads(3)
torch.set_default_dtype(torch.float64)
torch.autograd.set_detect_anomaly(True)
torch.set_grad_enabled(False)
torch.set_float32_matmul_precision("high")
torch.use_deterministic_algorithms(True, warn_only=True)
cudnn.benchmark = True
cudnn.deterministic = True
cudnn.enabled = False
warnings.filterwarnings("ignore")
sys.path.append("..")
print("seeded")

table = torch.rand(3)
os.makedirs("samples")
train(table)


class Generator(torch.nn.Module):
    def forward(self, z):
        return z * table.to(z.dtype)
