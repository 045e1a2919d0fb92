// Flight records: which tasks had started in a process, readable after its death.
//
// One small file per session, mapped into memory: noting a start is one store to a page, which the
// kernel keeps even when the process is killed. Of a crashed process's tasks only those that had
// started are suspects; without a record (a machine that lost power) all it held are.
#pragma once

#include <stint/ids.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/state_file.h"

namespace stint::engine {

class FlightRecord {
public:
    // Room for `slots` attempts at once. Throws std::system_error.
    FlightRecord(const std::filesystem::path& dir, SessionId session, int slots);
    ~FlightRecord();
    FlightRecord(const FlightRecord&) = delete;
    FlightRecord& operator=(const FlightRecord&) = delete;

    // Returns the place to give back to End; -1 when there is no room: then the record says so, and
    // its reader counts all that the session held.
    int Start(TaskId task);
    void End(int place);
    void Remove();  // a clean stop

private:
    struct Page;
    StateFile file_;
    Page* page_ = nullptr;
    std::size_t bytes_ = 0;
    const int slots_;
    std::mutex mutex_;
    std::vector<int> free_;  // guarded by mutex_
};

// Records of this machine whose processes are dead. Sessions whose record cannot be trusted are
// left out. `kept` are the files, locked, until the caller removes or drops them.
struct DeadFlights {
    std::map<SessionId, std::vector<TaskId>> flights;
    std::map<SessionId, StateFile> files;
};
DeadFlights ReadDeadFlights(const std::filesystem::path& dir);

}  // namespace stint::engine
