// The interactive documentation: one page without foreign parts that lists every operation and lets it be tried.

/** The page for an OpenAPI document; `nonce` stands in the page's content security policy. */
export function renderDocsPage(document: Record<string, unknown>, nonce: string): string {
  // `<` written so cannot end the script, whatever the routes are called.
  const data = JSON.stringify(document).replaceAll("<", "\\u003c");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gateway API</title>
<style nonce="${nonce}">${style}</style>
</head>
<body>
<header><h1></h1><p></p>
<label>Bearer token <input id="token" type="password" autocomplete="off" placeholder="none"></label></header>
<main></main>
<script nonce="${nonce}">const api = ${data};
${script}</script>
</body>
</html>
`;
}

const style = `
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0; }
summary { cursor: pointer; padding: .4rem .7rem; }
summary b { display: inline-block; width: 5rem; font-family: monospace; }
summary code { margin-right: 1rem; }
form { padding: .2rem .8rem .8rem; display: grid; gap: .5rem; justify-items: start; }
label { display: grid; gap: .2rem; width: 100%; }
input, textarea { font: inherit; font-family: monospace; padding: .3rem; width: 100%; box-sizing: border-box; }
pre { background: var(--soft); padding: .6rem; overflow: auto; max-height: 24rem; width: 100%; box-sizing: border-box; margin: 0; }
`;

const script = `
const make = (name, props, ...kids) => {
  const node = Object.assign(document.createElement(name), props);
  node.append(...kids);
  return node;
};
document.querySelector("h1").textContent = api.info.title + " " + api.info.version;
document.querySelector("header p").textContent = api.info.description;
const token = document.querySelector("#token");
const page = document.querySelector("main");
for (const tag of api.tags) {
  page.append(make("h2", { textContent: tag.description }));
  for (const [path, item] of Object.entries(api.paths)) {
    const entries = Object.entries(item).filter(([, it]) => it.tags && it.tags.includes(tag.name));
    const shown = tag.name === "routes" ? entries.slice(0, 1) : entries;
    for (const [method, it] of shown) page.append(describe(path, method, item, it));
  }
}
function describe(path, method, item, it) {
  const fields = [...(item.parameters || []), ...(it.parameters || [])].map((spec) => ({
    spec, input: make("input", { placeholder: spec.required ? "required" : "", name: spec.name }) }));
  const hasBody = Boolean(it.requestBody);
  const body = make("textarea", { rows: 6, value: hasBody ? '{\\n  "prefix": "/shop",\\n  "target": "http://127.0.0.1:9000"\\n}' : "" });
  const out = make("pre", { hidden: true });
  const form = make("form", {},
    ...fields.map(({ spec, input }) => make("label", { textContent: spec.name + " (" + spec.in + ")" }, input)),
    ...(hasBody ? [make("label", { textContent: "body" }, body)] : []),
    make("button", { textContent: "Send" }), out);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    let url = path.split("#")[0];
    const query = new URLSearchParams();
    const headers = {};
    for (const { spec, input } of fields) {
      if (spec.in === "path") url = url.replace("{" + spec.name + "}", input.value);
      else if (input.value === "") continue;
      else if (spec.in === "query") query.set(spec.name, input.value);
      else headers[spec.name] = input.value;
    }
    if (token.value !== "") headers.Authorization = "Bearer " + token.value;
    if (hasBody) headers["Content-Type"] = "application/json";
    out.hidden = false;
    out.textContent = "…";
    try {
      const search = query.size > 0 ? "?" + query : "";
      const answer = await fetch(url + search, {
        method: method.toUpperCase(), headers, ...(hasBody ? { body: body.value } : {}) });
      const text = await answer.text();
      out.textContent = answer.status + " " + answer.statusText + "\\n\\n" + text.slice(0, 100000);
    } catch (error) {
      out.textContent = String(error);
    }
  });
  return make("details", {},
    make("summary", {}, make("b", { textContent: method.toUpperCase() }), make("code", { textContent: path }), it.summary),
    form);
}
`;
