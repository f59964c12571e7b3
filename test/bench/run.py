#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the speed of dlc with ONNX Runtime and OpenVINO: what `./dev bench` runs. Never a gate: it says what it sees.

    test/bench/run.py --build build/release [--filter REGEX] [--threads N] [--rounds N] [--seconds S] [--json FILE]
                      [--peers onnxruntime,openvino] [--versus BUILD] [--cores 0,1] [--list]

Each contender has a process of its own, all pinned to the same cores, and only one works at a time. A round is a turn for everybody: one
call that is not counted, then calls for --seconds, each timed inside the process. The order changes from round to round. A contender that
offers several ways to be called takes the one that was quickest here. The peak is a contender too: a loop of fused multiply-adds on registers.

`peer's / dlc's time` is the least time of each (more than 1: dlc is faster), with the interval that holds it with 95 % probability: a
bootstrap over the rounds. Everybody computes in float32, and results are compared before and after the timing; who is wrong makes the run
fail. dlc's module keeps the dims that the model leaves open; OpenVINO is told them.

Of dlc it is also said how long loading takes (opening the module and creating the instance, with the file in memory) and the first run.

--threads 2 or more adds dlc and the peak on one thread, and says how both scale.
--versus adds the dlc of another build folder, to compare two of them in one run.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import cases
import contenders
import driver
import estimate
from contenders import Contender, Failed

PEERS = {"onnxruntime": contenders.OnnxRuntime, "openvino": contenders.OpenVino}
REQUIREMENTS = pathlib.Path(__file__).with_name("requirements.txt")
PAUSE = 0.01  # seconds between turns: threads of the one before may still be spinning
PEAK, PEAK_ALONE, DLC_ALONE = "peak", "peak (1 thread)", "dlc (1 thread)"


