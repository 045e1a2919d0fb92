// What can be known of a workflow's inputs before anything runs: which members a type has, and
// whether a value fits one. Found out by reading and writing values of the type, so that it holds
// for any codec.
#pragma once

#include <stint/codec.h>

#include <array>
#include <concepts>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stint::detail {

// A type as JSON: an object like this one, when that is known.
struct Shape {
    nlohmann::json like = nullptr;  // a default value as it is written; null: nothing is known
    // Read as a value of the type and written again; none: it does not fit the type.
    std::function<std::optional<nlohmann::json>(const nlohmann::json&)> again = {};

    template <class T>
    static Shape Of() {
        Shape shape;
        if constexpr (std::default_initializable<T>) {
            shape.again = [](const nlohmann::json& value) -> std::optional<nlohmann::json> {
                try {
                    T read = Codec<T>::Decode(value.dump());
                    return nlohmann::json::parse(std::string(Codec<T>::Encode(read)));
                } catch (const std::exception&) {
                    return std::nullopt;
                }
            };
            auto like = nlohmann::json::parse(std::string(Codec<T>::Encode(T{})), nullptr, false);
            if (like.is_object() && shape.again(like)) shape.like = std::move(like);
        }
        return shape;
    }

    bool known() const { return like.is_object(); }

    // A member may be left out when it is empty; one that is there is read: it is kept, or refused.
    bool Has(const std::string& name) const {
        if (!known() || like.contains(name)) return true;
        const std::array<nlohmann::json, 5> samples = {
            "x", 1, true, nlohmann::json::array({1}), nlohmann::json::object()};
        for (const nlohmann::json& sample : samples) {
            auto written = again(With(name, sample));
            if (!written || *written != like) return true;
        }
        return false;
    }

    bool Takes(const std::string& name, const nlohmann::json& value) const {
        return !known() || again(With(name, value)).has_value();
    }
    // The same of a value of which only the kind is known (a text, a number, …).
    bool TakesKind(const std::string& name, const nlohmann::json& sample) const {
        if (!known() || !like.contains(name) || sample.is_null()) return true;
        const nlohmann::json& member = like[name];
        bool same = member.is_null() || (member.is_number() && sample.is_number()) ||
                    member.type() == sample.type();
        return same || Takes(name, sample);
    }

private:
    nlohmann::json With(const std::string& name, const nlohmann::json& value) const {
        nlohmann::json with = like;
        with[name] = value;
        return with;
    }
};

inline bool HasPlaces(const nlohmann::json& value) {
    if (value.is_string()) {
        return value.get_ref<const std::string&>().find("${") != std::string::npos;
    }
    if (!value.is_structured()) return false;
    for (const auto& part : value) {
        if (HasPlaces(part)) return true;
    }
    return false;
}

// The field of "${field}" alone; empty for everything else, and for fields that are not plain
// names.
inline std::string FieldOf(const nlohmann::json& value) {
    if (!value.is_string()) return {};
    std::string_view text = value.get_ref<const std::string&>();
    if (!text.starts_with("${") || !text.ends_with('}')) return {};
    text = text.substr(2, text.size() - 3);
    for (char c : text) {
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '.';
        if (!plain) return {};
    }
    return std::string(text);
}

// "${…}" alone takes the kind of what it stands for; with anything around it, it is a text.
inline bool IsOnePlace(const nlohmann::json& value) {
    if (!value.is_string()) return false;
    std::string_view text = value.get_ref<const std::string&>();
    return text.starts_with("${") && text.find('}') == text.size() - 1;
}

class InputCheck {
public:
    InputCheck(std::string_view task, const Shape& input, const Shape& event)
        : task_(task), input_(input), event_(event) {}

    // Throws std::invalid_argument.
    void Member(const std::string& name, const nlohmann::json& value) const {
        if (!input_.Has(name)) Wrong("has no member \"" + name + "\"");
        if (!HasPlaces(value)) {
            if (!input_.Takes(name, value)) Wrong(DoesNotTake(name) + value.dump());
            return;
        }
        if (std::string field = FieldOf(value); !field.empty()) return Field(name, field);
        if (IsOnePlace(value)) return;
        if (value.is_string() && !input_.TakesKind(name, "x")) Wrong(DoesNotTake(name) + "a text");
    }
    void Whole() const {
        if (!input_.known() || !event_.known() || input_.again(event_.like)) return;
        Wrong("cannot be read from the event's data " + event_.like.dump() + ": give it a map");
    }

private:
    void Field(const std::string& name, const std::string& field) const {
        if (!event_.known()) return;
        const std::size_t dot = field.find('.');
        if (!event_.Has(field.substr(0, dot))) {
            throw std::invalid_argument(
                "the event of the trigger for " + task_ + " has no field \"" + field + "\""
            );
        }
        nlohmann::json sample;
        if (dot == std::string::npos && event_.like.contains(field)) sample = event_.like[field];
        if (input_.TakesKind(name, sample)) return;
        Wrong(DoesNotTake(name) + "the event's field \"" + field + "\", such as " + sample.dump());
    }
    static std::string DoesNotTake(const std::string& name) {
        return "has a member \"" + name + "\" that does not take ";
    }
    [[noreturn]] void Wrong(const std::string& what) const {
        throw std::invalid_argument("the input of " + task_ + " " + what);
    }

    const std::string task_;
    const Shape& input_;
    const Shape& event_;
};

}  // namespace stint::detail
