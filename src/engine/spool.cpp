#include "engine/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "model/limits.h"
#include "model/task_json.h"

namespace stint::engine {

namespace {

using json = base::Json;
constexpr std::string_view kPrefix = "spool-";
constexpr std::string_view kSuffix = ".log";
constexpr std::size_t kHeader = 8;

std::uint32_t Crc32(std::string_view bytes) {
    static constexpr auto kTable = [] {
        std::array<std::uint32_t, 256> table{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            std::uint32_t c = i;
            for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb88320u ^ (c >> 1) : c >> 1;
            table[i] = c;
        }
        return table;
    }();
    std::uint32_t crc = 0xffffffffu;
    for (unsigned char byte : bytes) crc = kTable[(crc ^ byte) & 0xff] ^ (crc >> 8);
    return crc ^ 0xffffffffu;
}

void PutNumber(std::string& out, std::uint32_t number) {
    char bytes[4];
    std::memcpy(bytes, &number, sizeof number);
    out.append(bytes, sizeof bytes);
}

std::uint32_t GetNumber(std::string_view bytes) {
    std::uint32_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
}

bool WriteAll(int fd, std::string_view bytes, std::size_t at) {
    while (!bytes.empty()) {
        ssize_t done = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(done));
        at += static_cast<std::size_t>(done);
    }
    return true;
}

void SyncDirectory(const std::filesystem::path& dir) {
    int fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

// No spool by its name any more.
std::filesystem::path Damaged(std::filesystem::path path) {
    path += ".damaged";
    return path;
}

json ToJson(const store::Settlement& s) {
    json body = {
        {"task", s.task.value()},
        {"token", s.token.ToString()},
        {"session", s.session.ToString()},
        {"kind", static_cast<int>(s.kind)},
        {"output", s.output},
        {"warning", s.warning},
        {"delay", s.delay.count()},
        {"reason", s.reason},
        {"end", static_cast<int>(s.end)},
        {"stderr", s.stderr_tail},
        {"crashed", s.crashed},
    };
    if (s.error) {
        body["error"] = {
            {"message", s.error->message},
            {"class", s.error->klass},
            {"stack", s.error->stack},
            {"retryable", s.error->retryable}};
    }
    if (s.exit_code) body["exit_code"] = *s.exit_code;
    if (s.exit_signal) body["exit_signal"] = *s.exit_signal;
    if (s.kind == store::Settlement::Kind::kBlocked) {
        body["wait"] = model::ToJson(s.wait);
        for (const model::NewTask& child : s.children) {
            body["children"].push_back(model::ToJson(child));
        }
    }
    if (s.needs) body["needs"] = model::ToJson(*s.needs);
    if (!s.unavailable.empty()) {
        body["unavailable"] = s.unavailable;
        body["closed_for"] = s.closed_for.count();
    }
    return body;
}

// Throws json::exception.
std::optional<store::Settlement> SettlementOf(const json& body) {
    store::Settlement s;
    s.task = TaskId(body.at("task").get<std::int64_t>());
    auto token = LeaseToken::Parse(body.at("token").get<std::string>());
    auto session = SessionId::Parse(body.at("session").get<std::string>());
    int kind = body.at("kind").get<int>();
    int end = body.at("end").get<int>();
    if (!token || !session || !s.task.valid()) return std::nullopt;
    if (kind < 0 || kind > static_cast<int>(store::Settlement::Kind::kBlocked) || end < 0 ||
        end > static_cast<int>(model::AttemptEnd::kLost)) {
        return std::nullopt;
    }
    s.token = *token;
    s.session = *session;
    s.kind = static_cast<store::Settlement::Kind>(kind);
    s.end = static_cast<model::AttemptEnd>(end);
    s.output = body.at("output").get<std::string>();
    s.warning = body.at("warning").get<bool>();
    s.delay = Duration(body.at("delay").get<std::int64_t>());
    s.reason = body.at("reason").get<std::string>();
    s.stderr_tail = body.at("stderr").get<std::string>();
    s.crashed = body.at("crashed").get<bool>();
    if (body.contains("error")) {
        const json& error = body["error"];
        s.error = model::TaskError{
            error.at("message").get<std::string>(),
            error.at("class").get<std::string>(),
            error.at("stack").get<std::string>(),
            error.at("retryable").get<bool>()};
    }
    if (body.contains("exit_code")) s.exit_code = body["exit_code"].get<int>();
    if (body.contains("exit_signal")) s.exit_signal = body["exit_signal"].get<int>();
    if (body.contains("wait")) s.wait = model::WaitOnFromJson(body["wait"]);
    if (body.contains("children")) {
        for (const json& child : body["children"]) {
            s.children.push_back(model::NewTaskFromJson(child));
        }
    }
    if (body.contains("needs")) s.needs = model::NeedsFromJson(body["needs"]);
    s.unavailable = body.value("unavailable", "");
    s.closed_for = Duration(body.value("closed_for", std::int64_t{0}));
    return s;
}

}  // namespace

std::string EncodeReport(const Report& report) {
    json body = ToJson(report.settlement);
    body["queue"] = report.queue;
    body["refusals"] = report.refusals;
    if (report.if_refused) body["if_refused"] = ToJson(*report.if_refused);
    return base::JsonText(body);
}

std::optional<Report> DecodeReport(std::string_view text) {
    json body = base::ReadJson(text);
    if (!body.is_object()) return std::nullopt;
    try {
        auto settlement = SettlementOf(body);
        if (!settlement) return std::nullopt;
        Report report;
        report.settlement = std::move(*settlement);
        report.queue = body.at("queue").get<std::string>();
        report.refusals = body.value("refusals", 0);
        report.uncertain = true;  // the process may have died after the store took it
        if (body.contains("if_refused")) {
            auto instead = SettlementOf(body["if_refused"]);
            if (instead) report.if_refused = std::make_shared<store::Settlement>(*instead);
        }
        return report;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

std::vector<Report> DecodeSpool(std::string_view bytes, std::size_t* good_bytes) {
    std::vector<Report> reports;
    std::size_t good = 0;
    std::size_t at = 0;
    while (bytes.size() - at >= kHeader) {
        std::size_t length = GetNumber(bytes.substr(at));
        std::uint32_t crc = GetNumber(bytes.substr(at + 4));
        if (length > bytes.size() - at - kHeader) break;  // torn, or the length itself is damaged
        std::string_view body = bytes.substr(at + kHeader, length);
        at += kHeader + length;
        if (Crc32(body) != crc) continue;
        auto report = DecodeReport(body);
        if (!report) continue;
        reports.push_back(std::move(*report));
        good += kHeader + length;
    }
    if (good_bytes != nullptr) *good_bytes = good;
    return reports;
}

Spool::Spool(std::filesystem::path dir, base::Logger log)
    : dir_(std::move(dir)), log_(std::move(log)) {
}

Spool::~Spool() {
    if (file_ && bytes_ == 0) file_->Remove();
}

void Spool::Open() {
    if (file_) return;
    // The name only has to be unlike others'; the lock tells whose it is.
    static std::atomic<unsigned> number{0};
    for (int i = 0; i < 1000 && !file_; ++i) {
        std::string name = std::string(kPrefix) + std::to_string(getpid()) + "-" +
                           std::to_string(number++) + std::string(kSuffix);
        try {
            file_ = StateFile::Create(dir_ / name);
        } catch (const std::system_error& error) {
            if (error.code().value() != EEXIST) throw;
        }
    }
    SyncDirectory(dir_);
}

bool Spool::Append(std::span<const Report> reports) {
    if (dir_.empty()) return false;
    std::string bytes;
    for (const Report& report : reports) {
        std::string body = EncodeReport(report);
        PutNumber(bytes, static_cast<std::uint32_t>(body.size()));
        PutNumber(bytes, Crc32(body));
        bytes += body;
    }
    std::lock_guard guard(mutex_);
    if (bytes_ + bytes.size() > model::limits::kSpoolBytes) {
        log_.Error("the spool is full; outcomes stay in memory");
        return false;
    }
    try {
        Open();
    } catch (const std::exception& error) {
        log_.Error("no spool file; outcomes stay in memory", {{"error", error.what()}});
        return false;
    }
    if (!file_ || !WriteAll(file_->fd(), bytes, bytes_) || fdatasync(file_->fd()) != 0) {
        log_.Error("the spool cannot be written", {{"error", std::strerror(errno)}});
        return false;
    }
    bytes_ += bytes.size();
    return true;
}

// A copy, because the file itself is needed until its outcomes are with the store.
void Spool::KeepCopy(std::string_view bytes, std::size_t good) {
    if (std::exchange(copied_, true)) return;
    std::filesystem::path copy = Damaged(file_->path());
    int fd = open(copy.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool kept = fd >= 0 && WriteAll(fd, bytes, 0) && fdatasync(fd) == 0;
    if (fd >= 0) close(fd);
    log_.Error(
        kept ? "the spool is damaged; a copy is kept, what could be read goes to the store"
             : "the spool is damaged and no copy could be kept; what could be read goes to the "
               "store",
        {{"file", copy.string()}, {"bytes_unreadable", std::to_string(bytes.size() - good)}}
    );
}

std::vector<Report> Spool::Read() {
    std::lock_guard guard(mutex_);
    if (!file_ || bytes_ == 0) return {};
    std::string bytes = file_->ReadAll();
    bytes.resize(std::min(bytes.size(), bytes_));  // what a failed write left behind is no record
    std::size_t good = 0;
    std::vector<Report> reports = DecodeSpool(bytes, &good);
    if (good != bytes_) KeepCopy(bytes, good);
    return reports;
}

void Spool::Clear() {
    std::lock_guard guard(mutex_);
    if (!file_ || bytes_ == 0) return;
    if (ftruncate(file_->fd(), 0) != 0) {
        log_.Warn("the spool cannot be emptied", {{"error", std::strerror(errno)}});
        return;
    }
    fdatasync(file_->fd());
    bytes_ = 0;
    copied_ = false;
}

bool Spool::empty() const {
    std::lock_guard guard(mutex_);
    return bytes_ == 0;
}

std::vector<Spool::Orphan> Spool::Orphans() const {
    std::vector<Orphan> orphans;
    if (dir_.empty()) return orphans;
    for (const auto& path : StateFiles(dir_, kPrefix, kSuffix)) {
        auto file = StateFile::Adopt(path);
        if (!file) continue;
        std::string bytes = file->ReadAll();
        std::size_t good = 0;
        Orphan orphan{std::move(*file), DecodeSpool(bytes, &good)};
        if (good != bytes.size()) {
            orphan.damaged = true;
            log_.Error(
                "the spool of a dead process is damaged; it is kept, what could be read goes to "
                "the store",
                {{"file", Damaged(path).string()},
                 {"bytes_unreadable", std::to_string(bytes.size() - good)}}
            );
        }
        orphans.push_back(std::move(orphan));
    }
    return orphans;
}

void Spool::Orphan::Remove() {
    if (!damaged) return file.Remove();
    std::error_code ignored;
    std::filesystem::rename(file.path(), Damaged(file.path()), ignored);
}

}  // namespace stint::engine
