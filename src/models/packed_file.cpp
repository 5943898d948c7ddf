#include "models/packed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/hash.h"
#include "models/first_error.h"
#include "models/packed_layout.h"
#include "tensor/quantise.h"

namespace reckon::models {
namespace {

using nlohmann::json;

template <typename T>
T load(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// A whole number of 0 or more; throws where it is none, as at() does where there is nothing.
uint64_t whole(const json& value) {
  return value.get_ref<const json::number_unsigned_t&>();
}

}  // namespace

int64_t packed_run_rows(DType type, int64_t k) {
  constexpr int64_t kRunBytes = int64_t{1} << 20;
  return std::max<int64_t>(1, kRunBytes / row_bytes(type, k));
}

int64_t packed_runs(const Weight& weight) {
  const int64_t rows = packed_run_rows(weight.type, weight.k);
  return (weight.n + rows - 1) / rows;
}

std::string_view packed_run(const Weight& weight, int64_t run) {
  const int64_t rows = packed_run_rows(weight.type, weight.k);
  const int64_t stride = row_bytes(weight.type, weight.k);
  const int64_t first = run * rows;
  return {static_cast<const char*>(weight.data) + first * stride,
          static_cast<size_t>(std::min(rows, weight.n - first) * stride)};
}

Result<std::shared_ptr<const PackedFile>> PackedFile::open(const std::string& path,
                                                           const PackedKey& key) {
  TRY_ASSIGN(MappedFile mapped, MappedFile::open(path));
  std::shared_ptr<PackedFile> file(new PackedFile(std::move(mapped)));
  if (const Status read = file->read(key); !read.ok()) {
    return failed(fmt::format("{}: {}", path, read.error().message));
  }
  return std::shared_ptr<const PackedFile>(std::move(file));
}

Status PackedFile::read(const PackedKey& key) {
  const std::string_view all = file_.bytes();
  if (all.size() < kPackedHead || !all.starts_with(kPackedMagic)) {
    return failed("not a whole file of packed weights");
  }
  const auto length = load<uint64_t>(all, 8);
  if (length > all.size() - kPackedHead) return failed("the header is cut short");
  const std::string_view text = all.substr(kPackedHead, length);
  if (hash64(text) != load<uint64_t>(all, 16)) return failed("the header is damaged");
  try {
    const json header = json::parse(text);
    if (header.at("packing") != key.packing) {
      return failed("the weights were packed by another version of Reckon");
    }
    if (header.at("model") != key.model || header.at("scheme") != key.scheme) {
      return failed("the weights are those of another model or scheme");
    }
    return read_tensors(text, whole(header.at("data")));
  } catch (const json::exception&) {
    return failed("the header is not as expected");
  }
}

Status PackedFile::read_tensors(std::string_view text, uint64_t begin) {
  const json header = json::parse(text);
  const std::string_view all = file_.bytes();
  const Error unexpected = failed("the header is not as expected");
  if (begin > all.size()) return unexpected;
  const std::string_view data = all.substr(begin);
  for (const json& entry : header.at("tensors")) {
    Tensor tensor;
    const auto type = dtype_from_name(entry.at("type").get<std::string>());
    const uint64_t offset = whole(entry.at("offset"));
    const uint64_t n = whole(entry.at("n"));
    const uint64_t k = whole(entry.at("k"));
    for (const json& sum : entry.at("sums")) tensor.sums.push_back(whole(sum));
    // A weight takes more than half a byte.
    if (!type || !can_quantise_to(*type) || n < 1 || k < 1 || k / 2 > data.size()) {
      return unexpected;
    }
    tensor.weight = {nullptr, *type, 0, static_cast<int64_t>(k)};
    const auto stride = static_cast<uint64_t>(row_bytes(*type, tensor.weight.k));
    if (n > data.size() / stride || offset > data.size() - n * stride) return unexpected;
    tensor.weight.n = static_cast<int64_t>(n);
    if (static_cast<int64_t>(tensor.sums.size()) != packed_runs(tensor.weight)) return unexpected;
    tensor.weight.data = data.data() + offset;
    tensors_.emplace(entry.at("name").get<std::string>(), std::move(tensor));
  }
  return {};
}

Weight PackedFile::find(const std::string& name, Weight wanted) const {
  wanted.data = nullptr;
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return wanted;
  const Weight& weight = found->second.weight;
  const bool same = weight.type == wanted.type && weight.n == wanted.n && weight.k == wanted.k;
  return same ? weight : wanted;
}

Status PackedFile::verify(std::span<const std::string> names, ThreadPool& pool) const {
  struct Run {
    const std::string* name;
    const Tensor* tensor;
    int64_t index;
  };
  std::vector<Run> runs;
  for (const std::string& name : names) {
    const auto found = tensors_.find(name);
    RECKON_CHECK(found != tensors_.end());
    for (int64_t i = 0; i < packed_runs(found->second.weight); ++i) {
      runs.push_back({&name, &found->second, i});
    }
  }
  FirstError errors;
  pool.parallel_for(static_cast<int64_t>(runs.size()), [&](int64_t task) {
    const Run& run = runs[static_cast<size_t>(task)];
    const std::string_view bytes = packed_run(run.tensor->weight, run.index);
    file_.read_ahead(static_cast<size_t>(bytes.data() - file_.bytes().data()), bytes.size());
    if (hash64(bytes) == run.tensor->sums[static_cast<size_t>(run.index)]) return;
    errors.add(task, failed(fmt::format("{}: the rows of tensor '{}' are damaged", file_.path(),
                                        *run.name)));
  });
  return errors.take();
}

Status PackedRows::rows(int64_t first, int64_t count, DType type, void* out) const {
  RECKON_CHECK(type == type_);
  return rows_.rows(first, count, type, out);
}

}  // namespace reckon::models
