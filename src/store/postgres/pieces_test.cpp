#include "store/postgres/pieces.h"

#include <gmock/gmock.h>

#include <cstdint>

namespace stint::store::pg {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kMiB = 1 << 20;
auto Itself = [](std::size_t size) { return size; };

TEST(Pieces, AThousandSmallOnesAreOne) {
    EXPECT_THAT(Pieces(std::vector<std::size_t>(1000, 100), Itself), ElementsAre(Piece{0, 1000}));
    EXPECT_THAT(Pieces(std::vector<std::size_t>{}, Itself), IsEmpty());
}

TEST(Pieces, NoneIsLargerThanAStatementMayBe) {
    EXPECT_THAT(
        Pieces(std::vector<std::size_t>(40, kMiB), Itself),
        ElementsAre(Piece{0, 15}, Piece{15, 15}, Piece{30, 10})
    );
}

TEST(Pieces, OneThatIsTooLargeByItselfGoesAlone) {
    std::vector<std::size_t> sizes = {1, 100 * kMiB, 1};
    EXPECT_THAT(Pieces(sizes, Itself), ElementsAre(Piece{0, 1}, Piece{1, 1}, Piece{2, 1}));
}

}  // namespace
}  // namespace stint::store::pg
