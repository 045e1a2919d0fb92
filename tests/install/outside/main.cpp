#include <stint/stint.h>

#include <iostream>
#include <string>

struct Greet {
    std::string name;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Greet, name)

inline constexpr stint::Task<Greet, std::string> kGreet{"outside.greet"};

int main(int argc, char** argv) {
    stint::Engine engine({.store = std::string("sqlite:") + (argc > 1 ? argv[1] : "outside.db")});
    engine.Handle(kGreet, [](stint::Context&, const Greet& in) { return "hello, " + in.name; });
    engine.Start();
    auto run = engine.Submit(kGreet, {.name = "outside"});
    std::cout << run.value().Wait().value() << '\n';
}
