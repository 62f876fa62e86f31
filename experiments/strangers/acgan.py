import torch
import torch.nn as nn
import torch.nn.functional as F

NUM_CLASSES = 10
NZ = 32


class Generator(nn.Module):
    """noise + label -> 8x8 image"""

    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(NUM_CLASSES, NZ)
        self.fc = nn.Linear(NZ, width * 4)
        self.net = nn.Sequential(
            nn.BatchNorm2d(width),
            nn.Upsample(scale_factor=2), nn.Conv2d(width, width, 3, 1, 1), nn.BatchNorm2d(width, 0.8), nn.LeakyReLU(0.2, True),
            nn.Upsample(scale_factor=2), nn.Conv2d(width, 1, 3, 1, 1), nn.Tanh(),
        )

    def forward(self, noise, labels):
        x = self.fc(self.embed(labels) * noise)
        return self.net(x.view(x.shape[0], -1, 2, 2))


class Discriminator(nn.Module):
    """image -> (real or fake, which class)"""

    def __init__(self, width=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, 2, 1), nn.LeakyReLU(0.2, True), nn.Dropout2d(0.25),
            nn.Conv2d(width, width, 3, 2, 1), nn.BatchNorm2d(width), nn.LeakyReLU(0.2, True), nn.Flatten(),
        )
        self.adv = nn.Linear(width * 4, 1)
        self.aux = nn.Linear(width * 4, NUM_CLASSES)

    def forward(self, img, labels=None):
        h = self.features(img)
        return torch.sigmoid(self.adv(h)), F.log_softmax(self.aux(h), dim=1)


def validity(outputs):
    return outputs[0]
