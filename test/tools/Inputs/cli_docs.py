# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cli_docs.py [--update] DLC docs/cli.md: the part of the page behind its marker is what `dlc VERB --help` prints."""
import subprocess
import sys
from pathlib import Path

update = sys.argv[1] == "--update"
dlc, page = sys.argv[1 + update :]
marker = "<!-- Generated:"


def ask(*args):
    return subprocess.run([dlc, *args], capture_output=True, text=True, check=True).stdout


verbs = [line.split()[0] for line in ask("help").splitlines() if line.startswith("  ")]
wanted = ""
for verb in verbs:
    wanted += f"\n### dlc {verb}\n\n```text\n{ask(verb, '--help').rstrip()}\n```\n"
text = Path(page).read_text()
head, rest = text[: text.index(marker)], text[text.index(marker) :]
line, _, now = rest.partition("\n")
if update:
    Path(page).write_text(head + line + "\n" + wanted)
elif now != wanted:
    sys.exit(f"{page} is not what dlc says of itself; run: python test/tools/Inputs/cli_docs.py --update DLC docs/cli.md")
