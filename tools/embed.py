#!/usr/bin/env python3
"""Embeds text files into a C++ header/source pair: embed.py NAMESPACE OUT_STEM FILES..."""
import pathlib
import sys


def main() -> None:
    namespace, stem, files = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    header = ["#pragma once", "#include <string_view>", f"namespace {namespace} {{"]
    source = [f'#include "{stem.name}.h"', f"namespace {namespace} {{"]
    for name in sorted(files):
        path = pathlib.Path(name)
        symbol = "k_" + path.stem.replace("-", "_").replace(".", "_")
        text = path.read_text(encoding="utf-8")
        header.append(f"extern const std::string_view {symbol};")
        # Long literals are split: compilers limit the length of one.
        chunks = [text[i : i + 8000] for i in range(0, len(text), 8000)] or [""]
        body = "\n".join(f'R"__sql({chunk})__sql"' for chunk in chunks)
        source.append(f"extern const std::string_view {symbol};\nconst std::string_view {symbol} =\n{body};")
    header.append("}")
    source.append("}")
    write_if_changed(stem.with_suffix(".h"), "\n".join(header) + "\n")
    write_if_changed(stem.with_suffix(".cpp"), "\n".join(source) + "\n")


def write_if_changed(path: pathlib.Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


main()
