# Runs the steps of deploy/Dockerfile in a folder as root, in namespaces of their own: container-steps.sh ROOT RELEASE.
root=$1
release=$2

# The base image.
for name in usr bin sbin lib lib64; do
  [ -e "/$name" ] || continue
  if [ -L "/$name" ]; then
    ln -s "$(readlink "/$name")" "$root/$name"
  else
    mkdir "$root/$name"
    mount --bind "/$name" "$root/$name"
    mount -o remount,bind,ro "$root/$name"
  fi
done
cp -a /etc "$root/etc"
mkdir "$root/proc" "$root/dev" "$root/release"
mkdir -m 1777 "$root/tmp"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
ip link set lo up

cp "$release"/SHA256SUMS "$release"/platform-*-linux-*.tar.gz "$root/release"
chroot "$root" /bin/sh -ec "$STEPS"
rm -r "$root/release"
echo "size $(du -sm "$root/app" | cut -f1) MB"

# shellcheck disable=SC2086
enter() {
  chroot --userspec="$IMAGE_USER" "$root" /usr/bin/env -i $VARIABLES "$@"
}

began=$(date +%s%N)
enter $START >"$root/log" 2>&1 &
for _ in $(seq 600); do
  grep -q '"type":"started"' "$root/log" && break
  kill -0 $! || { cat "$root/log"; exit 1; }
  sleep 0.1
done
echo "started after $((($(date +%s%N) - began) / 1000000)) ms"
# Its number in this namespace.
process=$(grep -o '"pid": *[0-9]*' "$root/data/running.json" | head -n 1 | grep -o '[0-9]*$')
echo "uid $(awk '/^Uid:/ { print $2 }' "$root/proc/$process/status")"
enter $HEALTH
kill -TERM "$process"
status=0
wait $! || status=$?
echo "stopped with $status"
