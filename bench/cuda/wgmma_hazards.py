#!/usr/bin/env python3
"""Finds instructions that write a register which a running wgmma still reads.

A wgmma with operand A in registers runs asynchronously. In PTX a fragment is dead once it is issued,
so the assembler may give its registers away, or move them at the end of a loop, before the group has
been waited for: wrong results that differ from run to run. Follows every path of the disassembly,
counting groups (HGMMA ... gsb0) and waits (WARPGROUP.DEPBAR). Worth a run with each new nvcc.

  cuobjdump -sass matmul_fast_tile_p4.o | bench/cuda/wgmma_hazards.py
"""
import re
import sys

INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?(\S+)\s*(.*?)\s*;")
# What has no destination register, or only reads the ones it names.
NO_RESULT = ("ST", "RED", "BRA", "EXIT", "SYNCS", "BAR", "WARP", "DEPBAR", "NOP", "LDGSTS",
             "LDGDEP", "MEMBAR", "FENCE", "ERRBAR", "UBLK", "CCTL", "CALL", "RET", "BSSY",
             "BSYNC", "YIELD", "UCGABAR")


def written(op: str, operands: str) -> set[int]:
    match = re.match(r"R(\d+)$", operands.split(",")[0].strip())
    if not match or op.startswith(NO_RESULT):
        return set()
    count = 4 if ".128" in op else 2 if ".64" in op or "WIDE" in op else 1
    return set(range(int(match.group(1)), int(match.group(1)) + count))


def hazards(lines: list[str]) -> list[str]:
    code = []
    for line in lines:
        match = INSTRUCTION.search(line)
        if match:
            code.append((int(match.group(1), 16), match.group(2), match.group(3), match.group(4)))
    index_of = {entry[0]: i for i, entry in enumerate(code)}
    found, seen = set(), set()
    paths = [(0, frozenset(), ())]  # instruction, registers of the open group, of running groups
    while paths:
        i, opened, running = paths.pop()
        while i < len(code) and (i, opened, running) not in seen:
            seen.add((i, opened, running))
            address, predicate, op, operands = code[i]
            if op.startswith("HGMMA"):
                match = re.match(r"R(\d+)$", operands.split(",")[1].strip())
                if match:
                    opened |= frozenset(range(int(match.group(1)), int(match.group(1)) + 4))
                if "gsb0" in operands:
                    running, opened = (running + (opened,))[-8:], frozenset()
            elif op.startswith("WARPGROUP.DEPBAR"):
                left = int(re.search(r"0x(\w+)", operands).group(1), 16)
                running = running[max(len(running) - left, 0):]
            elif written(op, operands) & opened.union(*running):
                found.add(f"{address:#x} {op} {operands}")
            if op.startswith("BRA"):
                match = re.search(r"0x([0-9a-f]+)", operands)
                if match and int(match.group(1), 16) in index_of:
                    paths.append((index_of[int(match.group(1), 16)], opened, running))
                if not predicate and not re.match(r"!?U?P\d", operands):
                    break
            if op.startswith("EXIT") and not predicate:
                break
            i += 1
    return sorted(found)


def main() -> int:
    functions: dict[str, list[str]] = {}
    name = ""
    for line in sys.stdin:
        if "Function :" in line:
            name = line.split(":")[1].strip()
        functions.setdefault(name, []).append(line)
    bad = 0
    for name, lines in functions.items():
        if not any("HGMMA" in line for line in lines):
            continue
        found = hazards(lines)
        bad += len(found)
        print(f"{name}: {len(found)} writes to registers in use", *found[:4], sep="\n  ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
