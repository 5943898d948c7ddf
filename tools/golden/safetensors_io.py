"""Read and write safetensors files with NumPy only.

Format: little-endian uint64 header size, a JSON header padded with spaces to
8 bytes, then the tensors' bytes; `data_offsets` count from the header's end.
https://huggingface.co/docs/safetensors/index#format
"""

import json
import struct

import numpy as np

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1", "I8": "i1"}
_NAMES = {np.dtype(v): k for k, v in _DTYPES.items()}


def bf16_bits(values):
    """float32 → bfloat16 bit patterns (uint16), rounding to nearest even. Finite input only."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def bf16_values(bits):
    """bfloat16 bit patterns (uint16) → float32, exactly."""
    return (np.asarray(bits, np.uint32) << 16).view(np.float32)


def load(path):
    """Every tensor of the file by name; BF16 comes widened to float32."""
    with open(path, "rb") as file:
        raw = file.read()
    (size,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            data = bf16_values(np.frombuffer(raw[begin:end], "<u2"))
        else:
            data = np.frombuffer(raw[begin:end], _DTYPES[entry["dtype"]])
        tensors[name] = data.reshape(entry["shape"])
    return tensors


def save(path, tensors, bf16=(), metadata=None):
    """Write `tensors`; the names in `bf16` are given as float32 and stored as BF16.

    Order as `safetensors` itself writes: wider types first, then by name.
    """
    header, blobs, offset = {}, [], 0
    if metadata:
        header["__metadata__"] = metadata

    def width(name):
        return 2 if name in bf16 else tensors[name].dtype.itemsize

    for name in sorted(tensors, key=lambda n: (-width(n), n)):
        array = np.ascontiguousarray(tensors[name])
        if name in bf16:
            dtype, blob = "BF16", bf16_bits(array).tobytes()
        else:
            dtype, blob = _NAMES[array.dtype], array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
