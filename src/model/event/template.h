// JSON with places for fields. "${owner.name}" alone is the field's value, whatever it is; inside a
// longer text, "img-${id}.png", it is written out. A field that is not there is null, and nothing
// inside a text. "$${" stands for "${".
#pragma once

#include <stint/result.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json.h"

namespace stint::model {

// Whether every place in it names a field. The message says where in the template, and what.
Result<void> CheckTemplate(const base::Json& pattern);

// REQUIRES: CheckTemplate(pattern). An error as soon as the result has more than `limit` bytes:
// what is built of a small template and a large field may be a million times as large.
Result<base::Json> Fill(const base::Json& pattern, const base::Json& fields, std::size_t limit);
// The same of one text, as a text: what is not one is written out.
Result<std::string> FillText(std::string_view pattern, const base::Json& fields, std::size_t limit);

}  // namespace stint::model
