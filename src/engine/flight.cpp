#include "engine/flight.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <system_error>

#include "base/check.h"

namespace stint::engine {

namespace {

constexpr std::uint64_t kMagic = 0x31746867696c6673;  // "sflight1"
constexpr std::string_view kPrefix = "flight-";
constexpr std::string_view kSuffix = ".map";

// Distinguishes boots: after a power loss the file's content is not what the process wrote last.
std::array<char, 40> BootId() {
    std::array<char, 40> id{};
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    file.read(id.data(), id.size() - 1);
    return id;
}

}  // namespace

struct FlightRecord::Page {
    std::uint64_t magic;
    std::uint64_t session_high, session_low;
    std::array<char, 40> boot;
    std::uint32_t slots;
    std::atomic<std::uint32_t> overflowed;
    // `slots` task ids follow; zero = free.
    std::atomic<std::int64_t>* tasks() {
        return reinterpret_cast<std::atomic<std::int64_t>*>(this + 1);
    }
};

FlightRecord::FlightRecord(const std::filesystem::path& dir, SessionId session, int slots)
    : file_(StateFile::Create(
          dir / (std::string(kPrefix) + session.ToString() + std::string(kSuffix))
      )),
      slots_(slots) {
    static_assert(std::atomic<std::int64_t>::is_always_lock_free);
    static_assert(sizeof(Page) % alignof(std::atomic<std::int64_t>) == 0);
    bytes_ = sizeof(Page) + static_cast<std::size_t>(slots) * sizeof(std::int64_t);
    // Reserved, not only sized: a write to a page without a disk block behind it would be a signal.
    int error = posix_fallocate(file_.fd(), 0, static_cast<off_t>(bytes_));
    if (error != 0) {
        file_.Remove();
        throw std::system_error(error, std::generic_category(), file_.path().string());
    }
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd(), 0);
    if (memory == MAP_FAILED) {
        error = errno;
        file_.Remove();
        throw std::system_error(error, std::generic_category(), file_.path().string());
    }
    // tidy: allow new, because the object lives in the mapped file
    page_ = ::new (memory) Page{
        kMagic, session.high(), session.low(), BootId(), static_cast<std::uint32_t>(slots), {0}};
    for (int i = slots; i-- > 0;) {
        // tidy: allow new, because the object lives in the mapped file
        ::new (page_->tasks() + i) std::atomic<std::int64_t>(0);
        free_.push_back(i);
    }
}

FlightRecord::~FlightRecord() {
    if (page_ != nullptr) munmap(page_, bytes_);
}

int FlightRecord::Start(TaskId task) {
    std::lock_guard guard(mutex_);
    if (free_.empty()) {
        page_->overflowed = 1;
        return -1;
    }
    int place = free_.back();
    free_.pop_back();
    page_->tasks()[place] = task.value();
    return place;
}

void FlightRecord::End(int place) {
    if (place < 0) return;
    CHECK(place < slots_);
    std::lock_guard guard(mutex_);
    page_->tasks()[place] = 0;
    free_.push_back(place);
}

void FlightRecord::Remove() {
    file_.Remove();
}

DeadFlights ReadDeadFlights(const std::filesystem::path& dir) {
    // The layout of Page, as bytes.
    constexpr std::size_t kBootAt = 24;
    constexpr std::size_t kSlotsAt = kBootAt + 40;
    constexpr std::size_t kHeader = kSlotsAt + 8;
    static_assert(sizeof(std::uint64_t) * 3 + 40 + 8 == kHeader);
    DeadFlights dead;
    for (const auto& path : StateFiles(dir, kPrefix, kSuffix)) {
        std::string name = path.filename().string();
        auto session = SessionId::Parse(std::string_view(name).substr(
            kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()
        ));
        if (!session) continue;
        auto file = StateFile::Adopt(path);
        if (!file) continue;  // its process lives
        std::string bytes = file->ReadAll();
        auto boot = BootId();
        std::uint64_t magic = 0;
        std::uint32_t slots = 0;
        std::uint32_t overflowed = 0;
        if (bytes.size() >= kHeader) {
            std::memcpy(&magic, bytes.data(), sizeof magic);
            std::memcpy(&slots, bytes.data() + kSlotsAt, sizeof slots);
            std::memcpy(&overflowed, bytes.data() + kSlotsAt + 4, sizeof overflowed);
        }
        bool trusted = magic == kMagic && overflowed == 0 &&
                       bytes.size() == kHeader + slots * sizeof(std::int64_t) &&
                       std::memcmp(bytes.data() + kBootAt, boot.data(), boot.size()) == 0;
        if (trusted) {
            auto& tasks = dead.flights[*session];
            for (std::uint32_t i = 0; i < slots; ++i) {
                std::int64_t task = 0;
                std::memcpy(&task, bytes.data() + kHeader + i * sizeof task, sizeof task);
                if (task > 0) tasks.emplace_back(task);
            }
        }
        dead.files.emplace(*session, std::move(*file));
    }
    return dead;
}

}  // namespace stint::engine
