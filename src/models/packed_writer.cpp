// write_packed_file() of packed_file.h. Threads take runs of rows, pack each into a buffer of their
// own and write it where it belongs, so that packing, checksums and writing go on side by side.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/bytes.h"
#include "base/hash.h"
#include "formats/new_file.h"
#include "models/first_error.h"
#include "models/packed_file.h"
#include "models/packed_layout.h"

namespace reckon::models {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kPage = 4096;

uint64_t rounded(uint64_t bytes, uint64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

struct Layout {
  std::vector<uint64_t> offsets;            // of each source's data
  std::vector<std::vector<uint64_t>> sums;  // of its runs
  uint64_t data = 0;                        // where the data begin
  uint64_t data_bytes = 0;
};

std::string header_text(const PackedKey& key, std::span<const PackedSource> sources,
                        const Layout& layout) {
  json tensors = json::array();
  for (size_t i = 0; i < sources.size(); ++i) {
    tensors.push_back({{"name", sources[i].name},
                       {"type", dtype_name(sources[i].packed.type)},
                       {"n", sources[i].packed.n},
                       {"k", sources[i].packed.k},
                       {"offset", layout.offsets[i]},
                       {"sums", layout.sums[i]}});
  }
  return json{{"model", key.model},
              {"scheme", key.scheme},
              {"packing", key.packing},
              {"data", layout.data},
              {"tensors", std::move(tensors)}}
      .dump();
}

// With room for a header of the longest numbers.
Layout plan_layout(const PackedKey& key, std::span<const PackedSource> sources) {
  Layout layout;
  layout.data = UINT64_MAX;
  for (const PackedSource& source : sources) {
    layout.offsets.push_back(layout.data_bytes);
    layout.data_bytes += rounded(static_cast<uint64_t>(source.packed.bytes()), kPackedAlignment);
    layout.sums.emplace_back(static_cast<size_t>(packed_runs(source.packed)), UINT64_MAX);
  }
  layout.data = rounded(kPackedHead + header_text(key, sources, layout).size(), kPage);
  return layout;
}

class Writer {
 public:
  Writer(NewFile& file, std::span<const PackedSource> sources, Layout& layout, ThreadPool& pool)
      : file_(file), sources_(sources), layout_(layout), pool_(pool) {
    for (size_t i = 0; i < sources.size(); ++i) {
      for (int64_t run = 0; run < packed_runs(sources[i].packed); ++run) runs_.push_back({i, run});
    }
    buffers_.resize(static_cast<size_t>(pool.threads()));
  }

  Status write(const PackedProgress& progress) {
    const int64_t slice = std::max<int64_t>(64, int64_t{8} * pool_.threads());
    const auto total = static_cast<int64_t>(runs_.size());
    int64_t values = 0;
    for (int64_t first = 0; first < total; first += slice) {
      const int64_t count = std::min(slice, total - first);
      TRY(write_slice(first, count));
      for (int64_t i = first; i < first + count; ++i) values += values_of(runs_[i]);
      if (progress) progress(values);
    }
    return {};
  }

 private:
  struct Run {
    size_t source;
    int64_t index;
  };

  [[nodiscard]] int64_t rows_of(const Run& run) const {
    const Weight& packed = sources_[run.source].packed;
    const int64_t rows = packed_run_rows(packed.type, packed.k);
    return std::min(rows, packed.n - run.index * rows);
  }
  [[nodiscard]] int64_t values_of(const Run& run) const {
    return rows_of(run) * sources_[run.source].packed.k;
  }

  Status write_slice(int64_t first, int64_t count) {
    struct Slice {
      Writer* writer;
      int64_t first;
      FirstError errors;
    } slice{this, first, {}};
    const auto write_task = [](void* context, int64_t task, int thread) {
      auto* part = static_cast<Slice*>(context);
      const int64_t at = part->first + task;
      part->errors.add(at, part->writer->write_run(part->writer->runs_[at], thread));
    };
    pool_.parallel_for(count, write_task, &slice);
    return slice.errors.take();
  }

  Status write_run(const Run& run, int thread) {
    const PackedSource& source = sources_[run.source];
    const int64_t stride = row_bytes(source.packed.type, source.packed.k);
    const int64_t first = run.index * packed_run_rows(source.packed.type, source.packed.k);
    const int64_t count = rows_of(run);
    std::vector<char>& buffer = buffers_[static_cast<size_t>(thread)];
    buffer.resize(static_cast<size_t>(count * stride));
    const Status made = source.rows->rows(first, count, source.packed.type, buffer.data());
    if (!made.ok()) {
      return failed(fmt::format("tensor '{}', {}", source.name, made.error().message));
    }
    const std::string_view bytes(buffer.data(), buffer.size());
    layout_.sums[run.source][static_cast<size_t>(run.index)] = hash64(bytes);
    return file_.write_at(
        layout_.data + layout_.offsets[run.source] + static_cast<uint64_t>(first * stride), bytes);
  }

  NewFile& file_;
  std::span<const PackedSource> sources_;
  Layout& layout_;
  ThreadPool& pool_;
  std::vector<Run> runs_;
  std::vector<std::vector<char>> buffers_;  // one a thread
};

Status write_head(NewFile& file, const std::string& header) {
  const auto number = [](uint64_t value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  return file.write_at(
      0, std::string(kPackedMagic) + number(header.size()) + number(hash64(header)) + header);
}

}  // namespace

uint64_t packed_file_bytes(const PackedKey& key, std::span<const PackedSource> sources) {
  const Layout layout = plan_layout(key, sources);
  return layout.data + layout.data_bytes;
}

Status write_packed_file(const std::string& path, const PackedKey& key,
                         std::span<const PackedSource> sources, ThreadPool& pool,
                         const PackedProgress& progress, const PackedCheck& still_valid) {
  constexpr std::string_view kBeginnings[] = {kPackedDraft, kPackedMagic};
  Layout layout = plan_layout(key, sources);
  remove_drafts(path, kBeginnings);
  std::error_code error;
  const fs::space_info space = fs::space(fs::path(path).parent_path(), error);
  const uint64_t bytes = layout.data + layout.data_bytes;
  if (!error && space.available < bytes) {
    return failed(fmt::format("{}: needs {} and the disk has {} left", path, format_bytes(bytes),
                              format_bytes(space.available)));
  }
  NewFile file = NewFile::beside(path);
  TRY(file.write_at(0, kPackedDraft));
  TRY(Writer(file, sources, layout, pool).write(progress));
  TRY(write_head(file, header_text(key, sources, layout)));
  if (still_valid) TRY(still_valid());
  return file.rename_to(path);
}

}  // namespace reckon::models
