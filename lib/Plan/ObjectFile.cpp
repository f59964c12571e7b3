// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Plan/ObjectFile.h"
#include "dlc/Support/Format.h"
#include "dlc/Target/Target.h"
#include "dlcrt/runtime.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/MC/MCAsmBackend.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCCodeEmitter.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCExpr.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCObjectFileInfo.h"
#include "llvm/MC/MCObjectWriter.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSectionELF.h"
#include "llvm/MC/MCStreamer.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"
#include <map>

using namespace llvm;

namespace dlc {

std::string cIdentifier(StringRef text) {
  std::string name;
  for (char c : text)
    name += isAlnum(c) ? c : '_';
  if (name.empty() || isDigit(name[0]))
    name.insert(name.begin(), '_');
  return name;
}

namespace {

/// Programs reach their data with offsets of 32 bits from their code.
constexpr uint64_t kLargest = uint64_t(1) << 30;

/// What the object needs to know of a module that dlc has just written.
struct Contents {
  ArrayRef<char> data, code;
  std::string triple;
  std::map<uint64_t, std::string> entries; // offsets in `code`: symbols
};

template <typename T> T get(ArrayRef<char> bytes, uint64_t offset) {
  T value;
  assert(offset + sizeof(T) <= bytes.size() && "the module is not as writeModule writes it");
  memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

Expected<Contents> readContents(ArrayRef<char> module, StringRef name) {
  auto header = get<dlcrt_file_header>(module, 0);
  ArrayRef<char> section[DLCRT_SECTION_DEBUG + 1];
  Contents contents;
  uint64_t dataBytes = 0;
  for (uint32_t i = 0; i < header.section_count; ++i) {
    auto entry = get<dlcrt_section>(module, sizeof(header) + i * sizeof(dlcrt_section));
    section[entry.kind] = module.slice(entry.offset, entry.bytes);
    if (entry.kind != DLCRT_SECTION_CODE)
      dataBytes = std::max(dataBytes, entry.offset + entry.bytes);
  }
  contents.data = module.take_front(dataBytes);
  contents.code = section[DLCRT_SECTION_CODE];

  ArrayRef<char> variants = section[DLCRT_SECTION_VARIANTS];
  auto counts = get<dlcrt_variants_header>(variants, 0);
  uint64_t kernels = sizeof(counts) + counts.variant_count * sizeof(dlcrt_variant_desc);
  auto string = [&](uint32_t offset) { return StringRef(section[DLCRT_SECTION_STRINGS].data() + offset); };
  StringRef first;
  StringSet<> used;
  for (uint32_t i = 0; i < counts.variant_count; ++i) {
    auto variant = get<dlcrt_variant_desc>(variants, sizeof(counts) + i * sizeof(dlcrt_variant_desc));
    Expected<Target> target = parseTarget(string(variant.target));
    if (!target)
      return target.takeError();
    if (first.empty())
      first = string(variant.target);
    if (!contents.triple.empty() && contents.triple != target->triple)
      return makeError("an object holds code for one architecture, and {} and {} are two: make one object for each", first, target->name);
    contents.triple = target->triple;
    for (uint32_t k = 0; k < variant.kernel_count; ++k) {
      auto kernel = get<dlcrt_kernel_desc>(variants, kernels + (variant.first_kernel + k) * sizeof(dlcrt_kernel_desc));
      std::string &symbol = contents.entries[variant.code_offset + kernel.entry];
      if (!symbol.empty()) // functions of one target share its code
        continue;
      StringRef targetName(target->name);
      targetName.consume_front("cpu:");
      std::string base = fmt::format("{}_{}_{}", name, cIdentifier(targetName), cIdentifier(string(kernel.name)));
      symbol = base;
      for (unsigned n = 2; !used.insert(symbol).second; ++n)
        symbol = fmt::format("{}_{}", base, n);
    }
  }
  if (contents.triple.empty())
    return makeError("the module has no variant");
  return contents;
}

void initializeTargets() {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo(), LLVMInitializeX86TargetMC();
    LLVMInitializeAArch64TargetInfo(), LLVMInitializeAArch64TargetMC();
    return true;
  }();
  (void)initialized;
}

/// The assembler's parts for one architecture, and the object that it writes.
class Assembler {
public:
  static Expected<std::unique_ptr<Assembler>> create(StringRef tripleName, raw_pwrite_stream &os) {
    initializeTargets();
    Triple triple(tripleName);
    std::string error;
    const llvm::Target *target = TargetRegistry::lookupTarget(triple, error);
    if (!target)
      return makeError("LLVM has no assembler for {}: {}", tripleName, error);
    std::unique_ptr<Assembler> made(new Assembler);
    Assembler &a = *made;
    a.registers.reset(target->createMCRegInfo(triple));
    a.info.reset(target->createMCAsmInfo(*a.registers, triple, a.options));
    a.instructions.reset(target->createMCInstrInfo());
    a.subtarget.reset(target->createMCSubtargetInfo(triple, "", ""));
    a.context = std::make_unique<MCContext>(triple, a.info.get(), a.registers.get(), a.subtarget.get(), nullptr, &a.options);
    a.objectInfo.reset(target->createMCObjectFileInfo(*a.context, /*PIC=*/true));
    a.context->setObjectFileInfo(a.objectInfo.get());
    std::unique_ptr<MCAsmBackend> backend(target->createMCAsmBackend(*a.subtarget, *a.registers, a.options));
    std::unique_ptr<MCObjectWriter> writer = backend->createObjectWriter(os);
    std::unique_ptr<MCCodeEmitter> emitter(target->createMCCodeEmitter(*a.instructions, *a.context));
    a.streamer.reset(target->createMCObjectStreamer(triple, *a.context, std::move(backend), std::move(writer), std::move(emitter), *a.subtarget));
    a.streamer->initSections(/*NoExecStack=*/false, *a.subtarget); // .note.GNU-stack is written below
    return made;
  }

