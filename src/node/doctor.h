// What an operator wants to know first when something does not go on: whether the configuration,
// the store and the workers are sound, and what to do about what is not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "node/client.h"
#include "node/config.h"

namespace stint::node {

struct Diagnosis {
    enum class Verdict : std::uint8_t {
        kOk,
        kLook,    // nothing is broken, but somebody should look
        kBroken,  // an invariant does not hold, or the store cannot be used
    };
    std::string part;  // "config", "store", "workers", "work"
    std::string what;  // was checked, as it should be
    Verdict verdict = Verdict::kOk;
    std::string detail;  // what was found
    std::string cure;    // empty: nothing is to be done
};
std::string_view VerdictName(Diagnosis::Verdict verdict);  // "ok", "look", "broken"
base::OrderedJson ToJson(const Diagnosis& diagnosis);

// That it can be read is known already; here whether it names what is there. Runs each probe once.
std::vector<Diagnosis> ExamineConfig(const Config& config);
// What the store says of itself, and each of its self-checks (Client::Check). `here`: by this
// machine's clock. Throws StoreError.
std::vector<Diagnosis> ExamineStore(Client& client, Time here);
// Who works, and what nobody works on. Throws StoreError.
std::vector<Diagnosis> ExamineWork(Client& client);

}  // namespace stint::node
