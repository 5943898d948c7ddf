// The type numbers of the GGUF format, for its reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/gguf.h"
#include "tensor/dtype.h"

namespace reckon {

// Bytes of a scalar metadata value; 0 for strings, arrays and unknown types.
[[nodiscard]] uint64_t gguf_scalar_bytes(GgufType type);
[[nodiscard]] std::string_view gguf_type_name(GgufType type);  // "uint32", "string", ...

// A tensor's element type by its number in the file; none where Reckon does not read it.
[[nodiscard]] std::optional<DType> gguf_tensor_type(uint32_t number);
// The names of those that it reads: "F32, F16, Q4_0, ...".
[[nodiscard]] std::string gguf_tensor_types_read();
// "Q4_K", or "type 99" where the number is unknown.
[[nodiscard]] std::string gguf_tensor_type_name(uint32_t number);

}  // namespace reckon
