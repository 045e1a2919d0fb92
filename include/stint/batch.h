// Batch handlers: one call for several tasks of a type, each with an end of its own.
//
//     engine.HandleBatch(kIndex, 50, [](std::span<const stint::BatchItem<Page>> pages) {
//         std::vector<stint::Outcome<void>> ends;
//         for (bool good : search.Index(pages)) ends.push_back(Ended(good));
//         return ends;  // one for each, in the same order
//     });
#pragma once

#include <stint/codec.h>
#include <stint/context.h>
#include <stint/outcome.h>

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint {

// One task of a batch. Its context is its own: what is cancelled, timed out or lost says so there.
template <class In>
struct BatchItem {
    Context* context = nullptr;
    In input;
};
template <>
struct BatchItem<void> {
    Context* context = nullptr;
};

namespace detail {

struct ErasedItem {
    Context* context = nullptr;
    std::string_view input;
};
// An outcome, or what was thrown for this one.
struct ErasedEnd {
    Outcome<std::string> outcome{std::in_place_index<0>, "null"};
    std::exception_ptr thrown = nullptr;
};
using ErasedBatch = std::function<std::vector<ErasedEnd>(std::span<const ErasedItem>)>;

// Says that a batch handler returned too few or too many.
std::exception_ptr WrongBatchSize(std::size_t given, std::size_t returned);

// Of engine.h.
template <class Out, class Returned>
Outcome<std::string> EraseOutcome(Returned&& returned);
// What a wait that has failed means for a handler that does not look at failures itself.
Failed FailedBySubtask(Context& context);

// An input that cannot be read ends its own task; the handler sees the others.
template <class In, class Out, class F>
ErasedBatch EraseBatch(F function) {
    auto shared = std::make_shared<F>(std::move(function));
    return [shared](std::span<const ErasedItem> given) {
        std::vector<ErasedEnd> ends(given.size());
        std::vector<BatchItem<In>> items;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < given.size(); ++i) {
            try {
                if (given[i].context->stage() == Stage::kError) {
                    ends[i].outcome = FailedBySubtask(*given[i].context);
                    continue;
                }
                if constexpr (std::is_void_v<In>) {
                    items.push_back({given[i].context});
                } else {
                    items.push_back({given[i].context, Codec<In>::Decode(given[i].input)});
                }
                places.push_back(i);
            } catch (...) {
                ends[i].thrown = std::current_exception();
            }
        }
        if (items.empty()) return ends;
        std::exception_ptr thrown;
        std::vector<Outcome<Out>> outcomes;
        try {
            outcomes = (*shared)(std::span<const BatchItem<In>>(items));
            if (outcomes.size() != items.size()) {
                thrown = WrongBatchSize(items.size(), outcomes.size());
            }
        } catch (...) {
            thrown = std::current_exception();
        }
        for (std::size_t k = 0; k < places.size(); ++k) {
            ErasedEnd& end = ends[places[k]];
            end.thrown = thrown;
            if (!thrown) end.outcome = EraseOutcome<Out>(std::move(outcomes[k]));
        }
        return ends;
    };
}

}  // namespace detail

// f(std::span<const BatchItem<In>>) → std::vector<Outcome<Out>>.
template <class F, class In, class Out>
concept BatchHandlerFor = requires(F& f, std::span<const BatchItem<In>> items) {
    { f(items) } -> std::convertible_to<std::vector<Outcome<Out>>>;
};

}  // namespace stint
