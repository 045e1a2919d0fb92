// The smallest durable program: one task type, one handler, one submit.
#include <stint/stint.h>

#include <iostream>

struct Greeting {
    std::string name;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Greeting, name)

inline constexpr stint::Task<Greeting, std::string> kGreet{"hello.greet"};

int main() {
    stint::Engine engine({.store = "sqlite:hello.db"});
    engine.Handle(kGreet, [](stint::Context& context, const Greeting& in) {
        return "Hello, " + in.name + "! This was attempt " + std::to_string(context.attempt()) +
               ".";
    });
    engine.Start();

    auto run = engine.Submit(kGreet, {.name = "world"}).value();  // durable from here on
    std::cout << run.Wait().value() << '\n';
}
