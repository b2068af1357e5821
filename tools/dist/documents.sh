#!/usr/bin/env bash
# documents.sh TREE VERSION TRIPLE [ZIG]: adds to TREE, where bin/causeway is, all that is not compiled: man
# pages, completions, the module file, units, the header, documents, licences and the SBOM. ZIG is the
# version of the compiler of C, if it is zig. EMULATOR runs programs for TRIPLE, if this machine cannot.
set -euo pipefail
tree=$1
version=$2
triple=$3
zig=${4:-}
cd "$(dirname "$0")/../.."
share=$tree/share
read -ra causeway <<<"${EMULATOR:-}"
causeway+=("$tree/bin/causeway")
doc=$share/doc/causeway

mkdir -p "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d" \
    "$share/modulefiles/causeway" "$share/systemd/user" "$doc/configs" "$tree/include"
"${causeway[@]}" describe man "$share/man/man1"
"${causeway[@]}" describe completions bash >"$share/bash-completion/completions/causeway"
"${causeway[@]}" describe completions zsh >"$share/zsh/site-functions/_causeway"
"${causeway[@]}" describe completions fish >"$share/fish/vendor_completions.d/causeway.fish"
sed "s/@VERSION@/$version/" tools/dist/modulefile >"$share/modulefiles/causeway/$version"
cp configs/*.service "$share/systemd/user/"
cp configs/*.toml "$doc/configs/"
cp mpi/include/causeway_mpi.h "$tree/include/"
cp -r README.md ARCHITECTURE.md CHANGELOG.md LICENSE docs "$doc/"
# Of a link to sources or results, which are not here, its words stay.
tools/dist/links.py "$doc"
tools/dist/contents.py --version "$version" --triple "$triple" ${zig:+--zig "$zig"} \
    --sbom "$doc/sbom.cdx.json" --licences "$doc/third-party-licences.txt"
