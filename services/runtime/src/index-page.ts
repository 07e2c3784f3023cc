// The page at `/` of the gateway: services with their state, addresses and links, and commands to try.
import { nameProgram } from "@platform/kernel/config";
import { loadInlineTokens } from "@platform/look";
import { formatCommand, formatFolder } from "./data-folder/data-folder.ts";
import type { RunningState, ServiceState } from "./data-folder/running-file.ts";
import type { Trial } from "./services/entry.ts";

const STYLE = `
body { margin: 0; background: var(--paper); color: var(--ink); font: var(--t-body); overflow-wrap: anywhere }
main { box-sizing: border-box; max-width: 60rem; min-height: 100vh; margin: 0 auto; padding: var(--s6); background: var(--sheet); border-inline: 1px solid var(--line) }
h1 { margin: 0 0 var(--s2); font: var(--t-title) }
h2 { margin: var(--s8) 0 var(--s2); font: var(--t-strong) }
a { color: var(--accent); text-underline-offset: .15em }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px }
.scroll { overflow-x: auto }
table { width: 100%; border-collapse: collapse }
th { color: var(--ink-3); font: var(--t-micro) }
th, td { padding: var(--s2) var(--s4) var(--s2) 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; overflow-wrap: normal }
.mono, code { font: var(--t-code) }
pre { margin: var(--s1) 0; padding: var(--s2) var(--s3); border-radius: var(--r2); background: var(--well); white-space: pre-wrap }
p { margin: var(--s1) 0 var(--s4) }
.note { color: var(--ink-3) }
`;

/** Formats the page; `dataDir` is absolute. All texts are escaped; it contains no secrets. */
export function formatIndexPage(
  state: RunningState,
  trials: readonly Trial[],
  dataDir: string,
): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>platform</title><style>${loadInlineTokens()}${STYLE}</style></head>
<body>
<main>
<h1>platform ${escape(state.version)}</h1>
<p class="note">Data in ${escape(formatFolder(dataDir))}, started ${escape(state.started_at)}. This page is served to this machine only, because no route of the gateway matches it.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Services">
<table>
<thead><tr><th>Service</th><th>State</th><th>Address</th><th>Links</th></tr></thead>
<tbody>
${state.services.toReversed().map(formatService).join("\n")}
</tbody>
</table>
</div>
<h2>Try</h2>
${trials.map(formatTrial).join("\n")}
<h2>Operate</h2>
<pre><code>${escape(formatCommand(dataDir, "status"))}</code></pre>
<pre><code>${escape(formatCommand(dataDir, "logs --follow"))}</code></pre>
<pre><code>${escape(nameProgram("platform"))} --help</code></pre>
</main>
</body>
</html>
`;
}

function formatService(service: ServiceState): string {
  const { label, state, restarts, last_failure: failure } = service;
  const url = service.url === "" ? "" : (service.public_url ?? service.url);
  const detail =
    restarts === 0
      ? ""
      : `<br><span class="note">${restarts} restarts; ${escape(failure ?? "")}</span>`;
  return `<tr><td>${escape(label)}</td><td>${state}${detail}</td><td class="mono">${link(url, url)}</td><td>${listLinks(service).join(" · ")}</td></tr>`;
}

function listLinks({ name, url, probe_url: probes }: ServiceState): string[] {
  if (probes === undefined) return [];
  return [
    ...(name === "auth" ? [link(`${url}/account`, "account")] : []),
    link(`${probes}/api/docs`, "API"),
    // Those of the gateway require a token, also from this machine.
    ...(name === "gate" ? [] : [link(`${probes}/metrics`, "metrics")]),
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
