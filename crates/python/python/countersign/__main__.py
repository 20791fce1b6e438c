"""``python -m countersign``: the program that is in the same wheel."""

from __future__ import annotations

import os
import sys
import sysconfig


def main() -> None:
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    name = "countersign.exe" if os.name == "nt" else "countersign"
    for folder in folders:
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            os.execv(path, [path, *sys.argv[1:]])
    sys.exit(f"there is no program `{name}` in {' or '.join(folders)}: install the wheel of countersign for this platform")


if __name__ == "__main__":
    main()
