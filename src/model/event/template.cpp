#include "model/event/template.h"

#include <functional>

#include "base/result.h"
#include "base/text.h"
#include "model/match/expression.h"

namespace stint::model {

namespace {

using base::Json;
using match::Path;

constexpr std::string_view kOpen = "${";

// Calls `text` with what stands between the places, `field` with what stands in them, until one of
// them says no.
Result<void> Walk(
    std::string_view pattern,
    const std::function<bool(std::string_view)>& text,
    const std::function<bool(const Path&)>& field
) {
    while (true) {
        std::size_t at = pattern.find(kOpen);
        if (at == std::string_view::npos) {
            text(pattern);
            return {};
        }
        if (at > 0 && pattern[at - 1] == '$') {
            if (!text(pattern.substr(0, at - 1)) || !text(kOpen)) return {};
            pattern.remove_prefix(at + kOpen.size());
            continue;
        }
        if (!text(pattern.substr(0, at))) return {};
        pattern.remove_prefix(at + kOpen.size());
        // A closing brace inside a quoted name belongs to the name.
        std::size_t end = 0;
        char quote = 0;
        for (; end < pattern.size(); ++end) {
            char c = pattern[end];
            if (quote == 0 && c == '}') break;
            if (c == '\'' || c == '"') quote = quote == 0 ? c : quote == c ? char{0} : quote;
        }
        if (end == pattern.size()) {
            return base::MakeError(
                Code::kInvalid,
                "has ${{ without its }} in {}; write $${{ for the two characters themselves",
                base::Quoted(std::string(kOpen) + std::string(pattern))
            );
        }
        auto path = Path::Parse(pattern.substr(0, end));
        if (!path) {
            return base::MakeError(
                path.error().code,
                "has {}, which is not a field: {}",
                base::Quoted(fmt::format("${{{}}}", pattern.substr(0, end))),
                path.error().message
            );
        }
        if (!field(*path)) return {};
        pattern.remove_prefix(end + 1);
    }
}

// Fills templates with the fields, and counts what comes out.
class Filler {
public:
    Filler(const Json& fields, std::size_t limit) : fields_(fields), limit_(limit) {}

    Json All(const Json& pattern) {
        if (pattern.is_string()) return One(pattern.get_ref<const std::string&>());
        if (!pattern.is_structured()) {
            Count(base::JsonText(pattern).size());
            return pattern;
        }
        Json filled = pattern;
        for (Json& part : filled) {
            if (!within()) break;
            Count(1);
            part = All(part);
        }
        return filled;
    }

    // A text that is one place and nothing else has the value itself.
    Json One(std::string_view pattern) {
        std::string text;
        const Json* only = nullptr;
        int parts = 0;
        auto done = Walk(
            pattern,
            [&](std::string_view part) {
                parts += part.empty() ? 0 : 1;
                text += part;
                return Count(part.size());
            },
            [&](const Path& path) {
                ++parts;
                only = &path.In(fields_);
                std::string value = Written(*only);
                text += value;
                return Count(value.size());
            }
        );
        (void)done.value();
        return parts == 1 && only != nullptr ? *only : Json(std::move(text));
    }

    static std::string Written(const Json& value) {
        if (value.is_null()) return {};
        return value.is_string() ? value.get<std::string>() : base::JsonText(value);
    }

    Result<void> End() const {
        if (within()) return {};
        return base::MakeError(
            Code::kLimit,
            "becomes larger than the limit of {} bytes when its places are filled: name only the "
            "fields that are needed, or pass a reference to large data",
            limit_
        );
    }

private:
    bool within() const { return bytes_ <= limit_; }
    bool Count(std::size_t bytes) {
        bytes_ += bytes;
        return within();
    }

    const Json& fields_;
    const std::size_t limit_;
    std::size_t bytes_ = 0;
};

}  // namespace

Result<void> CheckTemplate(const Json& pattern) {
    if (pattern.is_string()) {
        return Walk(
            pattern.get_ref<const std::string&>(),
            [](std::string_view) { return true; },
            [](const Path&) { return true; }
        );
    }
    if (!pattern.is_structured()) return {};
    for (const Json& part : pattern) {
        if (auto good = CheckTemplate(part); !good) return good;
    }
    return {};
}

Result<Json> Fill(const Json& pattern, const Json& fields, std::size_t limit) {
    Filler filler(fields, limit);
    Json filled = filler.All(pattern);
    if (auto good = filler.End(); !good) return good.error();
    return filled;
}

Result<std::string> FillText(std::string_view pattern, const Json& fields, std::size_t limit) {
    Filler filler(fields, limit);
    Json filled = filler.One(pattern);
    if (auto good = filler.End(); !good) return good.error();
    return Filler::Written(filled);
}

}  // namespace stint::model
