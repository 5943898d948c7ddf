#include "experiment/row_json.h"

#include "experiment/json_fields.h"

namespace reckon::experiment {

nlohmann::json encode_rows(std::span<const DispatchRow> rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const DispatchRow& row : rows) {
    list.push_back({{"phase", row.phase},
                    {"op", row.op},
                    {"shape", row.shape},
                    {"variant", row.variant},
                    {"params", row.params},
                    {"source_hash", row.source_hash}});
  }
  return list;
}

Result<std::vector<DispatchRow>> decode_rows(const nlohmann::json& json, const std::string& what) {
  if (!json.is_array()) return failed(what + ": expected a list of rows");
  std::vector<DispatchRow> rows;
  for (const nlohmann::json& object : json) {
    DispatchRow row;
    JsonFields fields(object, what);
    fields.read("phase", row.phase);
    fields.read("op", row.op);
    fields.read("shape", row.shape);
    fields.read("variant", row.variant);
    fields.read("params", row.params);
    fields.read("source_hash", row.source_hash);
    TRY(fields.status());
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace reckon::experiment
