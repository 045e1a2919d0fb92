// Events start tasks, and tasks that belong together start one more when all of them are complete.
// Nothing here calls the handlers: the workflow does, on whichever worker is free.
#include <stint/stint.h>

#include <condition_variable>
#include <iostream>
#include <mutex>

using namespace std::chrono_literals;

struct File {
    std::string path;
    std::string mimeType;
    int size = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(File, path, mimeType, size)

struct Look {
    std::string path;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Look, path)

struct Summary {
    std::string path;
    std::string title;
    bool clean = false;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Summary, path, title, clean)

inline constexpr stint::Task<Look, std::string> kTitle{"media.title"};
inline constexpr stint::Task<Look, bool> kScan{"media.scan"};
inline constexpr stint::Task<Summary> kIndex{"media.index"};

namespace {

// [workflow]
stint::Workflow ContentAnalysis() {
    stint::Workflow flow("content-analysis");
    flow.On("file.ingested")
        .Match("mimeType startsWith 'audio/' AND size > 1024")
        .Submit("title", kTitle, {{"path", "${path}"}}, {.priority = 150});
    flow.On("file.ingested").Match("size > 0").Submit("scan", kScan, {{"path", "${path}"}});
    flow.Join("index", kTitle, kScan)
        .By("input.path")
        .Within(24h)
        .Submit(
            kIndex,
            {{"path", "${key}"},
             {"title", "${outputs['media.title']}"},
             {"clean", "${outputs['media.scan']}"}}
        );
    return flow;
}
// [workflow]

// What was indexed, for main to wait for.
class Shelf {
public:
    void Add(const Summary& file) {
        std::lock_guard guard(mutex_);
        std::cout << file.path << ": " << file.title << (file.clean ? ", clean" : ", infected")
                  << std::endl;
        ++files_;
        changed_.notify_all();
    }
    bool WaitFor(int files) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, 60s, [&] { return files_ >= files; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int files_ = 0;
};

}  // namespace

int main() {
    stint::Engine engine({.store = "sqlite:triggers.db", .slots = 2});
    Shelf shelf;
    engine.Handle(kTitle, [](stint::Context&, const Look& look) {
        return "title of " + look.path;
    });
    engine.Handle(kScan, [](stint::Context&, const Look&) { return true; });
    engine.Handle(kIndex, [&](stint::Context&, const Summary& file) { shelf.Add(file); });
    engine.PutWorkflow(ContentAnalysis()).value();
    engine.Start();

    // [publish]
    File song{"song.mp3", "audio/mpeg", 4'000'000};
    auto first = engine.Publish("file.ingested", song, {.source = "scanner", .id = "song.mp3"});
    // Said twice is happened once.
    auto again = engine.Publish("file.ingested", song, {.source = "scanner", .id = "song.mp3"});
    // [publish]
    bool same = first.value() == again.value();
    engine.Publish("file.ingested", File{"note.txt", "text/plain", 12}).value();
    if (!shelf.WaitFor(1)) return 1;
    engine.Stop();

    for (const stint::FiringInfo& fired : engine.Firings(first.value()).value()) {
        std::cout << fired.workflow << "/" << fired.trigger << " " << fired.what << "\n";
    }
    std::cout << (same ? "one event" : "two events") << "\n";
}
