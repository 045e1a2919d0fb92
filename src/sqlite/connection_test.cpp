#include "sqlite/connection.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "sqlite/error.h"
#include "sqlite/filesystem.h"
#include "sqlite/transaction.h"

namespace stint::sqlite {
namespace {

class SqliteTest : public ::testing::Test {
protected:
    SqliteTest() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "stint-sqlite-XXXXXX").string();
        directory_ = mkdtemp(pattern.data());
        path_ = directory_ + "/a.db";
    }
    ~SqliteTest() override { std::filesystem::remove_all(directory_); }

    static OpenOptions Writer() { return {.role = OpenOptions::Role::kWriter}; }

    std::string directory_;
    std::string path_;
};

TEST_F(SqliteTest, WriterIsDurableWalWithoutMemoryMap) {
    Connection writer(path_, Writer());
    EXPECT_EQ(writer.PragmaText("journal_mode"), "wal");
    EXPECT_EQ(writer.Pragma("synchronous"), 2);
    EXPECT_EQ(writer.Pragma("mmap_size"), 0);
    EXPECT_EQ(writer.Pragma("foreign_keys"), 1);
    EXPECT_GT(writer.Pragma("wal_autocheckpoint"), 0);
}

TEST_F(SqliteTest, ReaderCannotWriteNorCheckpoint) {
    Connection writer(path_, Writer());
    writer.Exec("CREATE TABLE t (a INTEGER) STRICT");
    Connection reader(path_, {});
    EXPECT_EQ(reader.Pragma("wal_autocheckpoint"), 0);
    try {
        reader.Exec("INSERT INTO t VALUES (1)");
        FAIL() << "a reader wrote";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), SQLITE_READONLY);
    }
}

TEST_F(SqliteTest, BindsAndReadsEveryType) {
    Connection writer(path_, Writer());
    writer.Exec("CREATE TABLE t (i INTEGER, r REAL, s TEXT, b BLOB, n INTEGER) STRICT");
    const std::array<unsigned char, 3> bytes = {0, 1, 255};
    EXPECT_EQ(
        writer.Cached("INSERT INTO t VALUES (?, ?, ?, ?, ?)")
            .Run(std::int64_t{1} << 62, 0.5, "", Blob(bytes), std::optional<std::int64_t>()),
        1
    );
    Rows rows = writer.Cached("SELECT i, r, s, b, n FROM t").Query();
    ASSERT_TRUE(rows.Next());
    EXPECT_EQ(rows.Int(0), std::int64_t{1} << 62);
    EXPECT_EQ(rows.Real(1), 0.5);
    EXPECT_FALSE(rows.IsNull(2));
    EXPECT_EQ(rows.Text(2), "");
    EXPECT_EQ(rows.Bytes(3).size(), 3u);
    EXPECT_EQ(rows.Bytes(3)[2], 255);
    EXPECT_TRUE(rows.IsNull(4));
    EXPECT_FALSE(rows.Next());
}

TEST_F(SqliteTest, StatementsCallAFunctionOfOurs) {
    Connection writer(path_, Writer());
    const std::array<unsigned char, 2> bytes = {7, 8};
    writer.Define("bytes_of", [&](std::int64_t number) {
        return number == 1 ? std::optional(Blob(bytes)) : std::nullopt;
    });
    EXPECT_EQ(writer.Prepare("SELECT bytes_of(1) = x'0708'").Scalar(), 1);
    EXPECT_EQ(writer.Prepare("SELECT bytes_of(2) IS NULL").Scalar(), 1);
    writer.Exec("CREATE TABLE t (a INTEGER); CREATE VIEW v AS SELECT bytes_of(a) FROM t");
    EXPECT_THROW(writer.Prepare("SELECT * FROM v"), Error);  // the schema is not ours alone
}

TEST_F(SqliteTest, EachChangedRowIsTold) {
    Connection writer(path_, Writer());
    writer.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)");
    std::vector<std::string> told;
    writer.OnChange([&](std::string_view table, std::int64_t row) {
        told.push_back(std::string(table) + std::to_string(row));
    });
    writer.Exec("INSERT INTO t VALUES (3, 0), (4, 0); UPDATE t SET a = 1 WHERE id = 4");
    writer.Exec("DELETE FROM t WHERE id BETWEEN 3 AND 4");
    EXPECT_EQ(told, (std::vector<std::string>{"t3", "t4", "t4", "t3", "t4"}));
}