def install_openvino():
    """Into a folder of its own, once. Its dependencies are left out: numpy is here, and openvino-telemetry is not wanted."""
    folder = contenders.PEERS_FOLDER
    folder.parent.mkdir(exist_ok=True)
    key = hashlib.sha256(f"{REQUIREMENTS.read_text()} {platform.python_version()}".encode()).hexdigest()
    with (folder.parent / "bench.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder / "stamp"
        if stamp.exists() and stamp.read_text() == key:
            return
        print("installing OpenVINO (once)", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            made = pathlib.Path(temporary) / "made"
            command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target", made, "-r", REQUIREMENTS]
            if subprocess.run(command, stdout=sys.stderr).returncode:
                sys.exit("error: pip could not install OpenVINO; without it: --peers onnxruntime")
            (made / "stamp").write_text(key)
            shutil.rmtree(folder, ignore_errors=True)
            made.replace(folder)


def processor():
    """Its name, as /proc/cpuinfo has it."""
    with open("/proc/cpuinfo") as info:
        fields = dict(re.findall(r"^(model name|vendor_id|cpu family|model|CPU implementer|CPU part)\s*: (.*)$", info.read(), re.M))
    if "model name" in fields:
        numbers = " ".join(f"{name} {fields[key]}" for name, key in (("family", "cpu family"), ("model", "model")) if key in fields)
        return f"{fields['model name'].strip()} ({fields.get('vendor_id', '?')} {numbers})"
    return f"{platform.machine()} {fields.get('CPU implementer', '?')} {fields.get('CPU part', '?')}"


# --- one case ---------------------------------------------------------------------------------------------------------


def check_results(case, wanted, contender):
    """The results that it has now, if they are right."""
    results = contender.ask("outputs")
    if results is None or wanted is None:
        return results
    if len(results) != len(wanted):
        raise Failed(f"{contender.name}: {len(results)} results, not {len(wanted)}")
    for number, (got, want) in enumerate(zip(results, wanted)):
        if not (error := estimate.relative_error(got, want)) <= case.tolerance:
            raise Failed(f"{contender.name}: WRONG: result {number} differs by {error:.1e} of the largest number, more than {case.tolerance:.0e}")
    return results


def take_rounds(field, rounds, seconds):
    """Nanoseconds of the calls, by contender and round."""
    times = {name: [] for name in field}
    for number in range(rounds):
        for name in estimate.order_of_round(list(field), number):
            time.sleep(PAUSE)
            times[name].append(field[name].ask("turn", seconds))
    return times


def figures(times, flops):
    """Of one contender."""
    calls = [call for turn in times for call in turn]
    least = min(calls)
    result = {"calls": len(calls), "min_ms": least / 1e6, "median_ms": estimate.nearest_rank(calls, 50) / 1e6,
              "p90_ms": estimate.nearest_rank(calls, 90) / 1e6, "round_min_ms": [min(turn) / 1e6 for turn in times]}
    if flops:
        result["gflops"] = flops / least
    return result


def measure(case, field, options, folder):
    """All that is known of a case, as it goes into --json. Raises Failed."""
    inputs = case.inputs()
    model = case.model(folder)
    wanted = case.wanted(inputs)
    loaded, absent = {}, {}
    # Who says what the results must be comes first.
    for name in sorted(field, key=lambda name: name not in PEERS):
        contender = field[name]
        if wanted is None and name not in PEERS:
            raise Failed("there must be a peer that says what the results must be (--peers)")
        try:
            loaded[name] = contender.ask("load", contender.prepare(model, folder), inputs)
        except Failed as error:
            if name not in PEERS:
                raise
            absent[name] = str(error)
            continue
        results = check_results(case, wanted, contender)
        wanted = results if wanted is None else wanted
    field = {name: contender for name, contender in field.items() if name in loaded}
    times = take_rounds(field, options.rounds, options.seconds)
    for contender in field.values():
        check_results(case, wanted, contender)
    found = {name: {"way": loaded[name]["way"], **loaded[name]["start"], **figures(times[name], loaded[name]["flops"] or case.flops)} for name in field}
    peaks = {name: found.pop(name) for name in (PEAK, PEAK_ALONE) if name in found}
    for name, one in found.items():
        if "gflops" in one:
            one["peak_share"] = one["gflops"] / peaks[PEAK_ALONE if name == DLC_ALONE else PEAK]["gflops"]
    dlc = found["dlc"]["round_min_ms"]
    ratios = {}
    for name in found:
        if name not in ("dlc", DLC_ALONE):
            theirs = found[name]["round_min_ms"]
            low, high = estimate.interval(dlc, theirs)
            ratios[name] = {"ratio": estimate.ratio_of_minima(dlc, theirs), "low": low, "high": high}
    result = {"name": case.name, "flops": case.flops, "contenders": found, "absent": absent, "peaks": peaks, "ratios": ratios}
    if DLC_ALONE in found:
        ours = found[DLC_ALONE]["min_ms"] / found["dlc"]["min_ms"]
        loop = peaks[PEAK]["gflops"] / peaks[PEAK_ALONE]["gflops"]
        result["scaling"] = {"dlc": ours, "peak": loop, "share": ours / loop}
    return result


# --- what is printed --------------------------------------------------------------------------------------------------

COLUMNS = ("case", "contender", "min ms", "median ms", "GFLOP/s", "of peak", "peer's / dlc's time")


def line(cells, width):
    """A row of the table; `width` is that of the contenders' names."""
    case, contender, *numbers, ratio = cells
    return f"| {case:<21} | {contender:<{width}} | " + "".join(f"{cell:>9} | " for cell in numbers) + f"{ratio:<19} |"


def rows(result, width):
    for name, one in result["contenders"].items():
        speed = f"{one['gflops']:.1f}" if "gflops" in one else ""
        share = f"{100 * one['peak_share']:.1f} %" if "peak_share" in one else ""
        ratio = result["ratios"].get(name)
        said = f"{ratio['ratio']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]" if ratio else ""
        yield line((result["name"], name, f"{one['min_ms']:.4f}", f"{one['median_ms']:.4f}", speed, share, said), width)


def remarks(result):
    """What a case says beside its rows."""
    peaks = ", ".join(f"{name} {one['gflops']:.1f} GFLOP/s" for name, one in result["peaks"].items())
    ways = ", ".join(f"{name} {one['way']}" for name, one in result["contenders"].items() if name in PEERS)
    yield f"{result['name']}: {peaks}" + (f"; called by {ways}" if ways else "")
    for error in result["absent"].values():
        yield f"{result['name']}: not measured: {error.splitlines()[0]}"
    for name, one in result["contenders"].items():
        if "load_ms" in one:
            yield (f"{result['name']}: {name} loads in {one['load_ms']:.2f} ms and runs for the first time in {one['first_run_ms']:.2f} ms, "
                   f"{one['first_run_ms'] - one['min_ms']:+.2f} ms beside the least")
    if scaling := result.get("scaling"):
        yield (f"{result['name']}: dlc scales by {scaling['dlc']:.2f}, the loops of fused multiply-adds by {scaling['peak']:.2f}: "
               f"{100 * scaling['share']:.0f} % of that")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder")
    parser.add_argument("--versus", type=pathlib.Path, action="append", default=[], metavar="BUILD", help="dlc of this build folder too (repeatable)")
    parser.add_argument("--filter", metavar="REGEX", help="only cases whose name matches")
    parser.add_argument("--list", action="store_true", help="only name the cases")
    parser.add_argument("--threads", type=int, default=1, help="of every contender (default: 1)")
    parser.add_argument("--cores", help="which, such as 0,1 (default: the last ones that this process may use)")
    parser.add_argument("--rounds", type=int, default=15, help="(default: 15)")
    parser.add_argument("--seconds", type=float, default=0.1, help="of a contender's turn in a round (default: 0.1)")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"default: {','.join(PEERS)}; none: dlc alone")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--self-test", action="store_true", help="a tiny case without peers, and whether its figures make sense")
    options = parser.parse_args()
    options.peers = [] if options.peers == "none" or options.self_test else options.peers.split(",")
    if unknown := [name for name in options.peers if name not in PEERS]:
        parser.error(f"there is no peer {', '.join(unknown)}; there are: {', '.join(PEERS)}, none")
    options.build = options.build.resolve()
    options.versus = {f"dlc of {build}": build.resolve() for build in options.versus}
    for build in [options.build, *options.versus.values()]:
        for part in ("bin/dlc", "lib/libdlcrt.so"):
            if not (build / part).exists():
                parser.error(f"{build} has no {part}; ./dev build --preset release makes build/release")
    if options.threads < 1 or options.rounds < 1 or not options.seconds >= 0:
        parser.error("--threads and --rounds take a number from 1 up, --seconds one from 0 up")
    allowed = sorted(os.sched_getaffinity(0))
    try:
        options.cores = [int(core) for core in options.cores.split(",")] if options.cores else allowed[-options.threads:]
    except ValueError:
        parser.error(f"--cores takes numbers, such as 0,1, not '{options.cores}'")
    if not set(options.cores) <= set(allowed) or len(set(options.cores)) != options.threads:
        parser.error(f"{options.threads} thread{'s need' if options.threads > 1 else ' needs'} as many cores of those that this process may use: "
                     f"{','.join(map(str, allowed))}")
    if options.self_test:
        options.rounds, options.seconds = 4, 0.01
    return options


def start_contenders(options, folder, stack):
    """By name, in the order of the table."""
    field = {}

    def add(name, kind, cores=options.cores, **more):
        field[name] = Contender(name, kind, cores, **more)
        stack.callback(field[name].end)

    add("dlc", contenders.Dlc, prepare=contenders.compiled_by(options.build), build=options.build)
    for name, build in options.versus.items():
        add(name, contenders.Dlc, prepare=contenders.compiled_by(build), build=build)
    for name in options.peers:
        if name == "openvino":
            install_openvino()
        add(name, PEERS[name])
    peak = contenders.build_peak(folder)
    add(PEAK, contenders.Peak, library=peak)
    if options.threads > 1:
        add(DLC_ALONE, contenders.Dlc, cores=options.cores[:1], prepare=contenders.compiled_by(options.build), build=options.build)
        add(PEAK_ALONE, contenders.Peak, cores=options.cores[:1], library=peak)
    return field


def self_test(result):
    """What is nonsense in the figures of a run."""
    if not result:
        return "no figures"
    dlc = result["contenders"]["dlc"]
    if not 0 < dlc["min_ms"] <= dlc["median_ms"] <= dlc["p90_ms"] or len(dlc["round_min_ms"]) != 4 or min(dlc["round_min_ms"]) != dlc["min_ms"]:
        return f"dlc: {dlc}"
    if not (dlc["load_ms"] > 0 and dlc["first_run_ms"] > 0):
        return f"the start of dlc: {dlc}"
    if not 0 < dlc["peak_share"] < 1 or not result["peaks"][PEAK]["gflops"] > 1:
        return f"peak: {result['peaks']}, share of it {dlc['peak_share']}"
    if any(not 0 < one["low"] <= one["ratio"] <= one["high"] for one in result["ratios"].values()):
        return f"ratios: {result['ratios']}"
    return None


def main():
    options = parse_arguments()
    if driver.cannot_load(argparse.Namespace(build=options.build, json=None)):
        return 0
    chosen = [cases.TINY] if options.self_test else [case for case in cases.CASES if driver.matches(options.filter, case.name)]
    if not chosen:
        sys.exit(f"error: no case is called '{options.filter}'; --list names them")
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    results, failures = [], []
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        folder = pathlib.Path(temporary)
        try:
            field = start_contenders(options, folder, stack)
        except Failed as error:
            sys.exit(f"error: {error}")
        versions = {name: contender.version for name, contender in field.items()}
        plural = "s" if options.threads > 1 else ""
        print(f"{processor()}; {options.threads} thread{plural} on core{plural} {','.join(map(str, options.cores))}; "
              f"{options.rounds} rounds of {options.seconds} s; " + ", ".join(f"{name}: {version}" for name, version in versions.items()))
        width = max(len(name) for name in field)
        print(f"\n{line(COLUMNS, width)}\n{re.sub('[^|]', '-', line(COLUMNS, width))}", flush=True)
        said = []
        for case in chosen:
            try:
                result = measure(case, field, options, folder)
            except Failed as error:
                failures.append(f"{case.name}: {error}")
                print(line((case.name, "failed, see below", *[""] * 5), width), flush=True)
                continue
            results.append(result)
            said += remarks(result)
            print("\n".join(rows(result, width)), flush=True)
    print("\n" + "\n".join(said + [f"error: {failure}" for failure in failures]))
    if options.json:
        options.json.write_text(json.dumps({"processor": processor(), "threads": options.threads, "cores": options.cores, "rounds": options.rounds,
                                            "seconds": options.seconds, "versions": versions, "cases": results, "failures": failures}, indent=1))
    if options.self_test and not failures and (nonsense := self_test(results[0])):
        failures.append(nonsense)
        print(f"error: {nonsense}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
