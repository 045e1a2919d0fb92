// How a C++ value becomes the JSON text stored with a task, and back.
//
// The default uses nlohmann/json: any type with to_json/from_json works, so for your own struct one
// line next to it is enough:
//
//     struct Resize { std::string url; int width = 0; };
//     NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Resize, url, width)
//
// Unknown keys are ignored and missing ones keep the member's default, so old workers read new
// payloads and the reverse. For anything else specialise stint::Codec<T>.
#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stint {

// The stored text is not what the type expects. A failed attempt, never a crash; not retryable.
class DecodeError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// JSON text passed through as it is.
struct Json {
    std::string text = "null";
    friend bool operator==(const Json&, const Json&) = default;
};

template <class T>
struct Codec {
    static std::string Encode(const T& value) {
        // Bytes that are not UTF-8 become U+FFFD: what is stored must be valid text.
        return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    static T Decode(std::string_view text) {
        try {
            return nlohmann::json::parse(text).template get<T>();
        } catch (const nlohmann::json::exception& error) {
            throw DecodeError(
                std::string("the stored JSON does not fit its type: ") + error.what()
            );
        }
    }
};

template <>
struct Codec<Json> {
    static std::string Encode(const Json& value) { return value.text; }
    static Json Decode(std::string_view text) { return Json{std::string(text)}; }
};

template <class T>
concept Storable = std::same_as<T, void> || requires(const T& value, std::string_view text) {
    { Codec<T>::Encode(value) } -> std::convertible_to<std::string>;
    { Codec<T>::Decode(text) } -> std::same_as<T>;
};

}  // namespace stint
