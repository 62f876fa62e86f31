"""Which statements are needed: the cases that public training scripts are made of."""

from __future__ import annotations

import ast
import textwrap

import pytest

from ganbench.gan.foreign.parts import is_plain, parts_of
from ganbench.gan.foreign.slicing import OutOfReach, Slice


def kept(text: str, *wanted: str, neighbours: tuple[str, ...] = ()) -> str:
    parts = parts_of(ast.parse(textwrap.dedent(text)))
    return ast.unparse(parts.keeping(Slice(parts, wanted or ("G",), neighbours).kept))


CLASS = "\nclass G:\n    def forward(self):\n        return {0}\n"


@pytest.mark.parametrize(
    ("before", "read"),
    [
        ("import argparse\np = argparse.ArgumentParser()\nq = p.add_mutually_exclusive_group()\nq.add_argument('--a')\n"
         "opt = p.parse_args()", "opt"),
        ("import os\nif os.name:\n    size = 1\nelse:\n    size = 2", "size"),
        ("try:\n    import absent_one\n    HAS = True\nexcept ImportError:\n    HAS = False", "HAS"),
        ("sizes = []\nfor n in range(3):\n    sizes.append(n)", "sizes"),
        ("sizes = []\nn = 9\nwhile n > 1:\n    n //= 2\n    sizes += [n]", "sizes"),
        ("class opt:\n    pass\nsetattr(opt, 'size', 3)\nopt.shape = (1, opt.size)", "opt"),
        ("def configure():\n    global size\n    size = 3\nconfigure()", "size"),
        ("table = {}\ndef put(f):\n    table[f.__name__] = f\n    return f\n@put\ndef a(): return b\nb = 2", "table"),
        ("globals().update(size=3)", "size"),
        ("with open('x') as f:\n    size = f.read()", "size"),
        ("match 3:\n    case int(size):\n        pass", "size"),
        ("base = [1]\nother = base\nother.append(2)", "base"),
    ],
)  # fmt: skip
def test_all_that_a_name_needs_is_kept(before: str, read: str) -> None:
    text = before + CLASS.format(read)
    assert kept(text) == ast.unparse(ast.parse(text))


@pytest.mark.parametrize(
    "statement",
    [
        "os.makedirs('images', exist_ok=True)",
        "print(opt)",
        "data = datasets.MNIST('../data', download=True)",
        "urllib.request.urlretrieve(opt.url, 'x.zip')",
        "wandb.init(config=opt)",
        "writer = SummaryWriter(opt.out)",
        "assert opt.size > 3",
        "if opt.root is None:\n    raise ValueError('root')",
        "check(opt)",
        "logging.basicConfig(level=1)",
        "torch.cuda.set_device(opt.gpu)",
        "import not_there",
        "net = Other(opt)",
        "def sample():\n    return loader",
        "if not os.path.exists(opt.out):\n    os.makedirs(opt.out)",
        "with torch.no_grad():\n    fid = score(opt)",
    ],
)
def test_what_is_not_needed_is_dropped(statement: str) -> None:
    start = (
        "import os\nimport torch\nimport wandb\nimport urllib.request\nimport logging\n"
        "from torchvision import datasets\ndef check(options):\n    if options.size < 3:\n"
        "        raise ValueError(options)\n    os.makedirs(options.out)\n"
        "class opt:\n    size = 3\n"
    )
    assert kept(start + statement + CLASS.format("opt.size")) == kept(start + CLASS.format("opt.size"))
    assert "makedirs" not in kept(start + statement + CLASS.format("opt.size"))


def test_the_last_binding_before_the_first_use_counts() -> None:
    text = """
        width = download()
        width = 4
        class G:
            def forward(self): return width
        g = G()
        width = 5
    """
    assert "download" not in kept(text)
    assert "width = 4" in kept(text)
    assert "width = 5" not in kept(text)


def test_a_second_definition_replaces_the_first() -> None:
    text = "class G:\n    n = 1\ng = G()\nk = 2\nclass G:\n    n = k\n"
    assert kept(text) == "k = 2\n\nclass G:\n    n = k"


def test_a_name_bound_after_the_first_use_is_taken_from_there() -> None:
    text = CLASS.format("Tensor") + "g = G()\nimport heavy\nTensor = heavy.Tensor\nTensor = None\n"
    assert kept(text).splitlines()[-2:] == ["import heavy", "Tensor = heavy.Tensor"]


LOOP = "for epoch in range(3):\n    for x in loader:\n        loss(x).backward()\n        {0}\n"


def test_a_training_loop_is_never_kept() -> None:
    text = "step = 0\n" + LOOP.format("step += 1") + CLASS.format("step")
    assert kept(text) == "step = 0\n" + ast.unparse(ast.parse(CLASS.format("step"))).join(["\n", ""])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (CLASS.format("step") + LOOP.format("step = epoch"), "trains"),
        (CLASS.format("mean") + "loader = DataLoader(data)\nfor x in loader:\n    mean = x\n", "trains"),
        (CLASS.format("done") + "def fit(g):\n    g.loss().backward()\n    return 1\ndone = fit(G())\n", "trains"),
        (CLASS.format("device") + "if __name__ == '__main__':\n    device = 3\n", "guard"),
    ],
)
def test_what_only_a_loop_or_the_guard_binds_is_refused_with_its_lines(text: str, why: str) -> None:
    with pytest.raises(OutOfReach) as caught:
        kept(text)
    assert caught.value.why == why
    assert caught.value.read_at == 2
    assert caught.value.bound_at > 4


def test_a_method_that_is_not_surely_called_may_read_what_is_out_of_reach() -> None:
    text = "class G:\n    def forward(self): return 1\n    def log(self): return step\n" + LOOP.format("step = epoch")
    assert "backward" not in kept(text)


def test_a_step_of_training_may_be_asked_for() -> None:
    text = "import torch\ndef step(g):\n    g.loss().backward()\nstep(net)\n"
    assert kept(text, "step") == ast.unparse(ast.parse("def step(g):\n    g.loss().backward()"))


def test_switches_are_kept_where_they_ask_for_nothing_else() -> None:
    text = "import torch, random\nopt = parse()\nrandom.seed(opt.seed)\ntorch.manual_seed(3)\n"
    assert "manual_seed(3)" in kept(text + CLASS.format("1"))
    assert "parse" not in kept(text + CLASS.format("1"))
    assert "random.seed(opt.seed)" in kept(text + CLASS.format("opt"))


def test_neighbours_may_change_what_they_are_given() -> None:
    text = "from near import prepare, Cfg\nfrom far import look\ncfg = Cfg()\nprepare(cfg)\nlook(cfg)\n" + CLASS.format(
        "cfg"
    )
    assert "prepare(cfg)" in kept(text, neighbours=("near",))
    assert "look(cfg)" not in kept(text, neighbours=("near",))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("import torch\nN = 3\nclass G: pass\n", True),
        ("x = 1 / 0\n", True),
        ("if __name__ == '__main__':\n    train()\n", True),
        ("try:\n    import a\nexcept ImportError:\n    a = None\n", True),
        ("@register('g')\ndef f(): return g()\n", True),
        ("train()\n", False),
        ("opt = parse()\n", False),
        ("for i in x:\n    pass\n", False),
        ("with x:\n    pass\n", False),
        ("if x:\n    go()\n", False),
        ("x = [i for i in y]\n", False),
    ],
)
def test_a_plain_module_only_defines(text: str, plain: bool) -> None:
    assert is_plain(ast.parse(text)) is plain
