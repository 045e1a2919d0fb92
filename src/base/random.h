// Randomness is given, never taken, for the same reason as time.
#pragma once

#include <stint/ids.h>

#include <cstdint>

namespace stint::base {

class Random {
public:
    virtual ~Random() = default;
    virtual std::uint64_t Next() = 0;

    // Uniform in [0, 1).
    double Fraction() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
    // Uniform in [0, bound); bound > 0.
    std::uint64_t Below(std::uint64_t bound) { return Next() % bound; }

    template <class RandomIdType>
    RandomIdType MakeId() {
        std::uint64_t high = Next();
        std::uint64_t low = Next();
        return RandomIdType(high, low | 1);  // never "none"
    }
};

// Cryptographically strong, seeded by the operating system; safe from any thread.
Random& SystemRandom();

// Reproducible from its seed; for one thread.
class SeededRandom : public Random {
public:
    explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
    std::uint64_t Next() override;

private:
    std::uint64_t state_;
};

}  // namespace stint::base
