// What SQLite refused, with its extended result code.
#pragma once

#include <stdexcept>
#include <string>

namespace stint::sqlite {

class Error : public std::runtime_error {
public:
    Error(int extended_code, const std::string& what)
        : std::runtime_error(what), extended_code_(extended_code) {}

    int extended_code() const { return extended_code_; }
    int code() const { return extended_code_ & 0xff; }

    bool is_constraint() const;
    bool is_busy() const;  // locked by another connection: nothing was changed
    bool is_data() const;  // a value that the database cannot or may not hold
    bool is_interrupted() const;
    bool is_full() const;
    bool is_io() const;       // the disk failed: what reached it is not known
    bool is_corrupt() const;  // the file is damaged, or is no database

private:
    int extended_code_;
};

}  // namespace stint::sqlite
