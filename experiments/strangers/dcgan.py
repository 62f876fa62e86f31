import argparse
import os

import torch
import torch.nn as nn
import torch.optim as optim
import torchvision.transforms as transforms
from torch.utils.data import DataLoader
from torchvision import datasets
from torchvision.utils import save_image

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=25)
parser.add_argument("--batch_size", type=int, default=128)
parser.add_argument("--lr", type=float, default=0.0002)
parser.add_argument("--beta1", type=float, default=0.5)
parser.add_argument("--nz", type=int, default=100, help="size of the latent vector")
parser.add_argument("--ngf", type=int, default=64)
parser.add_argument("--ndf", type=int, default=64)
parser.add_argument("--img_size", type=int, default=64)
parser.add_argument("--channels", type=int, default=3)
parser.add_argument("--outdir", default="samples")
opt = parser.parse_args()
print(opt)

os.makedirs(opt.outdir, exist_ok=True)
torch.backends.cudnn.benchmark = True
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()
        blocks = []
        size, width = 4, opt.ngf * opt.img_size // 8
        blocks += [nn.ConvTranspose2d(opt.nz, width, 4, 1, 0, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)]
        while size < opt.img_size // 2:
            blocks += [
                nn.ConvTranspose2d(width, width // 2, 4, 2, 1, bias=False),
                nn.BatchNorm2d(width // 2),
                nn.ReLU(True),
            ]
            size, width = size * 2, width // 2
        blocks += [nn.ConvTranspose2d(width, opt.channels, 4, 2, 1, bias=False), nn.Tanh()]
        self.main = nn.Sequential(*blocks)

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super(Discriminator, self).__init__()
        blocks = [nn.Conv2d(opt.channels, opt.ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
        size, width = opt.img_size // 2, opt.ndf
        while size > 4:
            blocks += [
                nn.Conv2d(width, width * 2, 4, 2, 1, bias=False),
                nn.BatchNorm2d(width * 2),
                nn.LeakyReLU(0.2, inplace=True),
            ]
            size, width = size // 2, width * 2
        blocks += [nn.Conv2d(width, 1, 4, 1, 0, bias=False), nn.Sigmoid()]
        self.main = nn.Sequential(*blocks)

    def forward(self, input):
        return self.main(input)


transform = transforms.Compose(
    [
        transforms.Resize(opt.img_size),
        transforms.ToTensor(),
        transforms.Normalize([0.5] * opt.channels, [0.5] * opt.channels),
    ]
)
dataset = datasets.CIFAR10(root="./data", download=True, transform=transform)
dataloader = DataLoader(dataset, batch_size=opt.batch_size, shuffle=True, num_workers=2)

netG = Generator().to(device)
netD = Discriminator().to(device)
netG.apply(weights_init)
netD.apply(weights_init)

criterion = nn.BCELoss()
fixed_noise = torch.randn(64, opt.nz, 1, 1, device=device)
optimizerD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))

for epoch in range(opt.epochs):
    for i, (data, _) in enumerate(dataloader):
        real = data.to(device)
        n = real.size(0)
        ones, zeros = torch.ones(n, device=device), torch.zeros(n, device=device)

        netD.zero_grad()
        errD_real = criterion(netD(real).view(-1), ones)
        errD_real.backward()
        fake = netG(torch.randn(n, opt.nz, 1, 1, device=device))
        errD_fake = criterion(netD(fake.detach()).view(-1), zeros)
        errD_fake.backward()
        optimizerD.step()

        netG.zero_grad()
        errG = criterion(netD(fake).view(-1), ones)
        errG.backward()
        optimizerG.step()

        if i % 50 == 0:
            print("[%d/%d][%d/%d] D %.4f G %.4f" % (
                epoch, opt.epochs, i, len(dataloader), (errD_real + errD_fake).item(), errG.item()))
    save_image(netG(fixed_noise).detach(), "%s/epoch_%03d.png" % (opt.outdir, epoch), normalize=True)
    torch.save(netG.state_dict(), "%s/netG_%d.pth" % (opt.outdir, epoch))
