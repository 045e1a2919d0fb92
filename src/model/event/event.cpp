#include "model/event/event.h"

#include <array>
#include <utility>

#include "base/result.h"
#include "base/text.h"
#include "model/event/names.h"

namespace stint::model {

namespace {

using base::Json;
using base::MakeError;

constexpr std::array kStates = {
    std::pair{EventState::kPending, std::string_view{"pending"}},
    std::pair{EventState::kDone, std::string_view{"done"}},
    std::pair{EventState::kUnwanted, std::string_view{"unwanted"}},
    std::pair{EventState::kRefused, std::string_view{"refused"}},
};

Result<void> CheckInstant(std::string_view field, const std::optional<Time>& value) {
    using namespace std::chrono;
    constexpr Time kFirst{sys_days{1970y / 1 / 1}};
    constexpr Time kLast{sys_days{9999y / 12 / 31}};
    if (!value || (*value >= kFirst && *value <= kLast)) return {};
    return MakeError(
        Code::kInvalid,
        "{} is {} µs from 1970; it must lie in the years 1970 to 9999",
        field,
        value->time_since_epoch().count()
    );
}

}  // namespace

std::string_view EventStateName(EventState state) {
    return kStates.at(static_cast<std::size_t>(state)).second;
}

std::optional<EventState> EventStateNamed(std::string_view name) {
    for (const auto& [state, text] : kStates) {
        if (text == name) return state;
    }
    return std::nullopt;
}

Result<void> Validate(const NewEvent& event) {
    if (!event.tenant.valid()) {
        return MakeError(
            Code::kInvalid, "tenant is {}; it must be 1 or more", event.tenant.value()
        );
    }
    if (auto good = CheckName("type", event.type, limits::kTypeName); !good) return good;
    if (event.type.starts_with(kOwnEvents)) {
        return MakeError(
            Code::kInvalid,
            "type is {}; types that begin with {} are the engine's own, choose another",
            base::Quoted(event.type),
            kOwnEvents
        );
    }
    if (auto good = CheckLine("source", event.source, limits::kKey); !good) return good;
    if (auto good = CheckLine("id", event.id, limits::kKey); !good) return good;
    if (auto good = CheckInstant("time", event.time); !good) return good;
    if (event.cause.value() < 0) {
        return MakeError(
            Code::kInvalid, "cause is {}; it must be the id of a task", event.cause.value()
        );
    }
    if (event.data.size() > limits::kInput) {
        return MakeError(
            Code::kLimit,
            "data is {} bytes; the limit is {} bytes: store large data elsewhere and pass a "
            "reference",
            event.data.size(),
            limits::kInput
        );
    }
    if (auto good = base::CheckJson(event.data, limits::kJsonDepth); !good) {
        return MakeError(good.error().code, "data {}", good.error().message);
    }
    return {};
}

bool SaysTheSame(const NewEvent& again, std::string_view type, std::string_view data) {
    if (again.type != type) return false;
    return again.data == data || base::ReadJson(again.data) == base::ReadJson(data);
}

std::string TooDeep(int depth) {
    if (depth <= limits::kEventDepth) return {};
    return fmt::format(
        "is {} events deep, and the limit is {}: a trigger's task publishes an event that fires "
        "it again, directly or through others; narrow a match, or publish another type",
        depth,
        limits::kEventDepth
    );
}

Json FieldsOf(const EventRecord& event) {
    Json data = base::ReadJson(event.data);
    Json about = {
        {"source", event.source},
        {"id", event.id},
        {"type", event.type},
        {"time", base::Iso8601(event.time)},
        {"depth", event.depth}};
    Json fields = Json::object();
    if (data.is_object()) {
        fields = std::move(data);
    } else {
        about["data"] = std::move(data);
    }
    fields["$event"] = std::move(about);
    return fields;
}

}  // namespace stint::model
