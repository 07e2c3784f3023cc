// The page at `/` of the gateway: services with their state, addresses and links, and commands to try.
import type { RunningState, ServiceState } from "./data-folder/running-file.ts";
import type { Trial } from "./services/entry.ts";

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 3rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .4rem 1rem .4rem 0; border-bottom: 1px solid #8884; vertical-align: top }
code, pre { font-family: ui-monospace, monospace; font-size: .85rem }
pre { overflow-x: auto; margin: .2rem 0 }
.note { opacity: .7 }
`;

/** Formats the page. All texts are escaped; it contains no secrets. */
export function formatIndexPage(
  state: RunningState,
  trials: readonly Trial[],
  dataDir: string,
): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>platform</title><style>${STYLE}</style></head>
<body>
<h1>platform ${escape(state.version)}</h1>
<p class="note">Data in ${escape(dataDir)}, started ${escape(state.started_at)}. This page is served to this machine only, because no route of the gateway matches it.</p>
<table>
<thead><tr><th>service</th><th>state</th><th>address</th><th>links</th></tr></thead>
<tbody>
${state.services.toReversed().map(formatService).join("\n")}
</tbody>
</table>
<h2>Try</h2>
${trials.map(formatTrial).join("\n")}
<h2>Operate</h2>
<pre><code>npx platform status</code></pre>
<pre><code>npx platform logs --follow</code></pre>
<pre><code>npx platform --help</code></pre>
</body>
</html>
`;
}

function formatService(service: ServiceState): string {
  const { label, state, url, restarts, last_failure: failure } = service;
  const detail =
    restarts === 0
      ? ""
      : `<br><span class="note">${restarts} restarts; ${escape(failure ?? "")}</span>`;
  return `<tr><td>${escape(label)}</td><td>${state}${detail}</td><td>${link(url, url)}</td><td>${listLinks(service).join(" · ")}</td></tr>`;
}

function listLinks({ name, url, probe_url: probes }: ServiceState): string[] {
  if (probes === undefined) return [];
  return [
    ...(name === "auth" ? [link(`${url}/account`, "account")] : []),
    link(`${probes}/api/docs`, "API"),
    link(`${probes}/metrics`, "metrics"),
    link(`${probes}/readyz`, "readiness"),
  ];
}

function formatTrial({ command, meaning }: Trial): string {
  return `<pre><code>${escape(command)}</code></pre><p class="note">${escape(meaning)}</p>`;
}

function link(url: string, text: string): string {
  return url === "" ? "" : `<a href="${escape(url)}">${escape(text)}</a>`;
}

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
