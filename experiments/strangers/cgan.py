import argparse

import numpy as np
import torch
import torch.nn as nn
from torchvision import datasets, transforms

parser = argparse.ArgumentParser()
parser.add_argument("--n_epochs", type=int, default=200)
parser.add_argument("--batch_size", type=int, default=64)
parser.add_argument("--lr", type=float, default=0.0002)
parser.add_argument("--latent_dim", type=int, default=100)
parser.add_argument("--n_classes", type=int, default=10)
parser.add_argument("--img_size", type=int, default=28)
parser.add_argument("--hidden", type=int, default=128)
opt = parser.parse_args()

img_shape = (1, opt.img_size, opt.img_size)
cuda = torch.cuda.is_available()


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.label_emb = nn.Embedding(opt.n_classes, opt.n_classes)

        def block(in_feat, out_feat, normalize=True):
            layers = [nn.Linear(in_feat, out_feat)]
            if normalize:
                layers.append(nn.BatchNorm1d(out_feat))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            return layers

        self.model = nn.Sequential(
            *block(opt.latent_dim + opt.n_classes, opt.hidden, normalize=False),
            *block(opt.hidden, opt.hidden * 2),
            nn.Linear(opt.hidden * 2, int(np.prod(img_shape))),
            nn.Tanh()
        )

    def forward(self, noise, labels):
        gen_input = torch.cat((self.label_emb(labels), noise), -1)
        img = self.model(gen_input)
        return img.view(img.size(0), *img_shape)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.label_embedding = nn.Embedding(opt.n_classes, opt.n_classes)
        self.model = nn.Sequential(
            nn.Linear(opt.n_classes + int(np.prod(img_shape)), opt.hidden * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(opt.hidden * 2, opt.hidden),
            nn.Dropout(0.4),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(opt.hidden, 1),
        )

    def forward(self, img, labels):
        d_in = torch.cat((img.view(img.size(0), -1), self.label_embedding(labels)), -1)
        return self.model(d_in)


def train():
    adversarial_loss = nn.MSELoss()
    generator, discriminator = Generator(), Discriminator()
    loader = torch.utils.data.DataLoader(
        datasets.MNIST("../../data/mnist", train=True, download=True, transform=transforms.Compose(
            [transforms.Resize(opt.img_size), transforms.ToTensor(), transforms.Normalize([0.5], [0.5])])),
        batch_size=opt.batch_size, shuffle=True)
    optimizer_G = torch.optim.Adam(generator.parameters(), lr=opt.lr, betas=(0.5, 0.999))
    optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=opt.lr, betas=(0.5, 0.999))
    for epoch in range(opt.n_epochs):
        for imgs, labels in loader:
            n = imgs.shape[0]
            valid, fake = torch.ones(n, 1), torch.zeros(n, 1)
            optimizer_G.zero_grad()
            gen_labels = torch.randint(0, opt.n_classes, (n,))
            gen_imgs = generator(torch.randn(n, opt.latent_dim), gen_labels)
            g_loss = adversarial_loss(discriminator(gen_imgs, gen_labels), valid)
            g_loss.backward()
            optimizer_G.step()
            optimizer_D.zero_grad()
            d_loss = (adversarial_loss(discriminator(imgs, labels), valid)
                      + adversarial_loss(discriminator(gen_imgs.detach(), gen_labels), fake)) / 2
            d_loss.backward()
            optimizer_D.step()
        print(epoch, d_loss.item(), g_loss.item())


train()
