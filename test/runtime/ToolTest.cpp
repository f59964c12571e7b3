/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// What is built on the C API: the program dlcrt-run and the Python binding.
#include "TestModel.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace dlcrt;
using namespace dlcrt::test;
namespace fs = std::filesystem;

namespace {

/// One input and one output of each element type in `dtypes`, [n] each: y = x.
ModuleBuilder identityModule(const std::vector<int32_t> &dtypes) {
  ModuleBuilder m;
  uint32_t f = m.addFunction("main"), n = m.addSymbol(f, "n", 2, 1000, 2);
  for (int32_t dtype : dtypes) {
    std::string name = dlcrt_dtype_name(dtype);
    m.addInput(f, "x/" + name, dtype, {n});
    m.addOutput(f, "y_" + name, dtype, {n});
  }
  PlanBuilder &p = m.addVariant(f, "cpu:plain").plan;
  uint32_t count = p.exprs.symbol(0);
  for (uint32_t i = 0; i < dtypes.size(); ++i) {
    uint32_t bits = p.exprs.mul(count, p.exprs.constant(dlcrt_dtype_bits(dtypes[i])));
    uint32_t bytes = p.exprs.ceilDiv(bits, p.exprs.constant(8));
    p.copy(p.output(i, bytes, {count}), p.input(i), bytes);
  }
  p.ret();
  return m;
}

std::vector<int32_t> numericDtypes() {
  std::vector<int32_t> dtypes;
  for (int32_t dtype = 1; dtype <= 26; ++dtype)
    if (dtype != DLCRT_DTYPE_STRING)
      dtypes.push_back(dtype);
  return dtypes;
}

struct ToolTest : testing::Test {
  fs::path folder = fs::path(testing::TempDir()) / ("dlcrt-tool-" + std::to_string(getpid()));
  std::string output; // of the last command, both streams

  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }

  std::string write(const std::string &name, const ModuleBuilder &builder) {
    std::string path = folder / name;
    Bytes bytes = builder.build();
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<char *>(bytes.data()), std::streamsize(bytes.size()));
    return path;
  }
  /// The exit status.
  int shell(const std::string &command) {
    std::string log = folder / "log";
    int status = std::system((command + " > '" + log + "' 2>&1").c_str());
    std::ifstream file(log);
    output.assign(std::istreambuf_iterator<char>(file), {});
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int tool(const std::string &arguments) { return shell(DLCRT_RUN " " + arguments); }
  std::string read(const fs::path &path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
};

} // namespace

TEST_F(ToolTest, WrongCommandLines) {
  EXPECT_EQ(tool(""), 2);
  EXPECT_EQ(output, "error: no module given\n(dlcrt-run --help says what there is)\n");
  EXPECT_EQ(tool("a b"), 2);
  EXPECT_EQ(tool("a --frobnicate"), 2);
  EXPECT_EQ(output, "error: unknown option '--frobnicate'\n(dlcrt-run --help says what there is)\n");
  EXPECT_EQ(tool("a --threads"), 2);
  EXPECT_EQ(tool("a --threads=many"), 2);
  EXPECT_EQ(output, "error: 'many' is no value for '--threads'\n(dlcrt-run --help says what there is)\n");
  EXPECT_EQ(tool("a --repeat 0"), 2);
  EXPECT_EQ(tool("--help"), 0);
  EXPECT_EQ(output.compare(0, 6, "usage:"), 0);
  EXPECT_EQ(tool("--version"), 0);
  EXPECT_EQ(output, "dlcrt-run 0.1.0\n");
}

TEST_F(ToolTest, Describes) {
  std::string path = write("m.dlcm", identityModule({DLCRT_DTYPE_FLOAT32}));
  EXPECT_EQ(tool(path), 0);
  EXPECT_NE(output.find("function main\n  input x/f32: f32[n]\n  output y_f32: f32[n]\n  dimension n: 2 to 1000, a "
                        "multiple of 2\n  variant cpu:plain\n"),
            std::string::npos)
      << output;
  EXPECT_EQ(tool("/nowhere.dlcm"), 1);
  EXPECT_EQ(output, "error: /nowhere.dlcm: cannot open: No such file or directory\n");
  EXPECT_EQ(tool(path + " --target cpu:other"), 1);
  EXPECT_EQ(output, "error: " + path +
                        ": function 'main' has no variant for target 'cpu:other'; there are: "
                        "'cpu:plain'\n");
}

TEST_F(ToolTest, RandomInputsThroughFiles) {
  std::string path = write("m.dlcm", identityModule(numericDtypes())), out = folder / "out", in = folder / "in",
              again = folder / "again";
  ASSERT_EQ(tool(path + " --random 7 --dim n=6 --threads 2 --repeat 3 --outputs " + out), 0) << output;
  EXPECT_NE(output.find("ran on cpu:plain with 2 threads"), std::string::npos) << output;
  EXPECT_NE(output.find("3 runs: min"), std::string::npos) << output;
  // The results become inputs: what was written is read and computed as it was.
  fs::create_directories(in);
  for (int32_t dtype : numericDtypes()) {
    std::string name = dlcrt_dtype_name(dtype);
    ASSERT_TRUE(fs::exists(out + "/y_" + name + ".npy")) << name;
    fs::rename(out + "/y_" + name + ".npy", in + "/x_" + name + ".npy"); // '/' in names becomes '_'
  }
  ASSERT_EQ(tool(path + " --quiet --inputs " + in + " --outputs " + again), 0) << output;
  EXPECT_EQ(output, "");
  for (int32_t dtype : numericDtypes()) {
    std::string name = dlcrt_dtype_name(dtype);
    EXPECT_EQ(read(in + "/x_" + name + ".npy"), read(again + "/y_" + name + ".npy")) << name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(again), {}), long(numericDtypes().size())); // no temporary files
  // Seeds matter, and nothing else does.
  ASSERT_EQ(tool(path + " --quiet --random 7 --dim n=6 --outputs " + out), 0);
  EXPECT_EQ(read(out + "/y_f32.npy"), read(again + "/y_f32.npy"));
  ASSERT_EQ(tool(path + " --quiet --random 8 --dim n=6 --outputs " + out), 0);
  EXPECT_NE(read(out + "/y_f32.npy"), read(again + "/y_f32.npy"));
}

