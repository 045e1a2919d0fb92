// A few reading connections, lent one at a time.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sqlite/error.h"
#include "store/sqlite/reads.h"

namespace stint::store::lite {

class ReaderPool {
public:
    ReaderPool(std::string path, base::Clock& clock, int most)
        : path_(std::move(path)), clock_(clock), left_(most) {}

    // Calls `use(Reads&)` with a connection of its own.
    template <class Use>
    auto With(Use&& use) {
        Borrowed borrowed(*this);
        try {
            return use(*borrowed.reads);
        } catch (const sqlite::Error& error) {
            borrowed.broken = true;
            throw Unavailable(error.what());
        }
    }

private:
    struct Borrowed {
        explicit Borrowed(ReaderPool& from) : pool(from), reads(from.Take()) {}
        ~Borrowed() { pool.GiveBack(broken ? nullptr : std::move(reads)); }
        Borrowed(const Borrowed&) = delete;
        Borrowed& operator=(const Borrowed&) = delete;

        ReaderPool& pool;
        std::unique_ptr<Reads> reads;
        bool broken = false;
    };

    std::unique_ptr<Reads> Take() {
        std::unique_lock lock(mutex_);
        returned_.wait(lock, [this] { return !idle_.empty() || left_ > 0; });
        if (!idle_.empty()) {
            auto reads = std::move(idle_.back());
            idle_.pop_back();
            return reads;
        }
        --left_;
        lock.unlock();
        try {
            return std::make_unique<Reads>(path_, clock_);
        } catch (const sqlite::Error& error) {
            GiveBack(nullptr);
            throw Unavailable(error.what());
        }
    }

    void GiveBack(std::unique_ptr<Reads> reads) {
        std::lock_guard guard(mutex_);
        if (reads) {
            idle_.push_back(std::move(reads));
        } else {
            ++left_;  // a new one is opened when it is needed
        }
        returned_.notify_one();
    }

    const std::string path_;
    base::Clock& clock_;
    std::mutex mutex_;
    std::condition_variable returned_;
    std::vector<std::unique_ptr<Reads>> idle_;  // guarded by mutex_
    int left_;                                  // guarded by mutex_: how many more may be opened
};

}  // namespace stint::store::lite
