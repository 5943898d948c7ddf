"""One optimisation step: its parts compiled, the whole as a CUDA graph."""
import torch

import batches
import delta
import losses
import model as hybrid
from muon import Muon

# Element by element for the most part, and small enough that each compiles in seconds.
PARTS = ((losses, "cross_entropy"), (losses, "soft_loss"), (delta, "system"), (delta, "operands"),
         (hybrid, "unit"), (hybrid.Norm, "forward"), (hybrid.GatedNorm, "forward"),
         (hybrid.DeltaNet, "convolve"), (hybrid.Mlp, "forward"))


class CompiledParts:
    """A context in which PARTS are compiled; without use() it changes nothing."""

    def __init__(self):
        self.compiled, self.plain = [], []

    def use(self) -> None:
        torch._dynamo.config.recompile_limit = 64  # a part is called with a few shapes
        self.compiled = [torch.compile(getattr(owner, name), dynamic=False)
                         for owner, name in PARTS]

    def __enter__(self):
        self.plain = [getattr(owner, name) for owner, name in PARTS]
        for (owner, name), part in zip(PARTS, self.compiled):
            setattr(owner, name, part)

    def __exit__(self, *_):
        for (owner, name), part in zip(PARTS, self.plain):
            setattr(owner, name, part)


class Optimizers:
    """Muon on the layers' matrices (or AdamW, --adamw), AdamW on the embedding and on what is
    small. Weight decay on all matrices."""

    def __init__(self, model: hybrid.Tiny, args):
        self.on_gpu = args.device == "cuda"
        matrices, embedding, small = [], [], []
        for name, p in model.named_parameters():
            kind = small if p.dim() != 2 or min(p.shape) < 32 else matrices
            (embedding if "embed_tokens" in name else kind).append(p)
        groups = [{"params": embedding, "weight_decay": args.weight_decay},
                  {"params": small, "weight_decay": 0.0}]
        self.all = []
        if args.adamw:
            groups.append({"params": matrices, "weight_decay": args.weight_decay})
        else:
            self.all.append(Muon(matrices, self.rate_of(args.lr), args.weight_decay))
        self.all.append(torch.optim.AdamW(groups, lr=self.rate_of(args.lr), betas=(0.9, 0.95),
                                          eps=1e-9, fused=self.on_gpu, capturable=self.on_gpu))

    def rate_of(self, rate: float):
        """A graph reads the rate from the device."""
        return torch.tensor(rate, device="cuda") if self.on_gpu else rate

    def set_rate(self, rate: float) -> None:
        for group in self.groups():
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def groups(self):
        return [group for one in self.all for group in one.param_groups]

    def zero_grad(self) -> None:
        for one in self.all:
            one.zero_grad(set_to_none=True)

    def step(self) -> None:
        for one in self.all:
            one.step()

    def state_dict(self) -> list[dict]:
        return [one.state_dict() for one in self.all]

    def load_state_dict(self, states: list[dict]) -> None:
        for one, saved in zip(self.all, states):
            one.load_state_dict(saved)
        for group in self.groups():  # a file's tensors are on the host
            if isinstance(group["lr"], torch.Tensor):
                group["lr"] = group["lr"].to("cuda")

    def forget(self) -> None:
        for one in self.all:
            one.state.clear()


class Stepper:
    """Runs optimisation steps on windows of `stream`; as a CUDA graph after some warm-up steps."""

    WARM_UP = 6

    def __init__(self, model: hybrid.Tiny, optimizer, windows: batches.TrainingWindows,
                 teachers: losses.Teachers, args):
        self.model, self.optimizer, self.args = model, optimizer, args
        self.teachers = teachers
        self.stream = windows.stream.to(args.device)
        self.starts = torch.zeros(args.batch, dtype=torch.int64, device=args.device)
        self.graph, self.done = None, 0
        self.parts = CompiledParts()
        self.graphs = args.device == "cuda" and not args.no_graph
        self.side = torch.cuda.Stream() if self.graphs else None
        self.result = None

    def __call__(self, starts: torch.Tensor) -> torch.Tensor:
        """Losses and the norm of the gradient, [2 + DEPTHS], valid until the next call."""
        self.starts.copy_(starts)
        if self.graph is not None:
            self.graph.replay()
        elif self.graphs and self.done >= self.WARM_UP:
            self.capture()
            self.graph.replay()
        elif self.graphs:
            self.side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.side):
                self.result = self.once()
            torch.cuda.current_stream().wait_stream(self.side)
        else:
            self.result = self.once()
        self.done += 1
        return self.result

    def compile(self) -> None:
        """Makes a step with compiled parts, which changes the model; where the compiler fails on
        this machine later steps run op by op."""
        self.parts.use()
        try:
            self.once()
        except Exception as error:  # the compiler's failures have no common type
            print(f"not compiled: {type(error).__name__}: {error}".splitlines()[0], flush=True)
            self.parts = CompiledParts()

    def once(self) -> torch.Tensor:
        self.optimizer.zero_grad()
        with self.parts:
            tokens = batches.gather(self.stream, self.starts, self.args.length)
            parts = losses.losses(self.model, tokens, self.args.soft, self.teachers,
                                  drafts=self.args.mtp > 0)
            losses.total(parts, self.args.mtp).backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
        self.optimizer.step()
        return torch.cat((parts.detach(), norm.reshape(1)))

    def capture(self) -> None:
        self.optimizer.zero_grad()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = self.once()