  void begin(const Twine &section, unsigned flags, uint64_t alignment) {
    MCSectionELF *elf = context->getELFSection(section, ELF::SHT_PROGBITS, flags);
    elf->ensureMinAlignment(Align(alignment));
    streamer->switchSection(elf);
  }
  MCSymbol *label(MCSymbol *symbol) {
    streamer->emitLabel(symbol);
    return symbol;
  }
  MCSymbol *label(const Twine &name) { return label(context->getOrCreateSymbol(name)); }
  MCSymbol *temporary() { return label(context->createTempSymbol()); }
  void size(MCSymbol *symbol, uint64_t bytes) { streamer->emitELFSize(symbol, MCConstantExpr::create(bytes, *context)); }
  void address(MCSymbol *symbol) {
    if (symbol)
      streamer->emitValue(MCSymbolRefExpr::create(symbol, *context), 8);
    else
      streamer->emitInt64(0);
  }
  void bytes(ArrayRef<char> data) { streamer->emitBytes(StringRef(data.data(), data.size())); }

  std::unique_ptr<MCStreamer> streamer;

private:
  Assembler() = default;

  MCTargetOptions options;
  std::unique_ptr<MCRegisterInfo> registers;
  std::unique_ptr<MCAsmInfo> info;
  std::unique_ptr<MCInstrInfo> instructions;
  std::unique_ptr<MCSubtargetInfo> subtarget;
  std::unique_ptr<MCContext> context;
  std::unique_ptr<MCObjectFileInfo> objectInfo;
};

} // namespace

Expected<SmallVector<char, 0>> writeObject(ArrayRef<char> module, StringRef name) {
  Expected<Contents> contents = readContents(module, name);
  if (!contents)
    return contents.takeError();
  if (module.size() > kLargest)
    return makeError("the module has {} MiB, and an object takes no more than {}: keep it in a file of its own (-o FILE.dlcm)", module.size() >> 20,
                     kLargest >> 20);
  SmallVector<char, 0> object;
  raw_svector_ostream os(object);
  Expected<std::unique_ptr<Assembler>> created = Assembler::create(contents->triple, os);
  if (!created)
    return created.takeError();
  Assembler &a = **created;

  a.begin(".rodata." + name, ELF::SHF_ALLOC, DLCRT_STATIC_ALIGNMENT);
  MCSymbol *data = a.temporary();
  a.bytes(contents->data);
  MCSymbol *text = a.temporary();
  a.bytes(ArrayRef(name.data(), name.size()));
  a.bytes(ArrayRef("", 1));

  MCSymbol *code = nullptr;
  if (!contents->code.empty()) {
    a.begin(".text." + name, ELF::SHF_ALLOC | ELF::SHF_EXECINSTR, DLCRT_STATIC_ALIGNMENT);
    code = a.temporary();
    uint64_t done = 0;
    for (auto it = contents->entries.begin(); it != contents->entries.end(); ++it) {
      a.bytes(contents->code.slice(done, it->first - done));
      MCSymbol *kernel = a.label(it->second);
      a.streamer->emitSymbolAttribute(kernel, MCSA_ELF_TypeFunction);
      done = it->first;
    }
    a.bytes(contents->code.drop_front(done));
  }

  a.begin(".data.rel.ro." + name, ELF::SHF_ALLOC | ELF::SHF_WRITE, alignof(dlcrt_static_module));
  MCSymbol *descriptor = a.label(name + "_module");
  a.streamer->emitSymbolAttribute(descriptor, MCSA_Global);
  a.streamer->emitSymbolAttribute(descriptor, MCSA_ELF_TypeObject);
  a.size(descriptor, sizeof(dlcrt_static_module));
  static_assert(sizeof(dlcrt_static_module) == 48, "the fields below are all that it has");
  a.streamer->emitInt32(sizeof(dlcrt_static_module));
  a.streamer->emitInt32(0);
  a.address(text);
  a.address(data);
  a.streamer->emitInt64(contents->data.size());
  a.address(code);
  a.streamer->emitInt64(contents->code.size());
  a.begin(".note.GNU-stack", 0, 1); // no code here needs an executable stack
  a.streamer->finish();
  return object;
}

Expected<SmallVector<char, 0>> writeArchive(ArrayRef<char> object, StringRef memberName) {
  NewArchiveMember member(MemoryBufferRef(StringRef(object.data(), object.size()), memberName));
  SmallVector<char, 0> archive;
  raw_svector_ostream os(archive);
  if (Error error = writeArchiveToStream(os, member, SymtabWritingMode::NormalSymtab, object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false))
    return error;
  return archive;
}

} // namespace dlc
