#!/bin/bash
# A cluster's init script: where LAKELOG_WHEEL_FOLDER names a folder (the bundle's variable
# wheel_folder), pip takes packages from there and asks no index. Runs before libraries are
# installed, as root; without the variable it changes nothing.
set -euo pipefail

if [ -n "${LAKELOG_WHEEL_FOLDER:-}" ]; then
  printf '[global]\nno-index = true\nfind-links = %s\n' "$LAKELOG_WHEEL_FOLDER" \
    >"${PIP_CONFIG_FILE:-/etc/pip.conf}"
fi
