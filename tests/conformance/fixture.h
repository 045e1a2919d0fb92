// How the conformance suite gets at a store. Each store has one executable, conformance_<store>,
// made of the same cases and of one file that defines Backends().
#pragma once

#include <stint/time.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "store/store.h"

namespace stint::conformance {

// A view as a tool reads it.
struct ViewRows {
    std::vector<std::string> columns;
    std::vector<nlohmann::json> rows;  // each an array, one value per column
};

// One empty store, for one case.
class StoreFixture {
public:
    virtual ~StoreFixture() = default;

    // A handle on the store; each call gives one on the same data, as another process would have it
    // (stores that cannot do that give the same handle again).
    virtual std::shared_ptr<store::Store> Open() = 0;

    // A handle on another store of the same kind.
    virtual std::shared_ptr<store::Store> OpenAnother() = 0;

    // Moves the store's clock forward, for all handles. Real time may pass as well, but the cases
    // count in minutes, so a few seconds do not matter.
    virtual void AdvanceTime(Duration by) = 0;

    // Through the store's own SQL, past the store. Only of backends that have views.
    virtual ViewRows ReadView(const std::string&) { return {}; }
};

struct Backend {
    std::string name;  // letters and digits
    std::function<std::unique_ptr<StoreFixture>()> make;
    bool has_views = false;  // tools may read the views of view_columns.h

    friend std::ostream& operator<<(std::ostream& out, const Backend& backend) {
        return out << backend.name;
    }
};

// Defined by each executable; usually one.
std::vector<Backend> Backends();

}  // namespace stint::conformance
