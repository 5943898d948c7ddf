#include "formats/write_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <vector>

#include "base/bytes.h"
#include "base/thread_pool.h"
#include "formats/file_error.h"
#include "formats/new_file.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kStripBytes = int64_t{16} << 20;
constexpr int64_t kTaskBytes = int64_t{1} << 18;

Status sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return file_error(folder.string(), std::strerror(errno));
  const bool synced = ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  if (!synced) return file_error(folder.string(), std::strerror(error));
  return {};
}

// A folder that is removed unless it got its name.
class DraftFolder {
 public:
  explicit DraftFolder(fs::path path) : path_(std::move(path)) {}
  ~DraftFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  DraftFolder(const DraftFolder&) = delete;
  DraftFolder& operator=(const DraftFolder&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }
  Status rename_to(const fs::path& path) {
    std::error_code error;
    fs::rename(path_, path, error);
    if (error) return file_error(path.string(), error.message());
    path_.clear();
    return {};
  }

 private:
  fs::path path_;
};

Result<std::string> safetensors_type(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  if (tensor.weight && !checkpoint.is_block_fp8(tensor.name)) {
    if (tensor.weight->type == DType::kF32) return "F32";
    if (tensor.weight->type == DType::kF16) return "F16";
    if (tensor.weight->type == DType::kBF16) return "BF16";
  }
  return failed(fmt::format("{}: tensor '{}' is {}; a folder holds f32, f16 and bf16",
                            checkpoint.path(), tensor.name, printable(tensor.type_name)));
}

// The header's length and the header, padded to a multiple of eight.
Result<std::string> safetensors_header(const Checkpoint& checkpoint) {
  nlohmann::json header = nlohmann::json::object();
  uint64_t offset = 0;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    TRY_ASSIGN(const std::string type, safetensors_type(checkpoint, tensor));
    header[tensor.name] = {{"dtype", type},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes}}};
    offset += tensor.bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string bytes(sizeof(uint64_t), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(static_cast<uint64_t>(text.size()) >> (8 * i));
  }
  return bytes + text;
}

// Makes strips of rows on all threads and writes each in one go.
class WeightWriter {
 public:
  WeightWriter(const Checkpoint& checkpoint, NewFile& file, const WriteFolderOptions& options)
      : checkpoint_(checkpoint),
        file_(file),
        options_(options),
        total_(folder_bytes(checkpoint)),
        pool_(options.threads) {}

  Status write(const CheckpointTensor& tensor) {
    TRY_ASSIGN(const std::unique_ptr<const RowSource> source, checkpoint_.rows(tensor.name));
    const Weight& weight = *tensor.weight;
    const int64_t strip = std::max<int64_t>(1, kStripBytes / row_bytes(weight.type, weight.k));
    for (int64_t first = 0; first < weight.n; first += strip) {
      TRY(write_strip(*source, weight, first, std::min(strip, weight.n - first)));
      if (options_.progress && !options_.progress(done_, total_)) {
        return failed(fmt::format("{}: stopped", checkpoint_.path()));
      }
    }
    return {};
  }

 private:
  Status write_strip(const RowSource& source, const Weight& weight, int64_t first, int64_t count) {
    const int64_t stride = row_bytes(weight.type, weight.k);
    strip_.resize(static_cast<size_t>(count * stride));
    const int64_t task_rows = std::max<int64_t>(1, kTaskBytes / stride);
    std::atomic<bool> ok{true};
    pool_.parallel_for((count + task_rows - 1) / task_rows, [&](int64_t task) {
      const int64_t from = task * task_rows;
      if (!source
               .rows(first + from, std::min(task_rows, count - from), weight.type,
                     strip_.data() + from * stride)
               .ok()) {
        ok = false;
      }
    });
    RECKON_CHECK(ok);  // nothing is converted
    done_ += strip_.size();
    return file_.write({strip_.data(), strip_.size()});
  }

  const Checkpoint& checkpoint_;
  NewFile& file_;
  const WriteFolderOptions& options_;
  uint64_t total_ = 0;
  uint64_t done_ = 0;
  ThreadPool pool_;
  std::vector<char> strip_;
};

Status write_weights(const Checkpoint& checkpoint, const std::string& path,
                     const WriteFolderOptions& options) {
  TRY_ASSIGN(const std::string header, safetensors_header(checkpoint));
  NewFile file(path);
  TRY(file.write(header));
  WeightWriter writer(checkpoint, file, options);
  for (const CheckpointTensor& tensor : checkpoint.tensors()) TRY(writer.write(tensor));
  return file.sync();
}

Status write_config(const Checkpoint& checkpoint, const std::string& path) {
  NewFile file(path);
  TRY(file.write(checkpoint.config_text()));
  return file.sync();
}

Status check_target(const fs::path& path, const fs::path& parent) {
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(path, ignored)) &&
      !(fs::is_directory(path, ignored) && fs::is_empty(path, ignored))) {
    return usage_error(fmt::format("{}: is there already", path.string()));
  }
  if (!fs::is_directory(parent, ignored)) {
    return usage_error(fmt::format("{}: is not a folder", parent.string()));
  }
  return {};
}

Status check_room(const fs::path& path, const fs::path& parent, uint64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(parent, error);
  if (error || space.available >= bytes) return {};
  return failed(fmt::format("{}: needs {} and the disk has {} left", path.string(),
                            format_bytes(bytes), format_bytes(space.available)));
}

}  // namespace

uint64_t folder_bytes(const Checkpoint& checkpoint) {
  uint64_t bytes = 0;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) bytes += tensor.bytes;
  return bytes;
}

Status write_folder(const Checkpoint& checkpoint, const std::string& path,
                    const WriteFolderOptions& options) {
  if (checkpoint.config_text().empty()) {
    return failed(fmt::format("{}: only a checkpoint with a config.json becomes a folder",
                              checkpoint.path()));
  }
  std::error_code error;
  fs::path target = fs::absolute(path, error).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "folder/"
  const fs::path parent = target.parent_path();
  TRY(check_target(target, parent));
  TRY(check_room(target, parent, folder_bytes(checkpoint)));
  const fs::path draft_path = fmt::format("{}.{}.new", target.string(), ::getpid());
  if (!fs::create_directory(draft_path, error)) {
    return file_error(draft_path.string(), error ? error.message() : "is there already");
  }
  DraftFolder draft(draft_path);
  TRY(write_config(checkpoint, (draft.path() / "config.json").string()));
  TRY(write_weights(checkpoint, (draft.path() / "model.safetensors").string(), options));
  TRY(sync_folder(draft.path()));
  TRY(draft.rename_to(target));
  return sync_folder(parent);
}

}  // namespace reckon
