#include "base/hash.h"

#include <openssl/evp.h>

#include <array>

#include "base/check.h"

namespace stint::base {

std::string Sha256Hex(std::string_view bytes) {
    std::array<unsigned char, 32> digest{};
    unsigned size = 0;
    CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1);
    CHECK(size == digest.size());

    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    text.reserve(2 * digest.size());
    for (unsigned char byte : digest) {
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

}  // namespace stint::base
