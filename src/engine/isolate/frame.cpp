#include "engine/isolate/frame.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/json.h"
#include "engine/text.h"
#include "model/limits.h"

namespace stint::engine::isolate {

namespace {

using base::Json;

// Nonsense from the other side is nullopt, never an exception.
template <class Read>
auto Parse(std::string_view body, Read read) -> std::optional<decltype(read(Json{}))> {
    Json json = base::ReadJson(body);
    if (!json.is_object()) return std::nullopt;
    try {
        return read(json);
    } catch (const Json::exception&) {
        return std::nullopt;
    }
}

int MillisecondsUntil(base::Instant end) {
    auto left = std::chrono::ceil<Duration>(end - base::SystemClock().Now());
    return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

}  // namespace

bool FrameReader::Fill(const Fd& socket) {
    char chunk[16384];
    for (;;) {
        ssize_t got = recv(socket.get(), chunk, sizeof chunk, MSG_DONTWAIT);
        if (got > 0) {
            bytes_.append(chunk, static_cast<std::size_t>(got));
            if (bytes_.size() > 2 * kFrameMax) return false;
            continue;
        }
        if (got < 0 && errno == EINTR) continue;
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && !broken_;
    }
}

std::optional<Frame> FrameReader::Next() {
    std::uint32_t length = 0;
    if (broken_ || bytes_.size() < sizeof length) return std::nullopt;
    std::memcpy(&length, bytes_.data(), sizeof length);
    if (length == 0 || length > kFrameMax) {
        broken_ = true;
        return std::nullopt;
    }
    if (bytes_.size() < sizeof length + length) return std::nullopt;
    Frame frame;
    frame.kind = static_cast<Frame::Kind>(bytes_[sizeof length]);
    frame.body = bytes_.substr(sizeof length + 1, length - 1);
    bytes_.erase(0, sizeof length + length);
    return frame;
}

bool SendFrame(const Fd& socket, Frame::Kind kind, std::string_view body, Duration limit) {
    auto length = static_cast<std::uint32_t>(body.size() + 1);
    if (length > kFrameMax) return false;
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    bytes += static_cast<char>(kind);
    bytes += body;
    std::string_view left = bytes;
    base::Instant end = base::SystemClock().Now() + limit;
    while (!left.empty()) {
        ssize_t sent = send(socket.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            left.remove_prefix(static_cast<std::size_t>(sent));
            continue;
        }
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
        int wait = MillisecondsUntil(end);
        pollfd writable{socket.get(), POLLOUT, 0};
        if (wait == 0 || poll(&writable, 1, wait) == 0) return false;
    }
    return true;
}

std::string EncodeStart(const Start& start) {
    const store::Lease& lease = start.lease;
    return base::JsonText(Json{
        {"task", lease.task.value()},
        {"token", lease.token.ToString()},
        {"tenant", lease.tenant.value()},
        {"type", lease.type},
        {"attempt", lease.attempt},
        {"claim_no", lease.claim_no},
        {"key", lease.idempotency_key},
        {"input", lease.input},
        {"memory", start.memory_bytes},
    });
}

std::optional<Start> DecodeStart(std::string_view body) {
    return Parse(body, [](const Json& json) {
        Start start;
        start.lease.task = TaskId(json.at("task").get<std::int64_t>());
        start.lease.token =
            LeaseToken::Parse(json.at("token").get<std::string>()).value_or(LeaseToken{});
        start.lease.tenant = TenantId(json.at("tenant").get<std::int64_t>());
        start.lease.type = json.at("type").get<std::string>();
        start.lease.attempt = json.at("attempt").get<int>();
        start.lease.claim_no = json.at("claim_no").get<int>();
        start.lease.idempotency_key = json.at("key").get<std::string>();
        start.lease.input = json.at("input").get<std::string>();
        start.memory_bytes = json.at("memory").get<std::uint64_t>();
        return start;
    });
}

std::string EncodeStop(StopReason reason) {
    return base::JsonText(Json{{"why", static_cast<int>(reason)}});
}

StopReason DecodeStop(std::string_view body) {
    auto why = Parse(body, [](const Json& json) { return json.at("why").get<int>(); });
    if (!why || *why < 1 || *why > static_cast<int>(StopReason::kShutdown)) {
        return StopReason::kShutdown;
    }
    return static_cast<StopReason>(*why);
}

std::string EncodeProgress(const store::Progress& progress) {
    Json json{{"step", progress.step}, {"done", progress.done}, {"message", progress.message}};
    if (progress.total) json["total"] = *progress.total;
    return base::JsonText(json);
}

std::optional<store::Progress> DecodeProgress(std::string_view body) {
    return Parse(body, [](const Json& json) {
        store::Progress progress;
        progress.step = json.at("step").get<std::string>();
        progress.done = json.at("done").get<std::int64_t>();
        progress.message = json.at("message").get<std::string>();
        if (json.contains("total")) progress.total = json["total"].get<std::int64_t>();
        return progress;
    });
}

std::string EncodeResult(const AttemptResult& result) {
    Json json{{"warning", result.warning}};
    if (const auto* error = std::get_if<model::TaskError>(&result.end)) {
        json["end"] = "error";
        json["message"] = error->message;
        json["class"] = error->klass;
        json["stack"] = error->stack;
        json["retryable"] = error->retryable;
    } else if (const auto* outcome = std::get_if<Outcome<std::string>>(&result.end)) {
        if (const auto* output = std::get_if<0>(outcome)) {
            json["end"] = "complete";
            json["output"] = *output;
        } else if (const auto* background = std::get_if<Background>(outcome)) {
            json["end"] = "background";
            json["reason"] = background->reason;
            json["delay"] = background->timeout.count();
        } else if (const auto* snooze = std::get_if<Snooze>(outcome)) {
            json["end"] = "snooze";
            json["delay"] = snooze->delay.count();
        } else if (const auto* failed = std::get_if<Failed>(outcome)) {
            json["end"] = "error";
            json["message"] = failed->message;
            json["class"] = failed->klass;
            json["retryable"] = failed->retryable;
        }
    }
    return base::JsonText(json);
}

std::optional<AttemptResult> DecodeResult(std::string_view body) {
    auto result = Parse(body, [](const Json& json) -> AttemptResult {
        AttemptResult decoded;
        decoded.warning = json.at("warning").get<std::string>();
        auto end = json.at("end").get<std::string>();
        if (end == "complete") {
            decoded.end =
                Outcome<std::string>(std::in_place_index<0>, json.at("output").get<std::string>());
        } else if (end == "background") {
            decoded.end = Outcome<std::string>(Background{
                json.at("reason").get<std::string>(),
                Duration(json.at("delay").get<std::int64_t>())});
        } else if (end == "snooze") {
            decoded.end =
                Outcome<std::string>(Snooze{Duration(json.at("delay").get<std::int64_t>())});
        } else {
            model::TaskError error = ToError(Failed{
                json.at("message").get<std::string>(),
                json.at("retryable").get<bool>(),
                json.at("class").get<std::string>()});
            error.stack = CutText(json.value("stack", ""), model::limits::kErrorStack);
            decoded.end = std::move(error);
        }
        return decoded;
    });
    return result;
}

}  // namespace stint::engine::isolate
