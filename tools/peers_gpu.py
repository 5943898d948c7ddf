#!/usr/bin/env python3
"""Measures what Reckon's CUDA kernels are compared with, on the GPU of this machine.

  tools/peers_gpu.py [--json FILE] [--reckon PROGRAM] [--rounds R]

 - PyTorch's 4-bit kernel (torch.ops.aten._weight_int4pack_mm, groups of 64) at 1, 4, 8 and 16 rows;
 - cuBLAS, through torch.matmul, with bf16 at 512 and 2048 rows.

Each case is a CUDA graph of many launches that go round copies of the weight, together far larger
than the L2 cache, so that no launch finds its weight there. A round replays every case; a case's
time is the median over all rounds, and its spread (largest - smallest) / median.

--reckon names one of Reckon's programs, run between the rounds, so that a slow minute of the
machine hits both. One that fails leaves the other figures standing; the exit code is 1 then.
  gemv_bench (its file name holds "bench"): `PROGRAM time`, whose 4-bit shapes are set beside the
    same shapes here, as a ratio of times (above 1: Reckon is faster);
  reckon: `PROGRAM bench --roofline --backend cuda --json`, whose bounds every case is a share of.

Needs PyTorch with CUDA. Nothing is written but --json.
"""
import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys

# (name, N, K): a weight of N rows of K. llama-8b's queries, keys and values are one, and so are the
# two halves of its gated MLP.
SHAPES = [
    ("27b gate+up", 34816, 5120),
    ("27b down", 5120, 17408),
    ("27b in", 16384, 5120),
    ("27b out", 5120, 6144),
    ("llama-8b qkv", 6144, 4096),
    ("llama-8b out", 4096, 4096),
    ("llama-8b gate+up", 28672, 4096),
    ("llama-8b down", 4096, 14336),
    ("llama-8b head", 128256, 4096),
]
DECODE_ROWS = [1, 4, 8, 16]
PREFILL_ROWS = [512, 2048]
GROUP = 64
COLD_BYTES = 600_000_000
REPLAYS = 5  # of each graph in a round

# "p4    5120 x 6144       serial  | M=1    9.12 us  1.94 TB/s | M=4    9.20 us 1.01x ..."
BENCH_LINE = re.compile(r"^p4\s+(\d+) x\s+(\d+)\s+(pair )?\s*(serial|overlap)\s*\|(.*)$")
BENCH_CELL = re.compile(r"M=(\d+)\s+([\d.]+) us")


class Case:
    """One kernel on one shape: a graph of launches, and the times of its replays."""

    def __init__(self, kernel: str, shape: tuple[str, int, int], rows: int, launches: int):
        self.kernel, self.rows, self.launches = kernel, rows, launches
        self.name, self.n, self.k = shape
        self.us: list[float] = []
        self.graph = self.launch = None

    def capture(self, torch, launch) -> None:
        """Records launch(i) for each i, and keeps what it uses."""
        self.launch = launch
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):  # libraries pick and load their kernels here
            for i in range(2):
                launch(i)
        stream.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            for i in range(self.launches):
                launch(i)

    def replay(self, torch) -> None:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.graph.replay()  # a warm-up
        for _ in range(REPLAYS):
            start.record()
            self.graph.replay()
            end.record()
            end.synchronize()
            self.us.append(start.elapsed_time(end) * 1e3 / self.launches)

    def weight_bytes(self) -> float:
        """Read by a launch at least: 4.5 bits a weight, or 16."""
        return self.n * self.k * (4.5 / 8 if self.kernel == "int4" else 2)

    def figures(self) -> dict:
        us = statistics.median(self.us)
        return {
            "kernel": self.kernel,
            "shape": self.name,
            "n": self.n,
            "k": self.k,
            "rows": self.rows,
            "us": us,
            "spread": (max(self.us) - min(self.us)) / us,
            "tb_per_s": self.weight_bytes() / us * 1e-6,
            "tflop_per_s": 2 * self.n * self.k * self.rows / us * 1e-6,
        }


