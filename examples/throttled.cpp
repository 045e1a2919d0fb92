// Throttled: eight workers' slots, but a model server that takes two requests at a time, and hosts
// that take one each. What must wait stays in the store and takes no slot. When the server says
// "not now", every task that needs it waits, and none of them loses an attempt.
#include <stint/stint.h>

#include <atomic>
#include <iostream>

struct Page {
    std::string host;
    std::string path;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Page, host, path)

// [needs]
inline constexpr stint::Task<std::string, int> kSummarize{
    "page.summarize", {.retry = stint::Retry::Never(), .needs = {"ollama"}}};
inline constexpr stint::Task<Page, void> kFetch{"page.fetch"};
// [needs]

namespace {

// The most that were ever inside at once.
class Door {
public:
    void Enter() {
        int inside = ++inside_;
        for (int most = most_; inside > most && !most_.compare_exchange_weak(most, inside);) {
        }
    }
    void Leave() { --inside_; }
    int most() const { return most_; }

private:
    std::atomic<int> inside_{0}, most_{0};
};

Door model_server, host;
std::atomic<int> requests{0};

int Summarize(stint::Context&, const std::string& text) {
    // [unavailable]
    if (++requests == 3) {
        // HTTP 429 with Retry-After: nobody asks again before, and nobody loses an attempt.
        throw stint::ResourceUnavailable("ollama", "429", std::chrono::milliseconds{300});
    }
    // [unavailable]
    model_server.Enter();
    int words = 1;
    for (char c : text) words += c == ' ' ? 1 : 0;
    model_server.Leave();
    return words;
}

void Fetch(stint::Context&, const Page&) {
    host.Enter();
    host.Leave();
}

}  // namespace

int main() {
    stint::Engine engine({.store = "sqlite:throttled.db"});
    engine.Handle(kSummarize, Summarize);
    engine.Handle(kFetch, Fetch);

    // [resources]
    engine.resources().Set("ollama", {.capacity = 2}).value();
    engine.resources().Set("host:*", {.capacity = 1}).value();  // each host by itself
    // [resources]
    engine.Start();

    std::vector<stint::Run<int>> summaries;
    for (int i = 0; i < 12; ++i) {
        summaries.push_back(engine.Submit(kSummarize, "two words").value());
    }
    std::vector<stint::Run<void>> pages;
    for (const char* path : {"/", "/about", "/news", "/imprint"}) {
        Page page{.host = "example.org", .path = path};
        stint::SubmitOptions options;
        options.needs = std::vector<stint::ResourceNeed>{{"host:" + page.host}};
        pages.push_back(engine.Submit(kFetch, page, options).value());
    }

    int words = 0;
    for (auto& summary : summaries) words += summary.Wait().value();
    for (auto& page : pages) page.Wait().value();
    std::cout << "12 summaries, " << words << " words, "
              << (model_server.most() <= 2 ? "at most 2" : "MORE THAN 2") << " at once\n";
    std::cout << "4 pages of one host, " << (host.most() == 1 ? "one" : "SOME") << " at a time\n";
    engine.Stop();
}
