#include "ledger/scope.h"

#include <utility>

#include "base/hash.h"
#include "ledger/scope_fields.h"

namespace reckon::ledger {
namespace {

constexpr size_t kScopeIdCharacters = 16;
constexpr char kFieldEnd = '\x1f';
constexpr char kValueEnd = '\x1e';

using Flat = std::map<std::string, std::string>;

void flatten(const nlohmann::json& value, const std::string& path, Flat& flat) {
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      flatten(item, path.empty() ? key : path + "." + key, flat);
    }
    return;
  }
  flat[path] = value.is_string()
                   ? value.get<std::string>()
                   : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Takes the next "field, value" off a flat scope.
std::pair<std::string_view, std::string_view> next_field(std::string_view& flat) {
  const size_t middle = flat.find(kFieldEnd);
  const size_t end = flat.find(kValueEnd, middle);
  const std::pair field{flat.substr(0, middle), flat.substr(middle + 1, end - middle - 1)};
  flat.remove_prefix(end == std::string_view::npos ? flat.size() : end + 1);
  return field;
}

}  // namespace

nlohmann::json scope_to_json(const Scope& scope) {
  return codec::Writer::write(scope, codec::Empties::kWrite);
}

Result<Scope> scope_from_json(const nlohmann::json& json) {
  Scope scope;
  TRY(codec::Reader::read(json, scope, "scope"));
  return scope;
}

std::string scope_id(const Scope& scope) {
  // Text that is not UTF-8 cannot reach a ledger; here it only must not throw.
  const std::string canonical =
      scope_to_json(scope).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return Hasher().add(canonical).base32(kScopeIdCharacters);
}

std::vector<ScopeDifference> differences(const Scope& a, const Scope& b) {
  Flat flat_a;
  Flat flat_b;
  flatten(scope_to_json(a), "", flat_a);
  flatten(scope_to_json(b), "", flat_b);
  std::vector<ScopeDifference> found;
  Flat names = flat_a;
  names.insert(flat_b.begin(), flat_b.end());
  for (const auto& [field, unused] : names) {
    const auto in_a = flat_a.find(field);
    const auto in_b = flat_b.find(field);
    std::string text_a = in_a == flat_a.end() ? "" : in_a->second;
    std::string text_b = in_b == flat_b.end() ? "" : in_b->second;
    if (text_a != text_b || (in_a == flat_a.end()) != (in_b == flat_b.end())) {
      found.push_back({field, std::move(text_a), std::move(text_b)});
    }
  }
  return found;
}

std::string flat_scope(const Scope& scope) {
  Flat flat;
  flatten(scope_to_json(scope), "", flat);
  std::string text;
  for (const auto& [field, value] : flat) {
    for (const auto& [part, end] : {std::pair(field, kFieldEnd), std::pair(value, kValueEnd)}) {
      for (const char c : part) text += c == kFieldEnd || c == kValueEnd ? ' ' : c;
      text += end;
    }
  }
  return text;
}

size_t differing_fields(std::string_view flat_a, std::string_view flat_b) {
  size_t count = 0;
  while (!flat_a.empty() && !flat_b.empty()) {
    std::string_view rest_a = flat_a;
    std::string_view rest_b = flat_b;
    const auto a = next_field(rest_a);
    const auto b = next_field(rest_b);
    count += a == b ? 0 : 1;
    if (a.first <= b.first) flat_a = rest_a;
    if (b.first <= a.first) flat_b = rest_b;
  }
  for (std::string_view rest : {flat_a, flat_b}) {
    for (; !rest.empty(); ++count) next_field(rest);
  }
  return count;
}

}  // namespace reckon::ledger
