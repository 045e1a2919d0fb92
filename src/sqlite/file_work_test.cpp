#include "sqlite/file_work.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/tallies.h"
#include "sqlite/connection.h"
#include "sqlite/transaction.h"

namespace stint::sqlite {
namespace {

TEST(FileWork, ACommitIsASyncAndSomeBytesOfLog) {
    std::string pattern = (std::filesystem::temp_directory_path() / "stint-work-XXXXXX").string();
    std::string directory = mkdtemp(pattern.data());
    CountFileWork();
    CountFileWork();  // once is enough
    {
        Connection writer(directory + "/a.db", {.role = OpenOptions::Role::kWriter});
        writer.Exec("CREATE TABLE t (a INTEGER) STRICT");
        const base::Tallies& tallies = base::ProcessTallies();
        auto syncs = tallies.syncs.load(), bytes = tallies.log_bytes.load(),
             commits = tallies.commits.load(), statements = tallies.statements.load();
        for (int i = 0; i < 10; ++i) {
            Transaction transaction(writer);
            writer.Cached("INSERT INTO t VALUES (?)").Run(i);
            transaction.Commit();
        }
        EXPECT_EQ(tallies.syncs - syncs, 10U);
        EXPECT_GE(tallies.log_bytes - bytes, 10U * 4096U);
        EXPECT_EQ(tallies.commits - commits, 10U);
        EXPECT_EQ(tallies.statements - statements, 30U) << "BEGIN, INSERT, COMMIT";
        Statement count = writer.Prepare("SELECT count(*) FROM t");
        EXPECT_EQ(count.Scalar(), 10) << "and all of it is there";
    }
    std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace stint::sqlite
