// Words for what a task needs besides a free worker: units of named resources, labels, its turn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stint {

// So many units of a resource, held for as long as the attempt runs. Names are case-insensitive;
// what a resource is, and how much of it there is: <stint/resource.h>.
struct ResourceNeed {
    std::string resource;
    int units = 1;
};

// Tasks with the same order key run one at a time, in the order of their submits. What becomes of
// those behind one that has failed for good:
enum class FailedHead : std::uint8_t {
    kBlock = 0,       // they wait until somebody retries or cancels it
    kSkip = 1,        // the next one goes
    kDeadLetter = 2,  // all that wait behind it become dead with it
};

namespace detail {

// A need in a constant.
struct LiteralNeed {
    std::string_view resource;
    int units = 1;

    constexpr LiteralNeed() = default;
    constexpr LiteralNeed(const char* name, int count = 1) : resource(name), units(count) {}
};

// A short list in a constant: {"gpu", {"license", 2}}.
template <class T, std::size_t kMost>
class Few {
public:
    constexpr Few() = default;
    constexpr Few(std::initializer_list<T> items) {
        if (items.size() > kMost) throw std::length_error("too many in one list of a task type");
        for (const T& item : items) items_[size_++] = item;
    }
    constexpr const T* begin() const { return items_.data(); }
    constexpr const T* end() const { return items_.data() + size_; }
    constexpr std::size_t size() const { return size_; }
    constexpr bool empty() const { return size_ == 0; }

private:
    std::array<T, kMost> items_{};
    std::size_t size_ = 0;
};

}  // namespace detail

}  // namespace stint
