// nginx as a reverse proxy, tuned as its documentation advises for keep-alive upstreams.
import { join } from "node:path";
import { askVersion, findProgram } from "../../../tests/stage/program.ts";
import { writeLoadedNginxConfig } from "../../harness/nginx.ts";
import { startPinned } from "../../harness/process.ts";
import type { Proxy, ProxySetup } from "./proxy.ts";

/** The peer that the goals are set against. */
export const nginx: Proxy = {
  name: "nginx",
  isOurs: false,
  explainAbsence: () => (findProgram("nginx") ? undefined : "nginx is not installed"),
  readVersion: () => askVersion("nginx", ["-v"]),
  start: (setup) =>
    startPinned({
      name: "nginx",
      cores: setup.cores,
      ...writeLoadedNginxConfig(setup.folder, {
        workers: setup.workers,
        http: writeHttpBlock(setup),
        // The same flush interval as our gateway's access log, so that nginx does as little work as possible.
        ...(setup.accessLog
          ? { accessLog: `${join(setup.folder, "access.log")} combined buffer=64k flush=200ms` }
          : {}),
      }),
    }),
};

function writeHttpBlock(setup: ProxySetup): string {
  return `
    ${setup.rateLimit === true ? "limit_req_zone $binary_remote_addr zone=rate:10m rate=1000000r/s;" : ""}
    ${setup.cache === true ? `proxy_cache_path ${join(setup.folder, "cache")} levels=1:2 keys_zone=store:10m;` : ""}
    upstream backend { server 127.0.0.1:${setup.upstreamPort}; keepalive 128;
      keepalive_requests 1000000000; keepalive_timeout 300s; }
    server {
      listen 127.0.0.1:${setup.port} ${setup.workers > 1 ? "reuseport" : ""} backlog=4096;
      location / {
        proxy_pass http://backend;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $host;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto $scheme;
        ${setup.rateLimit === true ? "limit_req zone=rate burst=1000000 nodelay;" : ""}
        ${setup.cache === true ? "proxy_cache store; proxy_cache_valid 200 1h; add_header X-Cache $upstream_cache_status;" : ""}
        proxy_buffering ${setup.unbuffered ? "off" : "on"};
        ${setup.bufferKib === undefined ? "" : writeBufferSizes(setup.bufferKib)}
      }
    }`;
}

// nginx validates its buffer sizes against each other even if buffering is off.
function writeBufferSizes(kib: number): string {
  return `proxy_buffer_size ${kib}k; proxy_buffers 8 ${kib}k; proxy_busy_buffers_size ${kib * 2}k;`;
}
