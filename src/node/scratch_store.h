// A new, empty store beside the one that is named, for a benchmark: another file, another schema.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace stint::node {

class ScratchStore {
public:
    // Only gives it a name that nobody else has and marks that as in use: whoever opens the address
    // makes the store. Throws StoreError, also when it could not be made for want of a right.
    explicit ScratchStore(const std::string& url);
    ~ScratchStore();  // Destroy(), but says nothing when that fails
    ScratchStore(const ScratchStore&) = delete;
    ScratchStore& operator=(const ScratchStore&) = delete;

    const std::string& url() const { return url_; }
    std::string name() const;  // the file, or the schema
    // Removes it. Throws StoreError.
    void Destroy();

    // What benchmarks that were killed have left beside the same store. Removed is what certainly
    // nobody uses any more.
    struct Left {
        std::vector<std::string> removed, stay;
    };
    Left Sweep();

private:
    struct Mark;

    std::string url_;
    std::string made_directory_;  // which was not there before; empty = none
    std::unique_ptr<Mark> mark_;
    bool destroyed_ = false;
};

}  // namespace stint::node
