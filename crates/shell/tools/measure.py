#!/usr/bin/env python3
"""Measures the engine on public collections of commands: how many are read, not analysable, allowed without asking,
and where it and `bash -n` differ on what is shell syntax.

    cargo build --release -p countersign-shell --example assess
    crates/shell/tools/measure.py gtfobins|tldr|nl2bash FOLDER [--list]

FOLDER is a checkout or a bare git directory of GTFOBins/GTFOBins.github.io, tldr-pages/tldr or TellinaTool/nl2bash.
Their content is measured here and never committed.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve()
ENGINE = HERE.parents[3] / "target"
NOT_ANALYSABLE = {"unparsable", "too_deep", "unshowable", "split_token"}


def checkout(folder, wanted):
    """The folder as it is, or what is wanted of a bare repository, unpacked."""
    if (folder / wanted).exists():
        return folder
    unpacked = pathlib.Path(tempfile.mkdtemp(prefix="measure-"))
    archive = subprocess.run(["git", "--git-dir", folder, "archive", "HEAD", wanted], stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "x", "-C", unpacked], input=archive.stdout, check=True)
    return unpacked


def gtfobins(folder):
    """Every `code:` of every page, a block or one line."""
    for page in sorted((checkout(folder, "_gtfobins") / "_gtfobins").iterdir()):
        lines = page.read_text().splitlines()
        at = 0
        while at < len(lines):
            found = re.match(r"^(\s*)(-\s+)?code:\s*(.*)$", lines[at])
            at += 1
            if not found:
                continue
            depth = len(found[1]) + len(found[2] or "")
            if not re.fullmatch(r"[|>][-+]?", found[3]):
                yield page.stem, found[3].strip("'\"")
                continue
            block = []
            while at < len(lines) and (not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip()) > depth):
                block.append(lines[at])
                at += 1
            indent = min((len(line) - len(line.lstrip()) for line in block if line.strip()), default=0)
            yield page.stem, "\n".join(line[indent:] for line in block).rstrip("\n")


def filled(placeholder):
    """`{{[-l|--long]}}` is the long option, `{{a|b}}` the first of them, anything else its own text."""
    text = placeholder[1]
    options = re.fullmatch(r"\[([^\[\]]*)\]", text)
    if options and options[1].startswith("-"):
        return options[1].split("|")[-1]
    return text.split("|")[0] if re.fullmatch(r"[\w./:=-]+(\|[\w./:=-]+)+", text) else text


def tldr(folder):
    for page in sorted((checkout(folder, "pages") / "pages").glob("*/*.md")):
        if page.parent.name in ("windows", "dos", "cisco-ios"):
            continue
        for line in page.read_text().splitlines():
            found = re.fullmatch(r"`(.+)`", line)
            # `<Ctrl c>`, `<q>`: keys to press, no command.
            if found and not re.search(r"<[^<>(){}$&]+>", found[1]):
                text = re.sub(r"\{\{(.*?)\}\}(?!\})", filled, found[1])
                yield page.stem, text.replace("\\{\\{", "{{").replace("\\}\\}", "}}")


def nl2bash(folder):
    for line in (checkout(folder, "data/bash") / "data/bash/all.cm").read_text().splitlines():
        yield "", line


def assessed(commands):
    built = [ENGINE / profile / "examples/assess" for profile in ("release", "debug")]
    engine = max((file for file in built if file.exists()), key=lambda file: file.stat().st_mtime, default=None)
    if engine is None:
        sys.exit("measure: build the engine first: cargo build --release -p countersign-shell --example assess")
    rows = "".join(json.dumps({"command": command}) + "\n" for command in commands)
    answer = subprocess.run([engine], input=rows, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in answer.stdout.splitlines()]


def parses(command):
    if "\0" in command:
        return False
    checked = subprocess.run(["bash", "-n", "-c", command], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    # Bash forgives a heredoc that the end of the text ends, with a warning.
    return checked.returncode == 0 and b"here-document" not in checked.stderr


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("collection", choices=["gtfobins", "tldr", "nl2bash"])
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--list", action="store_true", help="show the commands behind the figures")
    given = arguments.parse_args()
    rows = list({"gtfobins": gtfobins, "tldr": tldr, "nl2bash": nl2bash}[given.collection](given.folder))
    commands = [command for _, command in rows]
    answers = assessed(commands)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        valid = list(pool.map(parses, commands))

    def codes(answer):
        return {reason["code"] for reason in answer["reasons"]}

    risks = collections.Counter(answer["risk"] for answer in answers)
    opaque = [at for at, answer in enumerate(answers) if codes(answer) & NOT_ANALYSABLE]
    allowed = [at for at, answer in enumerate(answers) if answer["verdict"] == "allow"]
    ours_only = [at for at in range(len(rows)) if not valid[at] and at not in set(opaque)]
    bash_only = [at for at in opaque if valid[at]]
    share = lambda some: f"{len(some)} of {len(rows)} ({100 * len(some) / len(rows):.2f} %)"
    print(f"commands read             {len(rows)}")
    print(f"risk                      {dict(risks)}")
    print(f"not analysable            {share(opaque)}")
    print(f"allowed without asking    {share(allowed)}")
    print(f"bash -n disagrees         {share(ours_only + bash_only)}")
    print(f"  read here, not by bash  {len(ours_only)}")
    print(f"  read by bash, not here  {len(bash_only)}")
    if given.list:
        for title, chosen in (("allowed", allowed), ("read by bash, not here", bash_only), ("read here, not by bash", ours_only)):
            print(f"\n{title}:")
            for at in chosen:
                print(f"  {rows[at][0]}: {commands[at]!r}" + ("" if title == "allowed" else f"  {sorted(codes(answers[at]))[:4]}"))


main()
