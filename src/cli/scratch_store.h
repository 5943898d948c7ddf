// A ledger on top of another one that leaves no trace: what is appended lies in a temporary folder
// and is gone with this object; what is read is both. For runs that shall not be recorded.
// Thread-safe as the stores under it are.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "ledger/store.h"

namespace reckon::cli {

class ScratchStore final : public ledger::Store {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ScratchStore>> create(
      std::unique_ptr<ledger::Store> under);
  ~ScratchStore() override;
  ScratchStore(const ScratchStore&) = delete;
  ScratchStore& operator=(const ScratchStore&) = delete;

  Result<ledger::AppendReport> append(std::span<const ledger::Event> events) override;
  Result<ledger::ReadReport> read() const override;  // what lies under it first
  Result<ledger::VerifyReport> verify() const override;
  const std::string& location() const override { return top_->location(); }
  Result<std::filesystem::path> local_folder() const override { return top_->local_folder(); }

 private:
  ScratchStore(std::filesystem::path folder, std::unique_ptr<ledger::Store> under,
               std::unique_ptr<ledger::Store> top)
      : folder_(std::move(folder)), under_(std::move(under)), top_(std::move(top)) {}

  std::filesystem::path folder_;
  std::unique_ptr<ledger::Store> under_, top_;
};

}  // namespace reckon::cli
