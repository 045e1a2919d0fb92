#include "base/clock.h"
#include "base/random.h"
#include "conformance/fixture.h"
#include "store/memory/memory_store.h"

namespace stint::conformance {

namespace {

class MemoryFixture final : public StoreFixture {
public:
    std::shared_ptr<store::Store> Open() override { return store_; }
    std::shared_ptr<store::Store> OpenAnother() override {
        return store::MakeMemoryStore(clock_, random_);
    }
    void AdvanceTime(Duration by) override { clock_.Advance(by); }

private:
    base::ManualClock clock_;
    base::SeededRandom random_{1};
    const std::shared_ptr<store::Store> store_ = store::MakeMemoryStore(clock_, random_);
};

}  // namespace

std::vector<Backend> Backends() {
    return {{"memory", [] { return std::make_unique<MemoryFixture>(); }}};
}

}  // namespace stint::conformance
