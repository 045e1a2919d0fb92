#include "services/zones.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "base/result.h"
#include "base/text.h"

namespace stint::services {

namespace {
constexpr std::chrono::hours kReadAgain{1};
}

Result<model::Zone> ZoneFiles::Find(const std::string& name) {
    if (name == "UTC") return model::Zone();
    if (auto valid = model::CheckZoneName(name); !valid) return valid.error();
    std::lock_guard guard(mutex_);
    auto known = known_.find(name);
    if (known != known_.end() && clock_.Now() < known->second.until) return known->second.zone;
    std::ifstream file(directory_ + "/" + name, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    if (!file) {
        return base::MakeError(
            Code::kInvalid,
            "zone is {}; there is no such file below {}: check the name (Europe/Berlin), or "
            "install "
            "the system's time zones (tzdata)",
            base::Quoted(name),
            directory_
        );
    }
    auto zone = model::Zone::Parse(name, bytes.str());
    if (!zone) return zone.error();
    known_.insert_or_assign(name, Known{*zone, clock_.Now() + kReadAgain});
    return zone;
}

ZoneSource SystemZones() {
    static ZoneFiles files("/usr/share/zoneinfo", base::SystemClock());
    return [](const std::string& name) { return files.Find(name); };
}

}  // namespace stint::services
