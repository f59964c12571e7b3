/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Hash.h"

#include <string.h>

static constexpr uint64_t prime1 = 0x9E3779B185EBCA87u, prime2 = 0xC2B2AE3D27D4EB4Fu, prime3 = 0x165667B19E3779F9u,
                          prime4 = 0x85EBCA77C2B2AE63u, prime5 = 0x27D4EB2F165667C5u;

static uint64_t rotateLeft(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

template <typename T> static T load(const uint8_t *p) {
  T value;
  memcpy(&value, p, sizeof(T)); // the format and all hosts are little-endian
  return value;
}

static uint64_t round(uint64_t lane, uint64_t input) { return rotateLeft(lane + input * prime2, 31) * prime1; }

static uint64_t mergeLane(uint64_t hash, uint64_t lane) { return (hash ^ round(0, lane)) * prime1 + prime4; }

uint64_t dlcrt::impl::xxh64(const void *data, uint64_t bytes, uint64_t seed) {
  const uint8_t *p = static_cast<const uint8_t *>(data);
  uint64_t left = bytes, hash;
  if (left >= 32) {
    uint64_t lane[4] = {seed + prime1 + prime2, seed + prime2, seed, seed - prime1};
    for (; left >= 32; left -= 32, p += 32)
      for (int i = 0; i < 4; ++i)
        lane[i] = round(lane[i], load<uint64_t>(p + 8 * i));
    hash = rotateLeft(lane[0], 1) + rotateLeft(lane[1], 7) + rotateLeft(lane[2], 12) + rotateLeft(lane[3], 18);
    for (uint64_t l : lane)
      hash = mergeLane(hash, l);
  } else {
    hash = seed + prime5;
  }
  hash += bytes;
  for (; left >= 8; left -= 8, p += 8)
    hash = rotateLeft(hash ^ round(0, load<uint64_t>(p)), 27) * prime1 + prime4;
  for (; left >= 4; left -= 4, p += 4)
    hash = rotateLeft(hash ^ load<uint32_t>(p) * prime1, 23) * prime2 + prime3;
  for (; left; --left, ++p)
    hash = rotateLeft(hash ^ *p * prime5, 11) * prime1;
  hash = (hash ^ hash >> 33) * prime2;
  hash = (hash ^ hash >> 29) * prime3;
  return hash ^ hash >> 32;
}
