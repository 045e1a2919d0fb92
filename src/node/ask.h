// What a store throws, as the doors' one exception.
#pragma once

#include "node/client.h"

namespace stint::node {

// Runs one request; what the store throws becomes the doors' one exception.
template <class Request>
auto Ask(Request request) {
    try {
        return request();
    } catch (const store::Unavailable& error) {
        throw StoreError(Code::kUnavailable, error.what());
    } catch (const store::Unstorable& error) {
        throw StoreError(Code::kInvalid, error.what());
    } catch (const store::CommitUnknown& error) {
        throw StoreError(Code::kUnknown, error.what());
    } catch (const store::WrongSchema& error) {
        throw StoreError(Code::kConflict, error.what());
    } catch (const std::invalid_argument& error) {
        throw StoreError(Code::kInvalid, error.what());
    }
}

}  // namespace stint::node
