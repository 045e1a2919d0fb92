// Which handlers this process has. Filled before the worker starts, only read afterwards.
#pragma once

#include <stint/engine.h>
#include <stint/task.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/task.h"

namespace stint::engine {

struct HandlerEntry {
    std::string type;
    model::TypeDefaults defaults;  // `type` and `isolated` are set by Add
    detail::ErasedHandler handler;
    Isolation isolation = {};
    detail::ErasedBatch batch = {};  // instead of the handler: for up to `batch_most` at once
    int batch_most = 1;
    int at_once = 0;             // of this type over all workers; 0 = no limit
    int at_once_per_worker = 0;  // likewise, in this one
};

class Registry {
public:
    // Throws std::invalid_argument for a bad or repeated name, bad defaults, or an isolated type in
    // a program whose main() does not begin with the line of <stint/isolate.h>.
    void Add(HandlerEntry entry);

    // Null when there is none.
    const HandlerEntry* Find(std::string_view type) const;
    // The same, kept alive for a handler that outlives its worker (see Worker::Stop).
    std::shared_ptr<const HandlerEntry> Share(std::string_view type) const;

    std::vector<model::TypeDefaults> Defaults() const;
    std::vector<std::string> Types() const;
    // Types that this process runs only so many of at once, and so many over all processes.
    std::map<std::string, int> LimitsHere() const;
    std::map<std::string, int> LimitsOverAll() const;
    int LargestBatch() const;  // of the handlers; 1 where none takes several
    bool empty() const { return entries_.empty(); }

private:
    std::map<std::string, std::shared_ptr<const HandlerEntry>, std::less<>> entries_;
};

}  // namespace stint::engine
