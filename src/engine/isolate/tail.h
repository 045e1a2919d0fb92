// The end of a stream of any length, in bounded memory.
#pragma once

#include <string>
#include <string_view>

namespace stint::engine::isolate {

class Tail {
public:
    explicit Tail(std::size_t limit) : limit_(limit) {}

    void Append(std::string_view bytes) {
        if (bytes.size() >= limit_) {
            text_ = bytes.substr(bytes.size() - limit_);
            return;
        }
        text_ += bytes;
        if (text_.size() > 2 * limit_) text_.erase(0, text_.size() - limit_);
    }
    std::string Take() && {
        if (text_.size() > limit_) text_.erase(0, text_.size() - limit_);
        return std::move(text_);
    }

private:
    const std::size_t limit_;
    std::string text_;
};

}  // namespace stint::engine::isolate