TEST_F(SqliteTest, ChecksAreSwitchedTogether) {
    Connection writer(path_, Writer());
    writer.Exec(
        "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p INTEGER REFERENCES p (id));"
        "CREATE TRIGGER none BEFORE DELETE ON c BEGIN SELECT RAISE(ABORT, 'no'); END"
    );
    EXPECT_THROW(writer.Exec("INSERT INTO c VALUES (1)"), Error);
    writer.EnableChecks(false);
    writer.Exec("INSERT INTO c VALUES (1)");
    writer.Exec("DELETE FROM c");
    Transaction transaction(writer);
    writer.EnableChecks(true);  // counts from the next statement on, also in a transaction
    EXPECT_THROW(writer.Exec("INSERT INTO c VALUES (1)"), Error);
}

TEST_F(SqliteTest, ErrorCarriesTheExtendedCode) {
    Connection writer(path_, Writer());
    writer.Exec("CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT; INSERT INTO t VALUES (1)");
    try {
        writer.Cached("INSERT INTO t VALUES (?)").Run(1);
        FAIL() << "a duplicate key was stored";
    } catch (const Error& error) {
        EXPECT_TRUE(error.is_constraint());
        EXPECT_EQ(error.extended_code(), SQLITE_CONSTRAINT_PRIMARYKEY);
    }
    // The statement is usable again.
    EXPECT_EQ(writer.Cached("INSERT INTO t VALUES (?)").Run(2), 1);
}

TEST_F(SqliteTest, TransactionRollsBackUnlessCommitted) {
    Connection writer(path_, Writer());
    writer.Exec("CREATE TABLE t (a INTEGER) STRICT");
    {
        Transaction transaction(writer);
        writer.Exec("INSERT INTO t VALUES (1)");
    }
    EXPECT_EQ(writer.Prepare("SELECT count(*) FROM t").Scalar(), 0);
    {
        Transaction transaction(writer);
        writer.Exec("INSERT INTO t VALUES (1)");
        transaction.Commit();
    }
    EXPECT_EQ(writer.Prepare("SELECT count(*) FROM t").Scalar(), 1);
}

TEST_F(SqliteTest, SavepointFailsAlone) {
    Connection writer(path_, Writer());
    writer.Exec("CREATE TABLE t (a INTEGER) STRICT");
    Transaction transaction(writer);
    {
        Savepoint good(writer);
        writer.Exec("INSERT INTO t VALUES (1)");
        good.Release();
    }
    {
        Savepoint bad(writer);
        writer.Exec("INSERT INTO t VALUES (2)");
    }
    transaction.Commit();
    EXPECT_EQ(writer.Prepare("SELECT sum(a) FROM t").Scalar(), 1);
}

TEST_F(SqliteTest, ReadTransactionKeepsItsView) {
    Connection writer(path_, Writer());
    writer.Exec("CREATE TABLE t (a INTEGER) STRICT");
    Connection reader(path_, {});
    {
        ReadTransaction view(reader);
        EXPECT_EQ(reader.Cached("SELECT count(*) FROM t").Scalar(), 0);
        writer.Exec("INSERT INTO t VALUES (1)");
        EXPECT_EQ(reader.Cached("SELECT count(*) FROM t").Scalar(), 0);
    }
    EXPECT_EQ(reader.Cached("SELECT count(*) FROM t").Scalar(), 1);
}

TEST_F(SqliteTest, OpeningSomethingElseIsAnError) {
    std::ofstream(path_
    ) << "this is a text of more than a hundred bytes, so that it cannot be taken for an "
         "empty database; it is none at all.";
    try {
        Connection writer(path_, Writer());
        FAIL() << "a text file was opened";
    } catch (const Error& error) {
        EXPECT_TRUE(error.is_corrupt()) << error.what();
    }
}

TEST_F(SqliteTest, NetworkFilesystemsAreRefusedByName) {
    EXPECT_EQ(NetworkFilesystem(0x6969), "NFS");
    EXPECT_EQ(NetworkFilesystem(static_cast<std::int32_t>(0xFF534D42)), "CIFS");
    EXPECT_EQ(NetworkFilesystem(0xEF53), std::nullopt);
    EXPECT_TRUE(CheckFilesystem(path_));
    auto missing = CheckFilesystem(directory_ + "/no/such/a.db");
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().message.find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace stint::sqlite
