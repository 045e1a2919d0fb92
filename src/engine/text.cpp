#include "engine/text.h"

#include <cxxabi.h>

#include <cstdlib>
#include <limits>
#include <memory>

#include "base/check.h"
#include "base/result.h"
#include "base/text.h"

namespace stint::engine {

namespace {

constexpr std::size_t kMarker = 40;  // room for the note of what is missing

std::string Clean(std::string_view text) {
    return base::CleanText(text, std::numeric_limits<std::size_t>::max());
}

bool IsContinuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

}  // namespace

std::string CutText(std::string_view text, std::size_t limit) {
    CHECK(limit > kMarker);
    std::string clean = Clean(text);
    if (clean.size() <= limit) return clean;
    std::size_t keep = limit - kMarker;
    while (keep > 0 && IsContinuation(clean[keep])) --keep;
    std::string marker = fmt::format("… [{} bytes cut]", clean.size() - keep);
    clean.resize(keep);
    return clean + marker;
}

std::string CutToTail(std::string_view text, std::size_t limit) {
    CHECK(limit > kMarker);
    std::string clean = Clean(text);
    if (clean.size() <= limit) return clean;
    std::size_t from = clean.size() - (limit - kMarker);
    while (from < clean.size() && IsContinuation(clean[from])) ++from;
    return fmt::format("[{} bytes cut] …", from) + clean.substr(from);
}

std::string PrintableAscii(std::string_view text) {
    std::string plain(text);
    for (char& c : plain) {
        if (c < 0x20 || c > 0x7e) c = '?';
    }
    return plain;
}

std::string Demangle(const char* name) {
    int status = 0;
    std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free
    );
    return status == 0 && text ? text.get() : name;
}

}  // namespace stint::engine
