#include "engine/aside.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/thread.h"
#include "model/limits.h"

namespace stint::engine {

struct Aside::Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> pieces;  // guarded by mutex, as all below
    bool threaded = false;
    bool closing = false;
    int threads = 0;
    int idle = 0;

    static void Work(const std::shared_ptr<Shared>& shared) {
        std::unique_lock lock(shared->mutex);
        for (;;) {
            ++shared->idle;
            shared->changed.wait(lock, [&] { return shared->closing || !shared->pieces.empty(); });
            --shared->idle;
            if (shared->pieces.empty()) break;  // closing, and nothing is left to be done
            auto piece = std::move(shared->pieces.front());
            shared->pieces.pop_front();
            lock.unlock();
            piece();
            piece = nullptr;
            lock.lock();
        }
        --shared->threads;
        shared->changed.notify_all();
    }
    void Close() {
        {
            std::lock_guard guard(mutex);
            closing = true;
        }
        changed.notify_all();
    }
};

Aside::Aside() : shared_(std::make_shared<Shared>()) {
}

Aside::~Aside() {
    shared_->Close();
}

void Aside::Finish(Duration grace) {
    shared_->Close();
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait_for(lock, grace, [this] { return shared_->threads == 0; });
}

void Aside::UseThreads() {
    std::lock_guard guard(shared_->mutex);
    shared_->threaded = true;
}

void Aside::Do(std::function<void()> piece) {
    std::unique_lock lock(shared_->mutex);
    if (!shared_->threaded) {
        lock.unlock();
        return piece();
    }
    shared_->pieces.push_back(std::move(piece));
    bool short_of_hands = static_cast<int>(shared_->pieces.size()) > shared_->idle;
    if (short_of_hands && shared_->threads < model::limits::kAsideThreads) {
        ++shared_->threads;
        // Never joined: it may be held up for ever, and holds nothing but what it shares.
        base::StartThread([shared = shared_] { Shared::Work(shared); }).detach();
    }
    lock.unlock();
    shared_->changed.notify_all();
}

}  // namespace stint::engine
