// The filter language that the command line, the API and the page share: a list of terms, all of
// which must hold.
//
//     state:dead,error type:demo.* queue:mail tag:nightly input.user.id:42 age>2h
//
// state type queue   equal to one of the comma-separated values; type:demo.* matches a prefix
// tag                has the tag; several terms: has all of them
// tenant parent      equal to a number
// age                time since it was submitted: age>2h, age<1d
// created finished   an instant: created>=2031-05-01T00:00:00Z, finished<now-7d
// input.PATH         a member of the input, compared with a JSON scalar: : = != < <= > >=
//
// A value with spaces is quoted: tag:"two words". A quoted input value is always a string.
#pragma once

#include <stint/result.h>
#include <stint/time.h>

#include <string_view>

#include "model/task.h"

namespace stint::model {

// Empty text: everything. Ages and relative instants count from `now`. The message points at the
// term that is wrong.
Result<TaskFilter> ParseFilter(std::string_view text, Time now);

}  // namespace stint::model
