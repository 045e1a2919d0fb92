#include "model/event/names.h"

#include <algorithm>

#include "base/result.h"
#include "base/text.h"

namespace stint::model {

using base::MakeError;
using base::Quoted;

namespace {

Result<void> CheckSize(std::string_view field, std::string_view value, std::size_t limit) {
    if (value.size() <= limit) return {};
    return MakeError(
        Code::kLimit, "{} is {} bytes; the limit is {} bytes", field, value.size(), limit
    );
}

}  // namespace

Result<void> CheckName(std::string_view field, std::string_view value, std::size_t limit) {
    if (value.empty()) return MakeError(Code::kInvalid, "{} is empty; give it a name", field);
    if (auto good = CheckSize(field, value, limit); !good) return good;
    static constexpr std::string_view kMarks = "._-:/@+";
    bool good = std::all_of(value.begin(), value.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               kMarks.find(static_cast<char>(c)) != std::string_view::npos;
    });
    if (good) return {};
    return MakeError(
        Code::kInvalid, "{} is {}; use letters, digits and . _ - : / @ +", field, Quoted(value)
    );
}

Result<void> CheckLine(std::string_view field, std::string_view value, std::size_t limit) {
    if (auto good = CheckSize(field, value, limit); !good) return good;
    if (!base::IsUtf8(value)) {
        return MakeError(Code::kInvalid, "{} is {}; it must be valid UTF-8", field, Quoted(value));
    }
    if (base::HasControl(value)) {
        return MakeError(
            Code::kInvalid, "{} is {}; it must not have control characters", field, Quoted(value)
        );
    }
    return {};
}

}  // namespace stint::model
