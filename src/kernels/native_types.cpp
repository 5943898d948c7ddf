#include "kernels/native_types.h"

#include <algorithm>

namespace reckon::kernels {

bool has_matmul(const Backend& backend, DType type, int64_t n, int64_t k) {
  constexpr int64_t kPrefillRows = 512;
  OpCall decode;
  decode.op = Op::kMatmul;
  decode.phase = Phase::kDecode;
  decode.weight_type = type;
  decode.rows = 1;
  decode.n = n;
  decode.k = k;
  OpCall prefill = decode;
  prefill.phase = Phase::kPrefill;
  prefill.rows = kPrefillRows;
  const auto runs = [&](const OpCall& call) {
    return std::ranges::any_of(backend.variants(), [&](const Variant& row) {
      const bool loose_enough = call.phase == Phase::kPrefill
                                    ? row.numerics != NumericsClass::kReference
                                    : row.numerics == NumericsClass::kExact;
      return row.op == Op::kMatmul && loose_enough && row.isa <= backend.device().best_isa &&
             (row.supports == nullptr || row.supports(call).empty());
    });
  };
  return runs(decode) && runs(prefill);
}

}  // namespace reckon::kernels
