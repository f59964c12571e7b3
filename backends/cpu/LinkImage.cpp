// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Objects -> LLD -> an image that can be mapped anywhere. LLD reads and writes files by name; here those are files in memory and a
// pipe, so that nothing is left behind however this ends.

#include "EmitObject.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/DataExtractor.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#if DLC_HAVE_LIBLLD
#include "lld/Common/Driver.h"
LLD_HAS_DRIVER(elf)
#endif

using namespace llvm;
using namespace llvm::object;

namespace dlc::cpu {
namespace {

// Other processes that the application starts meanwhile must not inherit these; a linker of ours that runs as one must.
constexpr bool kInherit = !DLC_HAVE_LIBLLD;

/// A file without a name.
class MemoryFile {
public:
  MemoryFile() : fd(memfd_create("dlc", kInherit ? 0 : MFD_CLOEXEC)) {}
  MemoryFile(MemoryFile &&other) : fd(std::exchange(other.fd, -1)) {}
  ~MemoryFile() {
    if (fd >= 0)
      close(fd);
  }
  bool isOpen() const { return fd >= 0; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd); }

  Error write(StringRef bytes) {
    while (!bytes.empty()) {
      ssize_t written = ::write(fd, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR)
        continue;
      if (written <= 0)
        return createStringError("cannot write to a file in memory: " + sys::StrError());
      bytes = bytes.drop_front(written);
    }
    return Error::success();
  }
  std::string read() const {
    auto buffer = MemoryBuffer::getOpenFile(fd, "memory", /*FileSize=*/-1, /*RequiresNullTerminator=*/false, /*IsVolatile=*/true);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }

private:
  int fd;
};

/// What is written to `path()` comes back from `finish`. (LLD would replace an ordinary file, even one in memory, by a new one.)
class OutputPipe {
public:
  OutputPipe() {
    if (pipe2(ends, kInherit ? 0 : O_CLOEXEC) != 0)
      ends[0] = ends[1] = -1;
    else
      reader = std::thread([this] {
        char buffer[1 << 16];
        for (ssize_t n; (n = ::read(ends[0], buffer, sizeof(buffer))) > 0 || (n < 0 && errno == EINTR);)
          if (n > 0)
            bytes.insert(bytes.end(), buffer, buffer + n);
      });
  }
  ~OutputPipe() { (void)finish(); }
  bool isOpen() const { return ends[0] >= 0; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(ends[1]); }

  StringRef finish() {
    if (reader.joinable()) {
      close(ends[1]); // the last writer: the reader sees the end
      reader.join();
      close(ends[0]);
    }
    return StringRef(bytes.data(), bytes.size());
  }

private:
  int ends[2];
  std::vector<char> bytes;
  std::thread reader;
};

/// Runs the linker. Nothing is printed, the process goes on whatever happens.
Error runLinker(ArrayRef<std::string> arguments) {
#if DLC_HAVE_LIBLLD
  // LLD keeps its state in globals: one link at a time, and none after it crashed. It also resets all options of LLVM's command
  // line library; a program that uses that has to have read its own before.
  static std::mutex mutex;
  static bool usable = true;
  std::lock_guard<std::mutex> lock(mutex);
  if (!usable)
    return createStringError("the linker crashed before and cannot run again in this process");
  SmallVector<const char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  std::string out, err;
  raw_string_ostream outStream(out), errStream(err);
  lld::Result result = lld::lldMain(argv, outStream, errStream, {{lld::Gnu, &lld::elf::link}});
  usable = result.canRunAgain;
  if (result.retCode != 0)
    return createStringError("the linker failed: " + StringRef(err).trim());
#else
  auto program = sys::findProgramByName("ld.lld", {"/usr/lib/llvm-22/bin"});
  if (!program)
    program = sys::findProgramByName("ld.lld");
  if (!program)
    return createStringError("the linker ld.lld is not installed");
  MemoryFile messages;
  SmallVector<StringRef> argv(arguments.begin(), arguments.end());
  std::string path = messages.path(), failure;
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(path), StringRef(path)};
  if (sys::ExecuteAndWait(*program, argv, std::nullopt, redirects, 0, 0, &failure) != 0) {
    return createStringError("the linker failed: " + failure + messages.read());
  }
#endif
  return Error::success();
}

StringRef kernelOfSection(StringRef section) {
  section.consume_front(".rela");
  section.consume_front(".text.");
  section.consume_back(".body");
  return section;
}

/// Names that code uses and nobody defines: an error that says which kernel does.
Error checkUndefined(ArrayRef<ELF64LEObjectFile> objects) {
  StringSet<> defined;
  for (const ELF64LEObjectFile &object : objects)
    for (const ELFSymbolRef &symbol : object.symbols())
      if (auto flags = symbol.getFlags(); flags && !(*flags & SymbolRef::SF_Undefined) && (*flags & SymbolRef::SF_Global))
        defined.insert(cantFail(symbol.getName()));
      else if (!flags)
        consumeError(flags.takeError());
  for (const ELF64LEObjectFile &object : objects)
    for (const SectionRef &section : object.sections())
      for (const RelocationRef &relocation : section.relocations()) {
        auto symbol = relocation.getSymbol();
        if (symbol == object.symbol_end())
          continue;
        auto flags = symbol->getFlags();
        if (!flags)
          return flags.takeError();
        auto name = symbol->getName();
        if (!name)
          return name.takeError();
        if ((*flags & SymbolRef::SF_Undefined) && !name->empty() && !defined.contains(*name))
          return createStringError("kernel '" + kernelOfSection(cantFail(section.getName())) + "' calls '" + *name +
                                   "', which is neither in the kernel support nor an import of the runtime");
      }
  return Error::success();
}

