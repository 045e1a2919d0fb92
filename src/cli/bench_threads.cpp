#include "cli/bench_threads.h"

namespace stint::cli {

BenchThreads::BenchThreads(BenchRig& rig, int count, std::function<void(int)> work)
    : rig_(rig), work_(std::move(work)), running_(count) {
    for (int i = 0; i < count; ++i) {
        threads_.emplace_back([this, i] { Run(i); });
    }
}

BenchThreads::~BenchThreads() = default;

void BenchThreads::Run(int number) {
    try {
        work_(number);
    } catch (...) {
        std::lock_guard guard(mutex_);
        if (!problem_) problem_ = std::current_exception();
        failed_ = true;
    }
    --running_;
}

void BenchThreads::Await(const std::function<void()>& meanwhile) {
    try {
        while (running()) {
            rig_.Check();
            meanwhile();
            Pause(rig_.signals(), Duration{5});
        }
    } catch (...) {
        failed_ = true;
        threads_.clear();
        throw;
    }
    threads_.clear();
    CheckSignals(rig_.signals());
    if (problem_) std::rethrow_exception(problem_);
}

}  // namespace stint::cli
