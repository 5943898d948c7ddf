// A recorded checkpoint folder that a test changes before it is read: its configuration, and its
// tensors by name.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/test_files.h"

namespace reckon::models {

class EditedFolder {
 public:
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> shape;
    std::string bytes;
  };

  // `name` as golden_path() takes it; one file of tensors.
  explicit EditedFolder(const std::string& name) {
    config = nlohmann::json::parse(read_file(golden_path(name + "/config.json")), nullptr, false);
    const std::string file = read_file(golden_path(name + "/model.safetensors"));
    uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    const auto header = nlohmann::json::parse(file.substr(8, length), nullptr, false);
    for (const auto& [tensor, entry] : header.items()) {
      if (tensor == "__metadata__") continue;
      const auto begin = entry["data_offsets"][0].get<size_t>();
      const auto end = entry["data_offsets"][1].get<size_t>();
      tensors[tensor] = {entry["dtype"], entry["shape"],
                         file.substr(8 + length + begin, end - begin)};
    }
  }

  // Writes the folder and gives its path.
  const std::string& write() {
    folder_.write("config.json", config.dump());
    nlohmann::json header = nlohmann::json::object();
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      const size_t end = data.size() + tensor.bytes.size();
      header[name] = {
          {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {data.size(), end}}};
      data += tensor.bytes;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    folder_.write("model.safetensors",
                  ByteWriter().put<uint64_t>(text.size()).raw(text).raw(data).bytes());
    return folder_.path();
  }

  nlohmann::json config;
  std::map<std::string, Tensor> tensors;

 private:
  TestFolder folder_;
};

// The experts of each layer, one tensor each, as two tensors of all of them: gate and up in one.
inline void fuse_experts(EditedFolder& folder) {
  const auto experts = folder.config["num_experts"].get<int64_t>();
  for (int64_t l = 0; l < folder.config["num_hidden_layers"].get<int64_t>(); ++l) {
    const std::string at = "model.layers." + std::to_string(l) + ".mlp.experts.";
    EditedFolder::Tensor gate_up, down;
    for (int64_t e = 0; e < experts; ++e) {
      for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
        const auto found = folder.tensors.find(at + std::to_string(e) + "." + name + ".weight");
        ASSERT_NE(found, folder.tensors.end());
        const bool is_down = std::string(name) == "down_proj";
        EditedFolder::Tensor& into = is_down ? down : gate_up;
        const std::vector<int64_t>& shape = found->second.shape;
        into.dtype = found->second.dtype;
        into.shape = {experts, is_down ? shape[0] : 2 * shape[0], shape[1]};
        into.bytes += found->second.bytes;
        folder.tensors.erase(found);
      }
    }
    folder.tensors[at + "gate_up_proj"] = std::move(gate_up);
    folder.tensors[at + "down_proj"] = std::move(down);
  }
}

}  // namespace reckon::models
