// Time zones by name, from the files of the system.
#pragma once

#include <stint/result.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "model/calendar/zone.h"

namespace stint::services {

using ZoneSource = std::function<Result<model::Zone>(const std::string& name)>;

// Reads a zone when it is first asked for, and again after a while: rules change.
class ZoneFiles {
public:
    ZoneFiles(std::string directory, base::Clock& clock)
        : directory_(std::move(directory)), clock_(clock) {}

    // The message names the zone and the file that is not there.
    Result<model::Zone> Find(const std::string& name);

private:
    struct Known {
        model::Zone zone;
        base::Instant until;
    };
    const std::string directory_;
    base::Clock& clock_;
    std::mutex mutex_;
    std::map<std::string, Known> known_;  // guarded by mutex_
};

// Of /usr/share/zoneinfo; shared by the whole process.
ZoneSource SystemZones();

}  // namespace stint::services
