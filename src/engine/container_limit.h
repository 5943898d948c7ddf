// What the container (control group) that this process runs in leaves of its memory limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reckon::engine {

// The least that any group from this process's own up to the root has left: limit minus usage,
// where file cache that can be dropped does not count as used. None where no group has a limit.
// `mount` is where control groups are mounted ("/sys/fs/cgroup"), `membership` the text of
// /proc/self/cgroup. Version 2 is read where the membership names it ("0::/path"), else version 1.
// https://docs.kernel.org/admin-guide/cgroup-v2.html, .../cgroup-v1/memory.html
[[nodiscard]] std::optional<uint64_t> container_memory_left(const std::string& mount,
                                                            std::string_view membership);

}  // namespace reckon::engine
