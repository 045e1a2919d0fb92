// Looks for damage in the file after an unclean end, table by table, while the store already works:
// the file may be large, and the sessions of living processes must not lapse meanwhile.
#pragma once

#include <atomic>
#include <functional>
#include <semaphore>
#include <string>
#include <thread>

#include "base/log.h"
#include "sqlite/connection.h"

namespace stint::store::lite {

class FileCheck {
public:
    // `damaged` is called at most once, on another thread, with what was found.
    FileCheck(
        const std::string& path, std::function<void(const std::string&)> damaged, base::Logger log
    );
    ~FileCheck();  // breaks it off

private:
    void Run();
    std::string Verdict();  // "ok", or what is wrong

    sqlite::Connection db_;
    const std::function<void(const std::string&)> damaged_;
    const base::Logger log_;
    std::atomic<bool> stop_ = false;
    std::binary_semaphore done_{0};
    std::jthread thread_;
};

}  // namespace stint::store::lite
