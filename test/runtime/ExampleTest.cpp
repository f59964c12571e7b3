/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// The example of docs/runtime-api.md works, and the page shows it as it is.
#include "TestModel.h"

#include <fstream>
#include <unistd.h>

using namespace dlcrt::test;

extern "C" int add(const char *path, float *a, float *b, float *y, int64_t n);

TEST(Example, Runs) {
  std::string path = testing::TempDir() + "/example-" + std::to_string(getpid()) + ".dlcm";
  Bytes bytes = addModule().build();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<char *>(bytes.data()), std::streamsize(bytes.size()));
  std::vector<float> a = iotaFloats(9), b = iotaFloats(9, 1), y(9);
  EXPECT_EQ(add(path.c_str(), a.data(), b.data(), y.data(), 9), 0);
  EXPECT_EQ(y[8], 17);
  testing::internal::CaptureStderr();
  EXPECT_NE(add("/nowhere", a.data(), b.data(), y.data(), 9), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "/nowhere: cannot open: No such file or directory\n");
  unlink(path.c_str());
}

TEST(Example, IsTheOneOfThePage) {
  auto read = [](const std::string &path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  std::string code = read(DLCRT_TEST_ROOT "/test/runtime/Example.c"),
              page = read(DLCRT_TEST_ROOT "/docs/runtime-api.md");
  size_t begin = code.find("/* begin */\n") + 12, end = code.find("/* end */");
  EXPECT_NE(page.find("```c\n" + code.substr(begin, end - begin) + "```"), std::string::npos);
}
