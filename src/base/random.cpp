#include "base/random.h"

#include <openssl/rand.h>

#include "base/check.h"

namespace stint::base {

namespace {

class OpenSslRandom final : public Random {
public:
    std::uint64_t Next() override {
        // One call to the generator fills many numbers: a claim of 1 000 needs 2 000 of them.
        thread_local std::uint64_t numbers[128];
        thread_local std::size_t left = 0;
        if (left == 0) {
            CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(numbers), sizeof numbers) == 1);
            left = std::size(numbers);
        }
        return numbers[--left];
    }
};

}  // namespace

Random& SystemRandom() {
    static OpenSslRandom random;
    return random;
}

std::uint64_t SeededRandom::Next() {
    // splitmix64: full period, every seed good.
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

}  // namespace stint::base
