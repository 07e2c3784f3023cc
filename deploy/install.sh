#!/bin/sh
# Installs a release of the platform for Linux, from the files beside this script or from an address:
#
#   sh install.sh                           below /usr/local as root, otherwise below ~/.local
#   sh install.sh --prefix /opt/platform    elsewhere
#   sh install.sh --from https://HOST/PATH  fetches the files of the release
#   sh install.sh --use 1.0.0               goes back, or forth, to a version that is installed
#
# PREFIX/lib/platform/VERSION is a version, PREFIX/lib/platform/current a link to the one that is used, and
# PREFIX/bin/platform its command line. Versions stay until they are removed by hand. An unpacked version is complete: the
# link is swapped at the end, in one step, and nothing has changed if anything fails before.
set -eu

version=@VERSION@
from=$(dirname "$0")
use=
if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:-}/.local; fi

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
    --prefix | --from | --use)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in
        --prefix) prefix=$2 ;;
        --from) from=$2 ;;
        --use) use=$2 ;;
      esac
      shift 2
      ;;
    *) fail "unknown option $1; expected --prefix FOLDER, --from FOLDER_OR_ADDRESS or --use VERSION" ;;
  esac
done

[ "$(uname -s)" = Linux ] || fail "releases are for Linux; on $(uname -s), install platform-$version.tgz with npm"
case $(uname -m) in
  x86_64) target=linux-x64 ;;
  aarch64 | arm64) target=linux-arm64 ;;
  *) fail "there is no release for $(uname -m)" ;;
esac

versions=$prefix/lib/platform
draft=$versions/.install.$$
cleanup() {
  rm -rf "$draft" "$draft.link"
  # Made for files that were fetched.
  rmdir "$versions" "$prefix/lib" 2>/dev/null || true
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Swaps the link. A rename replaces it in one step.
activate() {
  former=$(readlink "$versions/current" 2>/dev/null || true)
  ln -s "$1" "$draft.link"
  mv -T "$draft.link" "$versions/current"
  mkdir -p "$prefix/bin"
  if [ ! -e "$prefix/bin/platform" ] || [ -L "$prefix/bin/platform" ]; then
    ln -s ../lib/platform/current/platform "$draft.link"
    mv -T "$draft.link" "$prefix/bin/platform"
  else
    fail "$prefix/bin/platform is not a link of an installation: remove it, and run this again"
  fi
  echo "platform $1 is installed: $prefix/bin/platform"
  if [ -n "$former" ] && [ "$former" != "$1" ]; then
    echo "platform $former stays in $versions/$former; back to it: sh install.sh --prefix $prefix --use $former"
  fi
}

if [ -n "$use" ]; then
  case $use in */* | .*) fail "$use is not a version" ;; esac
  [ -x "$versions/$use/platform" ] || fail "platform $use is not installed in $versions"
  activate "$use"
  exit 0
fi

name=platform-$version-$target
archive=$name.tar.gz
case $from in
  http://* | https://*)
    command -v curl >/dev/null || fail "curl is not installed; download $archive and SHA256SUMS, and name their folder with --from"
    mkdir -p "$draft"
    for file in SHA256SUMS "$archive"; do
      curl -fsSL --retry 2 -o "$draft/$file" "$from/$file" || fail "$from/$file could not be fetched"
    done
    from=$draft
    ;;
esac
[ -f "$from/$archive" ] || fail "$from/$archive is missing; name the folder or the address of the release with --from"
[ -f "$from/SHA256SUMS" ] || fail "$from/SHA256SUMS is missing: it is a file of the release"
expected=$(awk -v name="$archive" '$2 == name { print $1 }' "$from/SHA256SUMS")
[ -n "$expected" ] || fail "$from/SHA256SUMS does not name $archive"
actual=$(sha256sum "$from/$archive" | cut -d ' ' -f 1)
[ "$actual" = "$expected" ] || fail "$archive has the hash $actual, not $expected of SHA256SUMS: it is damaged or not of this release; nothing was changed"

if [ "$(cat "$versions/$version/.sha256" 2>/dev/null || true)" != "$expected" ]; then
  mkdir -p "$draft"
  tar -xzof "$from/$archive" -C "$draft"
  echo "$expected" >"$draft/$name/.sha256"
  "$draft/$name/platform" --version >/dev/null || fail "platform $version does not start on this machine; nothing was changed"
  # The same version from other files: programs that run keep the files that they have open.
  if [ -e "$versions/$version" ]; then mv -T "$versions/$version" "$draft/replaced"; fi
  mv -T "$draft/$name" "$versions/$version"
fi
activate "$version"