/// Frame bytes of each function, from the sections .stack_sizes.
Error readStackSizes(const ELF64LEObjectFile &object, StringMap<uint64_t> &sizes) {
  for (const ELFSectionRef section : object.sections()) {
    if (cantFail(section.getName()) != ".stack_sizes")
      continue;
    auto contents = section.getContents();
    if (!contents)
      return contents.takeError();
    // With a section for each function, the section that this one belongs to says which function it is.
    auto header = object.getELFFile().getSection(section.getIndex());
    if (!header)
      return header.takeError();
    auto text = object.getELFFile().getSection((*header)->sh_link);
    if (!text)
      return text.takeError();
    auto name = object.getELFFile().getSectionName(**text);
    if (!name)
      return name.takeError();
    DataExtractor data(*contents, /*IsLittleEndian=*/true, 8);
    uint64_t offset = 8;
    uint64_t bytes = data.getULEB128(&offset);
    StringRef function = *name;
    function.consume_front(".text.");
    sizes[function] = bytes;
  }
  return Error::success();
}

Error unexpected(const Twine &what) { return createStringError("the linked image is not as expected: " + what); }

Error readImage(StringRef file, ArrayRef<StringRef> symbols, CodeImage &image) {
  auto object = ELF64LEObjectFile::create(MemoryBufferRef(file, "image"));
  if (!object)
    return object.takeError();
  const auto &elf = object->getELFFile();
  auto headers = elf.program_headers();
  if (!headers)
    return headers.takeError();
  const ELF64LE::Phdr *load = nullptr;
  for (const auto &header : *headers) {
    if (header.p_type != ELF::PT_LOAD)
      continue;
    if (header.p_flags & ELF::PF_W)
      return unexpected("it has writable data");
    if (load)
      return unexpected("it has several segments");
    load = &header;
  }
  if (!load || load->p_vaddr != 0 || load->p_offset != 0 || load->p_memsz != load->p_filesz || load->p_filesz > file.size())
    return unexpected("its code is not one segment from its start");
  for (const SectionRef &section : object->sections())
    if (auto type = ELFSectionRef(section).getType(); (type == ELF::SHT_RELA || type == ELF::SHT_REL) && section.getSize())
      return unexpected("it has addresses that are known only when it is loaded");
  image.bytes.assign(file.begin(), file.begin() + load->p_filesz);

  StringSet<> wanted;
  for (StringRef symbol : symbols)
    wanted.insert(symbol);
  for (const ELFSymbolRef symbol : object->symbols()) {
    auto name = symbol.getName();
    if (!name)
      return name.takeError();
    auto address = symbol.getAddress();
    if (!address)
      return address.takeError();
    if (wanted.contains(*name))
      image.entries[*name] = *address;
  }
  for (StringRef symbol : symbols)
    if (!image.entries.count(symbol))
      return unexpected("kernel '" + symbol + "' is missing");
  return Error::success();
}

} // namespace

Expected<CodeImage> linkImage(ArrayRef<StringRef> objects, ArrayRef<StringRef> symbols, const dlc::Target &target) {
  CodeImage image;
  if (symbols.empty())
    return image;
  SmallVector<StringRef> all(objects);
  all.push_back(supportObject(target.arch));

  std::vector<ELF64LEObjectFile> files;
  for (StringRef bytes : all) {
    auto file = ELF64LEObjectFile::create(MemoryBufferRef(bytes, "object"));
    if (!file)
      return file.takeError();
    if (Error error = readStackSizes(*file, image.stack))
      return error;
    files.push_back(std::move(*file));
  }
  if (Error error = checkUndefined(files))
    return error;

  // One segment, readable and executable, that starts with the file; --gc-sections drops the support functions nobody calls.
  std::vector<std::string> arguments{"ld.lld", "-m", target.arch == TargetArch::X86_64 ? "elf_x86_64" : "aarch64linux",
                                     "-pie", "--no-dynamic-linker", "--entry=0", "--gc-sections", "--no-rosegment", "--build-id=none",
                                     "--hash-style=gnu", "--threads=1", "--no-mmap-output-file", "-z", "norelro", "-z", "rodynamic",
                                     "-z", "nognustack", "-z", "max-page-size=4096", "-z", "text"};
  for (StringRef symbol : symbols)
    arguments.push_back(("--undefined=" + symbol).str());
  std::vector<MemoryFile> inputs(all.size());
  for (auto [input, bytes] : llvm::zip(inputs, all)) {
    if (!input.isOpen())
      return createStringError("cannot make a file in memory: " + sys::StrError());
    if (Error error = input.write(bytes))
      return error;
    arguments.push_back(input.path());
  }
  OutputPipe output;
  if (!output.isOpen())
    return createStringError("cannot make a pipe: " + sys::StrError());
  arguments.push_back("-o");
  arguments.push_back(output.path());
  if (Error error = runLinker(arguments))
    return error;
  if (Error error = readImage(output.finish(), symbols, image))
    return error;
  return image;
}

} // namespace dlc::cpu
