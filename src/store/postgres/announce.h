// Whether a submit tells idle workers of its tasks itself, with its commit: that spares them the
// way from the commit to its caller, to the thread that sends notifications, and back to the
// server.
//
// The server writes notifications in the order of commits, so transactions with one wait for each
// other's flush to disk, where others share it. Hence one at a time, for a fifth of the time:
// always where submits are rare, seldom where they are dense or wait for those of other processes.
// Of the rest the caller tells, after the commit.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <mutex>

#include "base/clock.h"

namespace stint::store::pg {

class Announcements {
public:
    // Whether a submit may; then Over() says that it is over, however it ended.
    bool Turn(base::Instant now);
    void Over(base::Instant now);
    // The server did not take one: submits do without for a while.
    void Refused(base::Instant now);

private:
    using Time = base::Instant::duration;

    std::mutex mutex_;
    bool under_way_ = false;  // guarded by mutex_, as all below
    bool dense_ = false;      // others came meanwhile
    base::Instant begun_{};
    base::Instant next_{};
    Time pause_{};
};

// The turn of one submit.
class Announcement {
public:
    Announcement(Announcements& all, bool wanted)
        : all_(all), given_(wanted && all.Turn(base::SystemClock().Now())) {}
    ~Announcement() {
        if (given_) all_.Over(base::SystemClock().Now());
    }
    Announcement(const Announcement&) = delete;
    Announcement& operator=(const Announcement&) = delete;

    explicit operator bool() const { return given_; }
    void Refused() { all_.Refused(base::SystemClock().Now()); }

private:
    Announcements& all_;
    const bool given_;
};

}  // namespace stint::store::pg
