// What the children of isolate_test.cpp can be asked to do.
#pragma once

#include <array>
#include <string>

namespace stint::engine::isolate {

inline constexpr std::array kTestHandlers = {
    "child.echo",
    "child.throw",
    "child.snooze",
    "child.parent",
    "child.items",
    "child.unregistered",
    "child.segfault",
    "child.abort",
    "child.overflow",
    "child.devour",
    "child.spin",
    "child.obedient",
    "child.stubborn",
    "child.killed",
    "child.verbose",
    "child.requires",
    "child.unavailable",
};

// What Registry::Add said to an isolated type before main() called IsIsolatedChild.
extern std::string refusal_before_the_first_line;

}  // namespace stint::engine::isolate