TEST_F(ToolTest, BadInputFiles) {
  std::string path = write("m.dlcm", identityModule({DLCRT_DTYPE_FLOAT32})), in = folder / "in";
  auto npy = [&](const std::string &header, const std::string &data) {
    fs::create_directories(in);
    std::string text = std::string("\x93NUMPY\x01\x00", 8) + char(header.size()) + '\0' + header + data;
    std::ofstream(in + "/x_f32.npy", std::ios::binary) << text;
    return tool(path + " --quiet --inputs " + in);
  };
  std::string file = "error: " + in + "/x_f32.npy: ";
  EXPECT_EQ(tool(path + " --inputs " + in + " --quiet"), 1);
  EXPECT_EQ(output, file + "no such file, and input 'x/f32' needs one\n");
  EXPECT_EQ(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "12345678"), 0) << output;
  EXPECT_EQ(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234567"), 1);
  EXPECT_EQ(output, file + "it should hold 2 elements of 4 bytes, but holds 7 bytes\n");
  EXPECT_EQ(npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", "1234567812345678"), 1);
  EXPECT_EQ(output, file + "its elements are '<i8', but f32 is needed (in NumPy: '<f4')\n");
  EXPECT_EQ(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "12345678"), 1);
  EXPECT_EQ(npy("{'descr': '<f4', 'fortran_order': False}", "12345678"), 1);
  EXPECT_EQ(output, file + "a .npy file whose header is damaged\n");
  EXPECT_EQ(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }", "12345678"), 1);
  EXPECT_EQ(output, "error: input 'x/f32': expected rank 1, got 2\n");
  EXPECT_EQ(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234"), 1);
  EXPECT_EQ(output, "error: input 'x/f32': 'n' is 1, but has to be between 2 and 1000\n");
  std::ofstream(in + "/x_f32.npy") << "hello";
  EXPECT_EQ(tool(path + " --quiet --inputs " + in), 1);
  EXPECT_EQ(output, file + "not a .npy file\n");
  EXPECT_EQ(tool(path + " --quiet --random 1 --dim m=3"), 1);
  EXPECT_EQ(output, "error: --dim m: function 'main' has no dimension of this name\n");
  EXPECT_EQ(tool(path + " --quiet --random 1 --dim n=4 --dim n=4"), 0) << output;
  EXPECT_EQ(tool(path + " --quiet --random 1 --dim n=4 --dim n=6"), 2);
  EXPECT_EQ(output.substr(0, output.find('\n')), "error: --dim n: it is given twice, with different values");
  EXPECT_EQ(tool(path + " --outputs x"), 2);
}

TEST_F(ToolTest, State) {
  std::string path = write("log.dlcm", logModule());
  EXPECT_EQ(
      tool(path + " --function twice --random 1 --dim rows=2 --dim n=3 --state-length 2 --state-capacity 8 --repeat 3"),
      0)
      << output;
  EXPECT_NE(output.find("function main (--function main tells more)\n"), std::string::npos) << output;
  EXPECT_NE(output.find("  state log: i64[rows, capacity]\n"), std::string::npos) << output;
  // Each run finds it as long as was said, and else one behind the other.
  EXPECT_EQ(tool(path + " --quiet --function twice --random 1 --dim n=3 --state-capacity 13 --repeat 2"), 0) << output;
  EXPECT_EQ(tool(path + " --quiet --function twice --random 1 --dim n=3 --state-capacity 11 --repeat 2"), 1);
  EXPECT_EQ(output, "error: state 'log' is full: 12 of 11; create the state with a larger capacity, or let it grow\n");
  EXPECT_EQ(tool(path + " --quiet --function main --random 1 --dim length=3"), 1);
  EXPECT_EQ(output, "error: --dim length: the state says it: --state-length or --state-capacity\n");
  EXPECT_EQ(tool(path + " --quiet --function none --random 1 --state-capacity 3"), 1);
  EXPECT_EQ(output, "error: --state-capacity and --state-length: function 'none' works on no state\n");
}

TEST_F(ToolTest, Python) {
#ifdef DLCRT_TEST_PYTHON
  write("add.dlcm", addModule());
  write("types.dlcm", identityModule(numericDtypes()));
  write("log.dlcm", logModule());
  int status = shell("PYTHONPATH='" DLCRT_TEST_PYTHON_PATH "' DLCRT_LIBRARY='" DLCRT_TEST_LIBRARY
                     "' '" DLCRT_TEST_PYTHON "' -B '" DLCRT_TEST_ROOT "/test/runtime/binding.py' '" +
                     folder.string() + "'");
  if (status == 77)
    GTEST_SKIP() << output;
  EXPECT_EQ(status, 0) << output;
#else
  GTEST_SKIP() << "this library, with sanitizers or for another machine, cannot be loaded into Python";
#endif
}
