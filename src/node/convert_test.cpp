// The public header has constants of its own, so that they are constexpr and need no library; they
// must be the model's.
#include "node/convert.h"

#include <gtest/gtest.h>

#include "model/decide.h"

namespace stint::node {
namespace {

TEST(Presets, LeasesOfThePublicHeaderAreTheModels) {
    EXPECT_EQ(ToModel(LeaseOptions{}), model::LeasePolicy::Default());
    EXPECT_EQ(ToModel(LeaseOptions::Default()), model::LeasePolicy::Default());
    EXPECT_EQ(ToModel(LeaseOptions::Brisk()), model::LeasePolicy::Brisk());
    EXPECT_EQ(ToModel(LeaseOptions::Patient()), model::LeasePolicy::Patient());
}

TEST(Presets, RetriesOfThePublicHeaderAreTheModels) {
    EXPECT_EQ(ToModel(Retry{}), model::RetryPolicy{});
    EXPECT_EQ(ToModel(Retry::ErrorIsFinal()), model::RetryPolicy::ErrorIsFinal());
    EXPECT_EQ(ToModel(Retry::CountedBackoff()), model::RetryPolicy::CountedBackoff());
    EXPECT_EQ(ToModel(Retry::UncountedQuick()), model::RetryPolicy::UncountedQuick());
}

TEST(Presets, NeverIsOneAttemptAndErrorIsFinalSurvivesACrash) {
    auto after_a_crash = [](const Retry& retry) {
        return model::DecideCrash({.attempt = 1, .max_attempts = ToModel(retry).max_attempts}).to;
    };
    auto after_a_failure = [](const Retry& retry) {
        model::TaskError error{"x", "x", {}, true};
        return model::DecideFailure(ToModel(retry), 1, error, 0.5).to;
    };
    EXPECT_EQ(after_a_crash(Retry::Never()), model::State::kDead);
    EXPECT_EQ(after_a_failure(Retry::Never()), model::State::kDead);
    EXPECT_EQ(after_a_crash(Retry::ErrorIsFinal()), model::State::kOpen);
    EXPECT_EQ(after_a_failure(Retry::ErrorIsFinal()), model::State::kDead);
}

}  // namespace
}  // namespace stint::node
