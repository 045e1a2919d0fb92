#include "engine/isolate/frame.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/json.h"
#include "engine/text.h"
#include "model/limits.h"
#include "model/task_json.h"

namespace stint::engine::isolate {

namespace {

using base::Json;
constexpr std::size_t kAnswerBytes = kFrameMax / 4;  // escaped, it is up to twice that

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
        {"stage", static_cast<int>(lease.stage)},
        {"holds", model::ToJson(lease.placement.needs)},
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
        start.lease.stage = static_cast<Stage>(json.at("stage").get<int>());
        start.lease.placement.needs = model::NeedsFromJson(json.at("holds"));
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

std::string EncodeQuestion(const Question& question) {
    Json tasks = Json::array();
    for (TaskId task : question.tasks) tasks.push_back(task.value());
    Json json{{"kind", static_cast<int>(question.kind)}, {"tasks", tasks}};
    for (const ItemResult& item : question.items) {
        json["items"].push_back(
            {item.key, item.action, item.before.text, item.after.text, item.error}
        );
    }
    if (question.checkpoint) json["checkpoint"] = *question.checkpoint;
    return base::JsonText(json);
}

std::optional<Question> DecodeQuestion(std::string_view body) {
    return Parse(body, [](const Json& json) {
        Question question;
        question.kind = static_cast<Question::Kind>(json.at("kind").get<int>());
        for (const Json& task : json.at("tasks")) {
            question.tasks.emplace_back(task.get<std::int64_t>());
        }
        for (const Json& item : json.value("items", Json::array())) {
            auto text = [&](std::size_t at) { return item.at(at).get<std::string>(); };
            question.items.push_back({text(0), text(1), {text(2)}, {text(3)}, text(4)});
        }
        if (json.contains("checkpoint")) {
            question.checkpoint = json["checkpoint"].get<std::string>();
        }
        return question;
    });
}

std::string EncodeAnswer(const Answer& answer) {
    Json waited = Json::array(), finished = Json::array();
    for (const model::WaitMember& member : answer.waited) {
        waited.push_back(
            {member.asked.value(),
             member.task.value(),
             member.ended ? Json(static_cast<int>(*member.ended)) : Json()}
        );
    }
    std::size_t bytes = 0;
    for (const store::FinishedTask& task : answer.finished) {
        Json one = {
            {"id", task.id.value()},
            {"type", task.type},
            {"state", static_cast<int>(task.state)},
            {"output", task.output},
            {"reason", task.reason}};
        if (task.error)
            one["error"] = {{"message", task.error->message}, {"class", task.error->klass}};
        bytes += task.output.size() + task.reason.size();
        // The first always fits: an output has its limit.
        if (bytes > kAnswerBytes && !finished.empty()) break;
        finished.push_back(std::move(one));
    }
    Json json{
        {"error", answer.error},
        {"id", answer.id.value()},
        {"waited", std::move(waited)},
        {"finished", std::move(finished)}};
    if (answer.counts) json["counts"] = {answer.counts->total, answer.counts->errors};
    if (answer.checkpoint) json["checkpoint"] = *answer.checkpoint;
    return base::JsonText(json);
}

std::optional<Answer> DecodeAnswer(std::string_view body) {
    return Parse(body, [](const Json& json) {
        Answer answer;
        answer.error = json.at("error").get<std::string>();
        answer.id = TaskId(json.at("id").get<std::int64_t>());
        if (json.contains("counts")) {
            const Json& counts = json["counts"];
            answer.counts = {counts.at(0).get<std::int64_t>(), counts.at(1).get<std::int64_t>()};
        }
        if (json.contains("checkpoint")) answer.checkpoint = json["checkpoint"].get<std::string>();
        for (const Json& one : json.at("waited")) {
            std::optional<model::State> ended;
            if (!one.at(2).is_null()) ended = static_cast<model::State>(one.at(2).get<int>());
            answer.waited.push_back(
                {TaskId(one.at(0).get<std::int64_t>()),
                 TaskId(one.at(1).get<std::int64_t>()),
                 ended}
            );
        }
        for (const Json& one : json.at("finished")) {
            store::FinishedTask& task = answer.finished.emplace_back();
            task.id = TaskId(one.at("id").get<std::int64_t>());
            task.type = one.at("type").get<std::string>();
            task.state = static_cast<model::State>(one.at("state").get<int>());
            task.output = one.at("output").get<std::string>();
            task.reason = one.at("reason").get<std::string>();
            if (!one.contains("error")) continue;
            task.error.emplace();
            task.error->message = one["error"].at("message").get<std::string>();
            task.error->klass = one["error"].at("class").get<std::string>();
        }
        return answer;
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
        if (const auto* unavailable = std::get_if<ResourceUnavailable>(outcome)) {
            json["end"] = "unavailable";
            json["resource"] = unavailable->resource();
            json["message"] = unavailable->what();
            json["delay"] = unavailable->retry_after().count();
        } else if (const auto* output = std::get_if<0>(outcome)) {
            json["end"] = "complete";
            json["output"] = *output;
        } else if (const auto* background = std::get_if<Background>(outcome)) {
            json["end"] = "background";
            json["reason"] = background->reason;
            json["delay"] = background->timeout.count();
        } else if (const auto* snooze = std::get_if<Snooze>(outcome)) {
            json["end"] = "snooze";
            json["delay"] = snooze->delay.count();
        } else if (const auto* blocked = std::get_if<Blocked>(outcome)) {
            json["end"] = "blocked";
            json["wait"] =
                model::ToJson(model::WaitOn{blocked->on, blocked->on_failure, blocked->any});
            json["note"] = CutText(blocked->note, model::limits::kReason);
        } else if (const auto* failed = std::get_if<Failed>(outcome)) {
            json["end"] = "error";
            json["message"] = failed->message;
            json["class"] = failed->klass;
            json["retryable"] = failed->retryable;
        }
    }
    for (const model::NewTask& subtask : result.subtasks) {
        json["subtasks"].push_back(model::ToJson(subtask));
    }
    if (!result.required.empty()) json["required"] = model::ToJson(result.required);
    return base::JsonText(json);
}

std::optional<AttemptResult> DecodeResult(std::string_view body) {
    auto result = Parse(body, [](const Json& json) -> AttemptResult {
        AttemptResult decoded;
        decoded.warning = json.at("warning").get<std::string>();
        auto end = json.at("end").get<std::string>();
        if (json.contains("subtasks")) {
            for (const Json& subtask : json["subtasks"]) {
                decoded.subtasks.push_back(model::NewTaskFromJson(subtask));
            }
        }
        if (json.contains("required")) decoded.required = model::NeedsFromJson(json["required"]);
        if (end == "unavailable") {
            decoded.end = Outcome<std::string>(ResourceUnavailable(
                json.at("resource").get<std::string>(),
                json.at("message").get<std::string>(),
                Duration(json.at("delay").get<std::int64_t>())
            ));
        } else if (end == "complete") {
            decoded.end =
                Outcome<std::string>(std::in_place_index<0>, json.at("output").get<std::string>());
        } else if (end == "background") {
            decoded.end = Outcome<std::string>(Background{
                json.at("reason").get<std::string>(),
                Duration(json.at("delay").get<std::int64_t>())});
        } else if (end == "blocked") {
            model::WaitOn wait = model::WaitOnFromJson(json.at("wait"));
            decoded.end = Outcome<std::string>(Blocked{
                wait.on, wait.on_failure, wait.any, json.at("note").get<std::string>()});
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