def int4_cases(torch, shape: tuple[str, int, int]) -> list[Case]:
    _, n, k = shape
    copies = max(2, int(COLD_BYTES // (n * k * 4.5 / 8)) + 1)
    bytes_of = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device="cuda")
    packed = torch.ops.aten._convert_weight_to_int4pack(bytes_of, 8)
    weights = [
        torch.randint(-(2**31), 2**31 - 1, packed.shape, dtype=torch.int32, device="cuda")
        for _ in range(copies)
    ]
    scales = [
        torch.randn(k // GROUP, n, 2, dtype=torch.bfloat16, device="cuda") * 0.01
        for _ in range(copies)
    ]
    cases = []
    for rows in DECODE_ROWS:
        x = torch.randn(rows, k, dtype=torch.bfloat16, device="cuda")
        case = Case("int4", shape, rows, max(copies, 24))
        case.capture(
            torch,
            lambda i, x=x: torch.ops.aten._weight_int4pack_mm(
                x, weights[i % copies], GROUP, scales[i % copies]
            ),
        )
        cases.append(case)
    return cases


def bf16_cases(torch, shape: tuple[str, int, int]) -> list[Case]:
    _, n, k = shape
    copies = max(2, int(COLD_BYTES // (n * k * 2)) + 1)
    weights = [
        torch.randn(n, k, dtype=torch.bfloat16, device="cuda") * 0.05 for _ in range(copies)
    ]
    cases = []
    for rows in PREFILL_ROWS:
        x = torch.randn(rows, k, dtype=torch.bfloat16, device="cuda")
        out = torch.empty(rows, n, dtype=torch.bfloat16, device="cuda")
        case = Case("bf16", shape, rows, max(copies, 6))
        case.capture(
            torch, lambda i, x=x, out=out: torch.matmul(x, weights[i % copies].t(), out=out)
        )
        cases.append(case)
    return cases


class ProgramFailed(Exception):
    """What a program of --reckon said last."""


def output_of(command: list[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()[-5:]
        raise ProgramFailed(f"{' '.join(command)}: exit code {done.returncode}: {' / '.join(said)}")
    return done.stdout


def run_bench(program: str) -> dict[tuple[int, int, int], dict[str, float]]:
    """Microseconds by (n, k, rows) and order of launches."""
    return read_bench(output_of([program, "time"]))


def read_bench(text: str) -> dict[tuple[int, int, int], dict[str, float]]:
    figures: dict[tuple[int, int, int], dict[str, float]] = {}
    for line in text.splitlines():
        if match := BENCH_LINE.match(line):
            n, k = int(match[1]) * (2 if match[3] else 1), int(match[2])
            for rows, us in BENCH_CELL.findall(match[5]):
                figures.setdefault((n, k, int(rows)), {})[match[4]] = float(us)
    return figures


def run_roofline(program: str) -> list[dict]:
    command = [program, "bench", "--roofline", "--backend", "cuda", "--json"]
    return json.loads(output_of(command))["bounds"]


class Reckon:
    """What --reckon gave, a list a round."""

    def __init__(self, program: str | None):
        self.program = program
        self.is_bench = program is not None and "bench" in os.path.basename(program)
        self.rounds: list = []
        self.failure: str | None = None  # after which it is not run again

    def run(self) -> None:
        if self.program is None or self.failure is not None:
            return
        try:
            self.rounds.append((run_bench if self.is_bench else run_roofline)(self.program))
        except ProgramFailed as failure:
            self.failure = str(failure)

    def times(self, n: int, k: int, rows: int) -> dict[str, float]:
        """Median microseconds by order of launches."""
        if not self.is_bench:
            return {}
        seen: dict[str, list[float]] = {}
        for figures in self.rounds:
            for order, us in figures.get((n, k, rows), {}).items():
                seen.setdefault(order, []).append(us)
        return {order: statistics.median(us) for order, us in seen.items()}

    def bounds(self) -> dict[str, float]:
        """Median of each bound over the rounds."""
        if self.program is None or self.is_bench:
            return {}
        seen: dict[str, list[float]] = {}
        for bounds in self.rounds:
            for bound in bounds:
                seen.setdefault(bound["name"], []).append(bound["value"])
        return {name: statistics.median(values) for name, values in seen.items()}


def describe(torch) -> dict:
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"],
        check=False, capture_output=True, text=True,
    ).stdout.strip()
    return {
        "gpu": torch.cuda.get_device_name(0),
        "driver": driver or "unknown",
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
    }


def add_reckon(figures: dict, reckon: Reckon, bounds: dict[str, float]) -> None:
    if figures["kernel"] == "int4":
        times = reckon.times(figures["n"], figures["k"], figures["rows"])
        for order, us in times.items():
            figures[f"reckon_{order}_us"] = us
            figures[f"ratio_{order}"] = figures["us"] / us
        if "read" in bounds:
            figures["share"] = figures["tb_per_s"] * 1e12 / bounds["read"]
    elif "wgmma_bf16" in bounds:
        figures["share"] = figures["tflop_per_s"] * 1e12 / bounds["wgmma_bf16"]


def print_table(about: dict, rows: list[dict], bounds: dict[str, float]) -> None:
    print(
        f"{about['gpu']}, driver {about['driver']}, CUDA {about['cuda']}, "
        f"PyTorch {about['torch']}, {about['date']}"
    )
    for name, value in bounds.items():
        print(f"bound {name}: {value:.4g}")
    print(
        f"{'kernel':6} {'shape':17} {'N':>6} {'K':>6} {'rows':>5} {'us':>9} {'spread':>7} "
        f"{'TB/s':>6} {'TFLOP/s':>8} {'share':>6} {'reckon us':>10} {'ratio':>6} {'overlap':>8}"
        f" {'ratio':>6}"
    )

    def cell(row: dict, key: str, width: int, form: str) -> str:
        return format(row[key], form).rjust(width) if key in row else "-".rjust(width)

    for row in rows:
        print(
            f"{row['kernel']:6} {row['shape']:17} {row['n']:6} {row['k']:6} {row['rows']:5} "
            f"{row['us']:9.2f} {row['spread']:7.1%} {row['tb_per_s']:6.2f} "
            f"{row['tflop_per_s']:8.1f} {cell(row, 'share', 6, '.1%')} "
            f"{cell(row, 'reckon_serial_us', 10, '.2f')} {cell(row, 'ratio_serial', 6, '.2f')} "
            f"{cell(row, 'reckon_overlap_us', 8, '.2f')} {cell(row, 'ratio_overlap', 6, '.2f')}"
        )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures there; - is stdout")
    parser.add_argument("--reckon", metavar="PROGRAM", help="gemv_bench or reckon")
    parser.add_argument("--rounds", metavar="R", type=int, default=3, help="how often (3)")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be 1 or more")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    try:
        import torch  # after the arguments: it takes seconds
    except ImportError:
        sys.exit("peers_gpu.py: PyTorch is not installed")
    if not torch.cuda.is_available():
        sys.exit("peers_gpu.py: PyTorch sees no CUDA device")
    torch.manual_seed(1)
    reckon = Reckon(arguments.reckon)
    cases: list[Case] = []
    for shape in SHAPES:
        cases += int4_cases(torch, shape) + bf16_cases(torch, shape)
    for _ in range(arguments.rounds):
        for case in cases:
            case.replay(torch)
        torch.cuda.synchronize()
        reckon.run()
    about, bounds = describe(torch), reckon.bounds()
    rows = [case.figures() for case in cases]
    for row in rows:
        add_reckon(row, reckon, bounds)
    if arguments.json != "-":
        print_table(about, rows, bounds)
    if arguments.json:
        document = {**about, "rounds": arguments.rounds, "bounds": bounds, "cases": rows}
        text = json.dumps(document, indent=1) + "\n"
        if arguments.json == "-":
            print(text, end="")
        else:
            with open(arguments.json, "w", encoding="utf-8") as file:
                file.write(text)
    if reckon.failure is not None:
        sys.exit(f"peers_gpu.py: {reckon.failure}")


if __name__ == "__main__":
    main()
