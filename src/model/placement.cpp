#include "model/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/result.h"
#include "base/text.h"
#include "model/limits.h"

namespace stint::model {

using base::MakeError;
using base::Quoted;

namespace {

bool IsNameByte(unsigned char c) {
    static constexpr std::string_view kMarks = "._-:/@+";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(static_cast<char>(c)) != std::string_view::npos;
}

Result<void> CheckName(std::string_view field, std::string_view name, std::size_t limit) {
    if (name.empty()) return MakeError(Code::kInvalid, "{} is empty; give it a name", field);
    if (name.size() > limit) {
        return MakeError(
            Code::kLimit, "{} is {} bytes; the limit is {} bytes", field, name.size(), limit
        );
    }
    if (!std::all_of(name.begin(), name.end(), IsNameByte)) {
        return MakeError(
            Code::kInvalid, "{} is {}; use letters, digits and . _ - : / @ +", field, Quoted(name)
        );
    }
    return {};
}

}  // namespace

std::string ResourceName(std::string_view name) {
    std::string lower(name);
    for (char& c : lower) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return lower;
}

std::string_view ReservedPrefix(std::string_view name) {
    for (std::string_view prefix : {"queue:", "type:"}) {
        if (name.starts_with(prefix)) return prefix;
    }
    return {};
}

Needs Canonical(Needs needs) {
    std::map<std::string, int> units;
    for (const Need& need : needs) units[ResourceName(need.resource)] += need.units;
    needs.clear();
    for (const auto& [name, count] : units) needs.push_back({name, count});
    return needs;
}

std::vector<std::string> CanonicalLabels(std::vector<std::string> labels) {
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    return labels;
}

Needs Together(const Needs& needs, const Needs& more) {
    std::map<std::string, int> units;
    for (const Needs* list : {&needs, &more}) {
        for (const Need& need : Canonical(*list)) {
            int& count = units[need.resource];
            count = std::max(count, need.units);
        }
    }
    Needs all;
    for (const auto& [name, count] : units) all.push_back({name, count});
    return all;
}

Result<void> ValidateResourceName(std::string_view field, std::string_view name, bool pattern) {
    std::string_view plain = name;
    if (pattern && plain.ends_with('*')) {
        plain.remove_suffix(1);
        if (plain.empty()) {
            return MakeError(
                Code::kInvalid,
                "{} is \"*\"; give a pattern the beginning of the names it is for, such as host:*",
                field
            );
        }
    }
    return CheckName(field, plain, limits::kResourceName);
}

Result<void> ValidateNeeds(std::string_view field, const Needs& needs) {
    if (needs.size() > limits::kNeedsPerTask) {
        return MakeError(
            Code::kLimit,
            "{} names {} resources; the limit is {}",
            field,
            needs.size(),
            limits::kNeedsPerTask
        );
    }
    for (const Need& need : needs) {
        if (auto ok = ValidateResourceName(field, need.resource, false); !ok) return ok;
        if (!ReservedPrefix(ResourceName(need.resource)).empty()) {
            return MakeError(
                Code::kInvalid,
                "{} names {}; what begins with queue: or type: limits queues and types, and each "
                "task needs those of its own anyway: use another name",
                field,
                Quoted(need.resource)
            );
        }
        if (need.units < 1 || need.units > limits::kUnits) {
            return MakeError(
                Code::kInvalid,
                "{} asks for {} units of {}; it must be between 1 and {}",
                field,
                need.units,
                Quoted(need.resource),
                limits::kUnits
            );
        }
    }
    return {};
}

Result<void> ValidateLabels(std::string_view field, const std::vector<std::string>& labels) {
    if (labels.size() > limits::kLabelsPerTask) {
        return MakeError(
            Code::kLimit,
            "{} has {} labels; the limit is {}",
            field,
            labels.size(),
            limits::kLabelsPerTask
        );
    }
    for (const std::string& label : labels) {
        if (auto ok = CheckName(field, label, limits::kLabel); !ok) return ok;
    }
    return {};
}

std::string PlacementText(const Placement& placement) {
    if (placement.needs.empty() && placement.labels.empty()) return {};
    base::OrderedJson json;
    if (!placement.needs.empty()) {
        base::OrderedJson& needs = json["needs"];
        for (const Need& need : Canonical(placement.needs)) needs[need.resource] = need.units;
    }
    if (!placement.labels.empty()) json["labels"] = CanonicalLabels(placement.labels);
    return base::JsonText(json);
}

Placement PlacementOf(std::string_view text) {
    Placement placement;
    if (text.empty()) return placement;
    base::Json json = base::ReadJson(text);
    if (!json.is_object()) return placement;
    if (json.contains("needs")) {
        for (const auto& [name, units] : json["needs"].items()) {
            placement.needs.push_back({name, units.get<int>()});
        }
    }
    if (json.contains("labels")) json["labels"].get_to(placement.labels);
    return placement;
}

}  // namespace stint::model
