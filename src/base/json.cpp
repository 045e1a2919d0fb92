#include "base/json.h"

#include <string>

#include "base/result.h"

namespace stint::base {

namespace {

// Builds nothing; only looks. The parser keeps its own stack, so depth costs no recursion here.
class Checker final : public nlohmann::json_sax<Json> {
public:
    explicit Checker(std::size_t max_depth) : max_depth_(max_depth) {}
    const std::string& problem() const { return problem_; }

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool string(string_t& value) override { return Text(value); }
    bool key(string_t& value) override { return Text(value); }
    bool start_object(std::size_t) override { return Enter(); }
    bool start_array(std::size_t) override { return Enter(); }
    bool end_object() override { return Leave(); }
    bool end_array() override { return Leave(); }

    bool
    parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception&)
        override {
        problem_ = fmt::format("is not JSON at byte {}", position);
        if (!token.empty() && token.size() <= 32) problem_ += fmt::format(", near {}", token);
        return false;
    }

private:
    bool Text(const std::string& value) {
        if (value.find('\0') == std::string::npos) return true;
        problem_ = "holds U+0000, which databases cannot store: leave it out or encode it";
        return false;
    }
    bool Enter() {
        if (++depth_ <= max_depth_) return true;
        problem_ = fmt::format("is nested deeper than {} levels", max_depth_);
        return false;
    }
    bool Leave() {
        --depth_;
        return true;
    }

    const std::size_t max_depth_;
    std::size_t depth_ = 0;
    std::string problem_;
};

}  // namespace

Result<void> CheckJson(std::string_view text, std::size_t max_depth) {
    // The parser takes a NUL byte for the end of its input and skips a byte-order mark; we do
    // neither.
    if (text.find('\0') != std::string_view::npos) {
        return MakeError(Code::kInvalid, "is not JSON: it has a NUL byte");
    }
    if (text.substr(0, 3) == "\xEF\xBB\xBF") {
        return MakeError(Code::kInvalid, "is not JSON: it starts with a byte-order mark");
    }
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
        return MakeError(Code::kInvalid, "is empty; write null for no value");
    }
    Checker checker(max_depth);
    if (!Json::sax_parse(text.begin(), text.end(), &checker)) {
        return Error{Code::kInvalid, checker.problem()};
    }
    return {};
}

Result<Json> ParseJson(std::string_view text, std::size_t max_depth) {
    if (auto checked = CheckJson(text, max_depth); !checked) return checked.error();
    return ReadJson(text);
}

Json ReadJson(std::string_view text) {
    return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

OrderedJson ReadOrderedJson(std::string_view text) {
    return OrderedJson::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

std::string JsonText(const Json& json, int indent) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string JsonText(const OrderedJson& json, int indent) {
    return json.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string JsonList(const std::vector<std::string>& strings) {
    return JsonText(Json(strings));
}

std::vector<std::string> ReadJsonList(std::string_view text) {
    return ReadJson(text).get<std::vector<std::string>>();
}

}  // namespace stint::base
