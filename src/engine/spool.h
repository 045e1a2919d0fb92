// The last resort for outcomes: a local file, synced, replayed when the store answers again. Safe
// because every record carries its token: what was taken over meanwhile refuses it.
//
// Record: u32 length, u32 crc of the body, body (JSON). What cannot be read is skipped, and the
// file is kept beside the others as *.damaged for a person to look at.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "engine/state_file.h"
#include "store/store.h"

namespace stint::engine {

// An outcome on its way to the store, with what is needed to tell others about it.
struct Report {
    store::Settlement settlement;
    std::string queue;
    bool frees = false;  // its lease held what others of the queue may wait for
    // The store may have it already: ask before sending.
    bool uncertain = false;
    int refusals = 0;            // alone, for a reason that does not blame it
    base::Instant not_before{};  // of the next try, while this process lives
    // A wait that the store refuses fails its attempt: this is reported instead.
    std::shared_ptr<store::Settlement> if_refused = nullptr;
};

class Spool {
public:
    // `dir` empty: there is no spool, Append always refuses. The file appears with the first
    // record.
    Spool(std::filesystem::path dir, base::Logger log);
    ~Spool();  // an empty file goes

    // Durable when true. False: no directory, no room, or the disk refuses; keep them in memory.
    bool Append(std::span<const Report> reports);
    std::vector<Report> Read();
    void Clear();
    bool empty() const;

    // Spools of dead processes in the same directory.
    struct Orphan {
        StateFile file;
        std::vector<Report> reports;
        bool damaged = false;
        // They are with the store, or in our hands. A damaged file is kept aside.
        void Remove();
    };
    std::vector<Orphan> Orphans() const;

private:
    void Open();
    void KeepCopy(std::string_view bytes, std::size_t good);

    const std::filesystem::path dir_;
    const base::Logger log_;
    mutable std::mutex mutex_;
    std::optional<StateFile> file_;  // guarded by mutex_
    std::size_t bytes_ = 0;          // guarded by mutex_
    bool copied_ = false;            // guarded by mutex_: it is damaged and there is a copy
};

// Exposed for tests.
std::string EncodeReport(const Report& report);
std::optional<Report> DecodeReport(std::string_view body);
// `good_bytes`: how many of them made up the records that could be read.
std::vector<Report> DecodeSpool(std::string_view bytes, std::size_t* good_bytes = nullptr);

}  // namespace stint::engine
